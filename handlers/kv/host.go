//go:build !tinygo

package kv

import (
	_ "embed"
	"encoding/binary"
	"fmt"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/handlers/internal/service"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
)

//go:generate go run ../../internal/build/cmd -o kv.wasm guest

//go:embed kv.wasm
var wasm []byte

// Library is the handler library, compiled from the Go source in guest.
var Library = handlers.Register("kv", wasm)

// ServerSlot is the server of a key-value store.
var ServerSlot = Library.Slot(handlers.Slot{
	Name: "server", Short: "the server of a key-value store",
	Handlers: []string{Header, Payload, Completion},
	Expects: []string{
		"Requests and their answers are of state.go; a request is answered once, or handed to the host once.",
		"Answers must be linearizable.",
	},
})

// Names of its handlers.
const (
	Header     = "header"
	Payload    = "payload"
	Completion = "completion"
)

// MaxBuffers is the largest number of buffers, and so of handlers that run at a time.
const MaxBuffers = 64

// Loaded is the library on the devices of a cluster.
type Loaded struct{ module *handlers.Module }

// Load makes the library ready for the processes of a cluster.
func Load(c *runtime.Cluster) (*Loaded, error) {
	m, err := ServerSlot.Load(c)
	return &Loaded{m}, err
}

func tooSmall(o *Options) error {
	return fmt.Errorf("kv: Memory of %d B is too small for %d stripes of %d buckets and their first items", o.Memory, o.Stripes, o.Buckets)
}

// Stats counts the work of a server's host.
type Stats struct {
	Requests uint64 // processed
	Grown    uint64 // made larger
	Refills  uint64 // times that handlers asked for blocks
}

// Server is one server of a store.
type Server struct {
	o       Options
	p       *runtime.Proc
	ni      *runtime.NI
	t       *table
	in      *handlers.Installed // nil: none
	stripes []byte              // their memory in the HPU memory
	eq      portals.Handle      // requests and handoffs
	buffers []runtime.View      // for requests and handoffs
	out     *outbox
	self    portals.ID
	turn    uint64
	stats   Stats
	dry     [MaxClass + 1]bool // classes whose handlers were told that no block is left
}

// Places of a server's messages among its portal table entries, and their match bits.
const (
	requestEntry = iota // + Options.PT: messages of clients
	hostEntry           // + Options.PT: handoffs of handlers
	memoryEntry         // + Options.PT: reads of clients
)

const requestBits = 0x6b76 // "kv"

// Open gives a process a server: memory for its items, and the entries for
// requests. It takes no virtual time.
func (l *Loaded) Open(p *runtime.Proc, o Options) (*Server, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	u := handlers.NewSetup("kv", p)
	s := &Server{o: o, p: p, ni: u.NI, self: u.Self}
	if s.t, err = newTable(p, &s.o); err != nil {
		return nil, err
	}
	s.out = newOutbox(u, p, 16, max(UserHeader, AnswerSize+o.MaxValue))
	s.eq = u.Queue(4*(o.Clients+o.Limit)+64, "requests of the key-value store")
	s.listen(u)
	if o.Mode == Handlers && u.Err == nil {
		return s, s.install(u, l)
	}
	if o.Mode == OneSided {
		pt := uint32(o.PT + memoryEntry)
		u.Table(pt, portals.EQNone, 0)
		u.Append(pt, portals.AnyID, s.t.area, portals.ME{
			MatchBits: requestBits, Options: portals.OptMEOpGet | portals.OptMEEventLinkDisable | portals.OptMEEventCommDisable,
		})
	}
	return s, u.Err
}

// listen appends the buffers for the host's requests. Half of them have room
// for each client's longest request, or for all handoffs of handlers.
func (s *Server) listen(u *handlers.Setup) {
	const number = 4
	longest, most := RequestSize+s.o.MaxKey+s.o.MaxValue, s.o.Clients
	entry := uint32(s.o.PT + requestEntry)
	if s.o.Mode == Handlers {
		longest, most = HandoffSize+max(UserHeader, 8*s.o.Depth), 2*s.o.Limit+4*MaxClass
		entry = uint32(s.o.PT + hostEntry)
	}
	u.Table(entry, s.eq, 0)
	for i := 0; i < number && u.Err == nil; i++ {
		s.buffers = append(s.buffers, u.Locked(longest*(most/2+2)))
		u.Err = s.append(i, entry, uint64(longest))
	}
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

// install gives the interface its handlers, and their initial memory.
func (s *Server) install(u *handlers.Setup, l *Loaded) error {
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
	me := portals.ME{MatchBits: requestBits, Options: portals.OptMEOpPut | portals.OptMEEventLinkDisable | portals.OptMEEventCommDisable}
	in.Attach(&me)
	u.Table(uint32(o.PT+requestEntry), portals.EQNone, 0)
	u.Append(uint32(o.PT+requestEntry), portals.AnyID, s.t.area, me)
	return u.Err
}

// fill writes stripes, and the initial blocks of stacks. Each stack of a class
// is filled to half of its depth, if an eighth of the memory has room for that.
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

// Counts returns the handlers' counts so far.
func (s *Server) Counts() Counts { return handlers.Peek[State](s.in).Counts }

// Stats returns the host's counts so far.
func (s *Server) Stats() Stats { return s.stats }

// Serve handles requests until the process is aborted.
func (s *Server) Serve() error {
	return service.Serve(s.ni, s.eq, s.arrived, func(e *portals.Event) error {
		return s.append(int(e.UserPtr>>32), e.PTIndex, e.UserPtr&(1<<32-1))
	})
}

// Lay sets the places of everything behind the state in HPU memory, from the
// numbers in the state, and returns the size of it all in bytes.
func (s *State) Lay() (behind int) {
	chunk := (int(s.Chunk) + 7) &^ 7
	for _, area := range []struct {
		place *uint32
		bytes int
	}{
		{&s.StripesAt, int(s.Stripes) * StripeSize},
		{&s.StacksAt, (MaxClass + 1) * (StackSize + 8*int(s.Depth))},
		{&s.SlotsAt, int(s.Slots) * SlotSize},
		{&s.BuffersAt, int(s.Buffers) * 2 * chunk},
	} {
		*area.place = uint32(behind)
		behind += area.bytes
	}
	return behind
}
