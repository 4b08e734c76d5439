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
	head     runtime.View // as the device tells it
	changed  portals.Handle
	told     bool           // it has the index of the Portals table that head is told by
	entry    portals.Handle // for head
	md       portals.Handle
	seen     uint64 // of changed
	next     uint64 // frame that Receive returns
	tail     uint64

	stats Stats // of a ring that is closed

	// the IOprovider's
	queue   []held
	watched bool
	busy    bool // the thread works on it
	closing bool
}

// Frame is one that has come. Its bytes are the ring's until Release.
type Frame struct {
	Memory runtime.View
	Err    error // ErrTooLong, ErrIllegal, ErrAbsent: the frame is lost
}

// Open makes a ring of a process of the IOprovider's node; it is empty until
// Post. Before the process first waits it takes no virtual time, later that of
// the calls of the operating system (mmap, mlock). What it takes is the
// process's until Close.
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
	// of memory that is there nothing is skipped, and no frame needs to wait
	// for the one before it
	if r.o.Skip || r.o.Pinned && r.o.BitmapSize == 0 {
		ring.Skips = 1
	}
	copy(r.provider.place(r.place()), spin.EncodeState(&ring))
	if d := r.proc.Node().Driver(); d != nil && r.keeps() {
		d.Serve(r.provider)
	}
	return nil
}

// keeps tells whether frames whose memory is absent are kept: the IOprovider's
// thread brings it in then.
func (r *Ring) keeps() bool { return r.o.BitmapSize > 0 && !r.o.Pinned }

// place is which of the device's rings it is.
func (r *Ring) place() int { return int(r.id % MaxRings) }

func (r *Ring) registers() RingState { return r.provider.registers(r.place()) }

// place is the device's registers of a ring.
func (v *Provider) place(i int) []byte {
	at := unsafe.Offsetof(State{}.Rings) + uintptr(i)*unsafe.Sizeof(RingState{})
	return v.in.HPU.Bytes()[at:][:unsafe.Sizeof(RingState{})]
}

func (v *Provider) registers(i int) (x RingState) {
	_ = spin.DecodeState(v.place(i), &x)
	return x
}

// ID is what frames for the ring are sent to. When it is closed no other ring gets the number.
func (r *Ring) ID() int { return int(r.id) }

// Memory is the ring's: descriptors, and from Buffers on, a page boundary, the buffers.
func (r *Ring) Memory() runtime.View { return r.memory }

// Buffers is where the buffers begin in Memory, bytes.
func (r *Ring) Buffers() int { return r.buffers }

// Buffer is where the buffer of a descriptor lies in Memory, and its length;
// descriptors are counted from 0 on, over all rounds of the ring.
func (r *Ring) Buffer(descriptor uint64) (offset, n int) {
	return r.buffers + int(descriptor%uint64(r.o.Size))*r.o.Buffer, r.o.Buffer
}

// Tail is one past the last descriptor that was posted.
func (r *Ring) Tail() uint64 { return r.tail }

// Stats is what the device has done for the ring.
func (r *Ring) Stats() Stats {
	if r.closing {
		return r.stats
	}
	return r.registers().Stats
}

// Room is how many descriptors the IOuser may post: those whose frames it has
// taken, or that it has not posted yet.
func (r *Ring) Room() int { return int(r.next + uint64(r.o.Size) - r.tail) }

// Post gives the device n descriptors more. It takes nic.overhead. n beyond Room is an error.
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

// ErrClosed is what a ring says that is closed.
var ErrClosed = errors.New("backupring: the ring is closed")

// Counter is a counter of the process's interface, for those who wait for
// several things, and its value at this moment: when it is larger, there may be
// a frame.
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
	if why, is := lost[d.Used]; is {
		return Frame{Err: why}, nil
	}
	at := r.buffers + place*r.o.Buffer
	return Frame{Memory: r.memory.Slice(at, at+int(d.Used))}, nil
}

// has tells whether n bytes at an offset are the ring's.
func (r *Ring) has(offset, n uint64) bool {
	return offset <= uint64(r.memory.Len()) && n <= uint64(r.memory.Len())-offset
}

// pin brings memory of the ring in, for the IOprovider, and keeps it there. It
// reports whether the IOuser can have it.
func (r *Ring) pin(t *host.Thread, pin *host.Pin, offset, n uint64) bool {
	return r.proc.OS() == nil || r.proc.OS().GetUserPages(t, r.memory.Addr()+offset, n, true, pin) == nil
}

// store writes memory that is pinned.
func (r *Ring) store(t *host.Thread, offset uint64, b []byte) {
	// of an IOuser that has ended nothing is read any more
	_ = r.memory.Slice(int(offset), int(offset)+len(b)).Store(t, b)
}

// look reads memory that is pinned.
func (r *Ring) look(offset, n uint64) []byte {
	return r.memory.Slice(int(offset), int(offset+n)).Snapshot()
}
