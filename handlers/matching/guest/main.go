// Completes large messages from the network interface: asynchronous matching (sPIN'17 §5.1).
//
//spin:library matching 1.0
//spin:needs spaces=entry entry_options=op_put
//spin:needs handler=header user_header=16
package main

import (
	"unsafe"

	"github.com/spinsim/spinsim/handlers/matching"
	"github.com/spinsim/spinsim/spin"
)

// header gets the rest of an announced message from its sender; a small message
// takes the default action.
//
//go:wasmexport header
func header(h *spin.Header, s *matching.State) spin.Code {
	if h.HdrData&matching.Large == 0 {
		return spin.Proceed
	}
	if h.UserHdrLen < matching.AnnouncementSize {
		return spin.Fail
	}
	a := (*matching.Announcement)(unsafe.Pointer(unsafe.SliceData(h.UserHeader())))
	first := h.Length - matching.AnnouncementSize
	if a.Total < first {
		return spin.Fail
	}
	op := spin.Op{
		Offset: h.Offset + first, Length: a.Total - first, TargetNID: h.SourceNID, TargetPID: h.SourcePID,
		PTIndex: s.PT, MatchBits: a.Tag, RemoteOffset: first, Options: spin.CompleteEntry,
	}
	if spin.GetFromHost(&op).Failed() {
		return spin.Fail
	}
	return spin.ProcessDataPending
}

// payload deposits the first part of an announced message.
//
//go:wasmexport payload
func payload(p *spin.Payload, _ *matching.State) spin.Code {
	// Nobody waits for the deposit: the record about the message for the host
	// follows the data on the same bus.
	if spin.DMAToHostNB(spin.MEHostMem, p.HostOffset, p.Bytes()) < 0 {
		return spin.Fail
	}
	return spin.Success
}

func main() {}
