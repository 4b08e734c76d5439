package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers/bcast"
	"github.com/spinsim/spinsim/handlers/internal/wasmtest"
	"github.com/spinsim/spinsim/spin"
	"github.com/spinsim/spinsim/spin/spintest"
)

const (
	mtu   = 64
	ranks = 13
	root  = 4
)

type entry = spintest.Handlers[bcast.State]

type variant struct {
	native entry
	names  wasmtest.Names
}

var (
	stream = variant{
		entry{Payload: streamPayload, Completion: streamCompletion},
		wasmtest.Names{Payload: bcast.StreamPayload, Completion: bcast.StreamCompletion},
	}
	store = variant{
		entry{Payload: storePayload, Completion: storeCompletion},
		wasmtest.Names{Payload: bcast.StorePayload, Completion: bcast.StoreCompletion},
	}
)

// node is one rank of a broadcast.
type node struct {
	device   *spintest.Device
	handlers entry
	state    bcast.State
	messages int
}

// newNodes returns all ranks, running the Go source or the module.
func newNodes(t *testing.T, v variant, wasm bool) []*node {
	nodes := make([]*node, ranks)
	for i := range nodes {
		n := &node{
			device:   spintest.New(t, spintest.Config{HostMem: 512, MTU: mtu, NID: uint32(i)}),
			handlers: v.native,
			state:    bcast.State{MatchBits: 77, PT: 6, Rank: uint32(i), Ranks: ranks, Root: root, MD: 2, MaxPayload: mtu},
		}
		if wasm {
			n.handlers = wasmtest.Handlers[bcast.State](t, n.device, bcast.Library.Wasm, v.names, 0)
		}
		nodes[i] = n
	}
	return nodes
}

// spread delivers m to the root and what it puts to the others, until nothing is left.
func spread(t *testing.T, nodes []*node, m spintest.Message) {
	type delivery struct {
		to uint32
		m  spintest.Message
	}
	for queue := []delivery{{root, m}}; len(queue) > 0; queue = queue[1:] {
		n := nodes[queue[0].to]
		n.messages++
		before := len(n.device.Calls)
		out := spintest.Deliver(n.device, n.handlers, &n.state, queue[0].m)
		require.False(t, out.Failed, out.Traps)
		for _, c := range n.device.Calls[before:] {
			if c.Name != "put_from_device" && c.Name != "put_from_host" {
				continue
			}
			require.Equal(t, []uint64{77, 6, 2, 0},
				[]uint64{c.Op.MatchBits, uint64(c.Op.PTIndex), uint64(c.Op.MD), uint64(c.Op.TargetPID)})
			queue = append(queue, delivery{c.Op.TargetNID, spintest.Message{
				Data: c.Data, Offset: c.Op.RemoteOffset, HdrData: c.Op.HdrData, SourceNID: queue[0].to,
			}})
		}
	}
}

// each runs f for the Go source and the module.
func each(t *testing.T, v variant, f func(*testing.T, []*node)) {
	t.Run("native", func(t *testing.T) { f(t, newNodes(t, v, false)) })
	t.Run("tinygo", func(t *testing.T) { f(t, newNodes(t, v, true)) })
}

func message(n int) spintest.Message {
	m := spintest.Message{Data: make([]byte, n), Offset: 40, HdrData: 9}
	for i := range m.Data {
		m.Data[i] = byte(i + 1)
	}
	return m
}

func requireEverywhere(t *testing.T, nodes []*node, m spintest.Message, messages int) {
	t.Helper()
	for rank, n := range nodes {
		require.Equal(t, m.Data, n.device.Host[m.Offset:int(m.Offset)+len(m.Data)], rank)
		require.Equal(t, make([]byte, m.Offset), n.device.Host[:m.Offset], rank)
		if rank != root {
			require.Equal(t, messages, n.messages, rank)
		}
	}
}

// Below the root each packet travels as a message of its own and must land where it belongs.
func TestStreamReachesAllRanks(t *testing.T) {
	each(t, stream, func(t *testing.T, nodes []*node) {
		m := message(3*mtu + 5)
		m.Order = []int{3, 1, 0, 2}
		spread(t, nodes, m)
		requireEverywhere(t, nodes, m, 4)
	})
}

// The largest subtree is served first, and the deposit runs beside the puts.
func TestStreamOrder(t *testing.T) {
	each(t, stream, func(t *testing.T, nodes []*node) {
		n := nodes[root]
		spintest.Deliver(n.device, n.handlers, &n.state, message(mtu))
		require.Equal(t, []string{
			"dma_to_host_nb", "put_from_device", "put_from_device", "put_from_device", "put_from_device",
		}, n.device.Names())
		var targets []uint32
		for _, c := range n.device.Puts() {
			targets = append(targets, c.Op.TargetNID)
		}
		require.Equal(t, []uint32{(root + 8) % ranks, root + 4, root + 2, root + 1}, targets)
	})
}

func TestStoreReachesAllRanks(t *testing.T) {
	each(t, store, func(t *testing.T, nodes []*node) {
		m := message(3*mtu + 5)
		spread(t, nodes, m)
		requireEverywhere(t, nodes, m, 1)
		for _, c := range nodes[root].device.Puts() {
			require.Equal(t, "put_from_host", c.Name)
		}
	})
}

// sPIN'17 §4.4.3: what fits a packet is put from the device, and not once more
// by the completion handler.
func TestStorePutsASinglePacketFromTheDevice(t *testing.T) {
	each(t, store, func(t *testing.T, nodes []*node) {
		for _, n := range []int{1, mtu} {
			for _, node := range nodes {
				node.messages, node.device.Calls = 0, nil
			}
			m := message(n)
			spread(t, nodes, m)
			requireEverywhere(t, nodes, m, 1)
			for _, c := range nodes[root].device.Puts() {
				require.Equal(t, "put_from_device", c.Name)
			}
		}
	})
}

func TestMessageWithoutPayloadReachesAllRanks(t *testing.T) {
	for _, v := range []variant{stream, store} {
		each(t, v, func(t *testing.T, nodes []*node) {
			m := message(0)
			spread(t, nodes, m)
			requireEverywhere(t, nodes, m, 1)
		})
	}
}

func TestFailures(t *testing.T) {
	each(t, stream, func(t *testing.T, nodes []*node) {
		n := nodes[root]
		n.device.Fail("put_from_device", spin.NoSpace, 1)
		out := spintest.Deliver(n.device, n.handlers, &n.state, message(mtu))
		require.Equal(t, []spin.Code{spin.Fail}, out.Payloads)
		require.Len(t, n.device.Puts(), 4, "the other children get it nevertheless")
		require.Equal(t, byte(1), n.device.Host[40])
		n.device.Fail("dma_to_host_nb", spin.NoSpace, 1)
		out = spintest.Deliver(n.device, n.handlers, &n.state, message(mtu))
		require.Equal(t, []spin.Code{spin.Fail}, out.Payloads)
	})
	each(t, store, func(t *testing.T, nodes []*node) {
		n := nodes[root]
		m := message(2 * mtu)
		m.Lost = []int{0}
		require.Equal(t, spin.Fail, spintest.Deliver(n.device, n.handlers, &n.state, m).Completion)
		n.device.Fail("dma_to_host", spin.Fault, 1)
		require.Equal(t, spin.Fail, spintest.Deliver(n.device, n.handlers, &n.state, message(2*mtu)).Completion)
		require.Empty(t, n.device.Puts(), "holes are not passed on")
	})
}
