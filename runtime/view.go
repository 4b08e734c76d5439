package runtime

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spinsim/spinsim/host"
)

// View is a range of a process's memory as its program reaches it. A program
// reads and writes by Read and Write, which touch the range first: a page that
// is not there is brought in, in virtual time. The zero View is empty.
type View struct {
	proc *Proc
	addr uint64
	data []byte // as programs reach it
}

// Alloc returns n zeroed bytes of the process's memory. n below 0 is a
// programmer's mistake and panics.
func (p *Proc) Alloc(n int) View { return p.AllocAligned(n, 1) }

// AllocAligned is Alloc at an address that is a multiple of align, a power of two (posix_memalign).
// Those of Alloc begin on pages, and large ones on huge pages.
func (p *Proc) AllocAligned(n, align int) View {
	p.alive()
	v, err := p.View(p.memory.AllocAligned(n, align), n)
	if err != nil {
		panic(err) //lint:panic it was allocated a moment ago
	}
	return v
}

// View returns n bytes of the process's memory at an address, which must lie in
// what one Alloc has returned.
func (p *Proc) View(addr uint64, n int) (View, error) {
	b, ok := p.memory.Cores(addr, uint64(n))
	if n < 0 || !ok {
		return View{}, fmt.Errorf("runtime: process %s of rank %d has no %d bytes at %#x", p.name, p.Rank(), n, addr)
	}
	return View{p, addr, b}, nil
}

// Proc is the process whose memory it is; nil for the zero View.
func (v View) Proc() *Proc { return v.proc }

// Addr is the address of the first byte, for descriptors and entries.
func (v View) Addr() uint64 { return v.addr }

// Len is the number of bytes.
func (v View) Len() int { return len(v.data) }

// Slice returns the bytes from a place up to another, like a slice of Go; it panics as that does.
func (v View) Slice(from, to int) View {
	return View{v.proc, v.addr + uint64(from), v.data[:len(v.data):len(v.data)][from:to:to]}
}

// Read returns the bytes for reading. They are valid until the program next
// waits: posts an operation, computes, sleeps, waits for an event or touches
// something that is not there.
func (v View) Read() []byte {
	v.touch(false)
	return v.data
}

// Write returns the bytes for writing; what is not written stays as it was.
// They are valid as long as those of Read.
func (v View) Write() []byte {
	v.touch(true)
	return v.data
}

// WriteFrom returns the bytes of v for writing and those of from for reading, valid together.
func (v View) WriteFrom(from View) (dst, src []byte) {
	from.touch(false)
	for v.touch(true) && from.touch(false) { // whoever had to wait may have lost the other
	}
	return v.data, from.data
}

// CopyFrom writes b to the beginning of the view as far as it fits and returns
// how much that is. It takes no time besides that of the touch; Proc.Copy does.
func (v View) CopyFrom(b []byte) int {
	n := min(len(b), len(v.data))
	return copy(v.Slice(0, n).Write(), b)
}

// Store writes b to the beginning of the view, which is at least as long, on a
// thread that need not be the process's own (host.AddressSpace.Store).
func (v View) Store(t *host.Thread, b []byte) error {
	if len(b) == 0 {
		return nil
	}
	return v.proc.memory.Store(t, v.Slice(0, len(b)).addr, b)
}

// CopyTo reads the beginning of the view into b as far as it goes and returns
// how much that is. It takes no time besides that of the touch.
func (v View) CopyTo(b []byte) int {
	n := min(len(b), len(v.data))
	return copy(b, v.Slice(0, n).Read())
}

// Raw returns the bytes to set them up before the program begins, that is,
// before its process first waits: that takes no time, and the pages are there
// when it begins. Later Raw panics: a program reads and writes by Read and
// Write.
func (v View) Raw() []byte {
	if len(v.data) > 0 {
		v.proc.setUp(v.addr, uint64(len(v.data)))
	}
	return v.data
}

// Lock brings the pages in, keeps them in memory, and from children of the
// process (host.Process.DontFork), as a driver does with what it shares with
// its device. It is for the time before the process first waits, and takes
// none; later it panics.
func (v View) Lock() {
	if len(v.data) == 0 {
		return
	}
	v.proc.setUp(v.addr, uint64(len(v.data)))
	if v.proc.process != nil {
		err := v.proc.process.Lock(nil, v.addr, uint64(len(v.data)))
		if err == nil {
			err = v.proc.process.DontFork(nil, v.addr, uint64(len(v.data)))
		}
		if err != nil {
			panic(segfault{err}) //lint:panic main turns it into the error of the program
		}
	}
}

// Snapshot returns a copy of the bytes as they are at this moment, for an
// observer who is no part of the simulation: an expectation, a report. It takes
// no time and touches nothing. Memory that the process has given back, or that
// has gone with it (host.Process.Exit), has no bytes: nil. After Cluster.Close
// there is nothing to see, and it panics.
func (v View) Snapshot() []byte {
	if len(v.data) == 0 {
		return nil
	}
	b, ok := v.proc.memory.Observe(v.addr, uint64(len(v.data)))
	if !ok && !v.proc.node.cluster.closed {
		return nil
	}
	if !ok {
		panic(fmt.Sprintf("runtime: Snapshot of memory of process %s of rank %d, whose cluster is closed", v.proc.name, v.proc.Rank())) //lint:panic programmer's mistake
	}
	return b
}

// touch makes the bytes ready for the program and reports whether it had to wait for that.
func (v View) touch(write bool) (waited bool) {
	if len(v.data) == 0 {
		return false
	}
	return v.proc.touch(v.addr, uint64(len(v.data)), write)
}

// touch lets the process have n bytes, at least 1.
func (p *Proc) touch(addr, n uint64, write bool) (waited bool) {
	p.alive()
	absent := p.memory.Touch(addr, n, write)
	for absent.Count > 0 {
		waited = true
		if err := p.memory.Fault(&p.thread, absent, write); err != nil {
			panic(segfault{err}) //lint:panic main turns it into the error of the program
		}
		absent = p.memory.Touch(addr, n, write)
	}
	return waited
}

// alive ends the program of a process that has no memory any more.
func (p *Proc) alive() {
	if p.process != nil && p.process.Gone() {
		panic(segfault{fmt.Errorf("runtime: process %s of rank %d uses its memory: %w", p.name, p.Rank(), host.ErrGone)}) //lint:panic main turns it into the error of the program
	}
}

// SettingUp is an error for a process that has begun: what takes memory that
// stays is made before the process first waits.
func (p *Proc) SettingUp() error {
	if p.begun {
		return fmt.Errorf("runtime: process %s of rank %d has waited already: this is to be opened before it first waits", p.name, p.Rank())
	}
	return nil
}

// setUp lets whoever prepares a process or looks at what it has left have n bytes.
func (p *Proc) setUp(addr, n uint64) {
	if p.begun {
		panic(fmt.Sprintf("runtime: Raw in the middle of process %s of rank %d: memory is set up before it first waits", p.name, p.Rank())) //lint:panic programmer's mistake
	}
	if err := p.memory.Prepare(addr, n); err != nil {
		panic(segfault{err}) //lint:panic main turns it into the error of the program
	}
}

// segfault is what a program ends with whose memory the operating system does not give it.
type segfault struct{ error }

// leaves is called whenever the process is about to wait.
func (p *Proc) leaves() {
	p.begun = true
	p.memory.Settle()
}

// main runs the program. Where its memory is watched, what it does behind the
// back of its views says so.
func (p *Proc) main(f func(p *Proc) error) (err error) {
	if p.memory.Watched() {
		defer p.explain(debug.SetPanicOnFault(true))
	}
	defer func() {
		switch r := recover().(type) {
		case nil:
		case segfault:
			err = r.error
		default:
			panic(r) //lint:panic a program's mistake goes on
		}
	}()
	return f(p)
}

// explain turns a fault of the processor in memory of the process into words.
func (p *Proc) explain(onFault bool) {
	debug.SetPanicOnFault(onFault)
	r := recover()
	if r == nil {
		return
	}
	fault, ok := r.(interface {
		runtime.Error
		Addr() uintptr
	})
	if ok {
		if addr, ours := p.memory.Stray(fault.Addr()); ours {
			r = fmt.Sprintf("runtime: process %s of rank %d reaches for %#x in its memory, which it has not touched for that since it last waited", p.name, p.Rank(), addr)
		}
	}
	panic(r) //lint:panic a program's mistake goes on
}
