package runtime_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/sim"
)

type network = func(*sim.Engine, fabric.Spec, int) (fabric.Fabric, error)

// losing is a network of which exactly these packets are lost: of what a rank
// sends, by their numbers from 0. A packet that is sent again counts again.
func losing(packets [2][]int) network {
	return func(eng *sim.Engine, spec fabric.Spec, nodes int) (fabric.Fabric, error) {
		f, err := fabric.New(eng, spec, nodes)
		if err != nil {
			return nil, err
		}
		sent := [2]int{}
		return fabric.NewFaulty(eng, f, fabric.FaultSpec{Loss: 1, Only: func(p fabric.Packet) bool {
			sent[p.Src]++
			return slices.Contains(packets[p.Src], sent[p.Src]-1)
		}})
	}
}

// aPut is a put of whole packets over a reliable transport: when its data was
// in the memory of the target, when its initiator knew, and how many packets
// were sent again.
type aPut struct {
	put, send sim.Time
	again     int64
}

const lossTimeout = 50 * sim.Microsecond

func putLosing(t *testing.T, device string, packets int, lost [2][]int, overrides ...string) (aPut, *profile.Profile) {
	var bytes uint64
	r := runPairOn(t, losing(lost), device, [2]func(*pairRank) error{func(k *pairRank) error {
		bytes = uint64(packets) * uint64(k.p.Cluster().Profile().Fabric.MTU)
		return k.ni.Put(portals.Put{MD: k.md, Length: bytes, Target: k.other(), UserPtr: 7})
	}}, append([]string{"transport.kind=reliable", fmt.Sprintf("transport.timeout=%dps", lossTimeout)}, overrides...)...)
	require.NoError(t, r.err)
	r.left()
	require.Equal(t, r.ranks[0].own[:bytes], r.ranks[1].mem[:bytes])
	x := aPut{only(t, r.ranks[1].events, portals.EventPut).at, only(t, r.ranks[0].events, portals.EventSend).at, r.c.Node(0).Stats().Retransmitted}
	_, n := r.c.Fabric().Losses()
	require.Equal(t, len(lost[0])+len(lost[1]), n)
	return x, r.prof
}

// lossForms are the terms of docs/model.md, "The price of a loss".
type lossForms struct {
	p          *profile.Profile
	n          int      // packets
	pace       sim.Time // from one packet to the next: max(g, G(s))
	write      sim.Time // D(s)
	found      sim.Time // F(n)
	round      sim.Time // a packet there and its acknowledgement back
	match, cam sim.Time
}

func formsOf(p *profile.Profile, n int) lossForms {
	mtu := int(p.Fabric.MTU)
	f := lossForms{
		p: p, n: n, pace: p.Fabric.Occupied(mtu), write: p.DMA.Bandwidth.Time(int64(mtu)), match: p.NIC.MatchHeader, cam: p.NIC.MatchPacket,
	}
	net := 2*p.Fabric.Wire + p.Fabric.Switch
	f.round = p.Fabric.Serial(mtu) + net + p.Fabric.Serial(p.Transport.AckBytes) + net
	f.found = f.match
	if n > 1 {
		f.found = max(f.cam, f.match+sim.Time(n-1)*(f.write-f.pace))
	}
	return f
}

// after is how much later the message is if packet k arrives late later than it
// would have, and those behind it wait for it at the receiver.
func (f *lossForms) after(k int, late sim.Time) sim.Time {
	cam := f.cam
	if k == 0 {
		cam = f.match
	}
	return late - sim.Time(f.n-1-k)*(f.pace-f.write) + cam - f.found
}

// A packet is lost, once or several times: the message is later by the closed
// form of docs/model.md, to the picosecond.
func TestPriceOfALoss(t *testing.T) {
	for _, device := range []string{"spin-dis", "spin-int"} {
		for _, n := range []int{1, 2, 3, 8, 16} {
			whole, p := putLosing(t, device, n, [2][]int{})
			f := formsOf(p, n)
			require.Zero(t, whole.again)
			for _, k := range []int{0, n / 2, n - 1} {
				name := fmt.Sprintf("%s, packet %d of %d", device, k, n)
				x, _ := putLosing(t, device, n, [2][]int{{k}, nil})
				require.Equal(t, f.after(k, lossTimeout), x.put-whole.put, name)
				require.Equal(t, lossTimeout-sim.Time(n-1-k)*f.pace, x.send-whole.send, "%s: the acknowledgement of the last", name)
				require.EqualValues(t, 1, x.again)

				// and so are the next two times it is sent
				x, _ = putLosing(t, device, n, [2][]int{{k, n, n + 1}, nil})
				require.Equal(t, f.after(k, 3*lossTimeout), x.put-whole.put, name)
				require.EqualValues(t, 3, x.again)

				// The acknowledgement is lost: later ones say the same, but for
				// the last, which is asked for again.
				x, _ = putLosing(t, device, n, [2][]int{nil, {k}})
				require.Equal(t, whole.put, x.put, name)
				if k < n-1 {
					require.Equal(t, aPut{whole.put, whole.send, 0}, x, name)
				} else {
					require.Equal(t, aPut{whole.put, whole.send + lossTimeout, 1}, x, name)
				}
			}
		}
	}
}

// Of two packets that are lost the second is found missing when the first is
// acknowledged, and is sent again at once if its own time is over by then: it
// costs a round trip, not a time-out.
func TestPriceOfTwoLosses(t *testing.T) {
	const n = 16
	for _, device := range []string{"spin-dis", "spin-int"} {
		whole, p := putLosing(t, device, n, [2][]int{})
		f := formsOf(p, n)
		for _, lost := range [][2]int{{0, 1}, {3, 4}, {3, 9}, {0, 15}, {14, 15}} {
			i, k := lost[0], lost[1]
			x, _ := putLosing(t, device, n, [2][]int{{i, k}, nil})
			again := max(f.round, sim.Time(k-i)*f.pace) // after the first was sent again
			late := lossTimeout + again - sim.Time(k-i)*f.pace
			require.Equal(t, f.after(k, late), x.put-whole.put, "%s: %v", device, lost)
			require.EqualValues(t, 2, x.again)
		}
	}
}

// A message longer than the window stops when the window is full, and goes on
// when the packet that was lost is acknowledged.
func TestPriceOfALossBeyondTheWindow(t *testing.T) {
	const n, window = 48, 16
	for _, device := range []string{"spin-dis", "spin-int"} {
		overrides := []string{"transport.window=16", "fabric.mtu=1024"}
		whole, p := putLosing(t, device, n, [2][]int{}, overrides...)
		f := formsOf(p, n)
		require.Greater(t, window*f.pace, f.round, "the window does not hold up what is not lost")
		for _, k := range []int{0, 1, 20, 31} {
			x, _ := putLosing(t, device, n, [2][]int{{k}, nil}, overrides...)
			require.Equal(t, lossTimeout+f.round-window*f.pace+f.cam-f.found, x.put-whole.put, "%s: packet %d", device, k)
		}
		// From here on the window has room for the rest.
		for _, k := range []int{32, 40, 47} {
			x, _ := putLosing(t, device, n, [2][]int{{k}, nil}, overrides...)
			require.Equal(t, f.after(k, lossTimeout), x.put-whole.put, "%s: packet %d", device, k)
		}
	}
}
