package collective

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/goal"
)

// machine carries out the steps of all members. For each byte of the vector, or of
// what stands for all vectors, a member knows whose contributions are in it.
type machine struct {
	members []*member
	state   [][]uint64 // sets of members
	met     []uint64   // members that each one has heard of, of a barrier
	mail    map[letter][]uint64
	done    [][]bool
}

type letter struct {
	from, to int
	tag      uint64
}

// membersOf makes the steps of all members.
func membersOf(t *testing.T, kind goal.CollectiveKind, n, root int, size uint64, text string) (list []*member) {
	o, err := Parse(text)
	require.NoError(t, err)
	for me := range n {
		m := &member{Options: &o, n: n, me: me, root: root, bytes: size, threads: 1, most: 1 << 20}
		find(o.Algorithm).by[kind](m)
		require.NoError(t, m.err)
		list = append(list, m)
	}
	return list
}

// contributes reports whether a member has a byte at the beginning.
func contributes(kind goal.CollectiveKind, m *member, at uint64) bool {
	switch kind {
	case goal.AllGather, goal.AllToAll:
		return at/m.bytes == uint64(m.me)
	case goal.Broadcast:
		return m.me == m.root
	}
	return true
}

// want returns whose contributions a member must have in a byte at the end.
func want(kind goal.CollectiveKind, m *member, at uint64) (set uint64, matters bool) {
	all := uint64(1)<<m.n - 1
	mine := piece{0, m.bytes}.part(m.me, m.n)
	switch kind {
	case goal.AllGather:
		return 1 << (at / m.bytes), true
	case goal.AllToAll:
		return 1 << (at / m.bytes), at%m.bytes >= mine.from && at%m.bytes < mine.to
	case goal.Broadcast:
		return 1 << m.root, true
	case goal.Reduce:
		return all, m.me == m.root
	case goal.ReduceScatter:
		return all, at >= mine.from && at < mine.to
	}
	return all, true
}

func start(kind goal.CollectiveKind, members []*member) *machine {
	d := &machine{members: members, mail: make(map[letter][]uint64)}
	for _, m := range members {
		size := m.bytes
		if kind == goal.AllGather || kind == goal.AllToAll {
			size *= uint64(m.n)
		}
		state := make([]uint64, size)
		for at := range state {
			if contributes(kind, m, uint64(at)) {
				state[at] = 1 << m.me
			}
		}
		d.state, d.met = append(d.state, state), append(d.met, 1<<m.me)
		d.done = append(d.done, make([]bool, len(m.steps)))
	}
	return d
}

// step tries to carry out a step.
func (d *machine) step(t *testing.T, me, i int) bool {
	s := &d.members[me].steps[i]
	for _, y := range s.after {
		if !d.done[me][y] {
			return false
		}
	}
	switch at := (letter{me, s.peer, s.tag}); s.kind {
	case goal.Send:
		_, taken := d.mail[at]
		require.False(t, taken, "a tag of two messages")
		data := []uint64{d.met[me]}
		for _, p := range s.data {
			data = append(data, d.state[me][p.from:p.to]...)
		}
		d.mail[at] = data
	case goal.Recv:
		at.from, at.to = s.peer, me
		data, there := d.mail[at]
		if !there {
			return false
		}
		require.Len(t, data, int(length(s.data))+1)
		d.mail[at] = nil // its tag stays taken
		d.met[me] |= data[0]
		data = data[1:]
		for _, p := range s.data {
			for k := p.from; k < p.to; k++ {
				if s.reduce {
					if d.state[me][k]&data[0] != 0 {
						require.Fail(t, "a contribution twice")
					}
					data[0] |= d.state[me][k]
				}
				d.state[me][k], data = data[0], data[1:]
			}
		}
	}
	d.done[me][i] = true
	return true
}

// run carries out everything: sends as early as possible, the rest in any order.
func (d *machine) run(t *testing.T, rng *rand.Rand) {
	open := make([][2][]int, len(d.members)) // of each: sends, and others
	left := 0
	for me, m := range d.members {
		left += len(m.steps)
		for i, s := range m.steps {
			k := min(int(s.kind-goal.Send), 1)
			open[me][k] = append(open[me][k], i)
		}
	}
	try := func(me, k int) bool {
		for at, i := range open[me][k] {
			if d.step(t, me, i) {
				open[me][k] = append(open[me][k][:at], open[me][k][at+1:]...)
				left--
				return true
			}
		}
		return false
	}
	for left > 0 {
		before := left
		for _, me := range rng.Perm(len(open)) {
			for try(me, 0) {
			}
			for range rng.IntN(3) + 1 {
				if try(me, 1) {
					for try(me, 0) {
					}
				}
			}
		}
		require.Less(t, left, before, "steps wait for each other")
	}
	for at, data := range d.mail {
		require.Nil(t, data, "a message without a receive: %v", at)
	}
}

// specs are algorithms of a kind with various options.
func specs(kind goal.CollectiveKind) (list []string) {
	for _, name := range For(kind) {
		list = append(list, name, name+":ll:reduce=0.5")
		if find(name).threads {
			list = append(list, name+":channels=3", name+":chunk=3", name+":slices=2", name+":ll128:channels=2:chunk=4:slices=3:copy=1")
		}
	}
	return list
}

// Each algorithm of each kind, with any options and number of members, gives every
// member the contributions that it must have, each exactly once.
func TestContributions(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 1))
	for _, kind := range Kinds() {
		for _, text := range specs(kind) {
			for _, n := range []int{2, 3, 4, 5, 7, 8, 13, 16} {
				for _, size := range []uint64{1, 48, 61} {
					root := 0
					if kind.Rooted() {
						root = rng.IntN(n)
					}
					d := start(kind, membersOf(t, kind, n, root, size, text))
					d.run(t, rng)
					where := fmt.Sprintf("%s by %s, %d members, %d bytes", kind, text, n, size)
					for me, m := range d.members {
						if kind == goal.Barrier {
							require.Equal(t, n, bits.OnesCount64(d.met[me]), where)
							continue
						}
						for at, set := range d.state[me] {
							if full, matters := want(kind, m, uint64(at)); matters && full != set {
								require.Equal(t, full, set, "%s: byte %d of member %d", where, at, me)
							}
						}
					}
				}
			}
		}
	}
}
