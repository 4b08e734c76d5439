package runtime

import "fmt"

// check holds the books of the node against each other. A difference is a bug of this package.
func (n *Node) check() {
	p := &n.hpus
	wrong := func(format string, args ...any) {
		panic("runtime: rank " + fmt.Sprint(n.rank) + " at " + n.now().String() + ": " + fmt.Sprintf(format, args...)) //lint:panic a bug
	}
	if p.buffered < 0 || p.buffered > int64(n.profile.NIC.PacketBuffer) {
		wrong("%d bytes buffered of %d", p.buffered, n.profile.NIC.PacketBuffer)
	}
	if p.dmaBytes < 0 || p.dmaWaits.len() > 0 && p.dmaFits(n, p.dmaWaits.front()) {
		wrong("%d bytes of DMA are on their way of %d, %d operations wait for room", p.dmaBytes, n.profile.HPU.DMABytes, p.dmaWaits.len())
	}
	if n.hpuMemory < 0 || n.hpuMemory > int64(n.profile.HPU.NodeMemory) {
		wrong("programs have %d bytes of %d", n.hpuMemory, n.profile.HPU.NodeMemory)
	}
	if p.promised < 0 || n.tx.device < 0 {
		wrong("%d puts promised, %d packets from HPU memory in the egress", p.promised, n.tx.device)
	}
	for i := range p.cores {
		c := &p.cores[i]
		active := 0
		for k := range p.perCore {
			if p.runs[i*p.perCore+k].active {
				active++
			}
		}
		switch {
		case active != c.active:
			wrong("HPU %d has %d contexts in use, counted %d", i, active, c.active)
		case c.running && active == 0:
			wrong("HPU %d runs without a handler", i)
		case !c.running && c.resume.len() > 0:
			wrong("HPU %d is idle while %d handlers can go on", i, c.resume.len())
		case !c.running && active < p.perCore && p.tasks.len() > 0:
			wrong("HPU %d is idle while %d handlers wait", i, p.tasks.len())
		}
	}
	for _, ni := range n.nis {
		if k := ni.QueuedOps(); k > 0 {
			wrong("%d operations were not sent", k)
		}
	}
}
