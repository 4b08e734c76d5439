package runtime_test

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/internal/hosttest"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// values are arguments that mean something, nearly mean something, or are far out.
var values = []uint64{
	0, 1, 2, 3, 7, 8, 9, 64, 255, 256, 4095, 4096, 4097, hostBytes - 8, hostBytes - 1, hostBytes, hostBytes + 1, extraBytes, scratch,
	scratch + 1, scratch2, operations, operations + 128, hpuBase, hpuBase - 1, actionsMemory - 112, actionsMemory - 8, actionsMemory - 1, actionsMemory,
	1 << 31, 1<<31 - 1, math.MaxUint32 - 111, math.MaxUint32, 1 << 32, 1 << 40, 1 << 63, math.MaxUint64 - 1, math.MaxUint64,
}

func drawValue(t *rapid.T, what string) uint64 { return rapid.SampledFrom(values).Draw(t, what) }

func drawScript(t *rapid.T, what string) (script []rec) {
	for range rapid.IntRange(0, 8).Draw(t, what) {
		op := rapid.IntRange(1, opSkip).Draw(t, "op")
		r := rec{op: op}
		for range 5 {
			r.args = append(r.args, drawValue(t, "argument"))
		}
		switch op {
		case opSpin:
			r.args[0] = 1 + r.args[0]%5000
		case int(hpu.OpPutFromHost), int(hpu.OpPutFromDevice), int(hpu.OpGetFromHost), int(hpu.OpGetFromDevice), int(hpu.OpAtomicFromHost),
			int(hpu.OpAtomicFromDevice), int(hpu.OpToSelf):
			r.args[0] = opAt(rapid.IntRange(0, 3).Draw(t, "record"))
		case int(hpu.OpTimer):
			r.args[0], r.args[1] = r.args[0]%2000, opAt(rapid.IntRange(0, 3).Draw(t, "record"))
		}
		script = append(script, r)
	}
	return append(script, end(hpu.Code(rapid.IntRange(-3, 8).Draw(t, "code"))))
}

// drawOperation mixes arguments that pass with those that do not. Its target
// has another portal table index than the handlers, so that no message begets
// messages without end.
func drawOperation(t *rapid.T) hpu.Operation {
	often := func(what string, usual uint64) uint64 {
		if rapid.IntRange(0, 4).Draw(t, what) > 0 {
			return usual
		}
		return drawValue(t, what)
	}
	return hpu.Operation{
		Local: uint32(often("local", scratch)), Space: uint32(often("space", 0)), Offset: often("offset", 64), Length: often("length", 8),
		TargetNID: uint32(often("node", 2)), TargetPID: uint32(often("process", 0)), PTIndex: 1, AckReq: uint32(often("ack", 1)),
		RemoteOffset: drawValue(t, "remote"), MD: uint32(often("md", 0)), Options: uint32(rapid.IntRange(0, 1).Draw(t, "options")),
		AtomicOp: uint32(rapid.IntRange(0, 18).Draw(t, "atomic")), Datatype: uint32(often("type", uint64(portals.Uint64))),
		Operand: uint32(often("operand", scratch)), Fetch: uint32(often("fetch", scratch2)), FetchOffset: often("fetch offset", 128),
		UserHdr: uint32(often("header", scratch)), UserHdrLen: uint32(often("header length", 0)),
	}
}

// someEvents are many times what a run of two messages needs: one that goes beyond has no end.
var someEvents = sim.Limits{Events: 100_000}

// Handlers that do anything with any arguments do not stop the simulator: the
// run comes to an end, every message is delivered or answered, and the books of
// the node are right (build tag invariants).
func TestRandomHandlers(t *testing.T) { randomHandlers(t, nil) }

// And where memory fails and tarries.
func TestRandomHandlersOnFaultyMemory(t *testing.T) {
	randomHandlers(t, func(rt *rapid.T, s *setup) {
		f := drawFaults(rt)
		s.overrides = append(s.overrides, "nic.fault_pause=300ns", fmt.Sprintf("nic.fault_tries=%d", rapid.SampledFrom([]int{0, 2, 1000}).Draw(rt, "tries")))
		seed := rapid.Uint64().Draw(rt, "seed")
		s.cfg = func(cfg *runtime.Config) {
			cfg.Seed, cfg.Translator, cfg.Limits = seed, (&hosttest.Nodes{Chances: f.chances}).Make, someEvents
		}
	})
}

func randomHandlers(t *testing.T, change func(rt *rapid.T, s *setup)) {
	rapid.Check(t, func(rt *rapid.T) {
		s := setup{
			profile: rapid.SampledFrom(profiles).Draw(rt, "profile"),
			overrides: []string{
				"fabric.mtu=256", "hpu.max_cycles=20000", "hpu.max_cycles_per_byte=0", "nic.packet_buffer=1024", "nic.egress_packets=2",
				"nic.handler_commands=4", "hpu.dma_handles=3", "hpu.cores=2", fmt.Sprintf("hpu.dma_bytes=%d", rapid.SampledFrom([]int{1, 100, 5000}).Draw(rt, "dma")),
				fmt.Sprintf("hpu.waiting_handlers=%d", rapid.SampledFrom([]int{1, 4, 100}).Draw(rt, "waiting")),
			},
			header: drawScript(rt, "header"), payload: drawScript(rt, "payload"), completion: drawScript(rt, "completion"),
			length: rapid.SampledFrom([]int{0, 8, 600, 3000}).Draw(rt, "length"), messages: 2, cleanup: rt.Cleanup, userHdr: rapid.SampledFrom([]uint64{0, 8, 64}).Draw(rt, "user header"),
		}
		for range 4 {
			s.ops = append(s.ops, drawOperation(rt))
		}
		s.cfg = func(cfg *runtime.Config) { cfg.Limits = someEvents }
		if change != nil {
			change(rt, &s)
		}
		s.stuck = true
		r := conduct(t, s)
		var endless *sim.LimitError
		if errors.As(r.err, &endless) && len(r.stepsOf(nic.StepActed, hpu.OpToSelf))+len(r.stepsOf(nic.StepActed, hpu.OpTimer)) > 100 {
			// handlers have changed the records in their memory: a message to
			// the process itself comes to them, who send it again
			return
		}
		require.NoError(t, r.err)
		require.Len(t, all(r.inits, portals.EventSend), 2)
		began, ended := len(r.stepsOf(nic.StepBegan, hpu.OpNone)), 0
		for _, k := range r.steps {
			if k.What == nic.StepEnded {
				ended++
			}
		}
		require.Equal(t, began, ended, "every handler that began has ended")
	})
}
