package runtime_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/internal/hosttest"
	_ "github.com/spinsim/spinsim/internal/rapidtest" // fewer checks
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// The oracle of host memory (docs/abi.md, "Host memory"). Handlers, messages of
// another rank and the cores of the node access the same few bytes while long
// transfers keep the bus busy. What every one of them saw, the moments at which
// writes landed, and the bounds between which reads and atomics took effect go
// to a checker of linearizability, which knows nothing of the simulator: is
// there an order in which one memory, one access after the other, gives all
// these answers?

// shared is how many bytes of host memory they fight for.
const shared = 32

// memory is what the checker simulates.
type memory [shared]byte

// access is one access to it: what was asked for and what was answered.
type access struct {
	what    string
	kind    accessKind
	at, n   int    // range
	data    []byte // written, added, or compared and then swapped
	found   []byte // read, or found by an atomic
	swapped int64  // answer of a CAS; -1: there is none
	from    int64  // it takes effect after this place in the record of the run, see chronicle
	to      int64  // and not after this one
	failed  bool   // it has been told to have no effect
	applied bool   // a fetching atomic: it has had its effect
	unknown bool   // and its answer got lost
}

type accessKind uint8

const (
	reads accessKind = iota
	writes
	adds
	swaps
)

// apply is the access on a memory of its own: the memory after it, and whether
// the answers are right.
func (a *access) apply(m memory) (memory, bool) {
	word := m[a.at : a.at+a.n]
	if a.found != nil && string(word) != string(a.found) {
		return m, false
	}
	switch a.kind {
	case reads:
	case writes:
		copy(word, a.data)
	case adds:
		for k := 0; k < a.n; k += 8 {
			binary.LittleEndian.PutUint64(word[k:], binary.LittleEndian.Uint64(word[k:])+binary.LittleEndian.Uint64(a.data[k:]))
		}
	case swaps:
		equal := string(word) == string(a.data[:8])
		if a.swapped >= 0 && equal != (a.swapped == 1) {
			return m, false
		}
		if equal {
			copy(word, a.data[8:])
		}
	}
	return m, true
}

func (a *access) String() string {
	return fmt.Sprintf("[%4d, %4d] %-24s %s [%2d:%2d] data %x found %x swapped %d failed %t", a.from, a.to, a.what, [...]string{"read", "write", "add", "cas"}[a.kind],
		a.at, a.at+a.n, a.data, a.found, a.swapped, a.failed)
}

var oneMemory = porcupine.Model{
	Init: func() any { return memory{} },
	Step: func(state, input, _ any) (bool, any) {
		after, ok := input.(*access).apply(state.(memory))
		return ok, after
	},
}

// chronicle is the record of a run: the moments that matter, in the order in which they came.
type chronicle struct {
	moments []sim.Time
}

// now notes a moment; what happens at it has this place.
func (h *chronicle) now(at sim.Time) int64 {
	h.moments = append(h.moments, at)
	return int64(2 * len(h.moments))
}

// before is the place before everything that happens at a time.
func (h *chronicle) before(at sim.Time) int64 {
	return int64(2*sort.Search(len(h.moments), func(i int) bool { return h.moments[i] >= at })) + 1
}

// memoryRun is one drawn program and what came of it.
type memoryRun struct {
	chronicle
	t        *rapid.T
	rig      *rig
	scripts  map[int][]line // by packet
	accesses []*access
	byHand   map[int64]*handlerRun // by the handler's number
	lines    []*line               // of all handlers, in the order of their issue
	bits     map[uint64]*access    // by the match bits of messages
	slots    int
	ops      []hpu.Operation
	fills    []func(mem []byte) // of HPU memory
	messages []message
	loads    []load
	answers  []func() // collect what messages have fetched, after the run
	faults   *faults  // nil: memory is always there
}

// line is a line of a handler's script.
type line struct {
	rec
	access *access // nil: it is none to the shared bytes
	write  bool    // it writes host memory
	local  int     // where in HPU memory the answer is; 0: nowhere
	remote int     // where in rank 2's entry it is; 0: nowhere
	handle int     // non-blocking: the handle it must get, else -1
	packet int
	at     sim.Time // issued
	place  int64    // landed
	done   bool
	failed bool // and its handler knows, or it is among the failures of the run
}

// handlerRun follows a handler through its script.
type handlerRun struct {
	script []line
	next   int
	open   map[int][]*line // operations by handle, -1 the blocking ones
}

type message struct {
	wait   sim.Time
	access *access // nil: a long put elsewhere
	bits   uint64
	length int
	slot   int
}

type load struct {
	wait   sim.Time
	access *access
}

// devices are the variants of the device that programs are drawn for.
var devices = sync.OnceValue(func() []*profile.Profile { return devicesWith() })

func devicesWith(more ...string) (all []*profile.Profile) {
	for _, name := range profiles {
		for _, overrides := range [][]string{
			nil,
			{"dma.bandwidth=4GiB/s"},
			{"dma.latency=20ns"},
			{"dma.bandwidth=1GiB/s", "dma.latency=2us"},
			{"hpu.contexts=1", "hpu.cores=2"},
			{"dma.bandwidth=8GiB/s", "hpu.cores=1", "hpu.contexts=8"},
			{"dma.full_duplex=false", "dma.shared_memory=false"},
			{"dma.full_duplex=true", "dma.shared_memory=false", "dma.event_bytes=64"},
			{"hpu.dma_write=landed"},
			{"dma.charge=latency"},
		} {
			p, err := profile.Load(name, slices.Concat(overrides, []string{"fabric.mtu=64", "hpu.dma_handles=16"}, more)...)
			if err != nil {
				panic(err)
			}
			all = append(all, p)
		}
	}
	return all
}

// Random programs of handlers, messages and cores, each on a device drawn for
// it: 100 in go test, 100,000 in .ci/run deep (-rapid.checks counts fours).
func TestHostMemoryModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		for range 4 {
			checkMemory(t, rt, nil)
		}
	})
}

func checkMemory(t *testing.T, rt *rapid.T, f *faults) {
	m := &memoryRun{t: rt, faults: f, byHand: map[int64]*handlerRun{}, bits: map[uint64]*access{}, scripts: map[int][]line{}}
	packets := rapid.IntRange(1, 5).Draw(rt, "packets")
	payloads := map[int][]rec{}
	for p := range packets {
		m.drawScript(p)
		for _, l := range m.scripts[p] {
			payloads[p] = append(payloads[p], l.rec)
		}
		payloads[p] = append(payloads[p], end(hpu.Success))
	}
	for range rapid.IntRange(0, 8).Draw(rt, "messages") {
		m.drawMessage()
	}
	for range rapid.IntRange(0, 6).Draw(rt, "loads and stores") {
		a := m.draw("core", rapid.SampledFrom([]accessKind{reads, writes}).Draw(rt, "kind"))
		m.loads = append(m.loads, load{m.drawTime(), a})
	}
	variants := devices()
	if f != nil {
		variants = f.devices
	}
	r := conduct(t, setup{
		loaded: variants[rapid.IntRange(0, len(variants)-1).Draw(rt, "device")], payloads: payloads, length: 64 * packets, ops: m.ops,
		build:  func(r *rig) { m.rig = r },
		target: m.runTarget, peer: m.runPeer, cleanup: rt.Cleanup,
		cfg: func(cfg *runtime.Config) {
			cfg.Watch, cfg.Explain = m.watch, m
			if f != nil {
				cfg.Seed, cfg.Translator = rapid.Uint64().Draw(rt, "seed"), (&hosttest.Nodes{Chances: f.chances}).Make
			}
		},
	})
	if f == nil {
		r.noHandlerErrors()
	}
	m.finish()
	if f != nil {
		f.check(m)
	}
	if result, _ := porcupine.CheckOperationsVerbose(oneMemory, m.operations(), time.Minute); result != porcupine.Ok {
		var text strings.Builder
		sort.SliceStable(m.accesses, func(i, j int) bool { return m.accesses[i].from < m.accesses[j].from })
		for _, a := range m.accesses {
			fmt.Fprintln(&text, a)
		}
		rt.Fatalf("%s: %s: no order of these accesses gives these answers:\n%s", r.prof.Name, result, &text)
	}
}

func (m *memoryRun) operations() (ops []porcupine.Operation) {
	for i, a := range m.accesses {
		if a.failed {
			continue
		}
		require.LessOrEqual(m.t, a.from, a.to, "%v", a)
		ops = append(ops, porcupine.Operation{ClientId: i, Input: a, Call: a.from, Return: a.to})
	}
	return ops
}

// runTarget is the program of rank 1: an entry without handlers over the same
// memory, then loads and stores.
func (m *memoryRun) runTarget(p *runtime.Proc, r *rig) error {
	for _, f := range m.fills {
		f(r.hpu.Bytes())
	}
	ni := p.NI()
	eq, err := ni.Objects().EQAlloc(64)
	if err != nil {
		return err
	}
	if _, err := ni.Objects().PTAlloc(0, eq, 1); err != nil {
		return err
	}
	if _, err := ni.MEAppend(1, &portals.ME{
		Start: r.addr, Length: hostBytes, UID: portals.UIDAny, MatchID: portals.AnyID, IgnoreBits: portals.SizeMax,
		Options: portals.OptMEOpPut | portals.OptMEOpGet,
	}, portals.PriorityList, 0); err != nil {
		return err
	}
	for _, l := range m.loads {
		p.Sleep(l.wait)
		a := l.access
		word := r.memory.host.Slice(a.at, a.at+a.n)
		if a.kind == writes {
			word.CopyFrom(a.data)
		} else {
			a.found = bytes.Clone(word.Read())
		}
		a.from = m.now(p.Now())
		a.to = a.from
	}
	return nil
}

// runPeer is the program of rank 2.
func (m *memoryRun) runPeer(p *runtime.Proc, _ *rig) error {
	ni := p.NI()
	eq, err := ni.Objects().EQAlloc(64)
	if err != nil {
		return err
	}
	mem := p.Alloc(1 << 16)
	md, err := ni.Objects().MDBind(&portals.MD{Start: mem.Addr(), Length: 1 << 16, EQ: eq})
	if err != nil {
		return err
	}
	to := portals.PhysID(1, 0)
	for _, msg := range m.messages {
		p.Sleep(msg.wait)
		a := msg.access
		if a == nil {
			if err := ni.Put(portals.Put{MD: md, Length: uint64(msg.length), Target: to, PT: 1, RemoteOffset: 8192}); err != nil {
				return err
			}
			continue
		}
		a.from = m.now(p.Now())
		out, back, n := uint64(msg.slot), uint64(msg.slot+64), uint64(a.n)
		at := uint64(a.at)
		write := func(b []byte) { mem.Slice(int(out), int(out)+len(b)).CopyFrom(b) }
		answer := mem.Slice(int(back), int(back+n)) // where nothing else comes
		fetched := func() { m.answers = append(m.answers, func() { a.found = answer.Snapshot() }) }
		switch a.kind {
		case reads:
			fetched()
			err = ni.Get(portals.Get{MD: md, Offset: back, Length: n, Target: to, PT: 1, MatchBits: msg.bits, RemoteOffset: at, UserPtr: msg.bits})
		case writes:
			write(a.data)
			err = ni.Put(portals.Put{MD: md, Offset: out, Length: n, Target: to, PT: 1, MatchBits: msg.bits, RemoteOffset: at, UserPtr: msg.bits})
		case adds:
			write(a.data)
			if msg.bits%2 == 0 {
				err = ni.Atomic(portals.Atomic{MD: md, Offset: out, Length: n, Target: to, PT: 1, MatchBits: msg.bits, RemoteOffset: at, UserPtr: msg.bits, Op: portals.OpSUM, Type: portals.Uint64})
				break
			}
			fetched()
			err = ni.FetchAtomic(portals.FetchAtomic{GetMD: md, GetOffset: back, MD: md, Offset: out, Length: n, Target: to, PT: 1, MatchBits: msg.bits, RemoteOffset: at, UserPtr: msg.bits, Op: portals.OpSUM, Type: portals.Uint64})
		case swaps:
			write(a.data[8:])
			fetched()
			err = ni.Swap(portals.Swap{GetMD: md, GetOffset: back, MD: md, Offset: out, Length: n, Target: to, PT: 1, MatchBits: msg.bits, RemoteOffset: at, UserPtr: msg.bits, Operand: a.data[:8], Op: portals.OpCSWAP, Type: portals.Uint64})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Trace bounds the messages' accesses by their last event: what follows it comes after them.
func (m *memoryRun) Trace(ni *portals.NI, t *portals.TraceRecord) {
	if t.What != portals.TraceEvent {
		return
	}
	e := t.Event
	if m.faults != nil && e.Fail != portals.NIOK {
		m.faults.event(m, ni, e)
		return
	}
	require.Equal(m.rig, portals.NIOK, e.Fail, "%v", e)
	switch e.Type {
	case portals.EventPut, portals.EventAtomic:
		// rank 0's message has match bits of its own
		if a := m.bits[e.MatchBits]; a != nil && e.Initiator.NID != 0 {
			a.to = m.now(m.rig.c.Engine().Now())
		}
	case portals.EventFetchAtomic:
		m.bits[e.MatchBits].applied = true
	case portals.EventReply:
		m.bits[e.UserPtr].to = m.now(m.rig.c.Engine().Now())
	default:
	}
}

// watch follows the handlers.
func (m *memoryRun) watch(s *nic.HandlerStep) {
	switch s.What {
	case nic.StepBegan:
		m.byHand[s.Number] = &handlerRun{script: m.scripts[s.Packet], open: map[int][]*line{}}
	case nic.StepActed:
		h := m.byHand[s.Number]
		for hpu.Op(h.script[h.next].op) != s.Op { // spins
			h.next++
		}
		l := &h.script[h.next]
		h.next++
		l.at = s.At
		m.lines = append(m.lines, l)
		if l.handle >= 0 {
			require.Equal(m.t, int64(l.handle), s.Result)
		}
		if l.access != nil && l.remote == 0 || l.access == nil && s.Op != hpu.OpDMAWait {
			h.open[l.handle] = append(h.open[l.handle], l)
		}
	case nic.StepLanded:
		h := m.byHand[s.Number]
		// blocking writes may be under way when the handler goes on; they land
		// in order
		open := h.open[s.Handle]
		k := 0
		if s.Result < hpu.OK { // what has failed, the handler has waited for
			k = len(open) - 1
		}
		l := open[k]
		h.open[s.Handle] = slices.Delete(open, k, k+1)
		require.False(m.t, l.done, "landed twice")
		l.done, l.place = true, m.now(s.At)
		if m.faults != nil && s.Result < hpu.OK {
			l.failed = true
			if l.access != nil {
				l.access.failed = true
			}
			break
		}
		require.Zero(m.t, min(s.Result, hpu.OK))
		if l.access != nil {
			l.access.to = l.place
			if l.access.kind == swaps {
				l.access.swapped = s.Result
			}
		}
	default:
	}
}

// finish collects the answers and bounds the accesses of handlers: a write
// takes effect when it has landed; a read or an atomic after the moment of its
// issue and after all writes issued before it have landed.
func (m *memoryRun) finish() {
	for _, collect := range m.answers {
		collect()
	}
	sort.SliceStable(m.lines, func(i, j int) bool { return m.lines[i].at < m.lines[j].at })
	// landing of the latest write issued, and of the latest issued at an
	// earlier time
	var last, lastEarlier int64
	var at sim.Time
	perPacket := map[int]int64{}
	for _, l := range m.lines {
		if l.at > at {
			at, lastEarlier = l.at, last
		}
		follows := max(lastEarlier, perPacket[l.packet])
		if l.failed {
			continue
		}
		if l.write {
			require.True(m.t, l.done)
			require.Less(m.t, follows, l.place, "writes land in the order of their issue")
			last, perPacket[l.packet] = max(last, l.place), l.place
		}
		a := l.access
		switch {
		case a == nil || a.failed:
			continue
		case l.write:
			a.from = l.place
		default:
			a.from = max(m.before(l.at), follows+1)
		}
		switch {
		case l.local != 0:
			require.True(m.t, l.done, "%v", a)
			a.found = m.rig.hpu.Bytes()[l.local-hpuBase:][:a.n]
		case l.remote != 0:
			a.found = m.rig.peerMem[l.remote:][:a.n]
		}
	}
	end := &access{what: "the end", kind: reads, n: shared, found: m.rig.host[:shared], swapped: -1}
	end.from = m.now(m.rig.c.Engine().Now())
	end.to = end.from
	m.accesses = append(m.accesses, end)
}
