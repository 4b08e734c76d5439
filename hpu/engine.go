package hpu

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Engine compiles modules. It, its images and its programs belong to one
// goroutine at a time.
type Engine interface {
	// Name returns "wazero" or "wasmtime".
	Name() string
	// Compile prepares a module for execution with hpuMemory bytes of HPU
	// memory per program. All engines of the process share machine code, for
	// any size of the HPU memory. The error names the module and the limit that
	// it exceeds.
	Compile(m *Module, hpuMemory uint32) (Image, error)
	// Close closes all programs and gives back their memory, which must not be
	// used after that.
	Close() error
}

// Image is a compiled module with a memory map, ready to be instantiated.
type Image interface {
	// Module returns the compiled module.
	Module() *Module
	// Layout returns the memory map of the programs.
	Layout() Layout
	// Instantiate makes a program for an owner and runs the start function and
	// _initialize. The owner is a name for messages. dev carries out the
	// requests of the program's handlers. The error is a *Trap if the module's
	// own code failed.
	Instantiate(owner string, dev Device) (*Program, error)
	// Close closes the programs made from the image and releases the image.
	Close() error
}

// NewEngine returns the engine with a name: "wazero", or "wasmtime" in programs
// built by scripts/with-wasmtime.sh.
func NewEngine(name string) (Engine, error) {
	switch name {
	case "wazero":
		return newWazeroEngine()
	case "wasmtime":
		return newSecondEngine(name)
	}
	return nil, fmt.Errorf("no wasm engine %q, expected wazero or wasmtime", name)
}

// reg is a global variable of a rewritten module.
type reg uint8

const (
	regRemaining reg = iota
	regStack
	regLimit
	regDepth
	regHPU
	// Of the memories (memory.go). They are set from outside, because few
	// devices have them.
	regOuter // end of the addresses outside contexts
	regOwn   // scratchpad of the handler's cluster
	regOwnBytes
	regPads // scratchpads of all clusters
	regPadsBytes
	numRegs
)

const (
	numEntered   = regOuter // registers that are parameters of an entry
	numLevelRegs = uint32(numRegs - regOuter)
)

// registers are the parameters of an entry.
type registers [numEntered]uint64

// instance is the engine's part of a program.
type instance interface {
	// call runs a handler in c with the registers c.begin. Without an error it
	// also returns the rest of regRemaining.
	call(c *Context, fn *export, args, state uint32) (code int32, remaining int64, err error)
	// initialize brings memory and globals into the state in which the module's
	// own initialisation leaves them: p.initialize.
	initialize(p *Program) *Trap
	// prepare runs an exported function without parameters in c.
	prepare(c *Context, fn uint32) error
	get(c *Context, r reg) uint64
	set(c *Context, r reg, v uint64)
	// fault translates an error of call. kind is TrapNone if the engine does
	// not know the cause. stack is the module's functions that were running,
	// innermost first.
	fault(err error) (kind TrapKind, stack []level)
	// close gives back the instance and the memory of its program, unless that
	// is nil.
	close(mem []byte) error
}

// level is a function that was running. at is the place of its present
// instruction in the contents of the rewritten module's code section; -1:
// unknown.
type level struct{ fn, at int }

// initCycles bounds the start function and _initialize. They take no simulated
// time, but a broken module must not stop the simulator.
const initCycles = 1 << 24

// Program is an instance of a module with its memory, as PtlHPUAllocMem gives
// it out. Several match entries may share it.
type Program struct {
	// Fields for each call of a handler, in two cache lines. The first line
	// also has the fields for the handler's suspension and end.
	running *Context // the context whose handler is executing now
	module  *Module
	inst    instance
	mem     []byte // nil: it is in store, or the program is closed
	place   int32  // in the list of its image
	seat    int32  // in residents.seats, from 1; 0: none

	workers  *workers
	dev      Device
	contexts []*Context
	image    *image
	closed   bool
	stored   uint8 // how many times its memory was

	owner string
	store []byte // see residents
}

// newProgram makes a program and runs the module's code that must run before
// the first handler.
func newProgram(owner string, img *image, dev Device, inst instance, mem []byte) (*Program, error) {
	p := &Program{owner: owner, image: img, module: img.module, dev: dev, inst: inst, workers: img.workers, mem: mem}
	if trap := inst.initialize(p); trap != nil {
		return nil, trap
	}
	return p, nil
}

// initialize runs the start function and _initialize. Nothing that they can see
// differs between the programs of an image.
func (p *Program) initialize() *Trap {
	s := &p.module.spec
	c := &Context{program: p, index: -1, of: int32(s.Cores * s.Contexts), clusters: int32(s.clusters())}
	for _, fn := range p.module.prepare {
		if trap := c.prepare(fn); trap != nil {
			return trap
		}
	}
	return nil
}

// image is the part that the images of all engines share.
type image struct {
	module   *Module
	layout   Layout
	workers  *workers
	instance func() (inst instance, mem []byte, err error) // makes one, with a memory
	release  func() error                                  // gives back what it is made from
	programs programs
	residents
	closed bool
}

func (img *image) Module() *Module { return img.module }
func (img *image) Layout() Layout  { return img.layout }

func (img *image) Instantiate(owner string, dev Device) (*Program, error) {
	if img.closed {
		return nil, ErrClosed
	}
	inst, mem, err := img.instance()
	if err != nil {
		return nil, fmt.Errorf("module %s, program %s: %w", img.module.name, owner, err)
	}
	p, err := newProgram(owner, img, dev, inst, mem)
	if err != nil {
		return nil, errors.Join(err, inst.close(mem))
	}
	img.programs.add(p)
	img.residents.add(p)
	return p, nil
}

func (img *image) Close() error {
	if img.closed {
		return nil
	}
	img.closed = true
	return errors.Join(img.programs.close(), img.release())
}

type programs []*Program

func (ps *programs) add(p *Program) {
	p.place = int32(len(*ps))
	*ps = append(*ps, p)
}

func (ps *programs) remove(p *Program) {
	last := len(*ps) - 1
	(*ps)[p.place] = (*ps)[last]
	(*ps)[p.place].place = p.place
	(*ps)[last] = nil
	*ps = (*ps)[:last]
}

// close closes all programs, the youngest first.
func (ps *programs) close() error {
	var errs []error
	for len(*ps) > 0 {
		errs = append(errs, (*ps)[len(*ps)-1].Close())
	}
	return errors.Join(errs...)
}

// Owner returns the name given to Instantiate.
func (p *Program) Owner() string { return p.owner }

// Image returns the image that the program was made from.
func (p *Program) Image() Image { return p.image }

// Module returns the module of the program.
func (p *Program) Module() *Module { return p.module }

// Layout returns the memory map.
func (p *Program) Layout() Layout { return p.image.layout }

// Memory returns the whole linear memory. It does not move until Close.
func (p *Program) Memory() []byte {
	mem := p.Present()
	p.image.residents.remove(p)
	return mem
}

// Present returns the linear memory for use at once: it is valid until the
// caller uses another program or leaves its event.
func (p *Program) Present() []byte {
	if p.mem == nil {
		p.admit()
	}
	return p.mem
}

// Word returns the 32 bits at an address, which must lie within the memory.
func (p *Program) Word(addr uint32) uint32 { return binary.LittleEndian.Uint32(p.Present()[addr:]) }

// HPUMemory returns the address and the size in bytes of the HPU memory that
// the host allocated.
func (p *Program) HPUMemory() (addr, size uint32) { return p.image.layout.HPU, p.image.layout.HPUBytes }

// Context returns context i, from 0. The contexts of the HPUs come first:
// context i belongs to HPU i/Spec.Contexts. The contexts of Spec.Others follow.
func (p *Program) Context(i int) *Context {
	if p.contexts == nil {
		p.contexts = make([]*Context, p.image.layout.Contexts)
	}
	c := p.contexts[i]
	if c == nil {
		c = p.newContext(i)
		p.contexts[i] = c
	}
	return c
}

func (p *Program) newContext(i int) *Context {
	l := &p.image.layout
	unit, of, number := p.module.spec.unit(i)
	cluster, clusters := p.module.spec.cluster(i)
	c := p.workers.context()
	*c = Context{
		program: p, index: int32(i), record: l.Args(i), limit: l.StackLimit(i), top: l.StackTop(i),
		number: int32(number), unit: int32(unit), of: int32(of), cluster: int32(cluster), clusters: int32(clusters),
	}
	return c
}

// Close kills suspended handlers and gives the memory back. A second call does
// nothing.
func (p *Program) Close() error {
	if p.closed {
		return nil
	}
	if p.running != nil {
		panic("hpu: Program.Close while a handler is executing")
	}
	for _, c := range p.contexts {
		if c != nil && c.status == Blocked {
			c.Kill()
		}
	}
	mem := p.mem
	p.image.residents.remove(p)
	p.closed, p.mem, p.store = true, nil, nil
	p.image.programs.remove(p)
	return p.inst.close(mem)
}
