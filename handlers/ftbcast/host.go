//go:build !tinygo

package ftbcast

import (
	_ "embed"
	"errors"
	"fmt"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/spin"
)

//go:generate go run ../../internal/build/cmd -o ftbcast.wasm guest

//go:embed ftbcast.wasm
var wasm []byte

// Library is the handler library, compiled from the Go source in guest.
var Library = handlers.Register("ftbcast", wasm)

// RankSlot is a rank of a broadcast that survives failed nodes.
var RankSlot = Library.Slot(handlers.Slot{
	Name: "rank", Short: "a rank of a broadcast that survives failed nodes",
	Handlers: []string{Payload, Header},
	Expects: []string{
		"The first copy of each packet is delivered once and passed on to the neighbours, the children first; later copies are dropped.",
		"got is not zero when a broadcast without payload has come.",
	},
})

// Names of its handlers: one for broadcasts with a payload, the other for
// broadcasts without.
const (
	Payload = "first_payload"
	Header  = "first_header"
)

// Loaded is the library on the devices of a cluster.
type Loaded struct {
	cluster *runtime.Cluster
	module  *handlers.Module
}

// Load makes the library ready for the processes of a cluster.
func Load(c *runtime.Cluster) (*Loaded, error) {
	m, err := RankSlot.Load(c)
	return &Loaded{c, m}, err
}

// Options describe a broadcast. All members have the same PT, MatchBits and
// Root, and memory of the same length.
type Options struct {
	PT        uint32 // portal table index, used by this broadcast only
	MatchBits uint64
	Root      int
	Memory    runtime.View // the data to send, or where it arrives
}

// Member is a process's part in a broadcast.
type Member struct {
	ni    *runtime.NI
	ct    portals.Handle // counts bytes; without payload, broadcasts
	entry portals.Handle
	o     Options
}

// Join makes a process ready: an entry, and HPU memory with a bit for each
// packet. It takes no virtual time.
func (l *Loaded) Join(p *runtime.Proc, o Options) (*Member, error) {
	ranks := l.cluster.Nodes()
	if o.Root < 0 || o.Root >= ranks {
		return nil, fmt.Errorf("ftbcast: root %d, expected a rank below %d", o.Root, ranks)
	}
	if o.Memory.Len() > 0 && o.Memory.Proc() != p {
		return nil, errors.New("ftbcast: the memory is another process's, expected the rank's own")
	}
	installed, err := l.install(p, &o, ranks)
	if err != nil {
		return nil, fmt.Errorf("ftbcast: %w", err)
	}
	u := handlers.NewSetup("ftbcast", p)
	if u.Err == nil && u.Self.PID != 0 {
		return nil, fmt.Errorf("ftbcast: process %d of node %d, expected the first: a node is a rank", u.Self.PID, u.Self.NID)
	}
	m := &Member{ni: u.NI, o: o, ct: u.Counter("broadcast")}
	u.Table(o.PT, portals.EQNone, installed.PTOptions)
	entry := portals.ME{CT: m.ct, MatchBits: o.MatchBits, Options: portals.OptMEOpPut | portals.OptMEEventCTComm}
	if o.Memory.Len() > 0 {
		entry.Options |= portals.OptMEEventCTBytes
	}
	installed.Attach(&entry)
	m.entry = u.Append(o.PT, portals.AnyID, o.Memory, entry)
	return m, u.Err
}

func (l *Loaded) install(p *runtime.Proc, o *Options, ranks int) (*handlers.Installed, error) {
	packet := uint32(l.cluster.Profile().Fabric.MTU)
	size := uint64(o.Memory.Len())
	state := State{
		MatchBits: o.MatchBits, Size: size, PT: o.PT, Rank: uint32(p.Rank()), Packet: packet,
		Packets: uint32((size + uint64(packet) - 1) / uint64(packet)),
	}
	if l.cluster.Profile().Transport.Kind == nic.Reliable {
		state.Reliable = 1
	}
	list, children := NeighboursOf(state.Rank, uint32(o.Root), uint32(ranks))
	state.Neighbours, state.Children = uint32(copy(state.Neighbour[:], list)), uint32(children)
	b := spin.EncodeState(&state)
	b = append(b, make([]byte, 8*state.Words())...)
	how := handlers.Options{Payload: Payload, State: b, Memory: int64(len(b))}
	if size == 0 {
		how.Payload, how.Header = "", Header
	}
	return l.module.Install(p, how)
}

// Send broadcasts the root's memory. The host posts one put to its own NIC, and
// handlers there do the rest.
func (m *Member) Send() error {
	if rank := m.ni.Proc().Rank(); rank != m.o.Root {
		return fmt.Errorf("ftbcast: rank %d sends a broadcast of rank %d", rank, m.o.Root)
	}
	size := uint64(m.o.Memory.Len())
	md, err := m.ni.Objects().MDBind(&portals.MD{Start: m.o.Memory.Addr(), Length: size})
	if err != nil {
		return err
	}
	return m.ni.Put(portals.Put{MD: md, Length: size, Target: portals.PhysID(uint32(m.o.Root), 0), PT: m.o.PT, MatchBits: m.o.MatchBits})
}

// ErrFailed means that a handler failed, or that memory could not be read or
// written.
var ErrFailed = errors.New("ftbcast: an operation failed")

// Wait returns when every byte is in the process's memory or, at the root, when
// the NIC has passed every packet on.
func (m *Member) Wait() error {
	v, err := m.ni.CTWait(m.ct, uint64(max(m.o.Memory.Len(), 1)))
	if err == nil && v.Failure > 0 {
		err = ErrFailed
	}
	return err
}

// Arrived returns how many bytes are in the process's memory. For a broadcast
// without payload it returns how many broadcasts have come. It takes no virtual
// time.
func (m *Member) Arrived() (int, error) {
	v, err := m.ni.Objects().CTGet(m.ct)
	return int(v.Success), err
}

// Leave ends the process's part. Later copies find no entry.
func (m *Member) Leave() error {
	return errors.Join(m.ni.Objects().MEUnlink(m.entry), m.ni.Objects().CTFree(m.ct), m.ni.Objects().PTFree(m.o.PT))
}
