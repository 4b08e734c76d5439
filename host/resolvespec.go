package host

import (
	"github.com/spinsim/spinsim/internal/fields"
	"github.com/spinsim/spinsim/sim"
)

// ResolveSpec is what the publications of PART leave open about a driver that
// resolves page faults of devices, and about the processes that it tells. It
// is a part of OSSpec. The zero value is what spinsim has always done. P is
// PART'22, T Psistakis'19.
type ResolveSpec struct {
	// FaultAsk selects when a block is asked for: AskBlock (also the empty
	// string), AskPage or AskRun. P: "For each unique failed page, the tasklet
	// resolves the page fault(s) ... and then triggers an ERR" (§4.4), but also no
	// "multiple retransmissions" of a block (§5.3).
	FaultAsk string `yaml:"fault_ask,omitempty"`
	// FaultLook selects what a run of the tasklet handles: LookAgain (also the
	// empty string) or LookOnce. P: it "starts by reading all entries" (§4.4).
	FaultLook string `yaml:"fault_look,omitempty"`
	// FaultGather makes one call of get_user_pages for those pages of a block that
	// lie side by side and are known when it begins. P: "the page fault(s)".
	// Absent: a call for each page.
	FaultGather bool `yaml:"fault_gather,omitempty"`
	// FaultForget makes the driver forget a block when it has asked for it, so
	// that it handles later entries for pages of this block again. T: it remembers
	// two. Absent: two.
	FaultForget bool `yaml:"fault_forget,omitempty"`
	// FaultSearch is the time to find how far a policy that brings in all pages
	// goes, per page that it is asked for, at most 1 s. P: PIA takes 2 us more than
	// PIO, "due to different code paths" (§6.1.1). Absent: 0.
	FaultSearch sim.Time `yaml:"fault_search,omitempty"`
	// FaultTouch is how a thread of the process touches a page for a write of a
	// device: TouchWrite (also the empty string) or TouchRead. P: "reading and then
	// writing the first byte" (§3).
	FaultTouch string `yaml:"fault_touch,omitempty"`
	// NetlinkWake is the time from a message to a process until its thread runs
	// that waits for messages asleep, at most 1 s. P: measured 7 us beyond the sum
	// of the parts, mostly context switches (§5.2). T says of the thread that it
	// "busy waits" and that it is "woken up". 0, or absent: it spins on its core.
	NetlinkWake sim.Time `yaml:"netlink_wake,omitempty"`
	// NetlinkCore selects the core of that thread: CoreNext (also the empty
	// string) behind that of the process, CoreProcess or CoreInterrupt. T:
	// "taskset 0x4" has all threads of the process on core 2.
	NetlinkCore string `yaml:"netlink_core,omitempty"`
}

// Values of ResolveSpec.FaultAsk: a block is asked for once, after its last
// page; after each of its pages, where the source ignores requests for an
// attempt that is over; or once at the end of the run of the tasklet.
const (
	AskBlock = "block"
	AskPage  = "page"
	AskRun   = "run"
)

// Values of ResolveSpec.FaultLook: a run of the tasklet looks for further
// entries before the last page of each block; or it reads all at its beginning
// and leaves later ones to the next run.
const (
	LookAgain = "again"
	LookOnce  = "once"
)

// Values of ResolveSpec.FaultTouch: a write, which is one page fault; or a read
// and a write, which are two, because a page that is only read is the page of
// zeros.
const (
	TouchWrite = "write"
	TouchRead  = "read-write"
)

// Values of ResolveSpec.NetlinkCore: the core behind that of the process, that
// of the process, or that of the SMMU's interrupts.
const (
	CoreNext      = "next"
	CoreProcess   = "process"
	CoreInterrupt = "interrupt"
)

// Asks returns FaultAsk, which is never empty.
func (s *ResolveSpec) Asks() string { return chosen(s.FaultAsk, AskBlock) }

func chosen(value, absent string) string {
	if value == "" {
		return absent
	}
	return value
}

func (s *ResolveSpec) validate(wrong *fields.Errors) {
	wrong.OneOf("fault_ask", s.Asks(), AskBlock, AskPage, AskRun)
	wrong.OneOf("fault_look", chosen(s.FaultLook, LookAgain), LookAgain, LookOnce)
	wrong.OneOf("fault_touch", chosen(s.FaultTouch, TouchWrite), TouchWrite, TouchRead)
	wrong.OneOf("netlink_core", chosen(s.NetlinkCore, CoreNext), CoreNext, CoreProcess, CoreInterrupt)
}
