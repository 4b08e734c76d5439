package exanet_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/exanet"
	"github.com/spinsim/spinsim/handlers/mailbox"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// An attacker makes cells by hand, with plain puts. Their match bits name any
// domain it likes. It reaches mailboxes of its own domain and no other: the
// device writes the domain that the system gave to the sending process. A
// process in no domain reaches no mailbox.
func TestForgedCells(t *testing.T) {
	for name, a := range map[string]struct {
		rank   int
		domain exanet.PDID // 0: the system has not admitted it
		late   bool        // it opens its Portals interface before the system admits it
		enters bool
	}{ //lint:maporder each by itself
		"of the domain":            {0, 7, false, true},
		"of another domain":        {0, 8, false, false},
		"on the victim's node":     {1, 8, false, false},
		"admitted later":           {0, 8, true, false},
		"of the domain, but later": {0, 7, true, true},
		"of no domain":             {0, 0, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, 2, nil)
			const forged = 5
			var received int
			var victim *exanet.Interface
			c.spawn(1, 7, func(p *runtime.Proc) (err error) {
				if victim, err = c.system.Open(p, exanet.Options{}); err != nil {
					return err
				}
				p.SleepUntil(sim.Millisecond)
				var into [exanet.MaxPayload]byte
				for {
					_, found, err := victim.Poll(into[:])
					if err != nil || !found {
						return err
					}
					received++
				}
			})
			require.NoError(t, c.Spawn(a.rank, "attacker", func(p *runtime.Proc) error {
				admit := func(now bool) {
					if now && a.domain != 0 {
						require.NoError(t, c.system.Admit(p, a.domain))
					}
				}
				admit(!a.late)
				ni, err := p.NIInit(portals.OptNINoMatching|portals.OptNIPhysical, nil)
				if err != nil {
					return err
				}
				admit(a.late)
				p.SleepUntil(10 * sim.Microsecond)
				return forge(p, ni, victim.Address(), 7, forged)
			}))
			require.NoError(t, c.Run(t.Context()))
			counts := victim.Counts().Received
			if a.enters {
				require.Equal(t, []any{forged, uint64(forged), uint64(0)}, []any{received, counts.Messages, counts.Foreign})
				return
			}
			require.Equal(t, []any{0, uint64(0), uint64(forged)}, []any{received, counts.Messages, counts.Foreign})
		})
	}
}

// forge puts n handmade cells into a mailbox. They claim to come from domain.
func forge(p *runtime.Proc, ni *runtime.NI, to exanet.Address, domain uint32, n int) error {
	buffer := p.Alloc(exanet.MaxPayload)
	md, err := ni.Objects().MDBind(&portals.MD{Start: buffer.Addr(), Length: exanet.MaxPayload})
	if err != nil {
		return err
	}
	h := mailbox.Header{Kind: mailbox.KindCell, PDID: domain, PT: 200, Length: exanet.MaxPayload}
	for k := range uint64(n) {
		if err := ni.Put(portals.Put{MD: md, Length: exanet.MaxPayload, Target: portals.PhysID(to.NID, to.PID), PT: to.PT, MatchBits: h.Bits(), HdrData: k}); err != nil {
			return err
		}
		p.SleepUntil(p.Now() + 10*sim.Microsecond)
	}
	return nil
}

// Protection domain 0 belongs to nobody: no process can be in it.
func TestDomainOfNobody(t *testing.T) {
	c := newCluster(t, 1, nil)
	require.NoError(t, c.Spawn(0, "program", func(p *runtime.Proc) error {
		require.EqualError(t, c.system.Admit(p, 0), "exanet: process program of rank 0: protection domain 0 is nobody's, expected 1 to 65535")
		return nil
	}))
	require.NoError(t, c.Run(t.Context()))
}
