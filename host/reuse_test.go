package host_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/sim"
)

// reuser reuses an access as soon as it has ended.
type reuser struct {
	bus   host.Bus
	ended []int
}

func (r *reuser) Handle(e *sim.Event) { r.bus.Handle(e) }

func (r *reuser) Reached(*host.Access) {}

func (r *reuser) Begun(*host.Access) {}

func (r *reuser) Ended(a *host.Access, i int, _ host.Status) {
	r.ended = append(r.ended, a.Serial)
	if i == 1 {
		*a = host.Access{}
	}
}

// A client may reuse an access when it has ended. The later streams come all
// the same, also on a bus that charges nothing for bytes, where one stream ends
// and the next begins at the same moment.
func TestAccessIsTheClientsAgain(t *testing.T) {
	for _, charge := range []string{host.ChargeFull, host.ChargeLatency} {
		eng := sim.New(1)
		r := &reuser{}
		var memory host.Server
		r.bus.Init(eng, eng.Add("device", r), &host.BusSpec{
			Latency: 10, Bandwidth: sim.NewRate(1, 1), Charge: charge,
		}, &memory)
		for i := range 3 {
			r.bus.Stream(&host.Access{Length: 100, Piece: 60, Client: r, Serial: i})
		}
		require.NoError(t, eng.Run())
		require.Equal(t, []int{0, 0, 1, 1, 2, 2}, r.ended, charge)
	}
}
