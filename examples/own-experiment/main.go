// Own-experiment measures the time from sending a message until its handlers
// have run and the host knows it, for given sizes. It has the flags, tables,
// plots and provenance of spinsim compare: try --help.
package main

import (
	"context"
	"fmt"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/handlers/count"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/runtime"
)

func main() {
	experiment.Main(&experiment.Experiment{
		Name: "oneway", Short: "a message and its handlers, from the put to the host that knows of their end",
		Axes:    []experiment.Axis{{Name: "size", Kind: report.Size, Least: "1", Most: "1MiB", Default: "8,64,..,64KiB", Help: "size of the message"}},
		Columns: []report.Column{{Name: "latency", Unit: "ns", Kind: report.Duration, Help: "from the put to the host that knows the message has been handled"}},
		Slots:   experiment.Always(count.TargetSlot),
		Run: func(ctx context.Context, p *experiment.Point) (experiment.Values, error) {
			p.Reads() // Run reads nothing of the device itself: --set of what no point uses is named
			v := experiment.Values{}
			source := func(s *runtime.Proc) error { return experiment.Send(s, 1, make([]byte, p.Int("size"))) }
			_, err := p.Simulate(ctx, source, func(target *runtime.Proc) error {
				in, err := p.Receive(target, p.Int("size"))
				if err != nil {
					return err
				}
				v["latency"], err = in.Wait()
				if n, _ := in.Handlers().Number("bytes"); err == nil && n != uint64(p.Int("size")) {
					err = fmt.Errorf("the handlers have counted %v bytes, expected %d", n, p.Int("size"))
				}
				return err
			})
			return v, err
		},
	})
}
