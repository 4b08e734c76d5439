package goal

import "fmt"

// Part is an operation that Replace puts in place of others.
type Part struct {
	Op Op
	// After are the parts before it in the list that it requires.
	After []int
}

// Replace makes a schedule in which collectives have other operations. parts
// returns those of a member in place of its own, for a collective by its number
// in Collectives. false: it keeps its own.
//
// The first new operations wait for all that any old one required, and what
// required any old one waits for the last new ones. Where several meet several, a
// computation of no length is between them, as it is where there is no new
// operation.
func (s *Schedule) Replace(parts func(collective, rank int) (list []Part, replaced bool)) (*Schedule, error) {
	b := NewBuilder()
	b.s.names = s.names
	for rank, v := range s.All() {
		b.Rank(rank)
		r := replacer{s: s, b: b, v: v, of: make([]*block, v.Len()), at: make([]int, v.Len())}
		r.find(rank, parts)
		if err := r.around(rank); err != nil {
			return nil, err
		}
		r.emit()
		r.depend()
		if b.err != nil {
			return nil, b.err
		}
	}
	return b.Schedule()
}

// block is what replaces the operations of a collective at a rank.
type block struct {
	coll        int
	parts       []Part
	first, last []int // parts that wait for none, and those for which none waits
	// the spots that it waits for, and those that wait for it: how many differ
	before  []waiting
	behind  int
	seen    map[waiting]bool
	waits   map[spot]bool
	in, out []int // the new operations that begin and end it
}

// spot is an old operation that stays, or a block.
type spot struct {
	op int
	in *block
}

// waiting is a spot that is waited for: its end or its start.
type waiting struct {
	spot

	start bool
}

// replacer makes the new operations of a rank.
type replacer struct {
	s  *Schedule
	b  *Builder
	v  Rank
	of []*block // of each old operation; nil: it stays
	at []int    // its new number
}

// find finds the blocks.
func (r *replacer) find(rank int, parts func(collective, rank int) ([]Part, bool)) {
	blocks := make(map[int]*block)
	for i := range r.v.Len() {
		coll := r.v.Collective(i)
		if coll < 0 {
			continue
		}
		k, known := blocks[coll]
		if !known {
			if list, replaced := parts(coll, rank); replaced {
				k = newBlock(coll, list, r.v.Op(i))
			}
			blocks[coll] = k
		}
		r.of[i] = k
	}
}

// newBlock finds out which parts are at the edges. of is an old operation.
func newBlock(coll int, parts []Part, of Op) *block {
	if len(parts) == 0 {
		parts = []Part{{Op: Op{Kind: Calc, CPU: of.CPU}}}
	}
	k := &block{coll: coll, parts: parts, seen: make(map[waiting]bool), waits: make(map[spot]bool)}
	inner := make([]bool, len(parts))
	for i, p := range parts {
		if len(p.After) == 0 {
			k.first = append(k.first, i)
		}
		for _, y := range p.After {
			inner[y] = true
		}
	}
	for i := range parts {
		if !inner[i] {
			k.last = append(k.last, i)
		}
	}
	return k
}

// spot returns what an old operation is now.
func (r *replacer) spot(i int) spot {
	if k := r.of[i]; k != nil {
		return spot{-1, k}
	}
	return spot{i, nil}
}

// around finds what the blocks wait for, and what waits for them.
func (r *replacer) around(rank int) error {
	for y := range r.v.Len() {
		from := r.spot(y)
		for e := r.s.edges(r.v.id(y)); len(e.list) > 0; {
			id, start := e.next()
			to := r.spot(int(id - r.v.at.first))
			if from == to && from.in != nil {
				continue
			}
			if from.in != nil && start {
				return fmt.Errorf("goal: %v: collective %s cannot have other operations: an operation waits for the start of this one", r.s.Ref(rank, y), r.s.colls[from.in.coll].Name)
			}
			if w := (waiting{from, start}); to.in != nil && !to.in.seen[w] {
				to.in.seen[w] = true
				to.in.before = append(to.in.before, w)
			}
			if from.in != nil && !from.in.waits[to] {
				from.in.waits[to] = true
				from.in.behind++
			}
		}
	}
	return nil
}

// emit adds the operations: a block where its first old one was.
func (r *replacer) emit() {
	for i := range r.v.Len() {
		k := r.of[i]
		switch {
		case k == nil:
			r.b.s.coll = 0
			if c := r.v.Collective(i); c >= 0 {
				r.b.Begin(r.s.colls[c])
			}
			label, _ := r.v.s.named(r.v.id(i))
			r.at[i] = r.add(r.v.Op(i), label)
		case k.in == nil:
			r.block(k)
		}
	}
}

func (r *replacer) add(op Op, label []byte) int {
	at := r.b.Add(op)
	if r.b.s.names && r.b.err == nil {
		r.b.s.name(label, 0, 0)
	}
	return at
}

// block adds the operations of a block.
func (r *replacer) block(k *block) {
	r.b.Begin(r.s.colls[k.coll])
	join := Op{Kind: Calc, CPU: k.parts[0].Op.CPU}
	joined := len(k.before) > 1 && len(k.first) > 1
	if joined {
		k.in = []int{r.add(join, nil)}
	}
	at := make([]int, len(k.parts))
	for i, p := range k.parts {
		at[i] = r.add(p.Op, nil)
		for _, y := range p.After {
			r.b.Requires(at[i], at[y])
		}
	}
	for _, i := range k.first {
		if joined {
			r.b.Requires(at[i], k.in[0])
		} else {
			k.in = append(k.in, at[i])
		}
	}
	for _, i := range k.last {
		k.out = append(k.out, at[i])
	}
	if k.behind > 1 && len(k.out) > 1 {
		end := r.add(join, nil)
		for _, y := range k.out {
			r.b.Requires(end, y)
		}
		k.out = []int{end}
	}
	r.b.End()
}

// depend adds the dependencies that are not within a block.
func (r *replacer) depend() {
	done := make(map[*block]bool)
	for y := range r.v.Len() {
		if k := r.of[y]; k != nil && !done[k] {
			done[k] = true
			r.begin(k)
		}
		for e := r.s.edges(r.v.id(y)); len(e.list) > 0; {
			id, start := e.next()
			x := int(id - r.v.at.first)
			from, to := r.of[y], r.of[x]
			switch {
			case to != nil:
			case from == nil:
				r.b.depend(r.at[x], r.at[y], start)
			case from.waits[spot{x, nil}]:
				from.waits[spot{x, nil}] = false // once
				for _, end := range from.out {
					r.b.Requires(r.at[x], end)
				}
			}
		}
	}
}

// begin makes a block wait.
func (r *replacer) begin(k *block) {
	for _, w := range k.before {
		from := []int{r.at[max(w.op, 0)]}
		if w.in != nil {
			from = w.in.out
		}
		for _, x := range k.in {
			for _, y := range from {
				r.b.depend(x, y, w.start)
			}
		}
	}
}
