package hpu

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/sim"
)

// recorder is a device that answers by what it is asked, and remembers it.
// Whether it blocks depends on the question too.
type recorder struct {
	log  []string
	next [4]int64 // answer to the blocked call of each context
}

func (d *recorder) Act(c *Context, a *Action) (int64, bool) {
	values := []uint64{uint64(a.Space)<<32 | uint64(a.CT), a.Offset, uint64(a.Local), uint64(a.Len), a.A, a.B}
	if o := &a.Desc; a.Op == OpTimerAt {
		values = append(values, uint64(o.Local), o.Length, o.MatchBits, o.HdrData, uint64(o.UserHdr), uint64(o.UserHdrLen))
	}
	answer, blocks := d.note(c.Index(), a.Op, a.Cycles, values...)
	d.next[c.Index()] = answer
	return answer, blocks
}

func (d *recorder) note(context int, op Op, cycles int64, values ...uint64) (answer int64, blocks bool) {
	line := fmt.Sprint("context ", context, " ", op, " at ", cycles, ": ", values)
	d.log = append(d.log, line)
	h := uint32(2166136261)
	for _, b := range []byte(line) {
		h = (h ^ uint32(b)) * 16777619
	}
	return int64(h>>8%7) - 2, op.MayBlock() && h>>16%3 == 0
}

// refDevice carries out imports for the reference: a second, plainer reading of docs/abi.md.
type refDevice struct {
	recorder
	r       *reference
	context int
}

// pay takes from the budget what docs/abi.md says of the work of an import; n
// bytes are moved for one of the budget each.
func (d *refDevice) pay(n uint64) {
	d.r.budget -= 100 + int64(n)
	if d.r.used > d.r.budget*d.r.parts {
		panic(refTrap{TrapBudget})
	}
}

func (d *refDevice) ask(op Op, values ...uint64) uint64 {
	switch op {
	case OpLog:
		d.pay(values[3])
	case OpDMAToHost:
		d.pay(values[3] / 64)
	case OpTimerAt:
		d.pay(200 + (values[7]+values[11])/64)
	default:
		d.pay(0)
	}
	context := d.context
	answer, blocks := d.note(context, op, d.r.cycles(), values...)
	if blocks {
		d.r.suspended()
		d.context = context
	}
	if op == OpNow || op == OpExpiries {
		return uint64(answer)
	}
	return uint64(uint32(answer))
}

func lo(v uint64) uint64 { return uint64(uint32(v)) }

func (d *refDevice) host(op Op, a []uint64) (uint64, TrapKind) {
	size := uint64(len(d.r.mem))
	outside := func(addr, n uint64) bool { return n > size || addr+n > size }
	switch op {
	case OpCycles:
		return uint64(d.r.cycles()), TrapNone
	case OpMyHPU:
		return uint64(d.r.hpu), TrapNone
	case OpNumHPUs:
		return uint64(d.r.spec.Cores * d.r.spec.Contexts), TrapNone
	case OpNumClusters, OpMyCluster: // testSpec has one
		return uint64(op-OpMyCluster) & 1, TrapNone
	case OpFlowID, OpNow, OpExpiries:
		return d.ask(op, 0, 0, 0, 0, 0, 0), TrapNone
	case OpHostWrite:
		return d.ask(op, a[0]<<32, a[1], 0, 0, a[2], 0), TrapNone
	case OpWait32:
		switch addr := lo(a[0]); {
		case outside(addr, 4):
			return 0, TrapOutOfBounds
		case addr%4 != 0:
			return 0, TrapMisaligned
		}
		return d.ask(op, 0, 0, lo(a[0]), 0, lo(a[1]), 0), TrapNone
	case OpDMAWait, OpAck:
		return d.ask(op, 0, 0, 0, 0, lo(a[0]), 0), TrapNone
	case OpCTInc:
		return d.ask(op, lo(a[0]), 0, 0, 0, a[1], a[2]), TrapNone
	case OpYield:
		return d.ask(op, 0, 0, 0, 0, 0, 0), TrapNone
	case OpDMAToHost:
		if outside(lo(a[2]), lo(a[3])) {
			return 0, TrapOutOfBounds
		}
		return d.ask(op, a[0]<<32, a[1], lo(a[2]), lo(a[3]), 0, 0), TrapNone
	case OpLog:
		if outside(lo(a[0]), lo(a[1])) {
			return 0, TrapOutOfBounds
		}
		return d.ask(op, 0, 0, lo(a[0]), min(lo(a[1]), 1024), lo(a[1]), 0), TrapNone
	case OpCTGet:
		if outside(lo(a[1]), 16) {
			return 0, TrapOutOfBounds
		}
		return d.ask(op, lo(a[0]), 0, lo(a[1]), 0, 0, 0), TrapNone
	case OpTimerAt:
		return d.timerAt(a, outside)
	}
	return d.atomic(op, lo(a[0]), a)
}

// timerAt reads an operation record with payload and user header.
func (d *refDevice) timerAt(a []uint64, outside func(addr, n uint64) bool) (uint64, TrapKind) {
	if outside(lo(a[2]), 112) {
		return 0, TrapOutOfBounds
	}
	record := d.r.mem[lo(a[2]):]
	u32 := func(at int) uint64 { return uint64(le.Uint32(record[at:])) }
	local, length, header, headerLen := u32(0), le.Uint64(record[16:]), u32(104), u32(108)
	if outside(local, length) || outside(header, headerLen) {
		return 0, TrapOutOfBounds
	}
	return d.ask(OpTimerAt, 0, 0, 0, 0, a[0], a[1], local, length, le.Uint64(record[40:]), le.Uint64(record[56:]), header, headerLen), TrapNone
}

func (d *refDevice) atomic(op Op, addr uint64, a []uint64) (uint64, TrapKind) {
	switch {
	case addr+8 > uint64(len(d.r.mem)):
		return 0, TrapOutOfBounds
	case addr%8 != 0:
		return 0, TrapMisaligned
	}
	at := d.r.mem[addr:]
	if op == OpFAdd {
		d.ask(op, 0, 0, addr, 0, a[1], 0)
		before := le.Uint64(at)
		le.PutUint64(at, before+a[1])
		return before, TrapNone
	}
	d.ask(op, 0, 0, addr, 0, a[1], a[2])
	if le.Uint64(at) != a[1] {
		return 0, TrapNone
	}
	le.PutUint64(at, a[2])
	return 1, TrapNone
}

// outcome is what both sides must agree on when a handler ends.
type outcome struct {
	code   int32
	cycles int64
	kind   TrapKind
	at     refPlace // of a trap
}

// comparison runs the handlers of a generated module on an engine and on the
// reference, several contexts at a time, and compares everything that can be
// observed: results, cycles, traps, actions with their times, memory.
type comparison struct {
	t    require.TestingT
	pick func(int) int
	p    *Program
	got  *recorder
	want *refDevice
	refs [4]*sim.Coro
	ends [4]outcome
	sums *sums
}

func newComparison(t require.TestingT, e Engine, wasm []byte, cores int, watch Watch, pick func(int) int) *comparison {
	spec := testSpec()
	spec.Cores, spec.Contexts = cores, cores
	spec.MaxCallDepth = 8
	drawCosts(&spec.Costs, pick)
	x := &comparison{t: t, pick: pick, got: &recorder{}, sums: &sums{watch: watch}}
	watch.Observer = x.sums
	spec.Watch = watch
	m, err := load("generated", wasm, spec, MaxUnchecked, remByDivision || len(wasm)%2 == 0)
	require.NoError(t, err)
	img, err := e.Compile(m, 64)
	require.NoError(t, err)
	x.p, err = img.Instantiate("p", x.got)
	require.NoError(t, err)
	x.want = &refDevice{r: newReference(m, make([]byte, len(x.p.Memory())))}
	x.want.r.host = x.want.host
	for i := range x.refs {
		x.refs[i] = sim.NewCoro()
	}
	return x
}

// sums is an Observer that adds up what handlers are charged.
type sums struct {
	watch   Watch
	charged [4]int64 // by context, parts of a cycle
	told    int
}

func (s *sums) Access(*Context, int, uint32, uint32, bool) { s.told++ }
func (s *sums) Enter(*Context, int)                        { s.told++ }
func (s *sums) Leave(*Context)                             { s.told++ }
func (s *sums) Charge(c *Context, _ int, cost int64)       { s.charged[max(c.Index(), 0)] += cost }

func (s *sums) Block(c *Context, b *WatchedBlock) {
	for _, cost := range b.Costs {
		s.charged[max(c.Index(), 0)] += cost
	}
}

// drawCosts makes a core of any kind of the table: one instruction after the
// other or wide, with and without chains and folding.
func drawCosts(t *CostTable, pick func(int) int) {
	t.BulkBytesPerCycle = 1 + int64(pick(3))
	if pick(3) == 0 {
		return
	}
	c := &t.Core
	c.Chain = []Chain{ChainNone, ChainBlock, ChainLoop}[pick(3)]
	c.FoldAddress = []Address{AddressBase, AddressOffset, AddressIndex}[pick(3)]
	c.FoldShift, c.FoldCompare, c.FoldMultiply = pick(2) == 0, pick(2) == 0, pick(2) == 0
	c.Latency = Latency{Int: 0, IntMul: 4, Float: 5, FloatMul: 6, Convert: 3, Load: 9}
	t.LoopBranch = int64(pick(3) * 2)
	t.Registers, t.Operands = int64(pick(10)), int64(pick(4))
	t.Instructions = map[string]InstrCost{
		"i64.add i64.sub": {Cost: 2, Latency: 1}, "i32.wrap_i64": {}, "f64.add": {Cost: 7, Slots: 3}, "else": {Cost: 2},
		"br_if": {Cost: 5, Slots: 1},
	}
	if pick(3) > 0 {
		width := func() int64 { return int64(1 + pick(4)) }
		c.Fetch, c.Int, c.Load, c.Store, c.Float = width(), width(), width(), width(), width()
		c.Mul, c.Branch = width()-1, width()-1
	}
}

// step starts a handler in an idle context or resumes a blocked one.
func (x *comparison) step() {
	i := x.pick(x.p.Layout().Contexts)
	c := x.p.Context(i)
	x.want.context = i
	var done bool
	var s Status
	switch {
	case c.Status() != Blocked:
		f, l := x.p.Module().Exports()[x.pick(2)], x.p.Layout()
		args, state := uint32(interesting[x.pick(len(interesting))]), uint32(x.pick(100))
		run := refRun{limit: l.StackLimit(i), budget: []int64{100, 5000, 50000}[x.pick(3)], hpu: i, yield: x.refs[i].Yield}
		done = x.refs[i].Start(func() {
			o := &x.ends[i]
			o.code, o.cycles, o.kind, o.at = x.want.r.run(f.x.index, args, state, l.StackTop(i), run)
		})
		x.sums.charged[i] = 0
		s = c.Start(f, args, state, run.budget)
	case x.pick(12) == 0:
		x.refs[i].Stop()
		c.Kill()
		require.Equal(x.t, TrapKilled, c.Outcome().Err.Kind)
		return
	default:
		done = x.refs[i].Resume()
		s = c.Resume(x.got.next[i])
	}
	require.Equal(x.t, x.want.log, x.got.log)
	require.Equal(x.t, done, s == Done)
	require.True(x.t, bytes.Equal(x.want.r.mem, x.p.Memory()), "memory differs")
	x.want.log, x.got.log = x.want.log[:0], x.got.log[:0]
	if !done {
		return
	}
	o := c.Outcome()
	kind, at := TrapNone, refPlace{}
	if o.Err != nil {
		kind, at = o.Err.Kind, refPlace{o.Err.Index, o.Err.Offset}
	}
	if parts := x.p.Module().prices.parts; kind == TrapNone && x.sums.watch.Blocks {
		require.Equal(x.t, o.Cycles, (x.sums.charged[i]+parts-1)/parts, "cycles that the observer was told of")
	}
	w := x.ends[i]
	require.Equal(x.t, w.kind.String(), kind.String(), "%v", o.Err)
	is := outcome{int32(o.Code), o.Cycles, kind, at}
	require.Equal(x.t, w, is, "%v", o.Err)
}

func (x *comparison) close() {
	for _, c := range x.refs {
		c.Close()
	}
	require.NoError(x.t, x.p.image.Close())
}

// differential compares an engine with the reference on generated modules, on a
// device of that many cores with as many contexts each, 1 or 2.
func differential(t *testing.T, engine string, modules uint64, steps, cores int) {
	shards := uint64(runtime.GOMAXPROCS(0)) // which of them a module is in changes nothing for it
	for shard := range min(shards, modules) {
		t.Run(fmt.Sprint("shard", shard), func(t *testing.T) {
			t.Parallel()
			e, err := NewEngine(engine)
			require.NoError(t, err)
			defer func() { require.NoError(t, e.Close()) }()
			for seed := shard; seed < modules && !t.Failed(); seed += shards {
				t.Run(fmt.Sprint(seed), func(t *testing.T) { compareModule(t, e, seed, steps, cores) })
			}
		})
	}
}

func compareModule(t *testing.T, e Engine, seed uint64, steps, cores int) {
	rng := rand.New(rand.NewPCG(seed, 1))
	g := &generator{pick: rng.IntN}
	x := newComparison(t, e, g.module(), cores, Watch{Accesses: seed%4 == 1 || seed%4 == 3, Blocks: seed%4 >= 2}, rng.IntN)
	for range steps {
		x.step()
	}
	x.close()
}

var differentialModules = flag.Uint64("differential.modules", 150, "generated modules that TestDifferential compares; the promise is 500")

// TestDifferential runs 3,000 handlers or parts of handlers of 150 generated
// modules; of 500 in .ci/run deep. It would catch a block that is charged twice
// or not at all, a check at the wrong place, a NaN that differs, a register
// that is not switched.
func TestDifferential(t *testing.T) { //nolint:tparallel // its subtests are all there is
	differential(t, "wazero", *differentialModules, 20, 2)
}

// TestDifferentialShrinking is the same with rapid, which reduces what it finds.
func TestDifferentialShrinking(t *testing.T) {
	e, err := NewEngine("wazero")
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	rapid.Check(t, func(t *rapid.T) {
		pick := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "choice") }
		g := &generator{pick: pick}
		x := newComparison(t, e, g.module(), 2, Watch{}, pick)
		for range 5 {
			x.step()
		}
		x.close()
	})
}
