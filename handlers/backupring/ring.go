//go:build !tinygo

package backupring

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/spin"
)

// Ring is the receive ring of an IOuser.
type Ring struct {
	provider *Provider
	id       uint64
	space    uint32 // of the memory, granted to the device
	o        RingOptions
	proc     *runtime.Proc
	memory   runtime.View // descriptors, and behind them the buffers
	buffers  int          // where they begin
	head     runtime.View // where the device reports the head
	changed  portals.Handle
	told     bool           // the ring has an index of the Portals table for reports of head
	entry    portals.Handle // for head
	md       portals.Handle
	seen     uint64 // of changed
	next     uint64 // next frame that Receive returns
	tail     uint64

	stats Stats // of a ring that is closed

	// the IOprovider's
	queue   []held
	watched bool
	busy    bool // the thread works on the ring
	closing bool
}

// Frame is a received frame. Its bytes belong to the ring until Release.
type Frame struct {
	Memory runtime.View
	Err    error // ErrTooLong, ErrIllegal, ErrAbsent: the frame is lost
}

// Open makes a ring for a process of the IOprovider's node. It is empty until
// Post. Before the process first waits it takes no virtual time; later it takes
// the time of its system calls (mmap, mlock). The ring's resources belong to
// the process until Close.
func (v *Provider) Open(p *runtime.Proc, o RingOptions) (*Ring, error) {
	mtu := int(v.library.cluster.Profile().Fabric.MTU)
	if o.Buffer == 0 {
		o.Buffer = mtu
	}
	place := slices.Index(v.rings[:], nil)
	switch {
	case !v.ready:
		return nil, fmt.Errorf("backupring: the IOprovider of node %d is to be served before its IOusers are spawned", v.id.NID)
	case uint32(p.Rank()) != v.id.NID:
		return nil, fmt.Errorf("backupring: process %s is on node %d, its IOprovider on node %d", p.Name(), p.Rank(), v.id.NID)
	case o.Size < 1 || o.Size > MaxSize:
		return nil, fmt.Errorf("backupring: ring of %d descriptors, expected 1 to %d", o.Size, MaxSize)
	case o.BitmapSize < 0 || o.BitmapSize > MaxSize:
		return nil, fmt.Errorf("backupring: bitmap of %d bits, expected 0 to %d", o.BitmapSize, MaxSize)
	case o.Skip && o.BitmapSize > 0:
		return nil, fmt.Errorf("backupring: a ring whose frames are kept (bitmap of %d bits) has no descriptors to skip", o.BitmapSize)
	case o.Buffer < 1 || o.Buffer > 1<<20:
		return nil, fmt.Errorf("backupring: buffers of %d bytes, expected 1 to 1 MiB", o.Buffer)
	case slices.ContainsFunc(v.rings[:], func(r *Ring) bool { return r != nil && r.proc == p }):
		return nil, fmt.Errorf("backupring: process %s has a ring", p.Name())
	case place < 0:
		return nil, fmt.Errorf("backupring: node %d has %d rings, and can have no more", v.id.NID, MaxRings)
	}
	r := &Ring{provider: v, id: ID(place, v.registers(place).Generation), o: o, proc: p}
	v.rings[place] = r
	err := r.open()
	if err != nil {
		err = errors.Join(err, r.release())
		v.rings[place] = nil
	}
	return r, err
}

func (r *Ring) open() (err error) {
	r.buffers = (r.o.Size*DescriptorSize + host.PageBytes - 1) &^ (host.PageBytes - 1)
	if r.memory, err = r.alloc(r.buffers+r.o.Size*r.o.Buffer, r.o.Pinned); err != nil {
		return err
	}
	if err = r.introduce(); err != nil {
		return err
	}
	if r.head, err = r.alloc(8, true); err != nil {
		return err
	}
	u := handlers.NewSetup("backupring", r.proc)
	r.changed = u.Counter("frames")
	u.Table(ptHead, portals.EQNone, 0)
	r.told = u.Err == nil
	r.entry = u.Append(ptHead, r.provider.id, r.head, portals.ME{CT: r.changed, Options: portals.OptMEOpPut | portals.OptMEEventCTComm})
	if r.md = u.Bind(r.head, portals.MD{}); u.Err != nil {
		return u.Err
	}
	if r.space, err = r.proc.Grant(r.provider.in.HPU, r.memory); err != nil {
		return err
	}
	ring := RingState{Generation: r.id / MaxRings, Space: r.space, Size: uint32(r.o.Size), BitmapSize: uint32(r.o.BitmapSize), PID: u.Self.PID, PT: ptHead}
	// with present memory nothing is skipped, and no frame needs to wait for
	// the previous one
	if r.o.Skip || r.o.Pinned && r.o.BitmapSize == 0 {
		ring.Skips = 1
	}
	copy(r.provider.place(r.place()), spin.EncodeState(&ring))
	if d := r.proc.Node().Driver(); d != nil && r.keeps() {
		d.Serve(r.provider)
	}
	return nil
}

// keeps reports whether frames for absent memory are kept. The IOprovider's
// thread then brings the memory in.
func (r *Ring) keeps() bool { return r.o.BitmapSize > 0 && !r.o.Pinned }

// place returns the ring's index among the device's rings.
func (r *Ring) place() int { return int(r.id % MaxRings) }

func (r *Ring) registers() RingState { return r.provider.registers(r.place()) }

// place returns the device's registers of a ring.
func (v *Provider) place(i int) []byte {
	at := unsafe.Offsetof(State{}.Rings) + uintptr(i)*unsafe.Sizeof(RingState{})
	return v.in.HPU.Bytes()[at:][:unsafe.Sizeof(RingState{})]
}

func (v *Provider) registers(i int) (x RingState) {
	_ = spin.DecodeState(v.place(i), &x)
	return x
}

// ID returns the number to which frames for the ring are sent. After Close no
// other ring gets it.
func (r *Ring) ID() int { return int(r.id) }

// Memory returns the ring's memory: descriptors and, from Buffers on, a page
// boundary, the buffers.
func (r *Ring) Memory() runtime.View { return r.memory }

// Buffers returns where the buffers begin in Memory, bytes.
func (r *Ring) Buffers() int { return r.buffers }

// Buffer returns the place in Memory and the length of a descriptor's buffer.
// Descriptors are counted from 0 on, over all rounds of the ring.
func (r *Ring) Buffer(descriptor uint64) (offset, n int) {
	return r.buffers + int(descriptor%uint64(r.o.Size))*r.o.Buffer, r.o.Buffer
}

// Tail returns one past the last posted descriptor.
func (r *Ring) Tail() uint64 { return r.tail }

// Stats returns the device's counts for the ring.
func (r *Ring) Stats() Stats {
	if r.closing {
		return r.stats
	}
	return r.registers().Stats
}

// Room returns how many descriptors the IOuser may post: those whose frames it
// has taken, or that it has not posted yet.
func (r *Ring) Room() int { return int(r.next + uint64(r.o.Size) - r.tail) }

// Post gives the device n more descriptors. It takes nic.overhead. It fails if
// n exceeds Room.
func (r *Ring) Post(n int) error {
	if r.closing {
		return ErrClosed
	}
	if n < 0 || n > r.Room() {
		return fmt.Errorf("backupring: %d descriptors more, expected at most %d", n, r.Room())
	}
	for range n {
		place := int(r.tail % uint64(r.o.Size))
		d := Descriptor{Offset: uint64(r.buffers + place*r.o.Buffer), Length: uint32(r.o.Buffer)}
		copy(r.memory.Slice(place*DescriptorSize, (place+1)*DescriptorSize).Write(), spin.EncodeState(&d))
		r.tail++
	}
	return r.proc.NI().Put(portals.Put{MD: r.md, Target: r.provider.id, PT: ptControl, MatchBits: Bits(Posted, r.id), HdrData: r.tail})
}

var le = binary.LittleEndian

// Errors of frames.
var (
	ErrTooLong = fmt.Errorf("backupring: the frame was longer than its buffer")
	ErrIllegal = fmt.Errorf("backupring: the buffer is not in the ring's memory, or cannot be written")
	ErrAbsent  = fmt.Errorf("backupring: the buffer was absent (RingOptions.Skip)")
)

var lost = map[uint32]error{TooLong: ErrTooLong, Illegal: ErrIllegal, Unused: ErrAbsent}

// ErrClosed is the error of a closed ring.
var ErrClosed = errors.New("backupring: the ring is closed")

// Counter returns a counter of the process's interface and its present value,
// for programs that wait for several things. When the counter is larger, there
// may be a frame.
func (r *Ring) Counter() (counter portals.Handle, value uint64, err error) {
	v, err := r.proc.NI().Objects().CTGet(r.changed)
	return r.changed, v.Success, err
}

// Ready reports whether Receive would return at once.
func (r *Ring) Ready() bool { return !r.closing && r.next != le.Uint64(r.head.Read()) }

// Receive waits for the next frame. Its buffer is the IOuser's until it posts the descriptor again.
func (r *Ring) Receive() (f Frame, err error) {
	for !r.Ready() {
		if r.closing {
			return f, ErrClosed
		}
		v, err := r.proc.NI().CTWait(r.changed, r.seen+1)
		if err != nil {
			return f, err
		}
		r.seen = v.Success
	}
	place := int(r.next % uint64(r.o.Size))
	r.next++
	var d Descriptor
	if err := spin.DecodeState(r.memory.Slice(place*DescriptorSize, (place+1)*DescriptorSize).Read(), &d); err != nil {
		return f, err
	}
	if why, ok := lost[d.Used]; ok {
		return Frame{Err: why}, nil
	}
	at := r.buffers + place*r.o.Buffer
	return Frame{Memory: r.memory.Slice(at, at+int(d.Used))}, nil
}

// has reports whether n bytes at an offset belong to the ring.
func (r *Ring) has(offset, n uint64) bool {
	return offset <= uint64(r.memory.Len()) && n <= uint64(r.memory.Len())-offset
}

// pin brings memory of the ring in, for the IOprovider, and keeps it there. It
// reports whether the IOuser can have the memory.
func (r *Ring) pin(t *host.Thread, pin *host.Pin, offset, n uint64) bool {
	return r.proc.OS() == nil || r.proc.OS().GetUserPages(t, r.memory.Addr()+offset, n, true, pin) == nil
}

// store writes pinned memory.
func (r *Ring) store(t *host.Thread, offset uint64, b []byte) {
	// nobody reads the memory of an IOuser that has ended
	_ = r.memory.Slice(int(offset), int(offset)+len(b)).Store(t, b)
}

// look reads pinned memory.
func (r *Ring) look(offset, n uint64) []byte {
	return r.memory.Slice(int(offset), int(offset+n)).Snapshot()
}
