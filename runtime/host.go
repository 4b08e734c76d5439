package runtime

import "github.com/spinsim/spinsim/sim"

// compute occupies the process's core for d.
func (p *Proc) compute(d sim.Time, what string) {
	n := p.node
	start, end := n.cores[p.core].Hold(p.sp.Now(), d)
	n.busy += end - start
	n.trace.span(p, what, start, end)
	p.SleepUntil(end)
}

// Compute occupies the process's core for d, at least 0.
func (p *Proc) Compute(d sim.Time) { p.compute(d, "compute") }

// stream occupies the core while it reads and writes bytes in sequence: pieces take the memory controller in turn with other
// cores and, where it shares the memory, with the DMA; a core cannot have more than a few cache lines under way, which
// bounds its rate (host.Spec.StreamTime).
func (p *Proc) stream(bytes int64, what string) {
	n := p.node
	core := &n.cores[p.core]
	start, _ := core.Hold(p.sp.Now(), 0)
	p.SleepUntil(start)
	for left := bytes; left > 0; {
		piece := min(left, int64(n.cluster.profile.Host.CopyChunk))
		left -= piece
		now := p.sp.Now()
		_, memory := n.memory.Reserve(now, piece)
		end := max(memory, now+n.cluster.profile.Host.StreamTime(piece))
		_, end = core.Hold(now, end-now)
		p.SleepUntil(end)
	}
	n.busy += p.sp.Now() - start
	n.moved += bytes
	n.trace.span(p, what, start, p.sp.Now())
}

// Stream occupies the core while it reads and writes the given numbers of bytes of host memory, for work whose content the
// program computes itself.
func (p *Proc) Stream(read, written int64) { p.stream(read+written, "stream") }

// Copy moves the bytes of src to dst as far as they go, on the process's core: n bytes read, n written.
func (p *Proc) Copy(dst, src View) {
	n := min(dst.Len(), src.Len())
	to, from := dst.Slice(0, n).WriteFrom(src.Slice(0, n))
	copy(to, from)
	p.stream(2*int64(n), "copy")
}
