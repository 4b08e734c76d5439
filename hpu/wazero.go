package hpu

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/spinsim/spinsim/hpu/internal/wasm"
	"github.com/spinsim/spinsim/internal/memory"
	"github.com/spinsim/spinsim/sim"
)

// wazeroShared is the part of wazero that all engines of the process share for
// devices with or without SIMD: the runtime with the imports, and machine code.
type wazeroShared struct {
	runtime  wazero.Runtime
	dispatch wazero.CompiledModule // the module of dispatch
	mu       sync.Mutex
	codes    map[[sha256.Size]byte]*sharedCode
	idle     []*sharedCode // without users, the last released at the end
}

// sharedCode is machine code with the number of its users.
type sharedCode struct {
	hash     [sha256.Size]byte
	compiled wazero.CompiledModule
	users    int
}

// idleCodes is how many modules without users stay compiled. So a sweep of
// simulations compiles its handlers once.
const idleCodes = 64

// wazeroFeatures is what a device without SIMD needs.
const wazeroFeatures = api.CoreFeaturesV1 |
	// for code that the rewriter adds: Load refuses modules with multiple
	// values
	api.CoreFeatureMultiValue | api.CoreFeatureReferenceTypes |
	api.CoreFeatureMutableGlobal | api.CoreFeatureSignExtensionOps |
	api.CoreFeatureNonTrappingFloatToIntConversion | api.CoreFeatureBulkMemoryOperations

var (
	sharedWazero = sync.OnceValues(func() (*wazeroShared, error) { return newWazeroShared(wazeroFeatures) })
	sharedVector = sync.OnceValues(func() (*wazeroShared, error) { return newWazeroShared(wazeroFeatures | api.CoreFeatureSIMD) })
)

func newWazeroShared(features api.CoreFeatures) (*wazeroShared, error) {
	ctx := context.Background()
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().WithCoreFeatures(features).WithDebugInfoEnabled(true))
	b := rt.NewHostModuleBuilder(importModule)
	for op := OpNone + 1; op < NumOps; op++ {
		t := op.imported()
		b = b.NewFunctionBuilder().WithGoFunction(&hostOps[op], wazeroTypes(t.Params), wazeroTypes(t.Results)).Export(op.String())
	}
	b = b.NewFunctionBuilder().WithGoFunction(api.GoFunc(func(ctx context.Context, stack []uint64) {
		ctx.(*wazeroCall).c.watched(uint32(stack[0]), uint32(stack[1]), uint32(stack[2]))
	}), wazeroTypes(watchType.Params), nil).Export(watchImport)
	if _, err := b.Instantiate(ctx); err != nil {
		return nil, fmt.Errorf("wazero: imports: %w", err)
	}
	d, err := rt.CompileModule(ctx, dispatch)
	if err != nil {
		return nil, fmt.Errorf("wazero: dispatch: %w", err)
	}
	return &wazeroShared{runtime: rt, dispatch: d, codes: make(map[[sha256.Size]byte]*sharedCode)}, nil
}

func wazeroTypes(types []wasm.ValueType) []api.ValueType {
	out := make([]api.ValueType, len(types))
	for i, t := range types {
		out[i] = api.ValueType(t)
	}
	return out
}

// Call implements api.GoFunction. Meanwhile other programs may have used the
// instance.
func (op *hostOp) Call(ctx context.Context, stack []uint64) {
	c := ctx.(*wazeroCall).c
	c.host(op, stack)
	i := c.program.inst.(*wazeroInstance)
	i.mod.of(i)
}

// compile returns machine code for m, new or shared.
func (w *wazeroShared) compile(m *Module) (code *sharedCode, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.codes[m.hash]; s != nil {
		if s.users == 0 {
			w.forget(s)
		}
		s.users++
		return s, nil
	}
	defer func() {
		// A failed assertion of the compiler is not expected, because Load has
		// checked the module.
		if r := recover(); r != nil {
			if err, is := r.(error); is && errors.Is(err, syscall.ENOMEM) {
				memory.Exhausted(len(m.binary))
			}
			err = fmt.Errorf("module %s: wazero cannot compile it: %v", m.name, r)
		}
	}()
	compiled, err := w.runtime.CompileModule(context.Background(), m.binary)
	if err != nil {
		return nil, fmt.Errorf("module %s: wazero cannot compile it: %w", m.name, err)
	}
	s := &sharedCode{hash: m.hash, compiled: compiled, users: 1}
	w.codes[m.hash] = s
	return s, nil
}

func (w *wazeroShared) forget(s *sharedCode) {
	for i, other := range w.idle {
		if other == s {
			w.idle = append(w.idle[:i], w.idle[i+1:]...)
			return
		}
	}
}

func (w *wazeroShared) release(s *sharedCode) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	s.users--
	if s.users > 0 {
		return nil
	}
	w.idle = append(w.idle, s)
	if len(w.idle) <= idleCodes {
		return nil
	}
	oldest := w.idle[0]
	w.idle = w.idle[1:]
	delete(w.codes, oldest.hash)
	return oldest.compiled.Close(context.Background())
}

type wazeroEngine struct {
	arena   arena
	workers workers
	scalar  *wazeroSide
	vector  *wazeroSide // nil: no device has had SIMD yet
	images  []*wazeroImage
	closed  bool
}

// wazeroSide is the part of an engine for devices with or without SIMD.
type wazeroSide struct {
	shared   *wazeroShared
	dispatch api.Module
	idle     *wazeroCall // a list of free calls: the last used is the first
}

func newWazeroEngine() (Engine, error) {
	scalar, err := newWazeroSide(sharedWazero)
	if err != nil {
		return nil, err
	}
	return &wazeroEngine{scalar: scalar, workers: workers{fiber: func() fiber { return sim.NewCoro() }}}, nil
}

func newWazeroSide(open func() (*wazeroShared, error)) (*wazeroSide, error) {
	shared, err := open()
	if err != nil {
		return nil, err
	}
	d, err := shared.runtime.InstantiateModule(context.Background(), shared.dispatch, anonymous)
	if err != nil {
		return nil, fmt.Errorf("wazero: dispatch: %w", err)
	}
	return &wazeroSide{shared: shared, dispatch: d}, nil
}

// side returns the part of the engine for a module's device.
func (e *wazeroEngine) side(m *Module) (*wazeroSide, error) {
	if !m.spec.Costs.SIMD.has() {
		return e.scalar, nil
	}
	var err error
	if e.vector == nil {
		e.vector, err = newWazeroSide(sharedVector)
	}
	return e.vector, err
}

func (e *wazeroEngine) Name() string { return "wazero" }

func (e *wazeroEngine) Compile(m *Module, hpuMemory uint32) (Image, error) {
	if e.closed {
		return nil, ErrClosed
	}
	layout, err := m.Layout(hpuMemory)
	if err != nil {
		return nil, err
	}
	side, err := e.side(m)
	if err != nil {
		return nil, err
	}
	s, err := side.shared.compile(m)
	if err != nil {
		return nil, err
	}
	c := &wazeroImage{engine: e, side: side, shared: s}
	c.image = image{
		module: m, layout: layout, workers: &e.workers,
		instance: func() (instance, []byte, error) { return newWazeroInstance(c) },
		release:  c.close,
	}
	e.images = append(e.images, c)
	return &c.image, nil
}

func (e *wazeroEngine) Close() error {
	if e.closed {
		return nil
	}
	var errs []error
	for _, c := range e.images {
		errs = append(errs, c.Close())
	}
	e.closed = true
	e.workers.close()
	for _, side := range []*wazeroSide{e.scalar, e.vector} {
		if side != nil {
			errs = append(errs, side.dispatch.Close(context.Background()))
		}
	}
	return errors.Join(append(errs, e.arena.close())...)
}

type wazeroImage struct {
	image
	engine *wazeroEngine
	side   *wazeroSide
	shared *sharedCode
	common *wazeroModule // of all programs; nil: there is none yet, or each has its own
}

// close releases the image after its programs.
func (c *wazeroImage) close() error {
	var err error
	if c.common != nil {
		err = c.common.mod.Close(context.Background())
	}
	return errors.Join(err, c.side.shared.release(c.shared))
}

// wazeroModule is an instance of wazero, which takes 3 KB and much time to
// make. The programs of an image share one if a program's state is its memory
// alone. The instance then works on the memory of the program whose handler is
// executing.
type wazeroModule struct {
	mod     api.Module
	memory  api.Memory
	now     *wazeroInstance // whose memory it works on; nil: nobody's
	mem     []byte          // that memory
	entries []uint64        // references to the entries of handlers, 0: not looked up yet
	regs    [numRegs]api.MutableGlobal
}

var _ experimental.LinearMemory = (*wazeroModule)(nil)

// Reallocate returns the memory, or its first size bytes.
func (m *wazeroModule) Reallocate(size uint64) []byte {
	return m.mem[:min(size, uint64(len(m.mem)))]
}

// Free does nothing. The program gives its memory back to the arena, because an
// error can be reported there.
func (m *wazeroModule) Free() {}

// of lets the instance work on the memory of a program. wazero asks for the
// memory when it is to grow, and takes what it gets. Code loads the place of
// the memory anew behind each call.
func (m *wazeroModule) of(i *wazeroInstance) {
	if m.now != i {
		m.now, m.mem = i, i.program.Present()
		m.memory.Grow(1)
	}
}

// wazeroInstance is the part of a program that differs from others.
type wazeroInstance struct {
	mod     *wazeroModule
	image   *wazeroImage
	program *Program
}

// wazeroCall is the state of a call of a handler. It has the function of
// dispatch, with a machine stack, so that each suspended call has its own. It
// has room for parameters and results. It is also the context that shows
// imports, without a look-up, whose handler calls them.
type wazeroCall struct {
	context.Context
	c     *Context
	fn    api.Function
	next  *wazeroCall
	stack [3 + numEntered]uint64
	_     [16]byte // two cache lines; the end of a call needs only the first
}

// Value implements context.Context. There is no value; wazero asks for one at
// every call.
func (*wazeroCall) Value(any) any { return nil }

func newWazeroInstance(c *wazeroImage) (inst instance, mem []byte, err error) {
	i := &wazeroInstance{mod: c.common, image: c}
	if i.mod != nil {
		mem, err = c.residents.take(&c.engine.arena)
		return i, mem, err
	}
	if mem, err = c.engine.arena.take(int(c.layout.Total)); err != nil {
		return nil, nil, err
	}
	if i.mod, err = newWazeroModule(i, mem); err != nil {
		c.engine.arena.give(mem)
		return nil, nil, err
	}
	return i, mem, nil
}

func newWazeroModule(i *wazeroInstance, mem []byte) (*wazeroModule, error) {
	c, m := i.image, &wazeroModule{now: i, mem: mem}
	allocate := experimental.MemoryAllocatorFunc(func(_, _ uint64) experimental.LinearMemory { return m })
	ctx := experimental.WithMemoryAllocator(context.Background(), allocate)
	var err error
	if m.mod, err = c.side.shared.runtime.InstantiateModule(ctx, c.shared.compiled, anonymous); err != nil {
		return nil, err
	}
	m.memory = m.mod.Memory()
	own := c.layout.Own / wasm.PageSize
	if _, ok := m.memory.Grow(c.layout.Total/wasm.PageSize - own); !ok {
		return nil, errors.Join(fmt.Errorf("cannot enlarge the memory to %d bytes", c.layout.Total), m.mod.Close(context.Background()))
	}
	m.entries = make([]uint64, len(c.module.handlers))
	for r, name := range c.module.globals.exports() {
		if name != "" {
			m.regs[r] = m.mod.ExportedGlobal(name).(api.MutableGlobal)
		}
	}
	return m, nil
}

func (i *wazeroInstance) initialize(p *Program) *Trap {
	c := i.image
	i.program = p
	if i.mod == c.common {
		return nil
	}
	trap := p.initialize()
	if trap == nil && c.module.inMemory() {
		c.common = i.mod
		c.residents.init(p.mem, &c.engine.arena, func() { i.mod.now = nil })
	}
	return trap
}

// anonymous allows any number of instances in the runtime. It runs no start
// function. It has no source of random numbers, because wazero would seed one
// for each instance: 5 KB, and as much time as everything else.
var anonymous = wazero.NewModuleConfig().WithName("").WithStartFunctions().WithRandSource(noBytes{})

// noBytes is an empty source. Handlers have no import that reads it.
type noBytes struct{}

func (noBytes) Read([]byte) (int, error) { return 0, io.EOF }

func (i *wazeroInstance) get(_ *Context, r reg) uint64    { return i.mod.regs[r].Get() }
func (i *wazeroInstance) set(_ *Context, r reg, v uint64) { i.mod.regs[r].Set(v) }

func (i *wazeroInstance) call(c *Context, fn *export, args, state uint32) (code int32, remaining int64, err error) {
	m, e := i.mod, i.image.side
	m.of(i)
	if m.entries[fn.slot] == 0 {
		m.entries[fn.slot] = m.mod.ExportedGlobal(entryGlobal(fn.index)).Get()
	}
	call := e.idle
	if call == nil {
		call = &wazeroCall{Context: context.Background(), fn: e.dispatch.ExportedFunction(dispatchFunc)}
	}
	e.idle = call.next
	call.c = c
	call.stack[0], call.stack[1], call.stack[2] = m.entries[fn.slot], uint64(args), uint64(state)
	*(*registers)(call.stack[3:]) = c.begin()
	err = call.fn.CallWithStack(call, call.stack[:])
	call.next, e.idle = e.idle, call
	return int32(uint32(call.stack[0])), int64(call.stack[1]), err
}

func (i *wazeroInstance) prepare(c *Context, fn uint32) error {
	return i.mod.mod.ExportedFunction(exportOf(fn)).CallWithStack(&wazeroCall{Context: context.Background(), c: c}, nil)
}

// wazeroTraps are the texts of wazero's errors, which wazero does not export.
var wazeroTraps = []struct {
	text string
	kind TrapKind
}{
	{"wasm error: unreachable", TrapUnreachable},
	{"wasm error: out of bounds memory access", TrapOutOfBounds},
	{"wasm error: integer divide by zero", TrapDivideByZero},
	{"wasm error: integer overflow", TrapIntegerOverflow},
	{"wasm error: invalid conversion to integer", TrapInvalidConversion},
	{"wasm error: invalid table access", TrapIndirectCall},
	{"wasm error: indirect call type mismatch", TrapSignature},
	{"stack overflow", TrapEngine},
}

func (i *wazeroInstance) fault(err error) (kind TrapKind, stack []level) {
	text := err.Error()
	for _, t := range wazeroTraps {
		if strings.HasPrefix(text, t.text) {
			kind = t.kind
			break
		}
	}
	// The stack trace names functions without names as .$N, innermost first.
	// The line below each has its place (offsetSections). A function that is
	// not in the module is a wrapper that the rewriter put around an import.
	for _, frame := range strings.Split(text, "\n\t.$")[1:] {
		n, _, _ := strings.Cut(frame, "(")
		fn, err := strconv.Atoi(n)
		if err != nil {
			continue
		}
		if fn = i.image.module.originalFunc(fn); fn < 0 {
			continue
		}
		_, hex, _ := strings.Cut(frame, "\n\t\t0x")
		hex, _, _ = strings.Cut(hex, ":")
		at, err := strconv.ParseInt(hex, 16, 32)
		if err != nil {
			at = -1
		}
		stack = append(stack, level{fn, int(at)})
	}
	return kind, stack
}

func (i *wazeroInstance) close(mem []byte) error {
	if mem != nil {
		i.image.engine.arena.give(mem)
	}
	if i.mod.now == i {
		i.mod.now = nil
	}
	if i.mod == i.image.common {
		return nil
	}
	return i.mod.mod.Close(context.Background())
}
