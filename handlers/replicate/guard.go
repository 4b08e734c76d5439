//go:build !tinygo

package replicate

import (
	"encoding/binary"
	"errors"
	"unsafe"

	"github.com/spinsim/spinsim/handlers/raid5"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/spin"
)

// Grant signs the right of a process to a range of the memory, bytes from low
// up to high, until an epoch. It is for the owner of the key (Options.Key), for
// example a metadata server that knows the permissions.
func Grant(key *Key, of portals.ID, low, high int64, rights, expires uint32) Capability {
	c := Capability{Low: uint64(low), High: uint64(high), NID: of.NID, PID: of.PID, Rights: rights, Expires: expires}
	c.MAC = c.Sign(key)
	return c
}

// SetEpoch sets the epoch at all servers, which begin with 0. From then on they
// refuse capabilities for earlier epochs. It takes no virtual time.
func (g *Group) SetEpoch(epoch uint32) {
	for _, s := range g.servers {
		if s.in != nil {
			binary.LittleEndian.PutUint32(s.in.HPU.Bytes()[unsafe.Offsetof(State{}.Epoch):], epoch)
		}
	}
}

// ID returns the client's process, for Grant.
func (c *Caller) ID() portals.ID { return c.Self }

// Use sends a capability with all further requests.
func (c *Caller) Use(capability Capability) { c.capability = capability }

// shown returns the length of a write's user header.
func (c *Caller) shown() int64 {
	if c.o.Key == nil {
		return 0
	}
	return CapabilitySize
}

// show prepares the user header of requests for a range. It refuses a range
// beyond the capability, because servers would accept a part of it.
func (c *Caller) show(offset, n int64) error {
	if c.o.Key == nil {
		return nil
	}
	if f := &c.capability; uint64(offset) < f.Low || uint64(offset+n) > f.High {
		return ErrDenied
	}
	c.header.CopyFrom(spin.EncodeState(&Fetch{Capability: c.capability, Offset: uint64(offset), Length: uint64(n)}))
	return nil
}

// fetch reads from guarded servers. One of them sends the bytes as a message.
func (c *Caller) fetch(offset int64, into runtime.View) error {
	if err := c.show(offset, int64(into.Len())); err != nil {
		return err
	}
	data := DataBits | uint64(c.Slot)
	me, err := c.NI.MEAppend(c.replyPT(), &portals.ME{
		Start: into.Addr(), Length: uint64(into.Len()), UID: portals.UIDAny, MatchID: portals.AnyID, MatchBits: data, Options: portals.OptMEOpPut | portals.OptMEEventLinkDisable,
	}, portals.PriorityList, 0)
	if err != nil {
		return err
	}
	md, err := c.BindView(c.header, portals.MD{})
	if err != nil {
		return err
	}
	ticket := uint64(raid5.NewTicket(c.Self.NID, c.Self.PID, c.Slot, 0))
	if err := c.NI.Put(portals.Put{MD: md, Length: FetchSize, Target: c.reads(), PT: c.o.PT, MatchBits: FetchBits, HdrData: ticket}); err != nil {
		return err
	}
	for {
		e, err := c.Event()
		switch {
		case err != nil:
		case e.MatchBits == ReplyBits|uint64(c.Slot) && e.HdrData == Denied:
			err = ErrDenied
		case e.MatchBits != data:
			continue // of an access that was given up
		case e.Fail != portals.NIOK:
			err = ErrMemory
		}
		return errors.Join(err, c.NI.Objects().MEUnlink(me))
	}
}
