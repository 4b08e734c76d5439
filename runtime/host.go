package runtime

import (
	"github.com/spinsim/spinsim/host"
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
	t.Stream(bytes, &n.memory, &n.cluster.profile.Host, what)
	n.moved += bytes
}

// Stream occupies the core while it reads and writes the given numbers of bytes
// of host memory. It is for work whose content the program computes itself.
func (p *Proc) Stream(read, written int64) { p.node.Stream(&p.thread, read+written, "stream") }

// Copy copies src to dst on the process's core, up to the shorter length n: n
// bytes read, n written.
func (p *Proc) Copy(dst, src View) {
	n := min(dst.Len(), src.Len())
	to, from := dst.Slice(0, n).WriteFrom(src.Slice(0, n))
	copy(to, from)
	p.node.Stream(&p.thread, 2*int64(n), "copy")
}

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
