package runtime

import (
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/sim"
)

// Compute occupies the process's core for d, at least 0.
func (p *Proc) Compute(d sim.Time) { p.thread.Run(d, "compute") }

// Look is Compute for a look at memory that others write to, for example to
// check whether data has come. Timelines and breakdowns name it "poll".
func (p *Proc) Look(d sim.Time) { p.thread.Run(d, "poll") }

// Owe is Compute that returns at once: the core pays for d together with its
// next work (host.Thread.Owe). Until then the program must not read what others
// change, change what others read, or ask for the time.
func (p *Proc) Owe(d sim.Time) { p.thread.Owe(d, "compute") }

// Stream occupies a thread of the node while it reads and writes bytes
// sequentially (host.Thread.Stream). The thread need not be a process's.
func (n *Node) Stream(t *host.Thread, bytes int64, what string) {
	t.Stream(bytes, &n.host.memory, &n.cluster.profile.Host, what)
	n.moved += bytes
}

// move is Stream for a loop whose addresses are known.
func (n *Node) move(t *host.Thread, s host.Stream, what string) {
	n.host.cpu.Use(used.Known)
	t.Move(s, &n.host.memory, &n.cluster.profile.Host, what)
	n.moved += s.Bytes()
}

// Stream occupies the core while it reads and writes the given numbers of bytes
// of host memory. It is for work whose content the program computes itself, on
// memory that no cache holds. Where it is known use Pass.
func (p *Proc) Stream(read, written int64) { p.node.Stream(&p.thread, read+written, "stream") }

// Pass occupies the core while it reads some memory and writes some, each
// sequentially. Lines that the cache holds take less time (host.Spec.Cache).
// The program itself moves the bytes.
func Pass(p *Proc, written View, read ...View) {
	var s host.Stream
	for _, v := range read {
		v.use(&s)
	}
	written.use(&s)
	p.node.move(&p.thread, s, "stream")
}

// use adds a view to a loop of its process.
func (v View) use(s *host.Stream) {
	if v.n > 0 {
		s.Use(v.proc.node.bus.Cache, v.proc.memory, v.addr, uint64(v.n))
	}
}

// Gather is a loop over pieces that lie apart, such as the elements of an MPI
// vector, and over memory in sequence.
type Gather struct {
	proc   *Proc
	stream host.Stream
	last   uint64 // last line of the piece before, plus 1
}

// NewGather begins a loop of a process. sequence is the memory in sequence; it may be empty.
func NewGather(p *Proc, sequence View) Gather {
	g := Gather{proc: p}
	p.Reads(used.Strided)
	g.stream.Strided()
	sequence.use(&g.stream)
	return g
}

// Piece is the next piece. It costs nothing yet: Run knows the lines of all.
func (g *Gather) Piece(v View) {
	c := g.proc.node.bus.Cache
	if c == nil || v.n == 0 {
		return
	}
	line := uint64(g.proc.node.cluster.profile.Host.LineBytes)
	from, end := v.addr/line, (v.addr+uint64(v.n)-1)/line+1
	if from+1 == g.last { // the piece before has counted it
		from++
	}
	if g.last = end; from < end {
		g.stream.Hold(c, g.proc.memory, from*line, (end-from)*line)
	}
}

// Run occupies the core for the loop. lines is the bytes of all lines that have
// a part of a piece.
func (g *Gather) Run(lines int64) {
	g.stream.Add(lines)
	g.proc.node.move(&g.proc.thread, g.stream, "stream")
}

// Copy copies src to dst on the process's core, up to the shorter length n: n
// bytes read, n written.
func (p *Proc) Copy(dst, src View) {
	n := min(dst.Len(), src.Len())
	to, from := dst.Slice(0, n), src.Slice(0, n)
	to.touchBoth(from)
	own := n > 0 && to.proc == from.proc && from.data == nil
	if !own || !host.Move(to.proc.memory, to.addr, from.addr, uint64(n)) {
		to.replace(from.bytes())
	}
	s := host.Stream{}
	if p.node.bus.Cache == nil {
		s.Add(2 * int64(n))
	} else {
		for at := 0; at < n; at += together {
			end := min(at+together, n)
			src.Slice(at, end).use(&s)
			dst.Slice(at, end).use(&s)
		}
	}
	p.node.move(&p.thread, s, "copy")
}

// together is how much of a copy is read before it is written, as far as the
// cache can tell, in bytes.
const together = 4096

// CopyAt is Copy of n bytes between addresses of the process. It is an error if
// the addresses are not the process's own.
func (p *Proc) CopyAt(to, from, n uint64) error {
	dst, err := p.View(to, int(n))
	if err != nil {
		return err
	}
	src, err := p.View(from, int(n))
	if err != nil {
		return err
	}
	p.Copy(dst, src)
	return nil
}
