package scenario

import (
	"bytes"
	"errors"
	"fmt"
	"math/big"
	"slices"

	"github.com/spinsim/spinsim/sim"
)

// checkExpectations checks the expectations, except those already found wrong.
func (p *planner) checkExpectations(wrong []string) {
	for i := range p.spec.Expect {
		path := fmt.Sprintf("expect[%d]", i)
		if slices.Contains(wrong, path) {
			continue
		}
		before := len(p.errs)
		p.checkExpectation(&p.spec.Expect[i], path)
		if len(p.errs) == before {
			if err := p.checkAt(&p.spec.Expect[i], nil, p.env); err != nil {
				p.fail(path, "%w", err)
			}
		}
	}
}

// checkExpectation checks the names and forms of an expectation.
func (p *planner) checkExpectation(x *Expectation, path string) {
	switch {
	case x.Memory != nil:
		m := x.Memory
		path += ".memory"
		p.readFile(&m.Equals, path+".equals")
		if m.Equals.kind == contentValues {
			p.fail(path+".equals", "only a state has fields with names")
		}
		if m.Equals.IsSet() == (m.SameAs != nil) {
			p.fail(path, "expected either equals or same_as")
		}
	case x.State != nil:
		path += ".state"
		e := p.entry(x.State.Of)
		switch {
		case e == nil || e.handlers == nil:
			p.fail(path+".of", "there is no entry %s with handlers", x.State.Of)
		default:
			if _, err := e.layout.field(x.State.Field); err != nil {
				p.fail(path+".field", "%w", err)
			}
		}
	case x.Stat != nil:
		path += ".stat"
	case x.Events != nil:
		path += ".events"
	case x.Latency != nil:
		path += ".latency"
	}
	if l, b := x.Latency, x.bounds(); b != nil && len(b.list()) == 0 || l != nil && l.Equals == nil && l.AtLeast == nil && l.AtMost == nil {
		p.fail(path, "expected at least one of equals, at_least, at_most")
	}
}

// bounds returns the limits of a number, nil if the expectation is about
// something else.
func (x *Expectation) bounds() *Bounds {
	switch {
	case x.State != nil:
		return &x.State.Bounds
	case x.Stat != nil:
		return &x.Stat.Bounds
	case x.Events != nil:
		return &x.Events.Bounds
	}
	return nil
}

// checkAt evaluates an expectation without a run. own is the rank of the
// program that contains it, nil at the end of a run.
func (p *planner) checkAt(x *Expectation, own []int, at *env) error {
	ranks, err := p.subjects(x, own, at)
	for _, rank := range ranks {
		if err != nil {
			return err
		}
		at := at.with(varRank, int64(rank))
		switch {
		case x.Memory != nil:
			_, _, _, err = p.compared(x.Memory, rank, at)
		case x.Latency != nil:
			if g := p.programOf[rank]; g == nil || !g.measures[x.Latency.Name] {
				err = fmt.Errorf("latency: the program of rank %d does not measure %s", rank, x.Latency.Name)
			}
		default:
			err = x.bounds().check(at)
		}
	}
	return err
}

// some returns the given ranks, else own, else all.
func (p *Plan) some(given RankSet, own []int, at *env) ([]int, error) {
	switch {
	case given.IsSet():
		return given.list(at)
	case own != nil:
		return own, nil
	}
	all := make([]int, p.ranks)
	for i := range all {
		all[i] = i
	}
	return all, nil
}

// measuring returns the ranks whose measurement is checked.
func (p *Plan) measuring(l *LatencyCheck, own []int, at *env) ([]int, error) {
	if l.Ranks.IsSet() || own != nil {
		return p.some(l.Ranks, own, at)
	}
	var list []int
	for rank, g := range p.programOf {
		if g != nil && g.measures[l.Name] {
			list = append(list, rank)
		}
	}
	if list == nil {
		return nil, fmt.Errorf("latency: no program measures %s", l.Name)
	}
	return list, nil
}

// compared resolves the memory to check and the expected content: bytes, or the
// memory of another place.
func (p *Plan) compared(m *MemoryCheck, rank int, at *env) (got span, want []byte, other placed, err error) {
	size := m.Bytes
	if want, err = m.Equals.make(at, p.stream(rank, m.Of)); err != nil {
		return got, nil, other, fmt.Errorf("equals%w", err)
	}
	if got, err = p.spanOf(rank, m.Of, m.Offset, size, at); err != nil {
		return got, nil, other, err
	}
	if !size.IsSet() && want != nil {
		if int64(len(want)) > got.len {
			return got, nil, other, fmt.Errorf("equals: %d bytes, but %s has %d from the offset", len(want), m.Of, got.len)
		}
		got.len = int64(len(want))
	}
	if m.SameAs == nil {
		want = make([]byte, got.len)
		if err = m.Equals.fill(want, at, p.stream(rank, m.Of)); err != nil {
			err = fmt.Errorf("equals: %w", err)
		}
		return got, want, other, err
	}
	of, err := m.SameAs.Rank.int(at, 0, 0, int64(p.ranks-1))
	if err != nil {
		return got, nil, other, fmt.Errorf("same_as.rank: %w", err)
	}
	other.rank = int(of)
	if other.span, err = p.spanOf(other.rank, m.SameAs.Of, m.SameAs.Offset, Expr{}, at); err == nil && other.len < got.len {
		err = fmt.Errorf("%d bytes from the offset, but %d are compared", other.len, got.len)
	}
	if err != nil {
		return got, nil, other, fmt.Errorf("same_as: %w", err)
	}
	other.len = got.len
	return got, nil, other, nil
}

// placed is a span of a rank's memory.
type placed struct {
	rank int
	span
}

// expect compares actual and expected values, and notes failures.
func (r *run) expect(x *Expectation, path string, own []int, at *env) {
	ranks, err := r.subjects(x, own, at)
	if err != nil {
		r.fail(r.at(path, err))
		return
	}
	for _, rank := range ranks {
		r.checked++
		if err := r.compare(x, rank, at.with(varRank, int64(rank))); err != nil {
			r.fail(r.at(path, fmt.Errorf("rank %d: %w", rank, err)))
		}
	}
}

// subjects returns the ranks that an expectation is about.
func (p *Plan) subjects(x *Expectation, own []int, at *env) ([]int, error) {
	switch {
	case x.Memory != nil:
		return p.holders(x.Memory.Of, x.Memory.Ranks, own, at)
	case x.State != nil:
		return p.holders(x.State.Of, x.State.Ranks, own, at)
	case x.Stat != nil:
		return p.some(x.Stat.Ranks, own, at)
	case x.Events != nil:
		return p.some(x.Events.Ranks, own, at)
	}
	return p.measuring(x.Latency, own, at)
}

// compare checks one rank.
func (r *run) compare(x *Expectation, rank int, at *env) error {
	st := &r.states[rank]
	switch {
	case x.Memory != nil:
		return r.compareMemory(x.Memory, rank, at)
	case x.State != nil:
		in := st.entries[x.State.Of]
		f, err := in.plan.layout.field(x.State.Field)
		if err != nil {
			return err
		}
		state := in.made.HPU.Present()
		what := fmt.Sprintf("%s of %s is %s", f.Name, x.State.Of, f.Text(state))
		v, whole := wholeOf(f.Get(state))
		if !whole {
			return errors.New(what + ", expected a whole number")
		}
		return x.State.holds(v, what, at)
	case x.Stat != nil:
		r.excused[excuse{x.Stat.Name, rank}] = true
		v := stats[indexOf(x.Stat.Name)].count(r, rank)
		return x.Stat.holds(big.NewInt(v), fmt.Sprintf("%s is %d", x.Stat.Name, v), at)
	case x.Events != nil:
		v := r.Nodes[rank].Counted[indexOf(x.Events.Type)]
		return x.Events.holds(big.NewInt(v), fmt.Sprintf("%d events %s", v, x.Events.Type), at)
	}
	return x.Latency.holds(st)
}

// bound is one of the limits of a number.
type bound struct {
	words string
	e     Expr
	wrong func(order int) bool
}

// list returns the limits that are given.
func (b *Bounds) list() []bound {
	return slices.DeleteFunc([]bound{
		{"", b.Equals, func(order int) bool { return order != 0 }},
		{"at least ", b.AtLeast, func(order int) bool { return order < 0 }},
		{"at most ", b.AtMost, func(order int) bool { return order > 0 }},
	}, func(x bound) bool { return !x.e.IsSet() })
}

// check evaluates the limits without a number.
func (b *Bounds) check(at *env) error {
	for _, bound := range b.list() {
		if _, err := bound.e.Value(at.of); err != nil {
			return err
		}
	}
	return nil
}

// holds compares a number with the limits.
func (b *Bounds) holds(v *big.Int, what string, at *env) error {
	for _, bound := range b.list() {
		want, err := bound.e.Value(at.of)
		if err != nil {
			return err
		}
		if bound.wrong(v.Cmp(want)) {
			return fmt.Errorf("%s, expected %s%v", what, bound.words, want)
		}
	}
	return nil
}

// holds compares every sample of a measurement with the bounds.
func (l *LatencyCheck) holds(st *rankState) error {
	m := st.latency(l.Name)
	if m == nil {
		return fmt.Errorf("latency %s was not measured", l.Name)
	}
	for i, v := range m.samples {
		for _, bound := range []struct {
			words string
			t     *sim.Time
			wrong bool
		}{
			{"", l.Equals, l.Equals != nil && v != *l.Equals},
			{"at least ", l.AtLeast, l.AtLeast != nil && v < *l.AtLeast},
			{"at most ", l.AtMost, l.AtMost != nil && v > *l.AtMost},
		} {
			if bound.wrong {
				return fmt.Errorf("sample %d of latency %s is %v, expected %s%v", i, l.Name, v, bound.words, *bound.t)
			}
		}
	}
	return nil
}

func (r *run) compareMemory(m *MemoryCheck, rank int, at *env) error {
	s, want, other, err := r.compared(m, rank, at)
	if err != nil {
		return err
	}
	got := r.states[rank].view(s).Snapshot()
	if m.SameAs != nil {
		want = r.states[other.rank].view(other.span).Snapshot()
	}
	if bytes.Equal(got, want) {
		return nil
	}
	i, wrong := 0, 0
	for k, g := range slices.Backward(got) {
		if g != want[k] {
			i = k
			wrong++
		}
	}
	return fmt.Errorf("%d of %d bytes of %s differ, the first at %d: %#02x, expected %#02x", wrong, len(got), m.Of, s.off+int64(i), got[i], want[i])
}
