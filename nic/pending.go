package nic

import (
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/portals"
)

// pending is a message whose entry waits for an operation of one of its
// handlers (sPIN'17 §2, the _PENDING codes). The communication event counts the
// bytes of both.
type pending struct {
	port       *portals.Port
	d          *portals.Delivery
	out        portals.Outcome
	held       bool // the message itself has ended
	operations int  // that complete the message and have not ended
}

// unfinish returns the pending state of the message, where operations that
// complete it are counted.
func (in *inbound) unfinish() *pending {
	if !in.opened {
		return &pending{port: in.iface.Port, d: in.d}
	}
	return in.open
}

// messageEnded completes a pending message if its operations have ended.
func (p *pending) messageEnded(out portals.Outcome) {
	p.held = true
	p.out.Delivered += out.Delivered
	if out.Fail != portals.NIOK {
		p.out.Fail = out.Fail
	}
	p.finish()
}

// operationEnded completes a pending message if the message itself has ended
// and this was the last operation.
func (p *pending) operationEnded(bytes uint64, fail portals.FailType) {
	p.operations--
	p.out.Delivered += bytes
	if p.out.Fail == portals.NIOK {
		p.out.Fail = fail
	}
	p.finish()
}

func (p *pending) finish() {
	if p.held && p.operations == 0 {
		p.port.Finish(p.d, p.out)
	}
}

// hostRegion is the host memory that handlers of a message reach as space; nil:
// there is no such space.
func (in *inbound) hostRegion(space uint32) *portals.Region {
	switch space {
	case meHostMem:
		return in.d.Region()
	case handlerHostMem:
		return &in.d.Spin.HostMem
	}
	return nil
}

// The spaces of host memory (docs/abi.md).
const (
	meHostMem      = 0
	handlerHostMem = 1
	granted        = 2 // the first space that other processes have granted
	maxGrants      = int(hpu.TellFaults) - granted
)

// hostMemory is hostRegion, or memory that another process has granted
// (Memory.Grant). It also returns the owner's address space.
func (in *inbound) hostMemory(space uint32) (*portals.Region, *host.AddressSpace) {
	if space < granted {
		return in.hostRegion(space), in.iface.Space
	}
	if grants := in.handlers.memory.grants; space-granted < uint32(len(grants)) {
		if g := &grants[space-granted]; g.space != nil {
			return &g.region, g.space
		}
	}
	return nil, nil
}

// hostRange appends the pieces of host memory for n bytes at offset of a
// region. It reports whether all of them exist.
func hostRange(pieces [][]byte, memory *host.AddressSpace, region *portals.Region, offset, n uint64) (_ [][]byte, ok bool) {
	if offset > region.Length || n > region.Length-offset {
		return pieces, false
	}
	covered := uint64(0) // less than n if the region claims to be longer than its vectors
	it := region.Segments(offset, n)
	for addr, k, more := it.Next(); more; addr, k, more = it.Next() {
		b, ok := memory.Bytes(addr, k)
		if !ok {
			return pieces, false
		}
		pieces = append(pieces, b)
		covered += k
	}
	return pieces, covered == n
}
