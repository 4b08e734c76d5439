// Writes every access to an entry's memory down in a log in host memory
// (sPIN'17, "Distributed Transactions").
//
//spin:library txlog 1.0
//spin:needs spaces=handler host_memory=48
package main

import (
	"unsafe"

	"github.com/spinsim/spinsim/handlers/txlog"
	"github.com/spinsim/spinsim/spin"
)

// logHeader logs an access that reads, before it reads. An access that only
// reads needs no other handler.
//
//go:wasmexport log_header
func logHeader(h *spin.Header, s *txlog.State) spin.Code {
	if h.Type != spin.MsgPut && h.Type != spin.MsgAtomic {
		r := txlog.Record{Offset: h.Offset, Length: h.MLength, NID: h.SourceNID, PID: h.SourcePID, Tag: h.MatchBits, Kind: txlog.Read}
		if !write(s, &r) {
			return spin.Fail
		}
	}
	if h.Type == spin.MsgGet {
		return spin.Proceed
	}
	return spin.ProcessData
}

// logCompletion logs an access that writes, when it has written.
//
//go:wasmexport log_completion
func logCompletion(c *spin.Completion, s *txlog.State) spin.Code {
	r := txlog.Record{Offset: c.Offset, Length: c.MLength, NID: c.SourceNID, PID: c.SourcePID, Tag: c.MatchBits, Kind: txlog.Write}
	if !write(s, &r) {
		return spin.Fail
	}
	return spin.Success
}

// write appends a record.
func write(s *txlog.State, r *txlog.Record) bool {
	n := spin.FAdd(&s.Next, 1)
	r.Number = n + 1
	return !spin.WriteHost(spin.HandlerHostMem, n&s.Last*txlog.RecordSize, unsafe.Pointer(r), txlog.RecordSize).Failed()
}

func main() {}
