package main

import (
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers/internal/wasmtest"
	"github.com/spinsim/spinsim/handlers/raid5"
	"github.com/spinsim/spinsim/handlers/replicate"
	"github.com/spinsim/spinsim/spin"
	"github.com/spinsim/spinsim/spin/spintest"
)

const (
	packet = 512 // of which a block has a whole number
	slots  = 5
	memory = 3 * replicate.Block
	pt     = 7
	reply  = 8
)

// group is servers that are devices without time: what they send each other is
// delivered by drain, in any order.
type group struct {
	t       *testing.T
	rng     *rand.Rand
	servers []*server
	replies []spintest.Call // to the client
}

type server struct {
	*spintest.Device
	state *replicate.State
	seen  int // calls that were looked at
	run   map[string]spintest.Handlers[replicate.State]
}

var (
	kinds = map[string]spintest.Handlers[replicate.State]{
		"store": {Header: open, Payload: store}, "pass": {Payload: store}, "admit": {Header: admit, Payload: store}, "fetch": {Header: fetch},
	}
	modules = map[string]wasmtest.Names{
		"store": {Header: replicate.Open, Payload: replicate.Store}, "pass": {Payload: replicate.Store},
		"admit": {Header: replicate.Admit, Payload: replicate.Store}, "fetch": {Header: replicate.Send},
	}
)

func newGroup(t *testing.T, n int, tree, wasm bool) *group {
	g := &group{t: t, rng: rand.New(rand.NewPCG(uint64(n), 3))}
	for i := range n {
		s := &server{Device: spintest.New(t, spintest.Config{HostMem: memory, MTU: packet, NID: uint32(10 + i)}), run: kinds}
		state := replicate.State{Slots: slots, PT: pt, ReplyPT: reply, Index: uint32(i)}
		if tree {
			state.Tree = 1
		}
		for j := range n {
			state.Servers[j] = replicate.Server{NID: uint32(10 + j), PID: 1}
		}
		s.state = spintest.NewState[replicate.State](s.Device, int(state.Memory()))
		*s.state = state
		if wasm {
			s.run = wasmtest.Entries[replicate.State](t, s.Device, replicate.Library.Wasm, modules, int(state.Memory()))
		}
		g.servers = append(g.servers, s)
	}
	return g
}

// deliver has a server handle a message; its packets come in any order.
func (g *group) deliver(to int, m spintest.Message) spintest.Outcome {
	if m.UserHdrLen == 0 {
		m.Order = g.rng.Perm((len(m.Data) + packet - 1) / packet)
	}
	s := g.servers[to]
	kind := map[uint64]string{
		replicate.StoreBits: "store", replicate.PassBits: "pass", replicate.AdmitBits: "admit", replicate.FetchBits: "fetch",
	}[m.MatchBits&replicate.KindMask]
	return spintest.Deliver(s.Device, s.run[kind], s.state, m)
}

// drain delivers what servers have sent until nothing is on its way.
func (g *group) drain() {
	for {
		var due []spintest.Call
		for _, s := range g.servers {
			for ; s.seen < len(s.Calls); s.seen++ {
				if c := s.Calls[s.seen]; c.Result >= 0 && c.Name == "put_from_device" {
					due = append(due, c)
				}
			}
		}
		if len(due) == 0 {
			return
		}
		for _, i := range g.rng.Perm(len(due)) {
			c := due[i]
			if c.Op.PTIndex == reply {
				require.Equal(g.t, [2]uint32{99, 2}, [2]uint32{c.Op.TargetNID, c.Op.TargetPID})
				g.replies = append(g.replies, c)
				continue
			}
			require.EqualValues(g.t, pt, c.Op.PTIndex)
			require.EqualValues(g.t, 1, c.Op.TargetPID)
			g.deliver(int(c.Op.TargetNID)-10, spintest.Message{Data: c.Data, Offset: c.Op.RemoteOffset, MatchBits: c.Op.MatchBits, HdrData: c.Op.HdrData})
		}
	}
}

// write sends new data to the first server that is alive.
func (g *group) write(live uint32, at int, data []byte, slot uint32) {
	ticket := raid5.NewTicket(99, 2, slot, uint32((len(data)+packet-1)/packet))
	g.deliver(int(replicate.Of(live, 0)), spintest.Message{
		Data: data, Offset: uint64(at), MatchBits: uint64(live)<<replicate.LiveShift | replicate.StoreBits, HdrData: uint64(ticket),
	})
}

func each(t *testing.T, f func(t *testing.T, wasm bool)) {
	t.Run("source", func(t *testing.T) { f(t, false) })
	t.Run("module", func(t *testing.T) { f(t, true) })
}

// A write is at every server that is alive and nowhere else, once, and its
// client has an answer of each that passes nothing on, whatever the order of
// packets.
func TestCopies(t *testing.T) {
	each(t, func(t *testing.T, wasm bool) {
		for n := 1; n <= replicate.MaxServers; n += 1 + n/4 {
			for _, tree := range []bool{false, true} {
				g := newGroup(t, n, tree, wasm)
				for range 3 {
					live := uint32(g.rng.Int64N(1<<n-1)) + 1
					size := 1 + g.rng.IntN(5*packet)
					at := g.rng.IntN((memory-size)/packet) * packet
					data := make([]byte, size)
					for i := range data {
						data[i] = byte(g.rng.Uint32())
					}
					var want [][]byte
					ranks := uint32(0)
					for i, s := range g.servers {
						want = append(want, slices.Clone(s.Host))
						if live>>i&1 != 0 {
							copy(want[i][at:], data)
							ranks++
						}
					}
					g.replies = nil
					g.write(live, at, data, 3)
					g.drain()
					require.Len(t, g.replies, int(replicate.Last(ranks, tree)))
					for _, c := range g.replies {
						require.Equal(t, [2]uint64{replicate.ReplyBits | 3, replicate.OK}, [2]uint64{c.Op.MatchBits, c.Op.HdrData})
					}
					for i, s := range g.servers {
						require.True(t, slices.Equal(want[i], s.Host), "%d of %d servers, tree %v, alive %b", i, n, tree, live)
					}
				}
				for _, s := range g.servers {
					after := unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(s.state), unsafe.Sizeof(*s.state))), slots*replicate.SlotSize)
					require.Equal(t, -1, slices.IndexFunc(after, func(b byte) bool { return b != 0 }), "slots")
				}
			}
		}
	})
}

// Each server but the first gets a packet of one other, and none is further
// from the first than the shape says.
func TestShapes(t *testing.T) {
	for ranks := uint32(1); ranks <= replicate.MaxServers; ranks++ {
		for _, tree := range []bool{false, true} {
			depth := make([]int, ranks)
			last := uint32(0)
			for rank := range ranks {
				first, n := replicate.Next(rank, ranks, tree)
				for i := first; i < first+n; i++ {
					require.Zero(t, depth[i])
					depth[i] = depth[rank] + 1
				}
				if n == 0 {
					last++
				}
			}
			require.NotContains(t, depth[1:], 0)
			require.Equal(t, replicate.Last(ranks, tree), last)
			deepest := slices.Max(depth)
			if tree {
				require.Less(t, 1<<deepest, 2*int(ranks))
			} else {
				require.Equal(t, int(ranks)-1, deepest)
			}
		}
	}
	require.EqualValues(t, 4, replicate.Of(0b1_0011, 2))
	require.EqualValues(t, 2, replicate.Rank(0b1_0011, 4))
}

// A packet waits for those of its block that have come before it, and others do not wait for it.
func TestBlocksKeepTheirOrder(t *testing.T) {
	g := newGroup(t, 2, false, false)
	s := g.servers[0]
	l := (*replicate.Lock)(unsafe.Add(unsafe.Pointer(s.state), unsafe.Sizeof(*s.state)+slots*replicate.SlotSize+replicate.LockSize))
	l.Next = 2 // two handlers are before it
	yields := 0
	s.OnYield = func() {
		require.Zero(t, s.Host[replicate.Block], "not its turn")
		if yields++; yields%3 == 0 {
			l.Serving++
		}
	}
	g.write(3, replicate.Block, []byte{1}, 0)
	require.Equal(t, 6, yields)
	require.EqualValues(t, 1, s.Host[replicate.Block])
	require.Equal(t, replicate.Lock{Next: 3, Serving: 3}, replicate.Lock{Next: l.Next, Serving: l.Serving})
	require.EqualValues(t, 6, s.state.Counts.Waits)
	g.write(3, 0, []byte{1}, 1)
	require.Equal(t, 6, yields)
}

// What does not fit, and a packet in two blocks, is refused; of memory that is
// not there the client is told; nothing of it is passed on.
func TestWritesThatFail(t *testing.T) {
	each(t, func(t *testing.T, wasm bool) {
		g := newGroup(t, 3, false, wasm)
		bits := uint64(7<<replicate.LiveShift | replicate.StoreBits)
		ticket := uint64(raid5.NewTicket(99, 2, 1, 1))
		told := func(status uint64) {
			g.drain()
			require.Len(t, g.replies, 1)
			require.Equal(t, status, g.replies[0].Op.HdrData)
			g.replies = nil
			for _, s := range g.servers {
				require.Equal(t, -1, slices.IndexFunc(s.Host, func(b byte) bool { return b != 0 }))
			}
		}
		out := g.deliver(0, spintest.Message{Data: make([]byte, 100), MLength: 50, Offset: memory - 50, MatchBits: bits, HdrData: ticket})
		require.Equal(t, spin.Drop, out.Header)
		told(replicate.Refused)
		g.write(7, replicate.Block-10, slices.Repeat([]byte{1}, 11), 1)
		told(replicate.Refused)
		require.EqualValues(t, 2, g.servers[0].state.Counts.Refused)
		g.servers[0].Fail("dma_to_host", spin.Fault, 1)
		g.write(7, 0, []byte{1}, 1)
		told(replicate.Failed)
		require.EqualValues(t, 1, g.servers[0].state.Counts.Failed)
		require.Equal(t, spin.Fail, g.deliver(2, spintest.Message{Data: []byte{0}, MatchBits: 4<<replicate.LiveShift | replicate.PassBits, HdrData: uint64(raid5.NewTicket(1, 1, slots, 1))}).Payloads[0], "a slot that there is not")
	})
}
