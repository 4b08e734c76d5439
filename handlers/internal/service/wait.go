package service

import (
	"errors"

	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
)

// Await waits until a condition holds that can change only when a counter
// moves. It checks at least once, which takes the poll time.
func Await(ni *runtime.NI, ct portals.Handle, is func() bool) error {
	test := uint64(0)
	for !is() {
		v, err := ni.Objects().CTGet(ct)
		if err != nil {
			return err
		}
		test = v.Success + 1
		if _, err := ni.CTWait(ct, test); err != nil {
			return err
		}
	}
	if test > 0 {
		return nil
	}
	_, err := ni.CTWait(ct, 0)
	return err
}

// Serve handles messages to locally managed entries until the process is
// aborted. It calls put for each message, and full for a buffer whose last
// message is complete.
func Serve(ni *runtime.NI, eq portals.Handle, put, full func(e *portals.Event) error) error {
	for {
		e, err := ni.EQWait(eq)
		switch {
		case errors.Is(err, portals.ErrAborted):
			return nil
		case err != nil:
		case e.Type == portals.EventPut:
			err = put(&e)
		case e.Type == portals.EventAutoUnlink:
			err = full(&e)
		}
		if err != nil {
			return err
		}
	}
}
