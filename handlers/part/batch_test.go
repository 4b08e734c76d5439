package part

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// late returns by how much a program that wakes every 50 us on the core of the interrupts gets it
// later at most than it would alone, during a write of so many bytes into absent pages.
func late(t *testing.T, o Options, bytes int, set ...string) (most sim.Time) {
	const every, until = 50 * sim.Microsecond, 20 * sim.Millisecond
	run{Options: o, bytes: bytes, dest: true, set: set, wreck: func(p *runtime.Proc, _ uint64) error {
		switching := p.Node().Kernel().Spec().ContextSwitch
		p.Node().CPU().Kthread(0, "program", func(t *host.Thread) {
			for at := every; at < until; at += every {
				if at < t.Now() {
					continue
				}
				t.Sleep(at)
				most = max(most, t.Now()-at-switching)
			}
			for {
				t.Wait("nothing")
			}
		})
		return nil
	}}.do(t)
	return most
}

// A write of 4 MiB into absent pages keeps the core of the interrupts from a program no longer than
// a run of the receive tasklet takes: its batch of pages, each with its own call and message at
// worst and the interrupts of its cells, or one call for the whole transfer.
func TestProgramsBesideFaults(t *testing.T) {
	os := &must(profile.Load("exanest-qfdb")).OS
	const pages = 1024
	page := os.GupCall + os.GupAbsent + os.NetlinkSend + 16*(os.Interrupt+os.FaultInterrupt)
	for _, c := range []struct {
		name   string
		policy Policy
		most   sim.Time
	}{
		{"pio", PIO, os.FaultTasklet + sim.Time(os.FaultBatch)*page},
		{"pi4", PI4, os.FaultTasklet + sim.Time(os.FaultBatch)*page},
		{"pia", PIA, os.FaultTasklet + sim.Time(os.FaultBatch)*page + pages*os.GupAbsent},
		{"early", early, os.FaultTasklet + sim.Time(os.FaultBatch)*(page+9*os.GupAbsent)},
	} {
		for _, by := range []Method{GetUserPages, Touch, InKernel} {
			most := late(t, Options{Policy: c.policy, Method: by}, pages*host.PageBytes)
			t.Log(c.name, by, most)
			require.LessOrEqual(t, most, c.most, "%s, %v", c.name, by)
		}
	}
	unbounded := late(t, Options{}, pages*host.PageBytes, "os.fault_batch=0", "os.softirq_rounds=0", "os.fault_ask=block")
	require.Greater(t, unbounded, 10*sim.Millisecond, "the test would see it")
}
