//go:build !tinygo

package kv

import (
	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
)

// outbox is buffers for messages of a process. A buffer is used again when its
// message has left.
type outbox struct {
	p    *runtime.Proc
	ni   *runtime.NI
	eq   portals.Handle
	md   portals.Handle
	all  runtime.View
	size int
	free []int
}

func newOutbox(u *handlers.Setup, p *runtime.Proc, slots, size int) *outbox {
	o := &outbox{p: p, ni: u.NI, size: (size + 63) &^ 63}
	for i := range slots {
		o.free = append(o.free, slots-1-i)
	}
	o.all, o.eq = u.Locked(slots*o.size), u.Queue(2*slots, "messages that have left")
	o.md = u.Bind(o.all, portals.MD{EQ: o.eq})
	return o
}

// take waits for a free buffer and returns it.
func (o *outbox) take() (slot int, b runtime.View, err error) {
	for o.ni.Objects().EQLen(o.eq) > 0 || len(o.free) == 0 {
		ev, err := o.ni.EQWait(o.eq)
		if err != nil {
			return 0, b, err
		}
		if ev.Type == portals.EventSend {
			o.free = append(o.free, int(ev.UserPtr))
		}
	}
	slot = o.free[len(o.free)-1]
	o.free = o.free[:len(o.free)-1]
	return slot, o.all.Slice(slot*o.size, (slot+1)*o.size), nil
}

// send puts the first bytes of a buffer.
func (o *outbox) send(slot, length int, to portals.ID, pt uint32, bits, hdrData uint64) error {
	return o.ni.Put(portals.Put{MD: o.md, Offset: uint64(slot * o.size), Length: uint64(length), Target: to, PT: pt, MatchBits: bits, UserPtr: uint64(slot), HdrData: hdrData})
}
