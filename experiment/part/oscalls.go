package part

import (
	"context"
	"fmt"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

var osCalls = &experiment.Experiment{
	Name:  "os-calls",
	Short: "what the operating system takes to map, pin and touch a buffer",
	Long: `A process makes one call for a buffer and reads the clock before and behind it. The clock costs nothing.
  mmap     maps the buffer
  munmap   removes a buffer whose pages have been touched
  mlock    pins a buffer whose pages are absent
  munlock  ends that
  touch    reads and writes a byte of each page, all of which are absent`,
	Source:   "Psistakis'19 §4",
	Smoke:    []experiment.Values{{"call": callMunmap, "size": 9000}},
	Profiles: []string{"exanest-qfdb"},
	Axes: []experiment.Axis{
		{Name: "call", Kind: report.Text, Of: []string{callMmap, callMunmap, callMlock, callMunlock, callTouch}, Help: "what is timed; the command's help describes each"},
		{Name: "size", Column: "bytes", Kind: report.Size, Least: "1", Most: "64MiB", Default: "16,64,256,1KiB,4KiB,16KiB,32KiB,64KiB", Help: "size of the buffer"},
	},
	Points: func(p *experiment.Point) (bool, error) {
		if !p.Profile.OS.On() {
			return false, fmt.Errorf("profile %s: no operating system that could be called (os.kind)", p.Profile.Origin.Name)
		}
		return true, nil
	},
	Run: runOSCalls,
	Columns: []report.Column{
		{Name: experiment.LatencyColumn, Unit: "us", Kind: report.Duration, Help: "from the call until it returns"},
		{Name: "pages", Kind: report.Count, Help: "pages that the buffer has a part of"},
	},
	Followed: experiment.LatencyColumn,
	View:     experiment.View{Value: experiment.LatencyColumn, Series: []string{"call"}, X: "bytes"},
	Ledger:   ledgerOSCalls(),
}

// Values of the axis call.
const (
	callMmap    = "mmap"
	callMunmap  = "munmap"
	callMlock   = "mlock"
	callMunlock = "munlock"
	callTouch   = "touch"
)

// ledgerOSCalls are the rows of Psistakis'19, table 4.1, one for each size.
func ledgerOSCalls() (rows []experiment.LedgerRow) {
	for _, line := range []struct {
		call string
		ids  [5]string
	}{
		{callMmap, [...]string{"07", "08", "11", "12", "14"}},
		{callMunmap, [...]string{"15", "16", "19", "20", "22"}},
		{callMlock, [...]string{"23", "24", "27", "28", "30"}},
		{callMunlock, [...]string{"31", "32", "35", "36", "38"}},
		{callTouch, [...]string{"39", "40", "43", "44", "46"}},
	} {
		for i, size := range [...]string{"16", "64", "4KiB", "16KiB", "64KiB"} {
			rows = append(rows, experiment.LedgerRow{ID: "t19-4-" + line.ids[i], Of: "call=" + line.call + " size=" + size, Column: experiment.LatencyColumn})
		}
	}
	return append(rows,
		experiment.LedgerRow{ID: "t19-4-x01", Of: "call=mlock size=32KiB", Column: experiment.LatencyColumn},
		experiment.LedgerRow{ID: "t19-4-x02", Of: "call=touch size=32KiB", Column: experiment.LatencyColumn},
	)
}

// runOSCalls measures a point.
func runOSCalls(ctx context.Context, p *experiment.Point) (experiment.Values, error) {
	n := p.Int("size")
	values := experiment.Values{"pages": (n + pageBytes - 1) / pageBytes}
	_, err := experiment.Simulate(ctx, p.Config(ctx, 1), func(c *runtime.Cluster) error {
		return c.Spawn(0, "process", func(q *runtime.Proc) error {
			took, err := timeCall(p, q, n)
			values[experiment.LatencyColumn] = took
			return err
		})
	}, func() error { return nil })
	return values, err
}

// timeCall is the program: it prepares a buffer and times the call.
func timeCall(p *experiment.Point, q *runtime.Proc, n int) (sim.Time, error) {
	call, os, th := p.Text("call"), q.OS(), q.Thread()
	var err error
	var begun sim.Time
	if call == callMmap {
		begun = q.Now()
		_, err = os.Map(th, n)
		p.Operation(q, begun)
		return q.Now() - begun, err
	}
	buffer := q.AllocAligned(n, host.PageBytes)
	addr, size := buffer.Addr(), uint64(n)
	switch call {
	case callMunmap:
		buffer.Write()
	case callMunlock:
		err = os.Lock(th, addr, size)
	}
	if err != nil {
		return 0, err
	}
	begun = q.Now()
	switch call {
	case callMunmap:
		err = os.Unmap(th, addr, size)
	case callMlock:
		err = os.Lock(th, addr, size)
	case callMunlock:
		err = os.Unlock(th, addr, size)
	default:
		touchPages(q, buffer)
	}
	p.Operation(q, begun)
	return q.Now() - begun, err
}
