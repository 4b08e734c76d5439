package scenario

import (
	"errors"
	"fmt"

	"github.com/spinsim/spinsim/portals"
)

// posting is an operation with all numbers evaluated, for each of its targets.
type posting struct {
	to      []address
	src     span // put, atomic
	fill    *Content
	dst     span // get, fetching atomic
	fetches bool
	ack     portals.AckReq
	hdr     uint64
	operand []byte
	op      portals.AtomicOp
	typ     portals.Datatype
}

// target returns where the operation of a step goes, nil if it has none.
func (s *Step) target() *Target {
	switch {
	case s.Put != nil:
		return &s.Put.Target
	case s.Get != nil:
		return &s.Get.Target
	case s.Atomic != nil:
		return &s.Atomic.Target
	}
	return nil
}

// posting evaluates the operation of a step.
func (p *Plan) posting(rank int, path string, s *Step, at *env) (g posting, err error) {
	if g.to, err = p.addresses(s.target(), at); err != nil {
		return g, err
	}
	switch {
	case s.Put != nil:
		return p.put(g, rank, path, s.Put, at)
	case s.Get != nil:
		return p.get(g, rank, path, s.Get, at)
	}
	return p.atomic(g, rank, path, s.Atomic, at)
}

func (p *Plan) put(g posting, rank int, path string, x *Put, at *env) (_ posting, err error) {
	g.ack, g.fill = portals.AckReq(indexOf(x.Ack)), &x.Fill
	if g.src, err = p.operand(rank, path, x.From, x.Offset, x.Bytes, &x.Fill, at); err != nil {
		return g, err
	}
	if most := int64(p.profile.Limits.MaxMsgSize); g.src.len > most {
		return g, fmt.Errorf("bytes: %d, the device sends at most %d (limits.max_msg_size)", g.src.len, most)
	}
	if g.hdr, err = x.HdrData.u64(at); err != nil {
		return g, fmt.Errorf("hdr_data: %w", err)
	}
	return g, nil
}

func (p *Plan) get(g posting, rank int, path string, x *Get, at *env) (_ posting, err error) {
	if g.dst, err = p.operand(rank, path, x.Into, x.Offset, x.Bytes, &Content{}, at); err != nil {
		return g, err
	}
	if most := int64(p.profile.Limits.MaxMsgSize); g.dst.len > most {
		return g, fmt.Errorf("bytes: %d, the device fetches at most %d (limits.max_msg_size)", g.dst.len, most)
	}
	return g, nil
}

func (p *Plan) atomic(g posting, rank int, path string, x *Atomic, at *env) (_ posting, err error) {
	g.ack, g.fill = portals.AckReq(indexOf(x.Ack)), &x.Fill
	g.op, g.typ = portals.AtomicOp(indexOf(x.Op)), portals.Datatype(indexOf(x.Type))
	if !portals.Legal(g.op, g.typ) {
		return g, fmt.Errorf("op: %s is not defined on %s", x.Op, x.Type)
	}
	if g.src, err = p.operand(rank, path, x.From, x.Offset, x.Bytes, &x.Fill, at); err != nil {
		return g, err
	}
	limit, name := p.profile.Limits.MaxAtomicSize, "max_atomic_size"
	if x.Into != "" {
		limit, name, g.fetches = p.profile.Limits.MaxFetchAtomicSize, "max_fetch_atomic_size", true
		if g.dst, err = p.spanOf(rank, x.Into, x.IntoOffset, Expr{}, at); err != nil {
			return g, err
		}
		if g.dst.len < g.src.len {
			return g, fmt.Errorf("into: %d bytes from the offset, but %d are fetched", g.dst.len, g.src.len)
		}
		g.dst.len = g.src.len
	}
	size := int64(g.typ.Size())
	if g.src.len%size != 0 || g.src.len > int64(limit) {
		return g, fmt.Errorf("bytes: %d, expected a multiple of %d up to %d (limits.%s)", g.src.len, size, int64(limit), name)
	}
	if g.op >= portals.OpSWAP && !g.fetches {
		return g, fmt.Errorf("into is missing: %s fetches the old value", x.Op)
	}
	if g.fetches && x.Ack != "" && x.Ack != "none" {
		return g, errors.New("ack: a fetching atomic has its reply instead")
	}
	if g.operand, err = x.Operand.make(at, source{}); err != nil {
		return g, fmt.Errorf("operand%w", err)
	}
	if wants := g.op > portals.OpSWAP; wants != (int64(len(g.operand)) == size) || !wants && g.operand != nil {
		return g, fmt.Errorf("operand: %d bytes; conditional swaps and mswap have one element of %s, other operations none", len(g.operand), x.Type)
	}
	if g.op > portals.OpSWAP && g.src.len != size {
		return g, fmt.Errorf("bytes: %d, %s works on one element of %d", g.src.len, x.Op, size)
	}
	if g.hdr, err = x.HdrData.u64(at); err != nil {
		return g, fmt.Errorf("hdr_data: %w", err)
	}
	return g, nil
}

func (p *Plan) copy(rank int, x *Copy, at *env) (from, into span, err error) {
	if from, err = p.spanOf(rank, x.From, x.FromOffset, x.Bytes, at); err != nil {
		return from, into, err
	}
	if into, err = p.spanOf(rank, x.Into, x.IntoOffset, Expr{}, at); err == nil && into.len < from.len {
		err = fmt.Errorf("into: %d bytes from the offset, but %d are copied", into.len, from.len)
	}
	into.len = from.len
	return from, into, err
}

// name returns the name of the measurement in tables.
func (m *Measure) name() string {
	if m.Name != "" {
		return m.Name
	}
	return m.Since
}

// measure returns the rank whose mark begins the interval, and the divisor of
// the time.
func (p *Plan) measure(rank int, m *Measure, at *env) (whose int, divide int64, err error) {
	of, err := m.Rank.int(at, int64(rank), 0, int64(p.ranks-1))
	if err != nil {
		return 0, 0, fmt.Errorf("rank: %w", err)
	}
	if g := p.programOf[of]; g == nil || !g.marks[m.Since] {
		return 0, 0, fmt.Errorf("since: the program of rank %d has no mark %s", of, m.Since)
	}
	divide, err = m.Divide.int(at, 1, 1, maxCount)
	if err != nil {
		return 0, 0, fmt.Errorf("divide: %w", err)
	}
	return int(of), divide, nil
}

// amount returns the awaited amount.
func (w *Wait) amount(at *env) (uint64, error) {
	for _, x := range []struct {
		name string
		n    Expr
	}{{"messages", w.Messages}, {"bytes", w.Bytes}, {"acks", w.Acks}, {"replies", w.Replies}} {
		if x.n.IsSet() {
			n, err := x.n.int(at, 0, 0, 1<<62)
			if err != nil {
				return 0, fmt.Errorf("%s: %w", x.name, err)
			}
			return uint64(n), nil
		}
	}
	return 0, nil
}
