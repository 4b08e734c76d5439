package nic

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/sim"
)

// Packets to the own node share a path: each has its bytes and its header
// there, behind those before, and then the switch and the wires. A put of one
// packet to the own process is a store into registers and has none of it,
// unless a handler has made it. Without a rate all of them turn round at once.
func TestPathToTheOwnNode(t *testing.T) {
	own, other := portals.PhysID(0, 1), portals.PhysID(0, 2)
	rate := sim.NewRate(100, 1) // ps a byte
	spec := Spec{EgressPackets: 1 << 10, Loopback: 50, LoopbackRate: rate, LoopbackWire: 7}
	plain := spec
	plain.LoopbackRate = sim.Rate{}
	rapid.Check(t, func(t *rapid.T) {
		cell, device := rapid.Int32Range(0, 256).Draw(t, "cell"), rapid.Int32Range(0, 256).Draw(t, "from HPU memory")
		a, b, c := rate.Time(int64(cell)+32), rate.Time(int64(device)+32), rate.Time(32)
		for _, k := range []struct {
			spec Spec
			want []sim.Time
		}{
			{spec, []sim.Time{50, 57 + a, 57 + a + b, 57 + a + b + c, 57 + a + b + 2*c}},
			{plain, []sim.Time{50, 50, 50, 50, 50}},
		} {
			x := newLinkAlone(t, k.spec, false)
			x.l.fabric.Header = 32
			var at []sim.Time
			x.l.next = arrived(func() { at = append(at, x.l.now()) })
			for i, d := range []departure{{bytes: 256}, {bytes: cell, repeat: true}, {bytes: device, device: true}, {}, {}} {
				f := &Frame{Header: portals.Header{Kind: portals.OpPut, Initiator: own, Target: own}, Packets: 1, MTU: 256, Number: uint64(i) + 1}
				switch i {
				case 3:
					f.Header.Target = other
				case 4:
					f.Packets = 2
				}
				d.ref = f
				x.l.post(0, kindDepart, 0, &d)
			}
			require.NoError(t, x.l.engine.Run())
			require.Equal(t, k.want, at)
		}
	})
}

// arrived is told of packets.
type arrived func()

func (a arrived) packetArrived(*Frame, int, bool) { a() }
func (a arrived) abandoned(int32)                 { a() }
