package main

import (
	"github.com/spinsim/spinsim/handlers/replicate"
	"github.com/spinsim/spinsim/spin"
)

// admit is open for guarded servers: nothing of a write is written if its
// capability does not allow it.
//
//go:wasmexport admit
func admit(h *spin.Header, s *replicate.State) spin.Code {
	if h.UserHdrLen < replicate.CapabilitySize {
		return refuse(h, s, &s.Counts.Forged)
	}
	c := spin.At[replicate.Capability](h.UserHdr)
	if why := lacks(h, s, c, replicate.MayWrite, h.Offset, h.Length-uint64(h.UserHdrLen)); why != nil {
		return refuse(h, s, why)
	}
	return spin.ProcessData
}

// fetch sends a client the bytes that it may read.
//
//go:wasmexport fetch
func fetch(h *spin.Header, s *replicate.State) spin.Code {
	if h.UserHdrLen < replicate.FetchSize {
		return refuse(h, s, &s.Counts.Forged)
	}
	f := spin.At[replicate.Fetch](h.UserHdr)
	if why := lacks(h, s, &f.Capability, replicate.MayRead, f.Offset, f.Length); why != nil {
		return refuse(h, s, why)
	}
	op := spin.Op{
		Space: spin.MEHostMem, Offset: f.Offset, Length: f.Length, TargetNID: h.SourceNID, TargetPID: h.SourcePID, PTIndex: s.ReplyPT,
		MatchBits: replicate.DataBits | uint64(replicate.Ticket(h.HdrData).Slot()),
	}
	for {
		r := spin.PutFromHost(&op)
		if r != spin.NoSpace {
			if r.Failed() {
				return spin.Fail
			}
			spin.FAdd(&s.Counts.Fetched, 1)
			return spin.Drop
		}
		spin.Yield() // as many commands of handlers are pending as allowed
	}
}

// lacks returns the count for the reason to refuse a request; nil: it is
// allowed. The signature is checked first, because unsigned fields mean
// nothing.
func lacks(h *spin.Header, s *replicate.State, c *replicate.Capability, right uint32, offset, length uint64) *uint64 {
	switch {
	case c.MAC != c.Sign(&s.Key):
		return &s.Counts.Forged
	case c.Expires < s.Epoch:
		return &s.Counts.Expired
	case c.NID != h.SourceNID || c.PID != h.SourcePID || c.Rights&right == 0 || offset < c.Low || offset > c.High || length > c.High-offset || c.High > s.Bytes:
		return &s.Counts.Outside
	}
	return nil
}

// refuse answers a client that it may not do this.
func refuse(h *spin.Header, s *replicate.State, count *uint64) spin.Code {
	spin.FAdd(count, 1)
	// answers go only to the sender itself
	if t := replicate.Ticket(h.HdrData); t.NID() == h.SourceNID && t.PID() == h.SourcePID {
		if answer(s, t, replicate.Denied).Failed() {
			return spin.Fail
		}
	}
	return spin.Drop
}
