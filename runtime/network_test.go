package runtime_test

import (
	"context"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// star is a topology of a test's own: a switch for every node and one in the middle.
type star int

func (s star) Size() (switches, links int) { return int(s) + 1, 3 * int(s) }
func (s star) Home(node int) int           { return node }
func (s star) Channels() int               { return 1 }
func (s star) SwitchName(i int) string     { return "S" + string(rune('0'+i)) }
func (s star) LinkName(i int) string       { return "L" + string(rune('0'+i)) }

func (s star) Link(i int) fabric.Link {
	switch k := i % int(s); i / int(s) {
	case 0:
		return fabric.Link{From: k, To: k, Node: true}
	case 1:
		return fabric.Link{From: k, To: int(s)}
	default:
		return fabric.Link{From: int(s), To: k}
	}
}

func (s star) Route(at, _, dst int) (link, channel int) {
	switch {
	case at == dst:
		return dst, 0
	case at < int(s):
		return int(s) + at, 0
	}
	return 2*int(s) + dst, 0
}

// taps counts packets.
type taps struct{ sent, arrived, corrupt int }

func (c *taps) Sent(sim.Time, fabric.Packet) { c.sent++ }

func (c *taps) Arrived(_ sim.Time, _ fabric.Packet, corrupt bool) {
	c.arrived++
	if corrupt {
		c.corrupt++
	}
}

// exchange has every rank add 1 to every word of a buffer of every other rank,
// count times, and returns the cluster after the run.
func exchange(t *testing.T, nodes, count int, network func(*sim.Engine, fabric.Spec, int) (fabric.Fabric, error), overrides ...string) (c *runtime.Cluster, words []uint64) {
	p, err := profile.Load("spin-int", append([]string{"fabric.mtu=64"}, overrides...)...)
	require.NoError(t, err)
	c, err = runtime.NewCluster(runtime.Config{Profile: p, Nodes: nodes, Engine: labEngine, Seed: 7, Fabric: network})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	const size = 1000
	buffers := []runtime.View{}
	for rank := range nodes {
		require.NoError(t, c.Spawn(rank, "adder", func(p *runtime.Proc) error {
			ni := p.NI()
			if _, err := ni.Objects().PTAlloc(0, portals.EQNone, 0); err != nil {
				return err
			}
			buffer := p.Alloc(size)
			buffers = append(buffers, buffer)
			if _, err := ni.MEAppend(0, &portals.ME{
				Start: buffer.Addr(), Length: size, UID: portals.UIDAny, MatchID: portals.AnyID, Options: portals.OptMEOpPut,
			}, portals.PriorityList, 0); err != nil {
				return err
			}
			p.Sleep(10 * sim.Microsecond) // until all have their entries
			ones := p.Alloc(size)
			for i, b := 0, ones.Write(); i < size; i += 8 {
				binary.LittleEndian.PutUint64(b[i:], 1)
			}
			md, err := ni.Objects().MDBind(&portals.MD{Start: ones.Addr(), Length: size})
			if err != nil {
				return err
			}
			for other := range nodes {
				for range count {
					if err := ni.Atomic(portals.Atomic{MD: md, Length: size, Target: portals.PhysID(uint32(other), 0), Op: portals.OpSUM, Type: portals.Uint64}); err != nil {
						return err
					}
				}
			}
			return nil
		}))
	}
	require.NoError(t, c.Run(context.Background()))
	for _, b := range buffers {
		after := b.Snapshot()
		for i := range size / 8 {
			words = append(words, binary.LittleEndian.Uint64(after[8*i:]))
		}
	}
	return c, words
}

// A topology, a tap and faults of one's own, around a whole cluster: packets
// that are doubled, late or out of order are applied once.
func TestNetworkOfOnesOwn(t *testing.T) {
	const nodes, count = 4, 5
	var seen taps
	var bad *fabric.Faulty
	c, words := exchange(t, nodes, count, func(eng *sim.Engine, spec fabric.Spec, n int) (fabric.Fabric, error) {
		f, err := fabric.NewNetwork(eng, spec, n, star(n))
		if err != nil {
			return nil, err
		}
		bad, err = fabric.NewFaulty(eng, fabric.Tap(eng, f, &seen), fabric.FaultSpec{Duplicate: 0.3, Delay: 0.3, MaxDelay: 20 * sim.Microsecond})
		return bad, err
	})
	for _, w := range words {
		require.Equal(t, uint64(nodes*count), w)
	}
	_, n := c.Failures()
	require.Zero(t, n)
	require.Len(t, c.Fabric().Path(0, 1), 4)
	packets := nodes * (nodes - 1) * count * ((1000 + 63) / 64)
	require.Equal(t, packets, seen.sent)
	require.Equal(t, packets, seen.arrived)
	counts := bad.Counts()
	require.InDelta(t, 0.3*float64(packets), counts.Duplicated, 100)
	require.InDelta(t, 0.3*float64(packets), counts.Delayed, 100)
}

// Every packet that the network loses or damages is named; messages that are whole are applied.
func TestLostPacketsAreNamed(t *testing.T) {
	const nodes, count, packets = 4, 20, 16
	var seen taps
	c, words := exchange(t, nodes, count, func(eng *sim.Engine, spec fabric.Spec, n int) (fabric.Fabric, error) {
		f, err := fabric.New(eng, spec, n)
		if err != nil {
			return nil, err
		}
		return fabric.Tap(eng, f, &seen), nil
	}, "fabric.faults.loss=0.01", "fabric.faults.corrupt=0.01")
	losses, n := c.Fabric().Losses()
	require.Len(t, losses, n)
	require.InDelta(t, 0.02*nodes*(nodes-1)*count*packets, n, 40)
	messages, damaged := map[any]int{}, 0
	for _, l := range losses {
		messages[l.Packet.Ref]++
		if l.Damaged {
			damaged++
		}
	}
	require.Equal(t, damaged, seen.corrupt)
	require.Positive(t, damaged)
	require.Less(t, damaged, n)
	lost, n := c.LostMessages()
	require.Equal(t, len(messages), n)
	stats := c.Stats()
	require.Equal(t, []int64{int64(len(messages)), int64(len(losses))}, []int64{stats.MessagesLost, stats.PacketsDropped})
	require.Regexp(t, `^rank \d at .*: \d of 16 packets \(\d+ of 1000 B\) of an? .* from rank \d were dropped: packet \d+ of 16 of message \d+ of rank \d was (lost|damaged) on (Node\[\d\].Tx|Switch\[0\]\[0\].Down\[\d\]) at .* \((loss|corrupt), fabric.faults\)`, lost[0].Error())
	_, failures := c.Failures()
	require.Equal(t, n, failures)
	least := uint64(nodes * count)
	for _, w := range words {
		require.LessOrEqual(t, w, uint64(nodes*count))
		least = min(least, w)
	}
	require.Less(t, least, uint64(nodes*count))
}

// The example of the documents is one that can be run.
func TestDocumentedNetwork(t *testing.T) {
	c, _ := exchange(t, 12, 1, nil, "fabric.kind=file", "fabric.topology=../docs/networks/dragonfly.yaml", "fabric.buffer=128")
	path := c.Fabric().Path(0, 11)
	require.Equal(t, []string{"Node[0].Tx", "a0->c1", "c1->Node[11]"}, []string{path[0].Link, path[1].Link, path[2].Link})
	require.Equal(t, 100*sim.Nanosecond, path[1].Wire)
}

// Buffers of one packet hold a cluster back and lose nothing.
func TestClusterOverCredits(t *testing.T) {
	for _, overrides := range [][]string{
		{"fabric.buffer=64"},
		{"fabric.kind=torus", "fabric.dims=[5, 1]", "fabric.buffer=[64, 128]"},
		{"fabric.kind=torus", "fabric.dims=[3, 2]", "fabric.buffer=1KiB", "fabric.inject_buffer=200"},
	} {
		c, words := exchange(t, 5, 6, nil, overrides...)
		for _, w := range words {
			require.Equal(t, uint64(30), w)
		}
		_, n := c.Failures()
		require.Zero(t, n)
		for _, l := range c.Fabric().Links() {
			require.LessOrEqual(t, l.MaxBuffer, int64(1024))
			require.Positive(t, l.MaxBuffer)
		}
	}
}
