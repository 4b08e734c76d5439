package nic

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/internal/hosttest"
	"github.com/spinsim/spinsim/sim"
)

// Handlers with drawn DMA on memory that fails and tarries: every call is
// answered once, with what a memory of its own would answer; what faults is
// waited for, or told to who has asked for it; and no more bytes are on their
// way than hpu.dma_bytes, but for one operation alone, with nobody overtaking
// who waits for room. The same for tenants who take turns in pieces.
func TestActCarriesDMAOut(t *testing.T) {
	withEngine(t, func(e hpu.Engine, module []byte) {
		told, full := 0, 0
		rapid.Check(t, func(rt *rapid.T) {
			n := rapid.IntRange(1, 4).Draw(rt, "handlers")
			x := newActStage(rt, e, module, n)
			x.hpu.DMABytes, x.spec.FaultTries = sim.Size(rapid.SampledFrom([]int{64, 500, 1 << 20}).Draw(rt, "dma_bytes")), 1000
			x.hpu.DMAWrite = rapid.SampledFrom([]string{Initiated, Landed}).Draw(rt, "dma_write")
			memories := []*Memory{x.memory}
			if a := rapid.SampledFrom([]string{"", RoundRobin, WFQ}).Draw(rt, "arbiter"); a != "" {
				x.hpu.Arbiter, x.hpu.Fragment = a, sim.Size(rapid.SampledFrom([]int{0, 64, 130}).Draw(rt, "fragment"))
				one := Tenant{UID: 1, Weight: 3, DMABytes: sim.Size(rapid.SampledFrom([]int{0, 300}).Draw(rt, "dma_bytes of one"))}
				x.d.dma.turns = newTurns(x.hpu, newTenants(&x.env, Tenants{"one": one}))
				memories = append(memories, &Memory{name: "one", program: x.program, tenant: 1})
			}
			chance := rapid.SampledFrom([]float64{0, 0.3})
			x.buses.Translate(hosttest.NewRandom(x.engine, 1, &x.buses, hosttest.Chances{Fault: chance.Draw(rt, "fault"), Most: 4, Late: chance.Draw(rt, "late"), Delay: sim.Microsecond}))
			x.after = func() {
				if d := &x.d; d.dma.waits.len() > 0 {
					full++
					require.False(rt, d.dma.fits(d.dma.waits.front()))
				}
				require.LessOrEqual(rt, x.d.dma.bytes, max(int64(x.hpu.DMABytes), dmaSlot))
				if t := x.d.dma.turns; t != nil {
					for i := range t.lines {
						l := &t.lines[i]
						full += l.ops.len()
						require.LessOrEqual(rt, l.reading, max(l.most, dmaSlot))
						require.LessOrEqual(rt, l.queued, max(l.quantum, dmaSlot))
					}
				}
			}
			var lines [2]host.Order
			var models []*dmaModel
			for range n {
				m := drawDMA(rt)
				m.h = x.begin(sim.Time(rapid.IntRange(0, 2000).Draw(rt, "begins"))*sim.Nanosecond, &lines[rapid.IntRange(0, 1).Draw(rt, "line")], m.actions...)
				m.h.before = m.before
				m.h.in.handlers.memory = rapid.SampledFrom(memories).Draw(rt, "memory")
				models = append(models, m)
			}
			x.finish()
			for _, m := range memories {
				require.Zero(rt, m.uses)
			}
			if turns := x.d.dma.turns; turns != nil {
				for i := range turns.lines {
					l := &turns.lines[i]
					require.Zero(rt, int(l.bytes+l.queued+l.reading)+l.ops.len())
				}
			}
			for _, m := range models {
				told += m.check()
			}
		})
		require.NotZero(t, told)
		require.NotZero(t, full)
	})
}

// dmaModel is what a handler asks for, each access in a slot of its own; reads
// look at the slot of an earlier write.
type dmaModel struct {
	t       *rapid.T
	h       *hand
	actions []hpu.Action
	of      map[int]int    // read: the write that it looks at
	open    []int          // non-blocking writes that nobody has waited for
	data    map[int][]byte // written
	results map[int]int64  // of writes, as far as they are known
}

const dmaSlot = 200 // bytes

func drawDMA(rt *rapid.T) *dmaModel {
	m := &dmaModel{t: rt, of: map[int]int{}, data: map[int][]byte{}, results: map[int]int64{}}
	ops := []hpu.Op{hpu.OpDMAToHost, hpu.OpDMAToHostNB, hpu.OpDMAToHostNB, hpu.OpDMAFromHost, hpu.OpDMAFAdd, hpu.OpDMAWait}
	for k := range rapid.IntRange(1, 12).Draw(rt, "actions") {
		a := hpu.Action{
			Op: rapid.SampledFrom(ops).Draw(rt, "op"), Cycles: rapid.Int64Range(0, 300).Draw(rt, "cycles"), Offset: uint64(k * dmaSlot),
			Len: uint32(rapid.IntRange(1, dmaSlot).Draw(rt, "bytes")), A: 5,
		}
		if a.Op != hpu.OpDMAWait && rapid.IntRange(0, 3).Draw(rt, "asks for faults") == 0 {
			a.Space = hpu.TellFaults
		}
		if a.Op == hpu.OpDMAFromHost && len(m.data) > 0 {
			of := rapid.IntRange(0, k-1).Draw(rt, "looks at")
			if before, is := m.data[of]; is {
				m.of[k], a.Offset, a.Len = of, uint64(of*dmaSlot), uint32(len(before))
			}
		}
		if a.Op == hpu.OpDMAToHost || a.Op == hpu.OpDMAToHostNB {
			m.data[k] = rapid.SliceOfN(rapid.ByteRange(1, 255), int(a.Len), int(a.Len)).Draw(rt, "data")
		}
		m.actions = append(m.actions, a)
	}
	for range 3 { // hpu.dma_handles: all are looked for
		m.actions = append(m.actions, hpu.Action{Op: hpu.OpDMAWait})
	}
	return m
}

// before is the handler's own code: it looks at the answer of the call before,
// and prepares its buffer for action k.
func (m *dmaModel) before(k int, a *hpu.Action) {
	if k > 0 {
		m.answered(k - 1)
	}
	a.Local = m.h.local(0)
	switch a.Op {
	case hpu.OpDMAToHost, hpu.OpDMAToHostNB:
		copy(m.h.bytes(0, dmaSlot), m.data[k])
	case hpu.OpDMAWait:
		a.A = 99
		if len(m.open) > 0 {
			a.A = uint64(m.h.results[m.open[0]])
		}
	}
}

func (m *dmaModel) answered(k int) {
	a, result := m.actions[k], m.h.results[k]
	switch a.Op {
	case hpu.OpDMAToHostNB:
		m.results[k] = result
		if len(m.open) == m.h.x.hpu.DMAHandles {
			require.Equal(m.t, hpu.NoSpace, result)
		}
		if result != hpu.NoSpace {
			for _, o := range m.open {
				require.NotEqual(m.t, m.h.results[o], result, "a handle of two")
			}
			m.open = append(m.open, k)
		}
	case hpu.OpDMAWait:
		if len(m.open) == 0 {
			require.Equal(m.t, hpu.Invalid, result)
			return
		}
		m.results[m.open[0]] = result
		m.open = m.open[1:]
	case hpu.OpDMAToHost:
		m.results[k] = result
	case hpu.OpDMAFromHost:
		if of, is := m.of[k]; is && result == hpu.OK {
			got := m.h.bytes(0, len(m.data[of]))
			switch known, tell := m.results[of], m.actions[of].Space; {
			// it has failed, or will turn out to have
			case known < 0 || tell != 0 && got[0] != m.data[of][0]:
				require.Equal(m.t, make([]byte, len(got)), got)
			default:
				require.Equal(m.t, m.data[of], got, "a read finds what was written before it")
			}
		}
	case hpu.OpDMAFAdd:
		if result == hpu.OK {
			require.Zero(m.t, binary.LittleEndian.Uint64(m.h.bytes(0, 8)))
		}
	}
	if result == hpu.Fault && a.Op != hpu.OpDMAWait {
		require.NotZero(m.t, a.Space, "it has asked for it")
	}
}

// check compares host memory with what the handler was told, and counts the
// faults that it was told of.
func (m *dmaModel) check() (faults int) {
	m.answered(len(m.actions) - 1)
	require.Empty(m.t, m.open)
	host := m.h.x.hostMemory(m.h)
	for k, data := range m.data { //lint:maporder each by itself
		got, want := host[k*dmaSlot:][:len(data)], data
		if m.results[k] < 0 {
			want = make([]byte, len(data))
			if m.results[k] == hpu.Fault {
				require.NotZero(m.t, m.actions[k].Space)
				faults++
			}
		}
		require.Equal(m.t, want, got, "action %d", k)
	}
	for k, a := range m.actions {
		if a.Op == hpu.OpDMAFAdd {
			want := uint64(5)
			if m.h.results[k] != hpu.OK {
				want = 0
			}
			require.Equal(m.t, want, binary.LittleEndian.Uint64(host[k*dmaSlot:]), "once, or not at all")
		}
	}
	return faults
}

// Puts of handlers leave at the handlers' own times while the egress has room
// for them; beyond, handlers wait, the first of them first, or of each tenant in
// turn, and no room is given twice. What they carry is what was in HPU memory at the call.
func TestActKeepsToTheEgress(t *testing.T) {
	withEngine(t, func(e hpu.Engine, module []byte) {
		waited := 0
		rapid.Check(t, func(rt *rapid.T) {
			n := rapid.IntRange(1, 4).Draw(rt, "handlers")
			x := newActStage(rt, e, module, n)
			x.room, x.takes = rapid.IntRange(1, 3).Draw(rt, "room"), sim.Time(rapid.IntRange(0, 1000).Draw(rt, "takes"))*sim.Nanosecond
			memories := []*Memory{x.memory}
			if rapid.Bool().Draw(rt, "tenants") {
				x.hpu.Arbiter = WFQ
				x.d.requests.tenants = newTenants(&x.env, Tenants{"one": {UID: 1, Weight: 3}})
				x.d.dma.turns = newTurns(x.hpu, x.d.requests.tenants)
				memories = append(memories, &Memory{name: "one", program: x.program, tenant: 1})
			}
			x.after = func() {
				for i := range memories {
					promised, waits := x.d.requests.promised, x.d.egress.len()
					if t := x.d.requests.tenants; t != nil {
						promised, waits = t.list[i].promised, x.d.dma.turns.lines[i].sends.len()
					}
					require.LessOrEqual(rt, x.inside[i]+promised, x.room)
					require.True(rt, waits == 0 || x.inside[i]+promised == x.room, "nobody waits for nothing")
				}
				waited += x.d.egress.len()
			}
			for k := range n {
				var puts []hpu.Action
				for i := range rapid.IntRange(1, 5).Draw(rt, "puts") {
					a := hpu.Action{Op: hpu.OpPutFromDevice, Cycles: rapid.Int64Range(0, 400).Draw(rt, "cycles")}
					a.Desc = hpu.Operation{Local: x.state + uint32(4096*k), Length: 8, TargetNID: 2, MatchBits: uint64(100*k + i)}
					puts = append(puts, a)
				}
				h := x.begin(sim.Time(rapid.IntRange(0, 2000).Draw(rt, "begins"))*sim.Nanosecond, nil, puts...)
				h.in.handlers.memory = rapid.SampledFrom(memories).Draw(rt, "memory")
				h.before = func(i int, _ *hpu.Action) { binary.LittleEndian.PutUint64(h.bytes(0, 8), uint64(1000*k+i)) }
			}
			x.finish()
			next := map[uint64]uint64{}
			for _, l := range x.left {
				k, i := l.bits/100, l.bits%100
				require.Equal(rt, next[k], i, "in the order of the calls")
				next[k]++
				require.Equal(rt, 1000*k+i, binary.LittleEndian.Uint64(l.data))
				require.Equal(rt, x.hands[k].ended[i], l.at, "at the handler's own time, or when it need not wait any more")
			}
			for k, h := range x.hands {
				require.Equal(rt, uint64(len(h.actions)), next[uint64(k)])
				require.Equal(rt, make([]int64, len(h.actions)), h.results)
			}
		})
		require.NotZero(t, waited)
	})
}
