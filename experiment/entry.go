package experiment

import (
	"errors"
	"fmt"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
)

// inbox is a match entry for puts with a counter that its process, or triggered operations, wait for.
type inbox struct {
	ni *runtime.NI
	ct portals.Handle // counts bytes, since a message may arrive in parts; for an empty one, messages
}

// receive appends a persistent entry that accepts puts with the given match bits into memory, with handlers if installed is not nil.
func receive(ni *runtime.NI, pt uint32, bits uint64, memory runtime.View, installed *handlers.Installed) (*inbox, error) {
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
	return &inbox{ni: ni, ct: ct}, err
}

// target is the count at which length bytes, or an empty message, have arrived.
func (in *inbox) target(length int) uint64 { return uint64(max(length, 1)) }

// wait returns when a message of length bytes has arrived, in whatever parts.
func (in *inbox) wait(length int) error {
	v, err := in.ni.CTWait(in.ct, in.target(length))
	if err == nil && v.Failure > 0 {
		err = fmt.Errorf("%d operations failed", v.Failure)
		if v.Failure == 1 {
			err = errors.New("an operation failed")
		}
	}
	return err
}
