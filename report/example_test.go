package report_test

import (
	"fmt"
	"os"

	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/sim"
)

// People read scaled numbers with the unit in the heading. Programs read exact
// numbers with the unit in the key.
func ExampleTable_Write() {
	t := report.New(
		report.Column{Name: "mode", Help: "who answers"},
		report.Column{Name: "size", Unit: "B", Kind: report.Size, Help: "of the message"},
		report.Column{Name: "latency", Unit: "ns", Kind: report.Duration, Help: "half of a round trip"},
	)
	t.Title = "ping-pong"
	t.Add("host", 64<<10, 4931500*sim.Picosecond)
	t.Add("handlers", 64<<10, 3729250*sim.Picosecond)
	for _, format := range []report.Format{report.TextFormat, report.CSVFormat} {
		if err := t.Write(os.Stdout, format); err != nil {
			fmt.Println(err)
		}
		fmt.Println()
	}
	// Output:
	// ping-pong
	//
	// mode        size  latency (µs)
	// ────────────────────────────────
	// host      64 KiB          4.93
	// handlers  64 KiB          3.73
	//
	// mode,size_B,latency_ns
	// host,65536,4931.5
	// handlers,65536,3729.25
}
