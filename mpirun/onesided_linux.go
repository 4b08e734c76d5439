package mpirun

import (
	"errors"
	"fmt"

	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
)

// One-sided operations are Portals' own. Registered memory is a match list entry
// whose match bits are its key, and whose options are its rights. So the target's
// interface checks each access, and the target's process takes no part. It is an
// interface besides that of package mpi, which takes what is dropped for lost.

// onesidedPT is the portal table index of registered memory.
const onesidedPT = 0

// Match bits of an access: the key, the endpoint at the target, and whether the
// target's process gets to see it.
const (
	keyBits       = 32
	endpointShift = keyBits
	seenBit       = 1 << 63
	endpointMask  = (linkEndpoints - 1) << endpointShift
)

// Numbers of libfabric for errors.
const (
	errAccess = 13  // FI_EACCES
	errIO     = 5   // FI_EIO
	errKey    = 129 // FI_EKEYREJECTED
)

// onesided selects how one-sided communication goes: by the device's own puts, gets
// and atomic operations, if each rank is alone on its node. Otherwise Open MPI
// would share memory beside the network: then by messages. With its other way of
// locking ranks that try again in step do so for ever.
func (p *Program) onesided() []string {
	if p.MPI.PerNode > 1 {
		return []string{"--mca", "osc", "pt2pt", "--mca", "btl", "self"}
	}
	return []string{
		"--mca", "osc", "rdma", "--mca", "btl", "self,ofi", "--mca", "osc_rdma_btls", "ofi", "--mca", "btl_ofi_provider_include", "spinsim",
		"--mca", "osc_rdma_locking_mode", "on_demand",
	}
}

// onesided is what a rank has for one-sided operations.
type onesided struct {
	k       *rank
	ni      *runtime.NI
	eq, ct  portals.Handle
	md      portals.Handle // of all memory
	regions map[uint64]*region
	taken   uint64           // events, of those that the counter has counted
	removed []portals.Handle // entries that an access still used when they were unlinked
	list    []access
	unused  []int
	fetched runtime.View // results that nobody wants
	all     int64        // accesses so far
}

// region is registered memory.
type region struct {
	base    uint64 // what remote addresses count from
	entries [2]portals.Handle
}

// access is an operation under way.
type access struct {
	post
	left int // parts without an answer
	view runtime.View
	own  []runtime.View // buffers of the simulated rank
	err  int32
}

// checked checks a post that is no message.
func (l *link) checked(p *post) error {
	atomic := p.kind >= postAtomic
	switch {
	case p.key>>keyBits != 0:
		return l.spoiled("key %#x", p.key)
	case p.kind >= postWrite && (p.peer < 0 || p.peer >= l.ranks):
		return l.spoiled("rank %d", p.peer)
	case p.kind >= postWrite && (p.length > maxMessage || !p.whole() || p.flags&postInlined != 0 && p.length > linkInject):
		return l.spoiled("an access of %d B", p.length)
	case atomic && (p.length > linkAtomic || p.flags&postVector != 0 || !p.legal()):
		return l.spoiled("atomic operation %d of %d on %d B", p.op, p.kindOf, p.length)
	}
	return nil
}

// aside opens the interface for one-sided operations at the first use.
func (k *rank) aside() (*onesided, error) {
	if k.one != nil {
		return k.one, nil
	}
	if by := k.of.MPI.Transport; by == mpi.InfiniBand {
		return nil, fmt.Errorf("rank %d: no operations beside messages over transport %s", k.rank, by)
	}
	ni, err := k.r.Proc().NIInit(portals.OptNIMatching|portals.OptNILogical, nil)
	if err == nil {
		err = ni.SetMap(k.r.Places())
	}
	if err != nil {
		return nil, err
	}
	o, objects := &onesided{k: k, ni: ni, regions: make(map[uint64]*region)}, ni.Objects()
	if o.eq, err = objects.EQAlloc(1 << 20); err != nil {
		return nil, err
	}
	if o.ct, err = objects.CTAlloc(); err != nil {
		return nil, err
	}
	objects.Label(o.eq, "one-sided")
	objects.Label(o.ct, "one-sided")
	if _, err = objects.PTAlloc(0, o.eq, onesidedPT); err != nil {
		return nil, err
	}
	if o.md, err = objects.MDBind(&portals.MD{
		Length: portals.SizeMax, EQ: o.eq, CT: o.ct,
		Options: portals.OptMDEventSendDisable | portals.OptMDEventCTReply | portals.OptMDEventCTAck,
	}); err != nil {
		return nil, err
	}
	if o.fetched, err = k.take(linkAtomic); err != nil {
		return nil, err
	}
	k.one = o
	k.r.Also(ni, o.ct)
	return o, nil
}

// register exposes memory of the process to its peers. Its pages are pinned.
func (k *rank) register(p *post) error {
	o, err := k.aside()
	if err != nil {
		return err
	}
	v, err := k.memory.view(p.addr, p.length)
	if err != nil {
		return err
	}
	v.Present()
	g := &region{}
	if p.flags&postVirtual != 0 {
		g.base = p.addr
	}
	var rights portals.EntryOptions
	if p.access&accessWrite != 0 {
		rights |= portals.OptMEOpPut
	}
	if p.access&accessRead != 0 {
		rights |= portals.OptMEOpGet
	}
	me := portals.ME{
		Start: v.Addr(), Length: p.length, UID: portals.UIDAny, MatchID: portals.AnyID, MatchBits: p.key, IgnoreBits: endpointMask,
		Options: rights | portals.OptMENoTruncate | portals.OptMEEventLinkDisable | portals.OptMEEventUnlinkDisable,
	}
	seen := me
	seen.MatchBits |= seenBit
	seen.CT, seen.Options = o.ct, seen.Options|portals.OptMEEventCTComm
	if p.flags&postSeen != 0 {
		me = seen
		me.MatchBits = p.key
	} else { // only counted, for a process that looks at its memory
		me.CT, me.Options = o.ct, me.Options|portals.OptMEEventCTComm|portals.OptMEEventSuccessDisable
	}
	for i, e := range []*portals.ME{&me, &seen} {
		if g.entries[i], err = o.ni.MEAppend(onesidedPT, e, portals.PriorityList, 0); err != nil {
			return err
		}
	}
	o.regions[p.key] = g
	return nil
}

// forget hides memory. An access under way goes on.
func (k *rank) forget(p *post) error {
	o, err := k.aside()
	if err != nil {
		return err
	}
	g := o.regions[p.key]
	if g == nil {
		return k.spoiled("no memory has key %#x", p.key)
	}
	delete(o.regions, p.key)
	o.removed = append(o.removed, g.entries[:]...)
	return o.unlink()
}

func (o *onesided) unlink() error {
	kept := o.removed[:0]
	for _, h := range o.removed {
		err := o.ni.Objects().MEUnlink(h)
		if errors.Is(err, portals.ErrInUse) {
			kept = append(kept, h)
		} else if err != nil {
			return err
		}
	}
	o.removed = kept
	return nil
}

// launch starts an access.
func (k *rank) launch(p *post) error {
	o, err := k.aside()
	if err != nil {
		return err
	}
	n := len(o.list)
	if last := len(o.unused); last > 0 {
		n, o.unused = o.unused[last-1], o.unused[:last-1]
	} else {
		o.list = append(o.list, access{})
	}
	o.all++
	o.list[n] = access{post: *p, left: 1} // the operation itself, until all its parts are posted
	a := &o.list[n]
	if p.kind != postFetch || p.op != opRead {
		if a.view, err = k.local(a); err != nil {
			return err
		}
	}
	if p.kind >= postAtomic {
		err = o.combine(n)
	} else {
		err = o.move(n)
	}
	if err != nil {
		return err
	}
	return o.answered(n)
}

// local returns the memory of the process for an access: its own, or a buffer.
func (k *rank) local(a *access) (v runtime.View, err error) {
	if a.flags&(postInlined|postVector) == 0 && a.length > 0 {
		if v, err = k.memory.view(a.addr, a.length); err == nil {
			_, err = k.memory.sync(v, true)
		}
		return v, err
	}
	if v, err = k.take(int(a.length)); err != nil {
		return v, err
	}
	a.own = append(a.own, v)
	switch {
	case a.flags&postInlined != 0:
		copy(v.Write(), a.inlined[:a.length])
	case a.kind == postWrite:
		err = k.gather(&a.post, v)
	}
	return v, err
}

// gather copies the parts of an operation's memory into a view.
func (k *rank) gather(p *post, v runtime.View) error {
	b := v.Write()
	for _, part := range p.list() {
		if err := k.read(part.addr, b[:part.length]); err != nil {
			return err
		}
		b = b[part.length:]
	}
	return nil
}

// scatter copies bytes to the parts of an operation's memory.
func (k *rank) scatter(p *post, b []byte) error {
	for _, part := range p.list() {
		n := min(int(part.length), len(b))
		if err := k.write(part.addr, b[:n]); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// where returns what match bits and offset reach the memory of an access.
func (o *onesided) where(a *access) (bits, offset uint64) {
	bits = a.key | uint64(a.peerEndpoint)<<endpointShift
	if a.hasData != 0 {
		bits |= seenBit
	}
	if there := o.k.all[a.peer].one; there != nil && there.regions[a.key] != nil {
		return bits, a.remote - there.regions[a.key].base
	}
	return bits, a.remote // nobody has the key: the target drops the access
}

// move posts the puts, or gets, of an access.
func (o *onesided) move(n int) error {
	a, most := o.list[n], o.ni.Objects().Limits().MaxMsgSize
	bits, offset := o.where(&a)
	for at := uint64(0); ; at += most {
		part := min(most, a.length-at)
		if at > 0 && part == 0 {
			return nil
		}
		o.list[n].left++
		var err error
		if a.kind == postRead {
			err = o.ni.Get(portals.Get{
				MD: o.md, Offset: a.view.Addr() + at, Length: part, Target: portals.RankID(uint32(a.peer)), PT: onesidedPT, MatchBits: bits,
				RemoteOffset: offset + at, UserPtr: uint64(n),
			})
		} else {
			put := portals.Put{
				MD: o.md, Offset: a.view.Addr() + at, Length: part, Ack: portals.Ack, Target: portals.RankID(uint32(a.peer)), PT: onesidedPT, MatchBits: bits,
				RemoteOffset: offset + at, UserPtr: uint64(n), HdrData: a.data,
			}
			if at+part < a.length {
				put.MatchBits &^= seenBit // the target sees the last part
			}
			err = o.ni.Put(put)
		}
		if err != nil || at+part == a.length {
			return err
		}
	}
}

// happened reports whether one-sided operations have events.
func (k *rank) happened() bool { return k.one != nil && k.one.ni.Objects().EQLen(k.one.eq) > 0 }

// touched reports whether a peer has reached for memory of the process since the
// last call: the process may wait for that, and looks at its memory.
func (k *rank) touched() (bool, error) {
	o := k.one
	if o == nil {
		return false, nil
	}
	v, err := o.ni.Objects().CTGet(o.ct)
	if err == nil {
		err = o.ni.Objects().CTSet(o.ct, portals.CTEvent{})
	}
	is := v.Success+v.Failure > o.taken
	o.taken = 0
	return is, err
}

// event handles an event of a one-sided operation.
func (k *rank) event() error {
	o := k.one
	ev, err := o.ni.EQWait(o.eq)
	if err != nil {
		return err
	}
	o.taken++
	switch ev.Type {
	case portals.EventAck, portals.EventReply:
		if a := &o.list[ev.UserPtr]; ev.Fail != portals.NIOK {
			a.err = errorOf(ev.Fail)
		}
		return o.answered(int(ev.UserPtr))
	case portals.EventPut, portals.EventAtomic, portals.EventGet, portals.EventFetchAtomic:
		o.saw(&ev)
		return nil
	}
	return fmt.Errorf("event %v of a one-sided operation, which nothing here asks for", ev.Type)
}

// errorOf returns libfabric's number for a failure. The target drops an access
// whose key or range is no registered memory's.
func errorOf(fail portals.FailType) int32 {
	switch fail {
	case portals.NIDropped, portals.NISegv:
		return errKey
	case portals.NIOpViolation, portals.NIPermViolation:
		return errAccess
	}
	return errIO
}

// saw gives the process an access of a peer to its memory.
func (o *onesided) saw(ev *portals.Event) {
	d := done{flags: flagRMA | flagRemoteWrite, length: ev.MLength, source: -1, tag: ev.MatchBits & (1<<keyBits - 1), endpoint: uint16(ev.MatchBits & endpointMask >> endpointShift), quiet: 1}
	switch ev.Type {
	case portals.EventGet:
		d.flags = flagRMA | flagRemoteRead
	case portals.EventAtomic:
		d.flags = flagAtomic | flagRemoteWrite
	case portals.EventFetchAtomic:
		d.flags = flagAtomic | flagRemoteRead
	default:
	}
	if ev.MatchBits&seenBit != 0 {
		d.flags, d.data, d.quiet = d.flags|flagRemoteCQ, ev.HdrData, 0
	}
	o.k.push(d)
}

// answered counts the answer to a part of an access, and ends it with the last.
func (o *onesided) answered(n int) error {
	a := &o.list[n]
	if a.left--; a.left > 0 {
		return nil
	}
	if a.err == 0 && a.kind == postRead && a.flags&postVector != 0 {
		if err := o.k.scatter(&a.post, a.view.Read()); err != nil {
			return err
		}
	}
	d := done{context: a.context, flags: flagWrite | flagRMA, err: a.err, endpoint: a.endpoint}
	switch a.kind {
	case postRead:
		d.flags = flagRead | flagRMA
	case postAtomic:
		d.flags = flagWrite | flagAtomic
	case postFetch, postCompare:
		d.flags = flagRead | flagAtomic
	}
	o.k.finished(&a.post, d)
	for _, v := range a.own {
		o.k.give(v)
	}
	o.list[n] = access{}
	o.unused = append(o.unused, n)
	return o.unlink()
}

// finished gives the process the completion of an operation, if it has one.
func (k *rank) finished(p *post, d done) {
	if p.flags&postQuiet != 0 && p.flags&postCounted == 0 && d.err == 0 {
		return
	}
	if p.flags&postQuiet != 0 {
		d.quiet = 1
	}
	d.endpoint = p.endpoint
	k.push(d)
}
