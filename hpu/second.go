package hpu

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"

	"github.com/spinsim/spinsim/hpu/internal/second"
	"github.com/spinsim/spinsim/hpu/internal/wasm"
	"github.com/spinsim/spinsim/internal/memory"
)

// secondEngine checks wazero with an independent runtime. It is slow. Such a
// runtime, for example wasmtime, keeps the state of suspended calls of one
// store on one thread, in the order of the calls. So each context has its own
// instance. Memory and globals are copied whenever control passes between a
// handler and its device.
type secondEngine struct {
	name    string
	runtime second.Runtime
	workers workers
	images  []*secondImage
	closed  bool
}

func newSecondEngine(name string) (Engine, error) {
	open := second.Find(name)
	if open == nil {
		return nil, fmt.Errorf("wasm engine %s: this program was built without it; scripts/with-wasmtime.sh builds it in (needs cgo)", name)
	}
	r, err := open()
	if err != nil {
		return nil, fmt.Errorf("wasm engine %s: %w", name, err)
	}
	return &secondEngine{name: name, runtime: r, workers: workers{fiber: func() fiber { return newThread() }}}, nil
}

func (e *secondEngine) Name() string { return e.name }

func (e *secondEngine) Compile(m *Module, hpuMemory uint32) (Image, error) {
	if e.closed {
		return nil, ErrClosed
	}
	layout, err := m.Layout(hpuMemory)
	if err != nil {
		return nil, err
	}
	code, err := e.runtime.Compile(m.binary)
	if err != nil {
		refused(err, len(m.binary))
		return nil, fmt.Errorf("module %s: %s cannot compile it: %w", m.name, e.name, err)
	}
	img := &secondImage{engine: e, compiled: code}
	img.image = image{
		module: m, layout: layout, workers: &e.workers,
		instance: func() (instance, []byte, error) { return newSecondInstance(img) },
		release:  func() error { code.Close(); return nil },
	}
	e.images = append(e.images, img)
	return &img.image, nil
}

// refused ends the program if the system has refused the runtime n bytes. The
// error is a text in which another language describes the error of the system.
func refused(err error, n int) {
	if strings.Contains(err.Error(), fmt.Sprintf("os error %d", syscall.ENOMEM)) {
		memory.Exhausted(n)
	}
}

func (e *secondEngine) Close() error {
	if e.closed {
		return nil
	}
	e.closed = true
	var errs []error
	for _, img := range e.images {
		errs = append(errs, img.Close())
	}
	e.workers.close()
	e.runtime.Close()
	return errors.Join(errs...)
}

type secondImage struct {
	image
	engine   *secondEngine
	compiled second.Code
}

// secondInstance is the state that the instances of all contexts share.
type secondInstance struct {
	image    *secondImage
	mem      []byte
	globals  []uint64         // the module's own mutable globals, without the shadow stack pointer
	contexts []*secondContext // by index+1: the first runs the module's initialisation
}

// secondContext is the instance of one context.
type secondContext struct {
	c       *Context
	inst    second.Instance
	regs    [numRegs]second.Global
	globals []second.Global
}

// newSecondInstance makes the instance for the module's own initialisation and
// takes memory and globals from it.
func newSecondInstance(img *secondImage) (inst instance, mem []byte, err error) {
	i := &secondInstance{image: img, mem: make([]byte, img.layout.Total), contexts: make([]*secondContext, img.layout.Contexts+1)}
	w, err := i.instantiate(-1)
	if err != nil {
		return nil, nil, errors.Join(err, i.close(i.mem))
	}
	i.globals = make([]uint64, len(w.globals))
	i.out(w)
	return i, i.mem, nil
}

func (i *secondInstance) instantiate(index int) (*secondContext, error) {
	m := i.image.module
	w := &secondContext{}
	imports := make([]second.Import, len(m.ops))
	for k, op := range m.ops {
		imports[k] = second.Import{Type: op.imported(), Call: func(stack []uint64) {
			i.out(w)
			w.c.host(&hostOps[op], stack)
			i.in(w)
		}}
	}
	if m.spec.Watch.tells() {
		imports = append(imports, second.Import{Type: watchType, Call: func(stack []uint64) {
			w.c.watched(uint32(stack[0]), uint32(stack[1]), uint32(stack[2]))
		}})
	}
	var err error
	if w.inst, err = i.image.compiled.Instantiate(imports); err != nil {
		refused(err, int(i.image.layout.Total))
		return nil, err
	}
	i.contexts[index+1] = w
	l := &i.image.layout
	if err := w.inst.Grow(exportMemory, uint64((l.Total-l.Own)/wasm.PageSize)); err != nil {
		refused(err, int(l.Total))
		return nil, err
	}
	for r, name := range m.globals.exports() {
		if name != "" {
			w.regs[r] = w.inst.Global(name)
		}
	}
	for g, x := range m.wasm.Globals {
		if x.Mutable && !(m.globals.hasStack && uint32(g) == m.globals.stack) {
			w.globals = append(w.globals, w.inst.Global(globalExport(g)))
		}
	}
	for _, g := range slices.Sorted(maps.Values(m.globals.dropped)) {
		w.globals = append(w.globals, w.inst.Global(globalExport(int(g))))
	}
	return w, nil
}

// in copies the shared state into the instance of a context.
func (i *secondInstance) in(w *secondContext) {
	copy(w.inst.Memory(exportMemory), i.mem)
	for k, g := range w.globals {
		g.Set(i.globals[k])
	}
}

// out copies the state of the instance back.
func (i *secondInstance) out(w *secondContext) {
	copy(i.mem, w.inst.Memory(exportMemory))
	for k, g := range w.globals {
		i.globals[k] = g.Get()
	}
}

func (i *secondInstance) of(c *Context) *secondContext {
	w := i.contexts[c.index+1]
	if w == nil {
		var err error
		if w, err = i.instantiate(int(c.index)); err != nil {
			panic(fmt.Sprintf("hpu: %s: context %d of program %s: %v", i.image.engine.name, c.index, c.program.owner, err))
		}
	}
	w.c = c
	return w
}

func (i *secondInstance) get(c *Context, r reg) uint64 { return i.of(c).regs[r].Get() }

func (i *secondInstance) set(c *Context, r reg, v uint64) { i.of(c).regs[r].Set(v) }

func (i *secondInstance) call(c *Context, fn *export, args, state uint32) (code int32, remaining int64, err error) {
	w := i.of(c)
	i.in(w)
	defer func() {
		if r := recover(); r != nil { // a panic of the device, reported as with wazero
			err = fmt.Errorf("panic in the device: %v", r)
		}
	}()
	begin := c.begin()
	results, err := w.inst.Call(entryOf(fn.index), append([]uint64{uint64(args), uint64(state)}, begin[:]...)...)
	i.out(w)
	if err != nil {
		return 0, 0, err
	}
	return int32(uint32(results[0])), int64(results[1]), nil
}

func (i *secondInstance) initialize(p *Program) *Trap { return p.initialize() }

func (i *secondInstance) prepare(c *Context, fn uint32) error {
	w := i.of(c)
	_, err := w.inst.Call(exportOf(fn))
	i.out(w)
	return err
}

// secondTraps are the kinds of trap for the faults of runtimes.
var secondTraps = [...]TrapKind{
	second.Unknown:      TrapNone,
	second.Stack:        TrapEngine,
	second.Memory:       TrapOutOfBounds,
	second.Table:        TrapIndirectCall,
	second.Signature:    TrapSignature,
	second.Overflow:     TrapIntegerOverflow,
	second.DivideByZero: TrapDivideByZero,
	second.Conversion:   TrapInvalidConversion,
	second.Unreachable:  TrapUnreachable,
}

func (i *secondInstance) fault(err error) (kind TrapKind, stack []level) {
	fault, frames := i.image.engine.runtime.Fault(err)
	m := i.image.module
	for _, f := range frames {
		if fn := m.originalFunc(f.Func); fn >= 0 {
			stack = append(stack, level{fn, f.Offset - m.codeAt})
		}
	}
	return secondTraps[fault], stack
}

func (i *secondInstance) close([]byte) error {
	for _, w := range i.contexts {
		if w != nil {
			w.inst.Close()
		}
	}
	return nil
}

// thread is a fiber on its own goroutine. A coroutine switch cannot leave a
// call from C back into Go.
type thread struct {
	jobs   chan func()
	resume chan struct{}
	back   chan bool // whether the job has ended
	fault  any       // what the job panicked with
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

func (t *thread) Close() { close(t.jobs) }

func (t *thread) wait() (done bool) {
	done = <-t.back
	if fault := t.fault; done && fault != nil {
		t.fault = nil
		panic(fault) //lint:panic the job's own, passed on to whoever runs it
	}
	return done
}
