package mpirun

import (
	"fmt"

	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
)

// Atomic operations of libfabric (enum fi_op) that Portals has by other names. The
// first ten, and those from opCompare on, have the order that they have there.
const (
	opRead    = 10 // FI_ATOMIC_READ
	opWrite   = 11 // FI_ATOMIC_WRITE
	opCompare = 12 // FI_CSWAP
	opLast    = 18 // FI_MSWAP
)

// datatypes are libfabric's, in their order (enum fi_datatype).
var datatypes = []portals.Datatype{
	portals.Int8, portals.Uint8, portals.Int16, portals.Uint16, portals.Int32, portals.Uint32, portals.Int64, portals.Uint64,
	portals.Float, portals.Double, portals.FloatComplex, portals.DoubleComplex, portals.LongDouble, portals.LongDoubleComplex,
}

// portalsOp returns Portals' operation.
func portalsOp(op uint8) portals.AtomicOp {
	switch {
	case op < opRead:
		return [opRead]portals.AtomicOp{
			portals.OpMIN, portals.OpMAX, portals.OpSUM, portals.OpPROD, portals.OpLOR, portals.OpLAND, portals.OpBOR, portals.OpBAND,
			portals.OpLXOR, portals.OpBXOR,
		}[op]
	case op < opCompare:
		return portals.OpSWAP
	}
	return portals.OpCSWAP + portals.AtomicOp(op-opCompare)
}

// legal reports whether an atomic operation is one that the provider offers.
func (p *post) legal() bool {
	if int(p.kindOf) >= len(datatypes) || p.op > opLast || (p.op >= opCompare) != (p.kind == postCompare) || p.op == opRead && p.kind != postFetch {
		return false
	}
	t := datatypes[p.kindOf]
	return p.length > 0 && p.length%uint64(t.Size()) == 0 && (p.op == opRead || portals.Legal(portalsOp(p.op), t))
}

// combine posts the parts of an atomic operation. Each element is atomic.
func (o *onesided) combine(n int) error {
	a := o.list[n]
	t, limits := datatypes[a.kindOf], o.ni.Objects().Limits()
	most := limits.MaxFetchAtomicSize
	if a.kind == postAtomic && a.op != opWrite {
		most = limits.MaxAtomicSize
	}
	size := uint64(t.Size())
	if a.kind == postCompare {
		most = size
	}
	if most -= most % size; most == 0 {
		return fmt.Errorf("an atomic operation on elements of %d B, the interface has them up to %d B", size, limits.MaxFetchAtomicSize)
	}
	result, err := o.results(n)
	if err != nil {
		return err
	}
	var operands []byte
	if a.kind == postCompare {
		operands = make([]byte, a.length)
		if err := o.k.read(a.compare, operands); err != nil {
			return err
		}
	}
	for at := uint64(0); at < a.length; at += most {
		o.list[n].left++
		if err := o.part(n, result, at, min(most, a.length-at), operands); err != nil {
			return err
		}
	}
	return nil
}

// results returns the memory for the result of an atomic operation.
func (o *onesided) results(n int) (runtime.View, error) {
	a := &o.list[n]
	if a.kind == postAtomic {
		return o.fetched, nil
	}
	v, err := o.k.memory.view(a.result, a.length)
	if err == nil {
		_, err = o.k.memory.sync(v, true)
	}
	return v, err
}

// part posts a part of an atomic operation.
func (o *onesided) part(n int, result runtime.View, at, length uint64, operands []byte) error {
	a := &o.list[n]
	bits, offset := o.where(a)
	target, t, user := portals.RankID(uint32(a.peer)), datatypes[a.kindOf], uint64(n)
	switch {
	case a.op == opRead:
		return o.ni.Get(portals.Get{
			MD: o.md, Offset: result.Addr() + at, Length: length, Target: target, PT: onesidedPT, MatchBits: bits, RemoteOffset: offset + at, UserPtr: user,
		})
	case a.op >= opWrite:
		swap := portals.Swap{
			GetMD: o.md, GetOffset: result.Addr() + at, MD: o.md, Offset: a.view.Addr() + at, Length: length, Target: target, PT: onesidedPT,
			MatchBits: bits, RemoteOffset: offset + at, UserPtr: user, Op: portalsOp(a.op), Type: t,
		}
		if operands != nil {
			swap.Operand = operands[at : at+length]
		}
		return o.ni.Swap(swap)
	case a.kind == postAtomic:
		return o.ni.Atomic(portals.Atomic{
			MD: o.md, Offset: a.view.Addr() + at, Length: length, Ack: portals.Ack, Target: target, PT: onesidedPT, MatchBits: bits,
			RemoteOffset: offset + at, UserPtr: user, Op: portalsOp(a.op), Type: t,
		})
	}
	return o.ni.FetchAtomic(portals.FetchAtomic{
		GetMD: o.md, GetOffset: result.Addr() + at, MD: o.md, Offset: a.view.Addr() + at, Length: length, Target: target, PT: onesidedPT,
		MatchBits: bits, RemoteOffset: offset + at, UserPtr: user, Op: portalsOp(a.op), Type: t,
	})
}
