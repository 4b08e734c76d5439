package experiment

import (
	"errors"
	"fmt"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
)

// Entry is a match entry for puts. Its process and triggered operations can
// wait for its counter.
type Entry struct {
	NI *runtime.NI
	CT portals.Handle // counts bytes, since a message may arrive in parts; an empty message counts 1
}

// AppendEntry appends a persistent entry that accepts puts with the match bits
// into memory. It has handlers unless installed is nil.
func AppendEntry(ni *runtime.NI, pt uint32, bits uint64, memory runtime.View, installed *handlers.Installed) (*Entry, error) {
	ct, err := ni.Objects().CTAlloc()
	if err != nil {
		return nil, err
	}
	ni.Objects().Label(ct, "inbox")
	var table portals.PTOptions
	if installed != nil {
		table = installed.PTOptions
	}
	if _, err := ni.Objects().PTAlloc(table, portals.EQNone, pt); err != nil {
		return nil, err
	}
	options := portals.OptMEOpPut | portals.OptMEEventCTComm
	if memory.Len() > 0 {
		options |= portals.OptMEEventCTBytes
	}
	entry := portals.ME{
		Start: memory.Addr(), Length: uint64(memory.Len()), CT: ct, UID: portals.UIDAny, Options: options,
		MatchID: portals.AnyID, MatchBits: bits,
	}
	if installed != nil {
		installed.Attach(&entry)
	}
	_, err = ni.MEAppend(pt, &entry, portals.PriorityList, 0)
	return &Entry{NI: ni, CT: ct}, err
}

// Target is the counter's value after the first message of length bytes. An
// empty message counts 1.
func (in *Entry) Target(length int) uint64 { return uint64(max(length, 1)) }

// Wait returns when a message of length bytes has arrived, in one or more
// parts.
func (in *Entry) Wait(length int) error {
	v, err := in.NI.CTWait(in.CT, in.Target(length))
	if err == nil && v.Failure > 0 {
		err = fmt.Errorf("%d operations failed", v.Failure)
		if v.Failure == 1 {
			err = errors.New("an operation failed")
		}
	}
	return err
}
