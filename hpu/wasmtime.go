//go:build wasmtime

package hpu

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/bytecodealliance/wasmtime-go/v44"

	"github.com/spinsim/spinsim/hpu/internal/wasm"
)

// wasmtimeStack is the machine stack of a handler, bytes: the most that wasmtime allows. Spec.MaxCallDepth and frameBytes keep below it.
const wasmtimeStack = 2 << 20

// wasmtimeEngine is the independent check of wazero: slow, with cgo. Wasmtime keeps the state of suspended calls of one store
// on one thread, in the order of the calls. So each context has a store with its own instance, and memory and globals are
// copied whenever control passes between a handler and its device.
type wasmtimeEngine struct {
	engine *wasmtime.Engine
	idle   []*thread
	images []*wasmtimeImage
	closed bool
}

func newWasmtimeEngine() (Engine, error) {
	cfg := wasmtime.NewConfig()
	cfg.SetMaxWasmStack(wasmtimeStack)
	cfg.SetCraneliftOptLevel(wasmtime.OptLevelNone) // the time goes into copying memory
	return &wasmtimeEngine{engine: wasmtime.NewEngineWithConfig(cfg)}, nil
}

func (e *wasmtimeEngine) Name() string { return "wasmtime" }

func (e *wasmtimeEngine) get() fiber {
	if n := len(e.idle); n > 0 {
		t := e.idle[n-1]
		e.idle = e.idle[:n-1]
		return t
	}
	return newThread()
}

func (e *wasmtimeEngine) put(f fiber) { e.idle = append(e.idle, f.(*thread)) }

func (e *wasmtimeEngine) Compile(m *Module, hpuMemory uint32) (Image, error) {
	if e.closed {
		return nil, ErrClosed
	}
	layout, err := m.Layout(hpuMemory)
	if err != nil {
		return nil, err
	}
	mod, err := wasmtime.NewModule(e.engine, m.binary)
	if err != nil {
		return nil, fmt.Errorf("module %s: wasmtime cannot compile it: %w", m.name, err)
	}
	img := &wasmtimeImage{engine: e, module: m, layout: layout, compiled: mod}
	e.images = append(e.images, img)
	return img, nil
}

func (e *wasmtimeEngine) Close() error {
	if e.closed {
		return nil
	}
	e.closed = true
	var errs []error
	for _, img := range e.images {
		errs = append(errs, img.Close())
	}
	for _, t := range e.idle {
		close(t.jobs)
	}
	e.engine.Close()
	return errors.Join(errs...)
}

type wasmtimeImage struct {
	engine   *wasmtimeEngine
	module   *Module
	layout   Layout
	compiled *wasmtime.Module
	programs programs
	closed   bool
}

func (img *wasmtimeImage) Module() *Module { return img.module }
func (img *wasmtimeImage) Layout() Layout  { return img.layout }

func (img *wasmtimeImage) Instantiate(owner string, dev Device) (*Program, error) {
	if img.closed {
		return nil, ErrClosed
	}
	inst := &wasmtimeInstance{image: img, mem: make([]byte, img.layout.Total), contexts: make([]*wasmtimeContext, img.layout.Contexts+1)}
	if err := inst.first(); err != nil {
		return nil, fmt.Errorf("module %s, program %s: %w", img.module.name, owner, errors.Join(err, inst.close()))
	}
	p, err := newProgram(owner, img, dev, inst, img.engine, img.programs.remove)
	if err != nil {
		return nil, errors.Join(err, inst.close())
	}
	img.programs.add(p)
	return p, nil
}

func (img *wasmtimeImage) Close() error {
	if img.closed {
		return nil
	}
	img.closed = true
	err := img.programs.close()
	img.compiled.Close()
	return err
}

// wasmtimeInstance is the state that the instances of all contexts share.
type wasmtimeInstance struct {
	image    *wasmtimeImage
	mem      []byte
	globals  []wasmtime.Val     // the module's own mutable globals, the shadow stack pointer left out
	contexts []*wasmtimeContext // by index+1: the first runs the module's initialisation
}

// wasmtimeContext is the instance of one context.
type wasmtimeContext struct {
	c       *Context
	store   *wasmtime.Store
	inst    *wasmtime.Instance
	memory  *wasmtime.Memory
	regs    [numRegs]*wasmtime.Global
	globals []*wasmtime.Global
}

// first makes the instance of the module's own initialisation and takes memory and globals from it.
func (i *wasmtimeInstance) first() error {
	w, err := i.instantiate(-1)
	if err != nil {
		return err
	}
	i.globals = make([]wasmtime.Val, len(w.globals))
	i.out(w)
	return nil
}

func (i *wasmtimeInstance) instantiate(index int) (*wasmtimeContext, error) {
	m := i.image.module
	w := &wasmtimeContext{store: wasmtime.NewStore(i.image.engine.engine)}
	imports := make([]wasmtime.AsExtern, len(m.ops))
	for k, op := range m.ops {
		imports[k] = i.hostFunction(w, op)
	}
	var err error
	if w.inst, err = wasmtime.NewInstance(w.store, i.image.compiled, imports); err != nil {
		w.store.Close()
		return nil, err
	}
	i.contexts[index+1] = w
	w.memory = w.inst.GetExport(w.store, exportMemory).Memory()
	l := &i.image.layout
	if _, err := w.memory.Grow(w.store, uint64((l.Total-l.Own)/wasm.PageSize)); err != nil {
		return nil, err
	}
	for r, name := range m.globals.exports() {
		if name != "" {
			w.regs[r] = w.inst.GetExport(w.store, name).Global()
		}
	}
	for g, x := range m.wasm.Globals {
		if x.Mutable && !(m.globals.hasStack && uint32(g) == m.globals.stack) {
			w.globals = append(w.globals, w.inst.GetExport(w.store, globalExport(g)).Global())
		}
	}
	for _, g := range slices.Sorted(maps.Values(m.globals.dropped)) {
		w.globals = append(w.globals, w.inst.GetExport(w.store, globalExport(int(g))).Global())
	}
	return w, nil
}

// in copies the shared state into the instance of a context.
func (i *wasmtimeInstance) in(w *wasmtimeContext) {
	copy(w.memory.UnsafeData(w.store), i.mem)
	for k, g := range w.globals {
		if err := g.Set(w.store, i.globals[k]); err != nil {
			panic(err) // the same global of another instance has another type
		}
	}
}

// out copies it back.
func (i *wasmtimeInstance) out(w *wasmtimeContext) {
	copy(i.mem, w.memory.UnsafeData(w.store))
	for k, g := range w.globals {
		i.globals[k] = g.Get(w.store)
	}
}

func (i *wasmtimeInstance) hostFunction(w *wasmtimeContext, op Op) *wasmtime.Func {
	sig := op.signature()
	typ := wasmtime.NewFuncType(wasmtimeTypes(sig.Params), wasmtimeTypes(sig.Results))
	return wasmtime.NewFunc(w.store, typ, func(_ *wasmtime.Caller, vals []wasmtime.Val) ([]wasmtime.Val, *wasmtime.Trap) {
		args := make([]uint64, len(vals))
		for k, v := range vals {
			if v.Kind() == wasmtime.KindI32 {
				args[k] = uint64(uint32(v.I32()))
			} else {
				args[k] = uint64(v.I64())
			}
		}
		i.out(w)
		result := w.c.host(op, args)
		i.in(w)
		switch {
		case len(sig.Results) == 0:
			return nil, nil
		case sig.Results[0] == wasm.I32:
			return []wasmtime.Val{wasmtime.ValI32(int32(uint32(result)))}, nil
		}
		return []wasmtime.Val{wasmtime.ValI64(int64(result))}, nil
	})
}

func wasmtimeTypes(types []wasm.ValueType) []*wasmtime.ValType {
	out := make([]*wasmtime.ValType, len(types))
	for i, t := range types {
		out[i] = wasmtime.NewValType(wasmtime.KindI32)
		if t == wasm.I64 {
			out[i] = wasmtime.NewValType(wasmtime.KindI64)
		}
	}
	return out
}

func (i *wasmtimeInstance) of(c *Context) *wasmtimeContext {
	w := i.contexts[c.index+1]
	if w == nil {
		var err error
		if w, err = i.instantiate(c.index); err != nil {
			panic(fmt.Sprintf("hpu: wasmtime: context %d of program %s: %v", c.index, c.program.owner, err))
		}
	}
	w.c = c
	return w
}

func (i *wasmtimeInstance) memory() []byte { return i.mem }

func (i *wasmtimeInstance) get(c *Context, r reg) uint64 {
	w := i.of(c)
	v := w.regs[r].Get(w.store)
	if r.valueType() == wasm.I64 {
		return uint64(v.I64())
	}
	return uint64(uint32(v.I32()))
}

func (i *wasmtimeInstance) set(c *Context, r reg, v uint64) {
	w := i.of(c)
	if err := w.regs[r].Set(w.store, regValue(r, v)); err != nil {
		panic(err) // the rewriter gives these globals their types
	}
}

func regValue(r reg, v uint64) wasmtime.Val {
	if r.valueType() == wasm.I64 {
		return wasmtime.ValI64(int64(v))
	}
	return wasmtime.ValI32(int32(uint32(v)))
}

func (i *wasmtimeInstance) call(c *Context, fn *export, args, state uint32) (code int32, remaining int64, err error) {
	w := i.of(c)
	i.in(w)
	defer func() {
		if r := recover(); r != nil { // of the device; reported as with wazero
			err = fmt.Errorf("panic in the device: %v", r)
		}
	}()
	params := []any{int32(args), int32(state)}
	for r, v := range c.begin() {
		params = append(params, regValue(reg(r), v))
	}
	v, err := w.inst.GetFunc(w.store, entryOf(fn.index)).Call(w.store, params...)
	i.out(w)
	if err != nil {
		return 0, 0, err
	}
	results := v.([]wasmtime.Val)
	return results[0].I32(), results[1].I64(), nil
}

func (i *wasmtimeInstance) prepare(c *Context, fn uint32) error {
	w := i.of(c)
	_, err := w.inst.GetFunc(w.store, exportOf(fn)).Call(w.store)
	i.out(w)
	return err
}

var wasmtimeTraps = map[wasmtime.TrapCode]TrapKind{
	wasmtime.StackOverflow:          TrapEngine,
	wasmtime.MemoryOutOfBounds:      TrapOutOfBounds,
	wasmtime.TableOutOfBounds:       TrapIndirectCall,
	wasmtime.IndirectCallToNull:     TrapIndirectCall,
	wasmtime.BadSignature:           TrapIndirectCall,
	wasmtime.IntegerOverflow:        TrapIntegerOverflow,
	wasmtime.IntegerDivisionByZero:  TrapDivideByZero,
	wasmtime.BadConversionToInteger: TrapInvalidConversion,
	wasmtime.UnreachableCodeReached: TrapUnreachable,
}

func (i *wasmtimeInstance) fault(err error) (kind TrapKind, fn int) {
	var trap *wasmtime.Trap
	if !errors.As(err, &trap) {
		return TrapNone, -1
	}
	if code := trap.Code(); code != nil {
		kind = wasmtimeTraps[*code]
	}
	for _, f := range trap.Frames() {
		if int(f.FuncIndex()) < i.image.module.wasm.FuncCount() {
			return kind, int(f.FuncIndex())
		}
	}
	return kind, -1
}

func (i *wasmtimeInstance) close() error {
	for _, w := range i.contexts {
		if w != nil {
			w.store.Close()
		}
	}
	return nil
}

// thread is a fiber that is a goroutine: a call from C back into Go cannot be left by switching coroutines.
type thread struct {
	jobs   chan func()
	resume chan struct{}
	back   chan bool // whether the job has ended
	fault  any       // what it panicked with
}

func newThread() *thread {
	t := &thread{jobs: make(chan func()), resume: make(chan struct{}), back: make(chan bool)}
	go func() {
		for job := range t.jobs {
			t.run(job)
		}
	}()
	return t
}

func (t *thread) run(job func()) {
	defer func() {
		t.fault = recover()
		t.back <- true
	}()
	job()
}

func (t *thread) Start(f func()) (done bool) {
	t.jobs <- f
	return t.wait()
}

func (t *thread) Yield() {
	t.back <- false
	<-t.resume
}

func (t *thread) Resume() (done bool) {
	t.resume <- struct{}{}
	return t.wait()
}

func (t *thread) wait() (done bool) {
	done = <-t.back
	if fault := t.fault; done && fault != nil {
		t.fault = nil
		panic(fault) //lint:panic the job's own, passed on to whoever runs it
	}
	return done
}
