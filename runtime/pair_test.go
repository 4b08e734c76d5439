package runtime_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// Two ranks at one switch with a reliable transport that gives up soon. Links are down at times.
const (
	pairBytes   = 1 << 16
	pairTimeout = 10 * sim.Microsecond
	pairRetries = 3
	// patience is from the first turn of a packet on the wire to the end of its messages.
	patience = (pairRetries + 1) * pairTimeout
)

// pairRank is a rank of them: an entry and a descriptor over memory of its own,
// a queue and a counter for each.
type pairRank struct {
	p         *runtime.Proc
	ni        *runtime.NI
	entry, md portals.Handle
	ct, mdCT  portals.Handle
	eq        portals.Handle
	mem, own  []byte // of the entry, of the descriptor
	ownAddr   uint64
	events    []event
}

type pair struct {
	testing.TB
	c     *runtime.Cluster
	prof  *profile.Profile
	ranks [2]pairRank
	err   error
}

// Trace collects the events.
func (r *pair) Trace(ni *portals.NI, t *portals.TraceRecord) {
	if t.What == portals.TraceEvent {
		id, err := ni.PhysID()
		require.NoError(r, err)
		r.ranks[id.NID].events = append(r.ranks[id.NID].events, event{*t.Event, r.c.Engine().Now()})
	}
}

// runPair lets two programs meet; one that is nil has its entry and nothing to do.
func runPair(t testing.TB, down string, programs [2]func(*pairRank) error, overrides ...string) *pair {
	return runPairOn(t, nil, "spin-int", programs, append([]string{
		"fabric.mtu=1024", "transport.kind=reliable", fmt.Sprintf("transport.timeout=%dps", pairTimeout), fmt.Sprintf("transport.retries=%d", pairRetries),
		"fabric.faults.down=[" + down + "]",
	}, overrides...)...)
}

func runPairOn(t testing.TB, network network, name string, programs [2]func(*pairRank) error, overrides ...string) *pair {
	p, err := profile.Load(name, overrides...)
	require.NoError(t, err)
	r := &pair{TB: t, prof: p}
	r.c, err = runtime.NewCluster(runtime.Config{Profile: p, Nodes: 2, Engine: labEngine, Explain: r, Fabric: network})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.c.Close()) })
	for i := range r.ranks {
		require.NoError(t, r.c.Spawn(i, "program", func(p *runtime.Proc) error {
			k := &r.ranks[i]
			if err := k.prepare(p); err != nil {
				return err
			}
			p.SleepUntil(sim.Microsecond)
			if programs[i] == nil {
				return nil
			}
			return programs[i](k)
		}))
	}
	r.err = r.c.Run(context.Background())
	return r
}

func (k *pairRank) prepare(p *runtime.Proc) (err error) {
	k.p, k.ni = p, p.NI()
	if k.eq, err = k.ni.Objects().EQAlloc(256); err != nil {
		return err
	}
	if k.ct, err = k.ni.Objects().CTAlloc(); err != nil {
		return err
	}
	if k.mdCT, err = k.ni.Objects().CTAlloc(); err != nil {
		return err
	}
	if _, err := k.ni.Objects().PTAlloc(0, k.eq, 0); err != nil {
		return err
	}
	var addr uint64
	addr, k.mem = p.Observed(pairBytes)
	k.ownAddr, k.own = p.Observed(pairBytes)
	copy(k.own, pattern(pairBytes, byte(p.Rank()+1)))
	if k.md, err = k.ni.Objects().MDBind(&portals.MD{
		Start: k.ownAddr, Length: pairBytes, EQ: k.eq, CT: k.mdCT, Options: portals.OptMDEventCTSend | portals.OptMDEventCTAck | portals.OptMDEventCTReply,
	}); err != nil {
		return err
	}
	k.entry, err = k.ni.MEAppend(0, &portals.ME{
		Start: addr, Length: pairBytes, UID: portals.UIDAny, MatchID: portals.AnyID, CT: k.ct,
		Options: portals.OptMEOpPut | portals.OptMEOpGet | portals.OptMEEventLinkDisable | portals.OptMEEventCTComm,
	}, portals.PriorityList, 0)
	return err
}

func (k *pairRank) other() portals.ID { return portals.PhysID(uint32(1-k.p.Rank()), 0) }

func (k *pairRank) put(n, remote uint64) error {
	return k.ni.Put(portals.Put{MD: k.md, Length: n, Ack: portals.Ack, Target: k.other(), RemoteOffset: remote, UserPtr: 7})
}

func (k *pairRank) get(n uint64) error {
	return k.ni.Get(portals.Get{MD: k.md, Length: n, Target: k.other(), UserPtr: 7})
}

// told is what a queue has said: types and how they ended.
func told(events []event) (list []string) {
	for _, e := range events {
		list = append(list, fmt.Sprintf("%v %v %d", e.Type, e.Fail, e.MLength))
	}
	return list
}

func (r *pair) left() {
	for i := range r.ranks {
		require.NoError(r, r.c.Node(i).NIC().Idle())
	}
}
