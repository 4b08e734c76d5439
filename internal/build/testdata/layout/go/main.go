// A library with every kind of field in its states: what it says of itself is in ../manifest.json.
//
// A second paragraph is for readers of the source.
//
//spin:library layout 1.2.3
//spin:needs memory=hpus*mtu+8 user_header=0x20 spaces=entry,handler host_memory=4096
package main

import (
	"structs"
	"unsafe"

	"github.com/spinsim/spinsim/internal/build/testdata/layout/go/shared"
	"github.com/spinsim/spinsim/spin"
)

//spin:needs entry_options=op_put,manage_local pt_options=flowctrl pool=hpu
//spin:needs handler=completion packets=last
//spin:needs handler=header user_header=0x40 scratchpad=8*hpus packets=first

const rows = 2

type byteCount uint32

// complexDouble is what C calls _Complex double; a handler cannot have Go's own in its state.
type complexDouble struct {
	_      structs.HostLayout
	Re, Im float64
}

type slot struct {
	_    structs.HostLayout
	Seq  uint16
	Data [3]uint8
	Next uint32 `spin:"unit=bytes max=64"` // behind the slot
}

// State has every type, and gaps of all sizes.
type State struct {
	_     structs.HostLayout
	Used  uint8 `spin:"default=min(hpus,4)"` // slots
	Big   uint64
	Small int8
	// Wide begins at a multiple of 4.
	//
	// And has more to say.
	Wide  int32 `spin:"name=width min=-5 default=-1"`
	Short int16
	Flag  bool `spin:"default=1"`
	_     uint8
	Count byteCount `spin:"unit=bytes"`
	Half  float32   `spin:"default=0.5 min=0 max=1"`
	Full  float64
	X, Y  int64 // both
	Done  spin.Counter
	Sum   complexDouble
	Part  struct {
		_      structs.HostLayout
		Re, Im float32
	}
	_     structs.HostLayout
	At    unsafe.Pointer       // in the module's memory
	Table [rows][rows + 1]slot // of slots
	Pad   struct {
		_ structs.HostLayout
		A uint32
		B uint8
	}
	After uint8
	Words [4]uint32 `spin:"default=7"`
	Last  uint8
}

// payload takes a packet.
// It does so in two lines.
//
//go:wasmexport take_packet
func payload(_ *spin.Payload, s *State) spin.Code {
	s.Used++
	return spin.Success
}

//go:wasmexport header
func header(_ *spin.Header, s *shared.State) spin.Code {
	s.Seen++
	return spin.Success
}

// The end.
//
//export completion
func completion(_ *spin.Completion, _ *State) spin.Code { return spin.Success }

//go:wasmexport raw
func raw(_, s *uint32) int32 { return int32(*s) }

//go:wasmexport helper
func helper(x int32) int32 { return x }

func main() {}
