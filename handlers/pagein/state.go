// Package pagein is the interface between PART's driver and a page-fault policy
// that is a handler module (Psistakis et al., IEEE TPDS 2022, §4.4: "P"). The
// kernel of a node runs the handler for each fault that needs an answer, as
// Linux runs programs of eBPF: the question is the user header, and the answer
// is in the state.
package pagein

import "structs"

// PageBytes is the size of a page.
const PageBytes = 4096

// Fault is the question: the user header of the message.
type Fault struct {
	_    structs.HostLayout
	Page uint64 `spin:"unit=bytes"` // address of the absent page
	// The mapping of the process around the page, from Start up to End. Nobody
	// knows how far the transfer goes.
	Start uint64 `spin:"unit=bytes"`
	End   uint64 `spin:"unit=bytes"`
	At    uint64 `spin:"unit=ps"` // time of the question
	// 1: the page must be read, at the source of a transfer. 0: it is written, at
	// the destination
	Source  uint32
	Process uint32 // that owns the page: processes of a node count from 0, as they first fault

	// The attempt to send a block whose cell met the page: all zero if only the
	// registers of the SMMU are known, as for a fault at a source.
	Known       uint32
	SourceNID   uint32 // node that sends
	SourcePID   uint32 // its process
	Transaction uint32 // 14 bits
	Sequence    uint32 // 14 bits, another with each attempt
	_           uint32
}

// Range is the addresses from Start up to End; empty if End is not behind Start.
type Range struct {
	_     structs.HostLayout
	Start uint64 `spin:"unit=bytes"`
	End   uint64 `spin:"unit=bytes"`
}

// Plan is the answer. It is zero when the handler begins.
type Plan struct {
	_ structs.HostLayout
	// First is brought in before the block is asked for. It includes the page. The
	// driver cuts it to the mapping.
	First Range
	// Then is brought in after that; empty: nothing.
	Then Range
	// 1: the driver looks for the end of what is wanted (os.fault_search)
	Search uint32 `spin:"max=1"`
	_      uint32
}

// State is the memory of the policy of a node.
type State struct {
	_    structs.HostLayout
	Plan Plan // the answer
	// Pages to bring in, from the absent one on: P's PIO with 1, PIA with 0, which
	// means up to the end of the mapping.
	Pages uint32 `spin:"default=1"`
	_     uint32
}
