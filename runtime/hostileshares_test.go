package runtime_test

import (
	"flag"
	"fmt"
	"testing"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

var sharesRuns = flag.Int("tenants.shares", 10, "how many runs TestSharesBesideHostileTenants makes, from -tenants.from")

// The victim of these runs always has packets that wait for a processor.
const (
	hungryPackets = 24 // under way
	hungrySpin    = 100
	hungriest     = 1000 // cycles of a villain's handler
)

func (k *siege) hungry(p *runtime.Proc) error {
	p.SetUID(victimUID)
	if _, err := p.NI().Objects().PTAlloc(0, portals.EQNone, 0); err != nil {
		return err
	}
	module, err := k.actions()
	if err != nil {
		return err
	}
	spin, _, err := scriptsOf(p, module, nil, []rec{also(opSpin, hungrySpin), end(hpu.Success)}, nil)
	if err != nil {
		return err
	}
	k.host = p.Alloc(victimMTU)
	_, err = p.NI().MEAppend(0, &portals.ME{
		Start: k.host.Addr(), Length: victimMTU, UID: victimUID, MatchID: portals.AnyID, IgnoreBits: portals.SizeMax, Spin: spin, Options: portals.OptMEOpPut,
	}, portals.PriorityList, 0)
	return err
}

// feed keeps packets to the victim under way until a time.
func (k *siege) feed(p *runtime.Proc, until sim.Time) error {
	p.SetUID(victimUID)
	ct, err := p.NI().Objects().CTAlloc()
	if err != nil {
		return err
	}
	data := p.Alloc(64)
	md, err := p.NI().Objects().MDBind(&portals.MD{Start: data.Addr(), Length: 64, CT: ct, Options: portals.OptMDEventCTAck})
	if err != nil {
		return err
	}
	p.Sleep(sim.Microsecond)
	for sent := uint64(0); p.Now() < until; sent++ {
		if sent >= hungryPackets {
			if _, err := p.NI().CTWait(ct, sent-hungryPackets+1); err != nil {
				return err
			}
		}
		if err := p.NI().Put(portals.Put{MD: md, Length: 64, Ack: portals.Ack, Target: portals.PhysID(0, 0)}); err != nil {
			return err
		}
	}
	return nil
}

// exceeds measures a run: an error if a villain has had more than 5%, and a handler,
// above its part of the processors, beside what the victim has had.
func exceeds(t *testing.T, seed uint64, run int) error {
	const from, to = 50 * sim.Microsecond, 250 * sim.Microsecond
	k := drawSiege(t, seed, run)
	k.endless = true
	k.prof.HPU.Arbiter = []string{nic.WFQ, nic.WLBVT}[k.IntN(2)]
	for name, o := range k.prof.Tenants {
		if name != "victim" {
			o.MaxCycles = hungriest
			k.prof.Tenants[name] = o
		}
	}
	k.start(t, k.hungry, func(p *runtime.Proc) error { return k.feed(p, to) })
	k.besiege(t)
	defer func() { _ = k.c.Close() }()
	if err := k.c.RunUntil(from); err != nil {
		return err
	}
	before := k.c.Node(0).Tenants()
	waited := before[1].Waited
	if k.prof.HPU.Arbiter == nic.WLBVT { // its measure is all the time in which they wanted any
		clear(before)
	}
	if err := k.c.RunUntil(to); err != nil {
		return err
	}
	after := k.c.Node(0).Tenants()
	if after[1].Waited-waited < (to-from)*99/100 {
		return nil // the victim left processors idle
	}
	victim, all := k.prof.Tenants["victim"].Weight, 0
	for _, o := range k.prof.Tenants {
		all += o.Weight
	}
	part := sim.Time((k.prof.HPU.Cores*victim + all - 1) / all)
	if k.prof.HPU.Arbiter == nic.WLBVT && after[1].Time-before[1].Time > part*to*95/100 {
		return nil // it has had all that wlbvt gives while others wait, which is rounded
	}
	fair := float64(after[1].Time-before[1].Time) / float64(victim)
	for i := 2; i < len(after); i++ {
		weight := k.prof.Tenants[after[i].Name].Weight
		if had := float64(after[i].Time-before[i].Time) / float64(weight); had > 1.05*fair+float64(k.prof.HPU.Time(hungriest))/float64(weight) {
			return fmt.Errorf("%s of weight %d had %.2f of its part beside a victim of weight %d: %s, %d HPUs with %d contexts",
				after[i].Name, weight, had/fair, victim, k.prof.HPU.Arbiter, k.prof.HPU.Cores, k.prof.HPU.Contexts)
		}
	}
	return nil
}

// Hostile modules have no more of the processors than their weights give, within 5% and
// a handler, while the victim always wants some.
func TestSharesBesideHostileTenants(t *testing.T) {
	for run := *tenantsFrom; run < *tenantsFrom+*sharesRuns; run++ {
		if err := exceeds(t, *tenantsSeed, run); err != nil {
			t.Errorf("-tenants.seed=%d -tenants.from=%d -tenants.shares=1: %v", *tenantsSeed, run, err)
		}
	}
}
