package driver

import (
	"encoding/binary"
	"fmt"
	"slices"
	"unsafe"

	"github.com/spinsim/spinsim/handlers/backupring"
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/spin"
)

// Ring is the receive ring of an IOuser.
type Ring struct {
	provider *Provider
	id       int
	o        RingOptions
	proc     *runtime.Proc
	memory   runtime.View // descriptors, and behind them the buffers
	buffers  int          // where they begin
	head     runtime.View // as the device tells it
	changed  portals.Handle
	md       portals.Handle
	seen     uint64 // of changed
	next     uint64 // frame that Receive returns
	tail     uint64

	// the IOprovider's
	queue   []held
	watched bool
}

// Frame is one that has come. Its bytes are the ring's until Release.
type Frame struct {
	Memory runtime.View
	Err    error // ErrTooLong, ErrIllegal: the frame is lost
}

// Open makes a ring of a process of the IOprovider's node. It takes no virtual time and is for the time before the process first waits; the ring is empty until Post.
func (v *Provider) Open(p *runtime.Proc, o RingOptions) (*Ring, error) {
	mtu := int(v.library.cluster.Profile().Fabric.MTU)
	if o.Buffer == 0 {
		o.Buffer = mtu
	}
	switch {
	case !v.ready:
		return nil, fmt.Errorf("backupring: the IOprovider of node %d is to be served before its IOusers are spawned", v.id.NID)
	case uint32(p.Rank()) != v.id.NID:
		return nil, fmt.Errorf("backupring: process %s is on node %d, its IOprovider on node %d", p.Name(), p.Rank(), v.id.NID)
	case o.Size < 1 || o.Size > backupring.MaxSize:
		return nil, fmt.Errorf("backupring: ring of %d descriptors, expected 1 to %d", o.Size, backupring.MaxSize)
	case o.BitmapSize < 0 || o.BitmapSize > backupring.MaxSize:
		return nil, fmt.Errorf("backupring: bitmap of %d bits, expected 0 to %d", o.BitmapSize, backupring.MaxSize)
	case o.Buffer < 1 || o.Buffer > 1<<20:
		return nil, fmt.Errorf("backupring: buffers of %d bytes, expected 1 to 1 MiB", o.Buffer)
	case slices.ContainsFunc(v.rings, func(r *Ring) bool { return r.proc == p }):
		return nil, fmt.Errorf("backupring: process %s has a ring", p.Name())
	case len(v.rings) == backupring.MaxRings:
		return nil, fmt.Errorf("backupring: node %d has %d rings, and can have no more", v.id.NID, backupring.MaxRings)
	}
	if err := p.SettingUp(); err != nil {
		return nil, err
	}
	r := &Ring{provider: v, id: len(v.rings), o: o, proc: p}
	return r, r.open()
}

func (r *Ring) open() (err error) {
	ni := r.proc.NI()
	r.buffers = (r.o.Size*backupring.DescriptorSize + host.PageBytes - 1) &^ (host.PageBytes - 1)
	r.memory = r.proc.Alloc(r.buffers + r.o.Size*r.o.Buffer)
	if r.o.Pinned {
		r.memory.Lock()
	}
	r.head = r.proc.Alloc(8)
	r.head.Lock()
	if r.changed, err = ni.CTAlloc(); err != nil {
		return err
	}
	ni.Label(r.changed, "frames")
	if _, err = ni.PTAlloc(0, portals.EQNone, ptHead); err != nil {
		return err
	}
	if _, err = ni.MEAppend(ptHead, &portals.ME{
		Start: r.head.Addr(), Length: 8, UID: portals.UIDAny, MatchID: r.provider.id, CT: r.changed,
		Options: portals.OptMEOpPut | portals.OptMEEventCTComm,
	}, portals.PriorityList, 0); err != nil {
		return err
	}
	if r.md, err = ni.MDBind(&portals.MD{Start: r.head.Addr(), Length: 8}); err != nil {
		return err
	}
	space, err := r.proc.Grant(r.provider.in.HPU, r.memory)
	if err != nil {
		return err
	}
	id, err := ni.PhysID()
	if err != nil {
		return err
	}
	ring := backupring.Ring{Space: space, Size: uint32(r.o.Size), BitmapSize: uint32(r.o.BitmapSize), PID: id.PID, PT: ptHead}
	copy(r.place(), spin.EncodeState(&ring))
	r.provider.rings = append(r.provider.rings, r)
	return nil
}

// place is the device's registers of the ring.
func (r *Ring) place() []byte {
	at := unsafe.Offsetof(backupring.State{}.Rings) + uintptr(r.id)*unsafe.Sizeof(backupring.Ring{})
	return r.provider.in.HPU.Bytes()[at:][:unsafe.Sizeof(backupring.Ring{})]
}

func (r *Ring) registers() (x backupring.Ring) {
	_ = spin.DecodeState(r.place(), &x)
	return x
}

// ID is what frames for the ring are sent to.
func (r *Ring) ID() int { return r.id }

// Memory is the ring's: descriptors, and from Buffers on, a page boundary, the buffers.
func (r *Ring) Memory() runtime.View { return r.memory }

// Buffers is where the buffers begin in Memory, bytes.
func (r *Ring) Buffers() int { return r.buffers }

// Stats is what the device has done for the ring.
func (r *Ring) Stats() backupring.Stats { return r.registers().Stats }

// Room is how many descriptors the IOuser may post: those whose frames it has taken, or that it has not posted yet.
func (r *Ring) Room() int { return int(r.next + uint64(r.o.Size) - r.tail) }

// Post gives the device n descriptors more. It takes nic.overhead. n beyond Room is an error.
func (r *Ring) Post(n int) error {
	if n < 0 || n > r.Room() {
		return fmt.Errorf("backupring: %d descriptors more, expected at most %d", n, r.Room())
	}
	for range n {
		place := int(r.tail % uint64(r.o.Size))
		d := backupring.Descriptor{Offset: uint64(r.buffers + place*r.o.Buffer), Length: uint32(r.o.Buffer)}
		copy(r.memory.Slice(place*backupring.DescriptorSize, (place+1)*backupring.DescriptorSize).Write(), spin.EncodeState(&d))
		r.tail++
	}
	return r.proc.NI().Put(r.md, 0, 0, portals.NoAck, r.provider.id, ptControl, backupring.Bits(backupring.Posted, uint32(r.id)), 0, 0, r.tail)
}

var le = binary.LittleEndian

// Errors of frames.
var (
	ErrTooLong = fmt.Errorf("backupring: the frame was longer than its buffer")
	ErrIllegal = fmt.Errorf("backupring: the buffer is not in the ring's memory, or cannot be written")
)

// Receive waits for the next frame. Its buffer is the IOuser's until it posts the descriptor again.
func (r *Ring) Receive() (f Frame, err error) {
	for r.next == le.Uint64(r.head.Read()) {
		v, err := r.proc.NI().CTWait(r.changed, r.seen+1)
		if err != nil {
			return f, err
		}
		r.seen = v.Success
	}
	place := int(r.next % uint64(r.o.Size))
	r.next++
	var d backupring.Descriptor
	if err := spin.DecodeState(r.memory.Slice(place*backupring.DescriptorSize, (place+1)*backupring.DescriptorSize).Read(), &d); err != nil {
		return f, err
	}
	switch d.Used {
	case backupring.TooLong:
		return Frame{Err: ErrTooLong}, nil
	case backupring.Illegal:
		return Frame{Err: ErrIllegal}, nil
	}
	at := r.buffers + place*r.o.Buffer
	return Frame{Memory: r.memory.Slice(at, at+int(d.Used))}, nil
}

// has tells whether n bytes at an offset are the ring's.
func (r *Ring) has(offset, n uint64) bool {
	return offset <= uint64(r.memory.Len()) && n <= uint64(r.memory.Len())-offset
}

// pin brings memory of the ring in, for the IOprovider, and keeps it there. It reports whether the IOuser can have it.
func (r *Ring) pin(t *host.Thread, pin *host.Pin, offset, n uint64) bool {
	return r.proc.OS() == nil || r.proc.OS().GetUserPages(t, r.memory.Addr()+offset, n, true, pin) == nil
}

// store writes memory that is pinned.
func (r *Ring) store(t *host.Thread, offset uint64, b []byte) {
	_ = r.memory.Slice(int(offset), int(offset)+len(b)).Store(t, b) // of an IOuser that has ended nothing is read any more
}

// look reads memory that is pinned.
func (r *Ring) look(offset, n uint64) []byte {
	return r.memory.Slice(int(offset), int(offset+n)).Snapshot()
}
