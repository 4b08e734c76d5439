package collective

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/goal"
	"github.com/spinsim/spinsim/internal/fields"
)

// IsGenerated reports whether a name is one of a collective and its algorithm, such
// as allreduce=ring.
func IsGenerated(name string) bool { return strings.Contains(name, "=") }

// Generate makes the schedule of one collective, KIND=ALGORITHM as for a swap,
// of all ranks. Size is what a member contributes.
func Generate(name string, p goal.GenParams) (*goal.Schedule, error) {
	if _, err := Operations(name, p); err != nil {
		return nil, err
	}
	kind, by, _ := strings.Cut(name, "=")
	b := goal.NewBuilder()
	for r := range p.Ranks {
		b.Rank(r)
		b.Begin(goal.Collective{Name: kind, Kind: goal.CollectiveKind(kind), Bytes: p.Size, Root: p.Root})
		b.Calc(0)
	}
	s, err := b.Schedule()
	if err != nil {
		return nil, err
	}
	return Swap(s, []string{by})
}

// Rooted reports whether Generate takes a root for a name.
func Rooted(name string) bool {
	kind, _, _ := strings.Cut(name, "=")
	return goal.CollectiveKind(kind).Rooted()
}

// Operations returns about how many operations Generate makes, or its error.
func Operations(name string, p goal.GenParams) (int, error) {
	word, by, _ := strings.Cut(name, "=")
	kind := goal.CollectiveKind(word)
	if !slices.Contains(Kinds(), kind) {
		var names []string
		for _, k := range Kinds() {
			names = append(names, string(k))
		}
		return 0, fmt.Errorf("%s: expected one of %s before =", name, strings.Join(names, ", "))
	}
	o, err := Parse(by)
	switch a := find(o.Algorithm); {
	case err != nil:
		return 0, fmt.Errorf("%s: %w", name, err)
	case a.by[kind] == nil:
		return 0, fmt.Errorf("%s: no algorithm %s for %s, there are: %s", name, o.Algorithm, kind, strings.Join(For(kind), ", "))
	case p.Root < 0 || p.Root >= p.Ranks:
		return 0, &fields.Wrong{Package: "goal", Option: "root", Err: fmt.Errorf("%d, expected 0 to %d, a rank", p.Root, p.Ranks-1)}
	case p.Ranks < 2:
		return p.Ranks, nil
	default:
		most := 0
		for _, me := range []int{0, p.Ranks / 2, p.Ranks - 1} {
			m := member{Options: &o, n: p.Ranks, me: me, root: p.Root, bytes: p.Size, threads: 1, most: goal.MaxGenerated / p.Ranks}
			if a.by[kind](&m); m.err != nil {
				return 0, fmt.Errorf("%s on %d ranks: %w", name, p.Ranks, tooLarge(m.err))
			}
			most = max(most, len(m.steps))
		}
		return most * p.Ranks, nil
	}
}

// tooLarge is the error of a generator for a member with too many steps.
func tooLarge(err error) error {
	if err == errTooLarge { //nolint:errorlint // it is never wrapped
		return goal.ErrTooLarge
	}
	return err
}
