package runtime_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// A handler that sends itself empty messages faster than it handles them fills
// the queue of handlers and no more: what finds no place is lost, its own entry
// is disabled, and the run says which messages, of whom, for want of what.
func TestHostileMessagesToSelf(t *testing.T) {
	const flood, limit = 24, 8
	header := []rec{also(opSkip, scratch2, flood+1), also(opStore, scratch2, 1)}
	for range flood {
		header = append(header, do(hpu.OpToSelf, opAt(0)))
	}
	header = append(header, also(opSpin, 5000), end(hpu.Proceed))
	for _, noFlow := range []bool{true, false} {
		r := conduct(t, setup{
			overrides: []string{"hpu.cores=1", "hpu.contexts=1", fmt.Sprintf("hpu.waiting_handlers=%d", limit)},
			header:    header, ops: []hpu.Operation{{}}, noFlow: noFlow,
		})
		r.noHandlerErrors()
		_, n := r.c.LostMessages()
		stats := r.c.Node(1).Stats()
		if noFlow {
			require.Equal(t, flood-limit, n, "the first handler runs while they come")
			require.Equal(t, int64(1+limit), stats.HandlerCalls)
		} else {
			require.Equal(t, 1, n, "then the entry is disabled")
			require.Equal(t, int64(1+limit), stats.HandlerCalls)
			only(t, r.targets, portals.EventPTDisabled)
		}
		failures, _ := r.c.Failures()
		require.ErrorContains(t, failures[0], "1 of 1 packets (0 of 0 B) of a put from rank 1 were dropped: too many handlers waited for an HPU (hpu.waiting_handlers, 8)")
	}
}

// Handlers that start DMA without end and look at no result have hpu.dma_bytes
// on its way at most, get all of it through, and leave nothing behind:
// afterwards their memory can be freed.
func TestHostileDMA(t *testing.T) {
	const limit = 50_000
	for _, dies := range []bool{false, true} {
		eachProfile(t, func(t *testing.T, profile string) {
			var script []rec
			for i := range 14 {
				script = append(script, do(hpu.OpDMAToHostNB, 0, uint64(i), hpuBase, uint64(7000*(i%3)+1)), do(hpu.OpDMAFromHostNB, 0, 0, hpuBase+0xe000, 4000))
			}
			script = append(script, do(hpu.OpDMAToHost, 0, 0, hpuBase, 60_000)) // more than the limit
			if dies {
				script = append(script, also(opForever))
			}
			script = append(script, end(hpu.Success))
			r := conduct(t, setup{
				profile: profile, length: 16 * 256, payload: script, noFlow: true,
				overrides: []string{"fabric.mtu=256", "hpu.dma_handles=40", fmt.Sprintf("hpu.dma_bytes=%d", limit), "hpu.max_cycles=20000", "hpu.max_cycles_per_byte=0"},
				target: func(p *runtime.Proc, r *rig) error {
					p.Sleep(3 * sim.Microsecond)
					require.ErrorIs(r, r.hpu.Free(), portals.ErrInUse)
					p.Sleep(sim.Millisecond)
					return r.hpu.Free()
				},
			})
			_, failed := r.c.HandlerErrors()
			require.Equal(t, map[bool]int{false: 0, true: 16}[dies], failed)
			checkOnTheWay(t, r, limit)
		})
	}
}

// checkOnTheWay follows the DMA of a run by its steps: never more than limit
// bytes on their way, or one operation alone, and in the end none. A blocking
// operation that waits for room may have been asked for already.
func checkOnTheWay(t *testing.T, r *rig, limit uint64) {
	type key struct {
		number int64
		handle int
	}
	lengths := map[key]uint64{}
	bytes, refused, landed := uint64(0), 0, 0
	for _, s := range r.steps {
		switch {
		case s.What == nic.StepActed && !s.Suspended && (s.Op == hpu.OpDMAToHostNB || s.Op == hpu.OpDMAFromHostNB):
			if s.Result == hpu.NoSpace {
				refused++
				continue
			}
			require.GreaterOrEqual(t, s.Result, hpu.OK)
			lengths[key{s.Number, int(s.Result)}] = uint64(s.act.Len)
			require.LessOrEqual(t, bytes+uint64(s.act.Len), limit, "at %v", s.At)
			bytes += uint64(s.act.Len)
		case s.What == nic.StepLanded && s.Handle >= 0:
			bytes -= lengths[key{s.Number, s.Handle}]
			landed++
		}
	}
	require.Zero(t, bytes)
	require.Equal(t, len(lengths), landed)
	require.Positive(t, refused, "the limit was never reached")
}

// greedy takes HPU memory until there is none.
func greedy(p *runtime.Proc) (*portals.Spin, error) {
	binary, err := readModule("actions/actions.wasm")
	if err != nil {
		return nil, err
	}
	m, err := p.Cluster().LoadModule("actions", binary)
	if err != nil {
		return nil, err
	}
	for {
		if _, err := p.HPUAllocMem(m, hpuBytes); err != nil {
			return nil, err
		}
	}
}
