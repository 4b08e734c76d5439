package runtime_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

const heldPackets, heldMTU = 4, 2048

// heldUp sends two long messages from rank 0, to ranks 1 and 2, and more behind
// them, while rank 1 gets something from rank 0.
func heldUp(t *testing.T, cfg func(*runtime.Config)) *rig {
	return conduct(t, setup{
		overrides: []string{"fabric.mtu=2048", "nic.fault_pause=10us"}, message: solid(heldPackets * heldMTU), cfg: cfg,
		initiator: func(p *runtime.Proc, md portals.Handle, _ *rig) error {
			ni := p.NI()
			if _, err := ni.Objects().PTAlloc(0, portals.EQNone, 0); err != nil {
				return err
			}
			mine := p.Alloc(heldMTU)
			if _, err := ni.MEAppend(0, &portals.ME{Start: mine.Addr(), Length: heldMTU, UID: portals.UIDAny, MatchID: portals.AnyID, Options: portals.OptMEOpGet}, portals.PriorityList, 0); err != nil {
				return err
			}
			for i, put := range []struct {
				bytes uint64
				to    uint32
			}{{heldPackets * heldMTU, 1}, {heldPackets * heldMTU, 2}, {0, 1}, {heldMTU, 1}, {0, 2}} {
				if err := ni.Put(portals.Put{MD: md, Length: put.bytes, Target: portals.PhysID(put.to, 0), MatchBits: uint64(i + 1)}); err != nil {
					return err
				}
			}
			return nil
		},
		// the reply to the same node is read while the puts are held up
		target: func(p *runtime.Proc, r *rig) error {
			p.Sleep(2 * sim.Microsecond)
			into := p.Alloc(heldMTU)
			md, err := p.NI().Objects().MDBind(&portals.MD{Start: into.Addr(), Length: heldMTU, EQ: r.eq})
			if err != nil {
				return err
			}
			return p.NI().Get(portals.Get{MD: md, Length: heldMTU, Target: portals.PhysID(0, 0)})
		},
	})
}

// A page that is absent at the source of a put holds up the requests of its
// process to that node, which keep their order, and nobody else: not puts to
// other nodes, and no reply. Absent or late, it is the same.
func TestAnAbsentSourceHoldsUpItsOwnLine(t *testing.T) {
	present := heldUp(t, nil)
	late := &tardySource{by: 100 * sim.Microsecond}
	for name, cfg := range map[string]func(*runtime.Config){ //lint:maporder each by itself
		"absent": onRank(0, failing(10, host.Fault, func(a *host.Access, off int) bool {
			if late.first == nil && off == heldMTU {
				late.first = a
			}
			return a == late.first && off == heldMTU && a.Direction() == host.FromMemory
		})),
		"late": late.make,
	} {
		t.Run(name, func(t *testing.T) {
			late.first = nil
			r := heldUp(t, cfg)
			when := map[uint64]sim.Time{}
			order := func(events []event) (bits []uint64) {
				for _, e := range all(events, portals.EventPut) {
					bits = append(bits, e.MatchBits)
					when[e.MatchBits] = e.at
				}
				return bits
			}
			require.Equal(t, []uint64{1, 3, 4}, order(r.targets))
			require.Equal(t, []uint64{2, 5}, order(r.peers))
			require.Greater(t, when[1], 100*sim.Microsecond)
			// Nothing of the message that is held up was in front of the
			// second: it was posted o later, and did not wait for four packets
			// on the link.
			G, o := r.prof.Fabric.Rate.Time(heldMTU), r.prof.NIC.Overhead
			require.Greater(t, o, G)
			require.Equal(t, all(present.peers, portals.EventPut)[0].at-heldPackets*G+o, when[2])
			require.Less(t, when[5], 10*sim.Microsecond)
			require.Less(t, only(t, r.targets, portals.EventReply).at, 10*sim.Microsecond)
			require.Equal(t, r.message, r.host[:len(r.message)])
			require.Equal(t, r.message, r.peerMem[:len(r.message)])
			_, failures := r.c.Failures()
			require.Zero(t, failures)
			require.NoError(t, r.c.Node(0).NIC().Idle())
		})
	}
}

// tardySource is a translator that answers for the second packet of the first
// message of rank 0 long after it was asked.
type tardySource struct {
	by     sim.Time
	first  *host.Access
	bus    *host.Bus
	engine *sim.Engine
	id     sim.ID
}

func (s *tardySource) make(cfg *runtime.Config) {
	cfg.Translator = func(eng *sim.Engine, rank int, bus *host.Bus) host.Translator {
		if rank != 0 {
			return nil
		}
		s.engine, s.bus = eng, bus
		s.id = eng.Add("tardy", s)
		return s
	}
}

func (s *tardySource) Translate(a *host.Access, off, _ int) (host.Status, bool) {
	if s.first != nil || off != heldMTU {
		return host.OK, true
	}
	s.first = a
	s.engine.Post(s.engine.Now()+s.by, s.id, s.id, 0, 0, 0, a)
	return host.OK, false
}

func (s *tardySource) Done(*host.Access, int, int) {}

func (s *tardySource) Handle(e *sim.Event) { s.bus.Translated(e.P.(*host.Access), host.OK) }
