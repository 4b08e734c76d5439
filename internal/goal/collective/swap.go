package collective

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/goal"
)

// Chosen is what some collectives are done by.
type Chosen struct {
	// Of is a kind of collectives, or the name of one.
	Of string
	// By is an algorithm, as Parse reads it, or another word.
	By string
}

// Choices reads OF=BY, several with + between. What it returns does not depend on
// the schedule: Pick compares them.
func Choices(text string) (list []Chosen, err error) {
	for one := range strings.SplitSeq(text, "+") {
		of, by, ok := strings.Cut(one, "=")
		if !ok || of == "" || by == "" {
			return nil, fmt.Errorf("%q, expected COLLECTIVE=ALGORITHM, several with + between", one)
		}
		if slices.ContainsFunc(list, func(c Chosen) bool { return c.Of == of }) {
			return nil, fmt.Errorf("%q: %s twice", text, of)
		}
		list = append(list, Chosen{of, by})
	}
	return list, nil
}

// Pick returns what each collective of a schedule is done by; "": by what the
// schedule has. The name of one goes before its kind. A choice that means none is
// an error.
func Pick(s *goal.Schedule, list []Chosen) ([]string, error) {
	by := make([]string, len(s.Collectives()))
	for _, named := range []bool{false, true} {
		for _, c := range list {
			isName := slices.ContainsFunc(s.Collectives(), func(o goal.Collective) bool { return o.Name == c.Of })
			if isName != named {
				continue
			}
			found := false
			for i, o := range s.Collectives() {
				if o.Name == c.Of || !named && string(o.Kind) == c.Of {
					by[i], found = c.By, true
				}
			}
			if !found {
				return nil, fmt.Errorf("%s: the schedule names no such collective, expected one of %s", c.Of, present(s))
			}
		}
	}
	return by, nil
}

// maxPresent bounds how many names an error lists.
const maxPresent = 20

// present lists what can be chosen.
func present(s *goal.Schedule) string {
	var names []string
	for _, c := range s.Collectives() {
		if !slices.Contains(names, string(c.Kind)) {
			names = append(names, string(c.Kind))
		}
	}
	for _, c := range s.Collectives() {
		if !slices.Contains(names, c.Name) { // a name may be a kind
			names = append(names, c.Name)
		}
	}
	switch {
	case len(names) == 0:
		return "none: lines with //coll name them"
	case len(names) > maxPresent:
		names = append(names[:maxPresent], "…")
	}
	return strings.Join(names, ", ")
}

// Call stands for a collective that somebody else does: one computation of no
// length at each member.
const Call = "call"

// Swap makes a schedule in which collectives are done by other algorithms. by has
// one for each, Call, or "" for what is there.
func Swap(s *goal.Schedule, by []string) (*goal.Schedule, error) {
	w := swap{s: s, plans: make([]*plan, len(by)), most: goal.MaxOps}
	for i, c := range s.Collectives() {
		if by[i] == "" {
			continue
		}
		p := &plan{c: c}
		if by[i] != Call {
			o, err := Parse(by[i])
			if err != nil {
				return nil, err
			}
			if p.o, p.make = &o, find(o.Algorithm).by[c.Kind]; p.make == nil {
				return nil, fmt.Errorf("%s: no algorithm %s for %s, there are: %s", c.Name, o.Algorithm, c.Kind, strings.Join(For(c.Kind), ", "))
			}
		}
		w.plans[i] = p
	}
	if err := w.members(); err != nil {
		return nil, err
	}
	if err := w.number(); err != nil {
		return nil, err
	}
	return s.Replace(w.parts)
}

// plan is how a collective is done.
type plan struct {
	c       goal.Collective
	o       *Options
	make    func(*member) // nil: it is a call
	members []int
	tag     uint64 // the first one
}

// place returns the place of a member, which is there.
func (p *plan) place(rank int) int {
	i, _ := slices.BinarySearch(p.members, rank)
	return i
}

// swap makes the parts of members.
type swap struct {
	s     *goal.Schedule
	plans []*plan
	most  int // operations
	lanes map[at]lane
}

// at is a collective at a rank.
type at struct{ coll, rank int }

// lane is where the operations of a collective at a rank were.
type lane struct {
	send, recv goal.Op
	sent, got  bool
}

// members finds the members, and the processors that they use.
func (w *swap) members() error {
	w.lanes = make(map[at]lane)
	for rank, v := range w.s.All() {
		for i := range v.Len() {
			c := v.Collective(i)
			if c < 0 || w.plans[c] == nil {
				if op := v.Op(i); op.Kind == goal.Recv && op.Tag == goal.AnyTag {
					return fmt.Errorf("%v: it would take messages of other collectives: expected a tag", w.s.Ref(rank, i))
				}
				continue
			}
			p, op := w.plans[c], v.Op(i)
			if n := len(p.members); n == 0 || p.members[n-1] != rank {
				p.members = append(p.members, rank)
			}
			l, known := w.lanes[at{c, rank}]
			if !known {
				l.send, l.recv = op, op
			}
			if op.Kind == goal.Send && !l.sent {
				l.send, l.sent = op, true
			}
			if op.Kind == goal.Recv && !l.got {
				l.recv, l.got = op, true
			}
			w.lanes[at{c, rank}] = l
		}
	}
	for _, p := range w.plans {
		if p != nil && p.c.Kind.Rooted() && !slices.Contains(p.members, p.c.Root) {
			return fmt.Errorf("%s: its root, rank %d, is no member: it has no operations of it", p.c.Name, p.c.Root)
		}
	}
	return nil
}

// number gives each collective tags that no other message has.
func (w *swap) number() error {
	need, used := uint64(0), []uint64(nil)
	for i, p := range w.plans {
		if p == nil || p.make == nil {
			continue
		}
		tags := uint64(0)
		for me := range p.members {
			m := w.member(p, me)
			if m.err != nil {
				return fmt.Errorf("%s by %s: %w", p.c.Name, p.o.Algorithm, m.err)
			}
			w.most -= len(m.steps)
			tags = max(tags, m.tags)
		}
		w.plans[i].tag = need
		need += tags
	}
	w.most = goal.MaxOps
	for _, v := range w.s.All() {
		for i := range v.Len() {
			op := v.Op(i)
			if c := v.Collective(i); op.Kind != goal.Calc && (c < 0 || w.plans[c] == nil) && op.Tag != goal.AnyTag {
				used = append(used, op.Tag)
			}
		}
	}
	slices.Sort(used)
	first := uint64(0)
	for _, tag := range slices.Compact(used) {
		if tag-first >= need {
			break
		}
		first = tag + 1
	}
	if need > 0 && first > goal.AnyTag-1-need {
		return fmt.Errorf("no %d tags in a row are free", need)
	}
	for _, p := range w.plans {
		if p != nil {
			p.tag += first
		}
	}
	return nil
}

// member makes the steps of a member.
func (w *swap) member(p *plan, me int) *member {
	m := &member{
		Options: p.o, n: len(p.members), me: me, bytes: p.c.Bytes, threads: 1, most: w.most,
	}
	if p.c.Kind.Rooted() {
		m.root = p.place(p.c.Root)
	}
	if m.n > 1 {
		if hi := p.c.Bytes * uint64(m.n); p.c.Bytes != 0 && hi/p.c.Bytes != uint64(m.n) {
			m.err = fmt.Errorf("%d bytes of %d members are more than 2^64", p.c.Bytes, m.n)
			return m
		}
		p.make(m)
	}
	return m
}

// parts are the operations of a member.
func (w *swap) parts(coll, rank int) (list []goal.Part, replaced bool) {
	p := w.plans[coll]
	if p == nil {
		return nil, false
	}
	if p.make == nil {
		return nil, true
	}
	l := w.lanes[at{coll, rank}]
	m := w.member(p, p.place(rank))
	for _, s := range m.steps {
		op := goal.Op{Kind: s.kind, Size: s.size, CPU: l.recv.CPU}
		if s.kind != goal.Calc {
			from := l.recv
			if s.kind == goal.Send {
				from = l.send
			}
			op.Peer, op.Tag, op.CPU, op.NIC = uint32(p.members[s.peer]), p.tag+s.tag, from.CPU, from.NIC //nolint:gosec // a rank
		}
		list = append(list, goal.Part{Op: op, After: s.after})
	}
	return list, true
}
