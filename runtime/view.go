package runtime

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"runtime/debug"

	"github.com/spinsim/spinsim/host"
)

// View is a range of a process's memory for its program. Read and Write first
// touch the range: an absent page is brought in, in virtual time. The zero View
// is empty.
type View struct {
	proc *Proc
	addr uint64
	n    int
	data []byte // mapping for the program; nil: the memory has no bytes yet
}

// Alloc returns n zeroed bytes of the process's memory. It panics if n is
// negative. The bytes begin on a page, large ones on a huge page.
func (p *Proc) Alloc(n int) View { return p.AllocAligned(n, 1) }

// AllocAligned is Alloc at an address that is a multiple of align, a power of
// two (posix_memalign).
func (p *Proc) AllocAligned(n, align int) View {
	p.alive()
	v, err := p.View(p.memory.AllocAligned(n, align), n)
	if err != nil {
		panic(err) //lint:panic it was allocated a moment ago
	}
	return v
}

// Adopt makes n bytes that are elsewhere memory of a process, and returns their
// address (host.Adopt).
func Adopt(p *Proc, n uint64, of host.Elsewhere) (addr uint64, err error) {
	p.alive()
	return host.Adopt(p.memory, n, of)
}

// Settle ends what Read and Write have returned, as waiting does. A process with
// adopted memory calls it before that changes by other means.
func Settle(p *Proc) { p.memory.Settle() }

// View returns the n bytes at addr. They must lie within one allocation of the
// process.
func (p *Proc) View(addr uint64, n int) (View, error) {
	b, ok := p.memory.Map(addr, uint64(n))
	if n < 0 || !ok {
		return View{}, fmt.Errorf("runtime: process %s of rank %d has no %d bytes at %#x", p.name, p.Rank(), n, addr)
	}
	return View{p, addr, n, b}, nil
}

// bytes returns the mapping, after a touch.
func (v View) bytes() []byte {
	switch {
	case v.data != nil || v.proc == nil:
		return v.data
	case v.n == 0:
		return []byte{} // nil is what the zero View has
	}
	b, _ := v.proc.memory.Cores(v.addr, uint64(v.n))
	return b
}

// Proc is the process that owns the memory; nil for the zero View.
func (v View) Proc() *Proc { return v.proc }

// Addr is the address of the first byte, for descriptors and entries.
func (v View) Addr() uint64 { return v.addr }

// Len is the number of bytes.
func (v View) Len() int { return v.n }

// Slice returns the bytes from (included) to to (excluded). It panics like a Go
// slice expression.
func (v View) Slice(from, to int) View {
	if v.data == nil {
		if from < 0 || to < from || to > v.n {
			panic(fmt.Sprintf("runtime: slice [%d:%d] of a view of %d bytes", from, to, v.n)) //lint:panic programmer's mistake
		}
		return View{v.proc, v.addr + uint64(from), to - from, nil}
	}
	return View{v.proc, v.addr + uint64(from), to - from, v.data[:v.n:v.n][from:to:to]}
}

// Read returns the bytes for reading. They are valid until the program next
// waits: posts an operation, computes, sleeps, waits for an event, or touches
// an absent page.
func (v View) Read() []byte {
	v.touch(false)
	return v.bytes()
}

// Differs returns the first offset at which the view differs from want, which
// has the same length, or -1. It reads as Parts does.
func (v View) Differs(want []byte) int {
	if len(want) != v.n {
		panic(fmt.Sprintf("runtime: comparison of %d bytes with a view of %d", len(want), v.n)) //lint:panic programmer's mistake
	}
	for at, part := range v.Parts() {
		if bytes.Equal(part, want[at:at+len(part)]) {
			continue
		}
		for i, b := range part {
			if b != want[at+i] {
				return at + i
			}
		}
	}
	return -1
}

// Parts is Read, piece by piece, with the offset of each. It is cheaper for
// memory that a device has written, and that the program does not use.
func (v View) Parts() iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		v.touch(false)
		for at := 0; at < v.n; {
			part := v.data
			if part == nil {
				part, _ = v.proc.memory.Part(v.addr+uint64(at), uint64(v.n-at))
			}
			if !yield(at, part) {
				return
			}
			at += len(part)
		}
	}
}

// Fill is Write, piece by piece: f sets all bytes of each piece, which begins at
// a multiple of 8 in the view. It is cheaper for memory that only a device reads.
func (v View) Fill(f func(at int, piece []byte)) {
	if v.n == 0 { // also the zero View
		return
	}
	v.touch(true)
	mtu := int(v.proc.node.cluster.profile.Fabric.MTU)
	if v.data != nil || mtu < host.PageLeast || mtu%8 != 0 {
		f(0, v.bytes())
		return
	}
	piece := v.proc.node.domain.room(min(mtu, v.n))
	for at := 0; at < v.n; at += len(piece) {
		piece = piece[:min(len(piece), v.n-at)]
		f(at, piece)
		v.proc.memory.Deposit(v.addr+uint64(at), piece)
	}
}

// Touch makes the pages of the view present for the program, which reads or
// writes none of its bytes. It takes the time of page faults.
func (v View) Touch(write bool) { v.touch(write) }

// Discard says that the program does not need the bytes any more. What they are
// then is not defined. It takes no time.
func (v View) Discard() {
	if v.data == nil && v.n > 0 {
		v.proc.memory.Discard(v.addr, uint64(v.n))
	}
}

// Write returns the bytes for writing. Bytes that the program does not write
// keep their values. They are valid as long as the result of Read.
func (v View) Write() []byte {
	v.touch(true)
	return v.bytes()
}

// WriteFrom returns the bytes of v for writing and the bytes of from for
// reading, both valid at once.
func (v View) WriteFrom(from View) (dst, src []byte) {
	v.touchBoth(from)
	return v.bytes(), from.bytes()
}

func (v View) touchBoth(from View) {
	from.touch(false)
	for v.touch(true) && from.touch(false) { // a wait for one may have evicted the other
	}
}

// CopyFrom copies b to the beginning of the view, as much as fits, and returns
// the number of bytes. Only the touch takes time; Proc.Copy also takes the time
// of the copy.
func (v View) CopyFrom(b []byte) int {
	to := v.Slice(0, min(len(b), v.n))
	to.touch(true)
	to.replace(b[:to.n])
	return to.n
}

// replace changes all bytes, after a touch.
func (v View) replace(b []byte) {
	if v.data != nil || v.proc == nil || !host.Replace(v.proc.memory, v.addr, b) {
		copy(v.bytes(), b)
	}
}

// Store writes b to the beginning of the view, on any thread
// (host.AddressSpace.Store). b must fit.
func (v View) Store(t *host.Thread, b []byte) error {
	if len(b) == 0 {
		return nil
	}
	return v.proc.memory.Store(t, v.Slice(0, len(b)).addr, b)
}

// CopyTo copies the beginning of the view to b, up to the shorter length, and
// returns the number of bytes. Only the touch takes time.
func (v View) CopyTo(b []byte) int {
	n := min(len(b), v.n)
	for at, part := range v.Slice(0, n).Parts() {
		copy(b[at:], part)
	}
	return n
}

// Raw returns the bytes for setting up before the process first waits. It takes
// no time, and the pages are present when the program begins. Later Raw panics:
// use Read and Write.
func (v View) Raw() []byte {
	if v.n > 0 {
		v.setUp()
	}
	return v.bytes()
}

// Lock brings the pages in, keeps them in memory, and does not share them with
// children (host.Process.DontFork), as a driver does for memory shared with its
// device. It takes no time. It panics if the process has already waited.
func (v View) Lock() {
	if v.n == 0 {
		return
	}
	v.setUp()
	if v.proc.process != nil {
		err := v.proc.process.Lock(nil, v.addr, uint64(v.n))
		if err == nil {
			err = v.proc.process.DontFork(nil, v.addr, uint64(v.n))
		}
		if err != nil {
			panic(segfault{err}) //lint:panic main turns it into the error of the program
		}
	}
}

// Snapshot returns a copy of the present bytes for an observer outside the
// simulation, such as a test or a report. It takes no time and touches nothing.
// It returns nil for memory that the process has freed or that ended with it
// (host.Process.Exit). It panics after Cluster.Close.
func (v View) Snapshot() []byte {
	if v.n == 0 {
		return nil
	}
	b, ok := v.proc.memory.Observe(v.addr, uint64(v.n))
	if !ok && !v.proc.node.cluster.closed {
		return nil
	}
	if !ok {
		panic(fmt.Sprintf("runtime: Snapshot of memory of process %s of rank %d, whose cluster is closed", v.proc.name, v.proc.Rank())) //lint:panic programmer's mistake
	}
	return b
}

// touch makes the bytes accessible to the program and reports whether it had to
// wait.
func (v View) touch(write bool) (waited bool) {
	if v.n == 0 {
		return false
	}
	p, n := v.proc, uint64(v.n)
	p.alive()
	absent := p.memory.Touch(v.addr, n, write)
	for absent.Count > 0 {
		waited = true
		if err := p.memory.Fault(&p.thread, absent, write); err != nil {
			panic(segfault{err}) //lint:panic main turns it into the error of the program
		}
		absent = p.memory.Touch(v.addr, n, write)
	}
	return waited
}

// setUp makes the bytes, at least 1, accessible without taking time. It panics
// after the process has waited.
func (v View) setUp() {
	p := v.proc
	if p.begun {
		panic(fmt.Sprintf("runtime: Raw in the middle of process %s of rank %d: memory is set up before it first waits", p.name, p.Rank())) //lint:panic programmer's mistake
	}
	v.Present()
}

// Present makes the pages of the view present, as if the program had touched
// them long ago. It takes no time. It is for programs whose own accesses to
// memory are not simulated; others touch their memory.
func (v View) Present() {
	if v.n == 0 {
		return
	}
	p := v.proc
	if err := p.memory.Prepare(v.addr, uint64(v.n)); err != nil {
		panic(segfault{err}) //lint:panic main turns it into the error of the program
	}
}

// alive ends the program if its process no longer has memory.
func (p *Proc) alive() {
	if p.process != nil && p.process.Gone() {
		panic(segfault{fmt.Errorf("runtime: process %s of rank %d uses its memory: %w", p.name, p.Rank(), host.ErrGone)}) //lint:panic main turns it into the error of the program
	}
}

// SettingUp returns an error if the process has already waited. Objects with
// memory that stays must be made before.
func (p *Proc) SettingUp() error {
	if p.begun {
		return fmt.Errorf("runtime: process %s of rank %d has waited already: this is to be opened before it first waits", p.name, p.Rank())
	}
	return nil
}

// segfault ends a program that uses memory it cannot have.
type segfault struct{ error }

// leaves is called whenever the process is about to wait.
func (p *Proc) leaves() {
	p.begun = true
	p.memory.Settle()
}

// main runs the program. If its memory is watched, an access that bypasses the
// views gets a clear error.
func (p *Proc) main(f func(p *Proc) error) (err error) {
	if p.memory.Watched() {
		defer p.explain(debug.SetPanicOnFault(true))
	}
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		wrong, _ := r.(error)
		fault, is := errors.AsType[segfault](wrong) // also out of Deep
		if !is {
			panic(r) //lint:panic a program's mistake goes on
		}
		err = fault.error
	}()
	return f(p)
}

// explain turns a processor fault in the process's memory into a clear message.
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
