package fabric

import (
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/spinsim/spinsim/sim"
)

// QFDBs is the number of quad-FPGA daughter boards of an ExaNeSt system: X on a
// mezzanine (blade), Y blades in a group, Z groups (TR-488 §4.1). Each is at
// least 1, and all together have at most [MaxNodes] MPSoCs.
//
// MPSoCs are nodes. Their numbers go first through a board, then through a
// mezzanine, then through the blades of a group: node 4((zY+y)X+x)+f is MPSoC
// F(f+1) of board x of blade y of group z. Names are the report's: M3QBF4 is F4
// of the second board of the third mezzanine.
type QFDBs struct{ X, Y, Z int }

// perBoard is the number of MPSoCs of a QFDB.
const perBoard = 4

// Place is the position of an MPSoC: the coordinates of its board and, from 0,
// its number on it. F 0 is the network MPSoC, F1 in the report.
type Place struct{ X, Y, Z, F int }

// Validate returns an error if there is no such system.
func (q QFDBs) Validate() error {
	boards, legal := 1, true
	for _, d := range q.dims() {
		legal = legal && d >= 1 && d <= MaxNodes
		boards = min(boards*max(1, min(d, MaxNodes)), MaxNodes+1)
	}
	if !legal || boards > MaxNodes/perBoard {
		return fmt.Errorf("%v: want three numbers of QFDBs, each at least 1, with at most %d QFDBs (%d MPSoCs) together", q, MaxNodes/perBoard, MaxNodes)
	}
	return nil
}

// ParseQFDBs reads three numbers such as 4x4x2: boards on a mezzanine,
// mezzanines in a group, groups.
func ParseQFDBs(text string) (QFDBs, error) {
	parts := strings.Split(text, "x")
	var d [3]int
	for i, part := range parts {
		n, err := strconv.Atoi(part)
		if err != nil || len(parts) != len(d) {
			if !errors.Is(err, strconv.ErrRange) || len(parts) != len(d) {
				return QFDBs{}, fmt.Errorf("%q: want three numbers of QFDBs such as 4x4x2: on a mezzanine, mezzanines in a group, groups", text)
			}
			n = MaxNodes + 1
		}
		d[i] = n
	}
	q := QFDBs{d[0], d[1], d[2]}
	return q, q.Validate()
}

// String returns the numbers in the form that ParseQFDBs reads.
func (q QFDBs) String() string { return fmt.Sprintf("%dx%dx%d", q.X, q.Y, q.Z) }

func (q QFDBs) dims() [3]int { return [3]int{q.X, q.Y, q.Z} }

// Boards returns the number of QFDBs.
func (q QFDBs) Boards() int { return q.X * q.Y * q.Z }

// Nodes returns the number of MPSoCs.
func (q QFDBs) Nodes() int { return perBoard * q.Boards() }

// Place returns the position of a node, 0 to Nodes()-1.
func (q QFDBs) Place(node int) Place {
	b := node / perBoard
	return Place{b % q.X, b / q.X % q.Y, b / (q.X * q.Y), node % perBoard}
}

// Node returns the number of the MPSoC at a place of the system.
func (q QFDBs) Node(p Place) int { return perBoard*((p.Z*q.Y+p.Y)*q.X+p.X) + p.F }

// Board returns the name of the board at a place, such as M3QB. Mezzanines
// count from 1 through all groups; boards have letters, with AA after Z.
func (q QFDBs) Board(p Place) string {
	letters := ""
	for n := p.X + 1; n > 0; n = (n - 1) / 26 {
		letters = string(rune('A'+(n-1)%26)) + letters
	}
	return fmt.Sprintf("M%dQ%s", p.Z*q.Y+p.Y+1, letters)
}

// Name returns the name of a node, such as M3QBF4.
func (q QFDBs) Name(node int) string {
	p := q.Place(node)
	return fmt.Sprintf("%sF%d", q.Board(p), p.F+1)
}

// Find returns the node of a name, in capital or small letters.
func (q QFDBs) Find(name string) (node int, err error) {
	wrong := func(format string, args ...any) (int, error) {
		return 0, fmt.Errorf("%q: %s", name, fmt.Sprintf(format, args...))
	}
	rest, is := strings.CutPrefix(strings.ToUpper(name), "M")
	mezzanine, rest, board := strings.Cut(rest, "Q")
	at := strings.LastIndex(rest, "F")
	if !is || !board || at < 1 {
		return wrong("want an MPSoC such as M3QBF4: mezzanine 3, QFDB B, F4")
	}
	m, errM := strconv.ParseUint(mezzanine, 10, 31)
	f, errF := strconv.ParseUint(rest[at+1:], 10, 31)
	x := 0
	for _, c := range rest[:at] {
		if c < 'A' || c > 'Z' {
			return wrong("want letters between Q and F, such as M3QBF4")
		}
		x = min(x*26+int(c-'A')+1, MaxNodes)
	}
	last := Place{q.X - 1, q.Y - 1, q.Z - 1, perBoard - 1}
	switch {
	case errM != nil || m < 1 || int(m) > q.Y*q.Z:
		if q.Y*q.Z == 1 {
			return wrong("want mezzanine M1, the only one of %v", q)
		}
		return wrong("want a mezzanine from M1 to M%d: %v has %d x %d, in a group and groups", q.Y*q.Z, q, q.Y, q.Z)
	case x > q.X:
		return wrong("want a QFDB from QA to %s: %v has %d on a mezzanine", strings.TrimPrefix(q.Board(last), fmt.Sprintf("M%d", q.Y*q.Z)), q, q.X)
	case errF != nil || f < 1 || f > perBoard:
		return wrong("want an MPSoC from F1 to F%d", perBoard)
	}
	return q.Node(Place{x - 1, int(m-1) % q.Y, int(m-1) / q.Y, int(f) - 1}), nil
}

// RouterF is the F of a router in the ends of a [BoardLink].
const RouterF = perBoard

// BoardLink is a link of a network of kind exanest between MPSoCs and routers.
type BoardLink struct {
	From, To Place    // the F of a router is RouterF
	Dim      int      // 0, 1, 2: the ring is in X, Y, Z; -1: the link is inside a board
	Up       bool     // of a ring: towards higher coordinates, or from the last to 0
	Rate     sim.Rate // serialisation
	Wire     sim.Time // propagation
	Switch   sim.Time // traversal of the switch or router at its end

	of     *exanest
	number int
}

// Name returns the name of the link in --links, faults and paths, for example
// M1QAF2->M1QAF1.
func (l *BoardLink) Name() string { return l.of.LinkName(l.number) }

// BoardLinks returns all links between MPSoCs and routers of a valid network of
// kind exanest, without the links of nodes.
func (s *Spec) BoardLinks() iter.Seq[BoardLink] {
	return func(yield func(BoardLink) bool) {
		q, is := s.QFDBs()
		if !is {
			return
		}
		t := newExanest(s, q.Nodes())
		end := func(at int) Place {
			p := t.place(at)
			p.F = at % boardSwitches
			return p
		}
		for i := range q.Boards() * boardLinks {
			l := t.Link(i)
			if l.Node || l.To == nowhere {
				continue
			}
			w := s.wiring(l)
			b := BoardLink{of: t, number: i, From: end(l.From), To: end(l.To), Dim: -1, Rate: w.rate, Wire: w.wire, Switch: w.hop - w.wire}
			if k := i%boardLinks - ringLink; k >= 0 {
				b.Dim, b.Up = k/2, k%2 == 0
			}
			if !yield(b) {
				return
			}
		}
	}
}
