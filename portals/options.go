package portals

import "strings"

// NIOptions select one of the four interfaces of a process (Portals 4.x §3.6.2).
type NIOptions uint32

// Interface options; exactly one of each pair must be given to NIInit.
const (
	OptNIMatching NIOptions = 1 << iota // PTL_NI_MATCHING: match bits select the entry
	// PTL_NI_NO_MATCHING: the first list entry takes every request
	OptNINoMatching
	OptNILogical  // PTL_NI_LOGICAL: processes are named by rank
	OptNIPhysical // PTL_NI_PHYSICAL: processes are named by NID and PID
)

// Features of an interface, bits of Limits.Features (Portals 4.x §3.6.1).
type Features uint32

// Features an implementation may offer.
const (
	// PTL_TARGET_BIND_INACCESSIBLE: entries may name memory that is not
	// accessible
	FeatureTargetBindInaccessible Features = 1 << iota
	// PTL_TOTAL_DATA_ORDERING: data of any size is ordered
	FeatureTotalDataOrdering
	// PTL_COHERENT_ATOMICS: atomics are coherent with host accesses
	FeatureCoherentAtomics
)

// PTOptions are options of a portal table entry (Portals 4.x §3.7.1).
type PTOptions uint32

// Portal table entry options.
const (
	// PTL_PT_ONLY_USE_ONCE: hint that every entry will be USE_ONCE; others still
	// work
	OptPTOnlyUseOnce PTOptions = 1 << iota
	// PTL_PT_FLOWCTRL: exhaustion disables the entry instead of dropping
	OptPTFlowCtrl
	// PTL_PT_ONLY_TRUNCATE: hint that no priority entry will be NO_TRUNCATE; such
	// an entry still works
	OptPTOnlyTruncate
	OptPTAllocDisabled // PTL_PT_ALLOC_DISABLED: allocated in the disabled state
	// PTL_PT_MATCH_UNORDERED: requests may match in another order than that of
	// sending
	OptPTMatchUnordered
	optPTAll = OptPTMatchUnordered<<1 - 1
)

// MDOptions are options of a memory descriptor (Portals 4.x §3.10.1).
type MDOptions uint32

// Memory descriptor options.
const (
	OptMDIOVec MDOptions = 1 << iota // PTL_IOVEC: the memory is MD.IOVec
	// PTL_MD_EVENT_SUCCESS_DISABLE: no full events for success
	OptMDEventSuccessDisable
	OptMDEventSendDisable // PTL_MD_EVENT_SEND_DISABLE: no SEND full events
	OptMDEventCTSend      // PTL_MD_EVENT_CT_SEND: count SEND events
	OptMDEventCTReply     // PTL_MD_EVENT_CT_REPLY: count REPLY events
	OptMDEventCTAck       // PTL_MD_EVENT_CT_ACK: count ACK events
	// PTL_MD_EVENT_CT_BYTES: count bytes of success instead of operations
	OptMDEventCTBytes
	// PTL_MD_UNORDERED: messages need not arrive in order
	OptMDUnordered
	// PTL_MD_VOLATILE: the buffer may change after the call, up to
	// max_volatile_size
	OptMDVolatile
	// PTL_MD_UNRELIABLE: the transport may lose the message
	OptMDUnreliable
	optMDAll = OptMDUnreliable<<1 - 1
)

// EntryOptions are options of list entries and match list entries
// (Portals 4.x §3.11.1 and §3.12.1).
type EntryOptions uint32

// Options of match list entries. Those of list entries have the same values.
const (
	OptMEIOVec EntryOptions = 1 << iota // PTL_IOVEC: the memory is ME.IOVec
	OptMEOpPut                          // PTL_ME_OP_PUT: accept puts and atomics
	// PTL_ME_OP_GET: accept gets; with OpPut, fetching atomics and swaps
	OptMEOpGet
	OptMEUseOnce // PTL_ME_USE_ONCE: unlink at the first match
	// PTL_ME_UNEXPECTED_HDR_DISABLE: an overflow match leaves no header
	OptMEUnexpectedHdrDisable
	// PTL_ME_IS_ACCESSIBLE: all of the memory is accessible
	OptMEIsAccessible
	OptMEEventLinkDisable // PTL_ME_EVENT_LINK_DISABLE: no LINK event
	// PTL_ME_EVENT_COMM_DISABLE: no communication events
	OptMEEventCommDisable
	// PTL_ME_EVENT_FLOWCTRL_DISABLE: no PT_DISABLED event caused by this entry
	OptMEEventFlowCtrlDisable
	// PTL_ME_EVENT_SUCCESS_DISABLE: no full communication or overflow events
	// for success
	OptMEEventSuccessDisable
	OptMEEventOverDisable // PTL_ME_EVENT_OVER_DISABLE: no overflow events
	// PTL_ME_EVENT_UNLINK_DISABLE: no AUTO_UNLINK and AUTO_FREE events
	OptMEEventUnlinkDisable
	// PTL_ME_EVENT_CT_COMM: count communication events
	OptMEEventCTComm
	// PTL_ME_EVENT_CT_OVERFLOW: count overflow events
	OptMEEventCTOverflow
	// PTL_ME_EVENT_CT_BYTES: count bytes of success instead of operations
	OptMEEventCTBytes
	// PTL_ME_MANAGE_LOCAL: the entry manages the offset
	OptMEManageLocal
	// PTL_ME_NO_TRUNCATE: a request that does not fit does not match
	OptMENoTruncate
	// PTL_ME_MAY_ALIGN: a locally managed offset may be aligned (it is not)
	OptMEMayAlign
	// PTL_ME_LOCAL_INC_UH_RLENGTH: an overflow match advances the local offset
	// by the requested length
	OptMELocalIncUHRLength
	// PTL_ME_HANDLER_IOVEC (sPIN'17, appendix B.2): the second memory of the
	// handlers is Spin.HostMem.IOVec
	OptMEHandlerIOVec
	optMEAll        = OptMEHandlerIOVec<<1 - 1
	optLEAll        = OptMEManageLocal - 1 | OptMEHandlerIOVec
	optMEOnlyLocal  = OptMEMayAlign | OptMELocalIncUHRLength
	optMESpecific   = optMEAll &^ optLEAll
	optEntryEventCT = OptMEEventCTComm | OptMEEventCTOverflow
)

// Options of list entries (Portals 4.x §3.11.1); equal to those of match list
// entries of the same name.
const (
	OptLEIOVec                = OptMEIOVec                // PTL_IOVEC
	OptLEOpPut                = OptMEOpPut                // PTL_LE_OP_PUT
	OptLEOpGet                = OptMEOpGet                // PTL_LE_OP_GET
	OptLEUseOnce              = OptMEUseOnce              // PTL_LE_USE_ONCE
	OptLEUnexpectedHdrDisable = OptMEUnexpectedHdrDisable // PTL_LE_UNEXPECTED_HDR_DISABLE
	OptLEIsAccessible         = OptMEIsAccessible         // PTL_LE_IS_ACCESSIBLE
	OptLEEventLinkDisable     = OptMEEventLinkDisable     // PTL_LE_EVENT_LINK_DISABLE
	OptLEEventCommDisable     = OptMEEventCommDisable     // PTL_LE_EVENT_COMM_DISABLE
	OptLEEventFlowCtrlDisable = OptMEEventFlowCtrlDisable // PTL_LE_EVENT_FLOWCTRL_DISABLE
	OptLEEventSuccessDisable  = OptMEEventSuccessDisable  // PTL_LE_EVENT_SUCCESS_DISABLE
	OptLEEventOverDisable     = OptMEEventOverDisable     // PTL_LE_EVENT_OVER_DISABLE
	OptLEEventUnlinkDisable   = OptMEEventUnlinkDisable   // PTL_LE_EVENT_UNLINK_DISABLE
	OptLEEventCTComm          = OptMEEventCTComm          // PTL_LE_EVENT_CT_COMM
	OptLEEventCTOverflow      = OptMEEventCTOverflow      // PTL_LE_EVENT_CT_OVERFLOW
	OptLEEventCTBytes         = OptMEEventCTBytes         // PTL_LE_EVENT_CT_BYTES
	OptLEHandlerIOVec         = OptMEHandlerIOVec         // PTL_LE_HANDLER_IOVEC
)

// Option names without their prefix, in bit order; the script language and the
// coverage test use them.
var (
	NINames = []string{"MATCHING", "NO_MATCHING", "LOGICAL", "PHYSICAL"}
	PTNames = []string{"ONLY_USE_ONCE", "FLOWCTRL", "ONLY_TRUNCATE", "ALLOC_DISABLED", "MATCH_UNORDERED"}
	MDNames = []string{
		"IOVEC", "EVENT_SUCCESS_DISABLE", "EVENT_SEND_DISABLE", "EVENT_CT_SEND", "EVENT_CT_REPLY",
		"EVENT_CT_ACK", "EVENT_CT_BYTES", "UNORDERED", "VOLATILE", "UNRELIABLE",
	}
	EntryNames = []string{
		"IOVEC", "OP_PUT", "OP_GET", "USE_ONCE", "UNEXPECTED_HDR_DISABLE", "IS_ACCESSIBLE", "EVENT_LINK_DISABLE",
		"EVENT_COMM_DISABLE", "EVENT_FLOWCTRL_DISABLE", "EVENT_SUCCESS_DISABLE", "EVENT_OVER_DISABLE",
		"EVENT_UNLINK_DISABLE", "EVENT_CT_COMM", "EVENT_CT_OVERFLOW", "EVENT_CT_BYTES", "MANAGE_LOCAL",
		"NO_TRUNCATE", "MAY_ALIGN", "LOCAL_INC_UH_RLENGTH", "HANDLER_IOVEC",
	}
	FeatureNames = []string{"TARGET_BIND_INACCESSIBLE", "TOTAL_DATA_ORDERING", "COHERENT_ATOMICS"}
)

func bitNames(names []string, bits uint32) string {
	var on []string
	for i, n := range names {
		if bits&(1<<i) != 0 {
			on = append(on, n)
		}
	}
	if len(on) == 0 {
		return "0"
	}
	return strings.Join(on, "|")
}

// String lists the C names without their prefix.
func (f Features) String() string { return bitNames(FeatureNames, uint32(f)) }

// String lists the C names without their prefix.
func (o NIOptions) String() string { return bitNames(NINames, uint32(o)) }

// String lists the C names without their prefix.
func (o PTOptions) String() string { return bitNames(PTNames, uint32(o)) }

// String lists the C names without their prefix.
func (o MDOptions) String() string { return bitNames(MDNames, uint32(o)) }

// String lists the C names without their prefix.
func (o EntryOptions) String() string { return bitNames(EntryNames, uint32(o)) }
