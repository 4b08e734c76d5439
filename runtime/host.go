package runtime

import (
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/sim"
)

// compute occupies the process's core for d.
func (p *Proc) compute(d sim.Time, what string) { p.thread.Run(d, what) }

// Compute occupies the process's core for d, at least 0.
func (p *Proc) Compute(d sim.Time) { p.compute(d, "compute") }

// Look is Compute of a look at memory that others write to: whether something
// has come. Timelines and breakdowns call it that.
func (p *Proc) Look(d sim.Time) { p.compute(d, "poll") }

// Owe is Compute of what the process does at once with what it next occupies
// its core for, and returns before (host.Thread.Owe). Until then the program
// may neither look at what others change, nor change what others see, nor ask
// for the time.
func (p *Proc) Owe(d sim.Time) { p.thread.Owe(d, "compute") }

// stream occupies the core while it reads and writes bytes in sequence (host.Thread.Stream).
func (p *Proc) stream(bytes int64, what string) { p.node.Stream(&p.thread, bytes, what) }

// Stream occupies a thread of the node, which need not be a process's, while it
// reads and writes bytes in sequence (host.Thread.Stream).
func (n *Node) Stream(t *host.Thread, bytes int64, what string) {
	t.Stream(bytes, &n.memory, &n.cluster.profile.Host, what)
	n.moved += bytes
}

// Stream occupies the core while it reads and writes the given numbers of bytes
// of host memory, for work whose content the program computes itself.
func (p *Proc) Stream(read, written int64) { p.stream(read+written, "stream") }

// Copy moves the bytes of src to dst as far as they go, on the process's core:
// n bytes read, n written.
func (p *Proc) Copy(dst, src View) {
	n := min(dst.Len(), src.Len())
	to, from := dst.Slice(0, n).WriteFrom(src.Slice(0, n))
	copy(to, from)
	p.stream(2*int64(n), "copy")
}

// CopyAt is Copy of n bytes at addresses of the process. It is an error if they are not its own.
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
