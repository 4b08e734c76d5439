package report

import (
	"strings"

	"github.com/spinsim/spinsim/sim"
)

// pingPong is a table like an experiment's, from an arithmetic model: a
// start-up of 400 ns, a number of DMA latencies, and 20 ps per byte.
func pingPong() *Table {
	t := New(
		Column{Name: "profile", Kind: Text, Help: "Device profile."},
		Column{Name: "size", Unit: "B", Kind: Size, Help: "Payload of one message."},
		Column{Name: "mode", Kind: Text, Help: "Who answers: rdma, the host; p4, a triggered put; store and stream, handlers."},
		Column{Name: "latency", Unit: "ns", Kind: Duration, Help: "Half of the time from the post of the ping to the event of the pong at the initiator, " + "as the median of all repetitions."},
	)
	t.Title = "Ping-pong"
	t.Answer = []string{"sPIN stream is 1.77× as fast as RDMA at 8 B (spin-dis)."}
	t.Notes = []string{"Seed 1."}
	modes := []struct {
		name  string
		dma   sim.Time
		bytes sim.Time
	}{{"rdma", 6, 60}, {"p4", 4, 60}, {"sPIN store", 3, 60}, {"sPIN stream", 2, 20}}
	for _, profile := range []string{"spin-dis", "spin-int"} {
		dma := 125 * sim.Nanosecond
		if strings.HasSuffix(profile, "int") {
			dma = 25 * sim.Nanosecond
		}
		for size := 4; size <= 256*1024; size *= 4 {
			for _, m := range modes {
				t.Add(profile, size, m.name, 400*sim.Nanosecond+m.dma*dma+m.bytes*sim.Time(size))
			}
		}
	}
	return t
}
