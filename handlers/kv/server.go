//go:build !tinygo

package kv

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
)

// Loaded is the handlers on the devices of a cluster.
type Loaded struct{ module *handlers.Module }

// Load makes them ready for the processes of a cluster.
func Load(c *runtime.Cluster) (*Loaded, error) {
	m, err := handlers.Must("kv").Load(c)
	return &Loaded{m}, err
}

func tooSmall(o *Options) error {
	return fmt.Errorf("kv: Memory of %d B is too small for %d stripes of %d buckets and their first items", o.Memory, o.Stripes, o.Buckets)
}

// Stats are what the host of a server has done.
type Stats struct {
	Requests uint64 // that it has dealt with
	Grown    uint64 // stripes that it has made larger
	Refills  uint64 // times that handlers asked for blocks
}

// Server is one server of a store.
type Server struct {
	o       Options
	p       *runtime.Proc
	ni      *runtime.NI
	t       *table
	in      *handlers.Installed // nil: none
	stripes []byte              // in its HPU memory
	eq      portals.Handle      // requests and handoffs
	buffers []runtime.View      // for them
	out     *outbox
	self    portals.ID
	turn    uint64
	stats   Stats
	dry     [MaxClass + 1]bool // classes of which handlers were told that there is none
}

// Places of a server's messages among its portal table entries, and their match bits.
const (
	requestEntry = iota // + Options.PT: what clients send
	hostEntry           // + Options.PT: what handlers hand over
	memoryEntry         // + Options.PT: what clients read
)

const requestBits = 0x6b76 // "kv"

// Open gives a process a server: memory for its items, and the entries that
// requests come to. It takes no virtual time.
func (l *Loaded) Open(p *runtime.Proc, o Options) (*Server, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Server{o: o, p: p, ni: p.NI()}
	if s.self, err = s.ni.Objects().PhysID(); err != nil {
		return nil, err
	}
	if s.t, err = newTable(p, &s.o); err != nil {
		return nil, err
	}
	if s.out, err = newOutbox(p, 16, max(UserHeader, AnswerSize+o.MaxValue)); err != nil {
		return nil, err
	}
	if s.eq, err = s.ni.Objects().EQAlloc(uint64(4*(o.Clients+o.Limit) + 64)); err != nil {
		return nil, err
	}
	s.ni.Objects().Label(s.eq, "requests of the key-value store")
	if err := s.listen(); err != nil {
		return nil, err
	}
	if o.Mode == Handlers {
		return s, s.install(l)
	}
	if o.Mode == OneSided {
		return s, s.expose()
	}
	return s, nil
}

// expose lets clients read the memory.
func (s *Server) expose() error {
	pt := uint32(s.o.PT + memoryEntry)
	if _, err := s.ni.Objects().PTAlloc(0, portals.EQNone, pt); err != nil {
		return err
	}
	_, err := s.ni.MEAppend(pt, &portals.ME{
		Start: s.t.area.Addr(), Length: uint64(s.t.area.Len()), UID: portals.UIDAny, MatchID: portals.AnyID, MatchBits: requestBits,
		Options: portals.OptMEOpGet | portals.OptMEEventLinkDisable | portals.OptMEEventCommDisable,
	}, portals.PriorityList, 0)
	return err
}

// listen appends the buffers that the host's requests come to: so many that
// each client's longest one, or all that handlers may hand over, have room in
// half of them.
func (s *Server) listen() error {
	const number = 4
	longest, most := RequestSize+s.o.MaxKey+s.o.MaxValue, s.o.Clients
	entry := s.o.PT + requestEntry
	if s.o.Mode == Handlers {
		longest, most = HandoffSize+max(UserHeader, 8*s.o.Depth), 2*s.o.Limit+4*MaxClass
		entry = s.o.PT + hostEntry
	}
	if _, err := s.ni.Objects().PTAlloc(0, s.eq, uint32(entry)); err != nil {
		return err
	}
	for i := range number {
		b := s.p.Alloc(longest * (most/2 + 2))
		b.Lock()
		s.buffers = append(s.buffers, b)
		if err := s.append(i, uint32(entry), uint64(longest)); err != nil {
			return err
		}
	}
	return nil
}

// append links a buffer.
func (s *Server) append(i int, entry uint32, longest uint64) error {
	b := s.buffers[i]
	_, err := s.ni.MEAppend(entry, &portals.ME{
		Start: b.Addr(), Length: uint64(b.Len()), UID: portals.UIDAny, MatchID: portals.AnyID, MatchBits: requestBits, MinFree: longest,
		Options: portals.OptMEOpPut | portals.OptMEManageLocal | portals.OptMEEventLinkDisable,
	}, portals.PriorityList, uint64(i)<<32|longest)
	return err
}

// install gives the interface its handlers, and what they begin with.
func (s *Server) install(l *Loaded) error {
	device := s.p.Cluster().Profile()
	o := &s.o
	buffers := min(device.HPU.Cores*device.HPU.Contexts, MaxBuffers)
	state := State{
		Stripes: uint32(o.Stripes), Steps: uint32(o.Steps), Tries: 1000, Load: uint32(o.Load), Limit: uint32(o.Limit), Low: uint32(o.Depth / 4),
		Depth: uint32(o.Depth), Slots: uint32(o.Slots), Buffers: uint32(buffers), Free: 1<<buffers - 1, Chunk: uint32(device.Fabric.MTU),
		NID: s.self.NID, PID: s.self.PID, HostPT: uint32(o.PT + hostEntry), HostBits: requestBits,
	}
	if device.Fabric.MTU < 2*UserHeader {
		return fmt.Errorf("kv: packets of %d B (fabric.mtu), expected at least %d", device.Fabric.MTU, 2*UserHeader)
	}
	if device.Limits.MaxUserHdrSize < UserHeader {
		return fmt.Errorf("kv: user headers of %d B (limits.max_user_hdr_size), expected at least %d", device.Limits.MaxUserHdrSize, UserHeader)
	}
	behind := make([]byte, state.Lay())
	if err := s.fill(behind[state.StripesAt:], behind[state.StacksAt:]); err != nil {
		return err
	}
	b := append(encode(&state), behind...)
	in, err := l.module.Install(s.p, handlers.Options{
		Header: Header, Payload: Payload, Completion: Completion, State: b, Memory: int64(len(b)), Shared: true, UserHeader: UserHeader,
	})
	if err != nil {
		return err
	}
	s.in, s.stripes = in, in.HPU.Bytes()[len(b)-len(behind)+int(state.StripesAt):]
	if _, err := s.ni.Objects().PTAlloc(0, portals.EQNone, uint32(o.PT+requestEntry)); err != nil {
		return err
	}
	me := portals.ME{
		Start: s.t.area.Addr(), Length: uint64(s.t.area.Len()), UID: portals.UIDAny, MatchID: portals.AnyID, MatchBits: requestBits,
		Options: portals.OptMEOpPut | portals.OptMEEventLinkDisable | portals.OptMEEventCommDisable,
	}
	in.Attach(&me)
	_, err = s.ni.MEAppend(uint32(o.PT+requestEntry), &me, portals.PriorityList, 0)
	return err
}

// fill writes stripes, and as many blocks as stacks begin with: half of their
// depth of those classes that an eighth of the memory has room for.
func (s *Server) fill(stripes, stacks []byte) error {
	for i := range s.t.parts {
		p, b := &s.t.parts[i], stripes[i*StripeSize:]
		binary.LittleEndian.PutUint64(b[8:], p.table)
		binary.LittleEndian.PutUint64(b[32:], p.growAt)
	}
	for class := range uint32(MaxClass + 1) {
		b := stacks[int(class)*(StackSize+8*s.o.Depth):]
		n := min(s.o.Depth/2, s.o.Memory/16/MaxClass>>(6+class))
		for i := range n {
			place, ok := s.t.pool.take(class)
			if !ok {
				return tooSmall(&s.o)
			}
			binary.LittleEndian.PutUint64(b[StackSize+8*i:], Link(place, class, 0))
		}
		binary.LittleEndian.PutUint32(b[8:], uint32(n))
	}
	return nil
}

// Preload puts a key into the table before Serve is called. It takes no virtual time.
func (s *Server) Preload(key, value []byte) error {
	hash := Hash(key)
	n := uint32(hash) & uint32(s.o.Stripes-1)
	p := &s.t.parts[n]
	class := ClassOf(uint64(RequestSize + len(key) + len(value)))
	place, ok := s.t.pool.take(class)
	if !ok {
		return ErrFull
	}
	i := s.t.find(p, key, hash)
	b := s.t.area.Slice(int(place)+RequestSize, s.t.area.Len())
	b.CopyFrom(key)
	b.Slice(len(key), b.Len()).CopyFrom(value)
	s.t.link(p, &i, Link(place, class, 0), hash, len(key), len(value))
	if p.items > p.growAt {
		if place, log := s.t.larger(p); log > Class(p.table) {
			s.t.rehash(p, place, log)
		}
	}
	if s.in != nil {
		b := s.stripes[int(n)*StripeSize:]
		for i, v := range []uint64{p.table, p.items, p.version, p.growAt} {
			binary.LittleEndian.PutUint64(b[8+8*i:], v)
		}
	}
	return nil
}

// Counts are what handlers have done so far.
func (s *Server) Counts() (Counts, error) {
	var state State
	if s.in == nil {
		return state.Counts, nil
	}
	err := s.in.Read(&state)
	return state.Counts, err
}

// Stats are what the host has done so far.
func (s *Server) Stats() Stats { return s.stats }

// Serve deals with requests until the process is aborted.
func (s *Server) Serve() error {
	for {
		ev, err := s.ni.EQWait(s.eq)
		if errors.Is(err, portals.ErrAborted) {
			return nil
		}
		if err != nil {
			return err
		}
		switch ev.Type {
		case portals.EventPut:
			err = s.arrived(&ev)
		case portals.EventAutoUnlink: // its last message is complete
			err = s.append(int(ev.UserPtr>>32), ev.PTIndex, ev.UserPtr&(1<<32-1))
		}
		if err != nil {
			return err
		}
	}
}
