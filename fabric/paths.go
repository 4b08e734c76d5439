package fabric

import (
	"fmt"
	"strconv"
	"strings"
)

// Path returns the two nodes of a path. On networks of kind exanest text may be
// a path of TR-488's Table 1,
//
//	intra-fpga        within an MPSoC
//	intra-qfdb        a: between two of a board
//	intra-mezz:N      b, c and d: N links, 1 to 3, one of them to the next board of the mezzanine, the others from and to its network MPSoCs
//	inter-mezz:I,J,K  e: I links between mezzanines, J between boards of one, K in boards, at most one at each end
//
// On any network it may be two nodes such as 0-5, or their names such as
// M1QAF2-M1QBF3 if they have names. On networks of other kinds Path does not
// check whether the nodes exist.
func (s *Spec) Path(text string) (src, dst int, err error) {
	q, boards := s.QFDBs()
	if a, b, is := strings.Cut(text, "-"); is && !strings.HasPrefix(text, "intra-") && !strings.HasPrefix(text, "inter-") {
		if a == "" || b == "" {
			return 0, 0, unknownPath(text)
		}
		if src, err = s.end(q, boards, a); err == nil {
			dst, err = s.end(q, boards, b)
		}
		if err != nil {
			return 0, 0, fmt.Errorf("path %q: %w", text, err)
		}
		return src, dst, nil
	}
	kind, numbers, _ := strings.Cut(text, ":")
	var list []int
	if strings.Contains(text, ":") {
		for part := range strings.SplitSeq(numbers, ",") {
			n, err := strconv.ParseUint(strings.TrimSpace(part), 10, 16)
			if err != nil {
				return 0, 0, unknownPath(text)
			}
			list = append(list, int(n))
		}
	}
	var i, j, k int
	switch {
	case kind == "intra-fpga" && list == nil:
	case kind == "intra-qfdb" && list == nil:
		k = 1
	case kind == "intra-mezz" && len(list) == 1 && list[0] >= 1 && list[0] <= 3:
		j, k = 1, list[0]-1
	case kind == "inter-mezz" && len(list) == 3:
		i, j, k = list[0], list[1], list[2]
	default:
		return 0, 0, unknownPath(text)
	}
	if !boards {
		return 0, 0, fmt.Errorf("path %q: a network of kind %s has no QFDBs, want two nodes such as 0-1", text, s.Kind)
	}
	if src, dst, err = q.Path(i, j, k); err != nil {
		return 0, 0, fmt.Errorf("path %q: %w", text, err)
	}
	return src, dst, nil
}

func unknownPath(text string) error {
	return fmt.Errorf("path %q: want intra-fpga, intra-qfdb, intra-mezz:1 to intra-mezz:3, inter-mezz:I,J,K (links between mezzanines, on them, in boards), or two nodes such as 0-5 or M1QAF2-M3QBF1", text)
}

// end returns a node by its number or name.
func (s *Spec) end(q QFDBs, boards bool, text string) (node int, err error) {
	n, err := strconv.ParseUint(text, 10, 31)
	switch {
	case err == nil && n < MaxNodes && !boards:
		return int(n), nil
	case err == nil && boards && int(n) < q.Nodes():
		return int(n), nil
	case boards && err != nil:
		return q.Find(text)
	case boards:
		return 0, fmt.Errorf("want a node from 0 to %d, got %s", q.Nodes()-1, text)
	}
	if err != nil && strings.HasPrefix(strings.ToUpper(text), "M") {
		return 0, fmt.Errorf("a network of kind %s has no MPSoCs such as %s, want two nodes such as 0-1", s.Kind, text)
	}
	return 0, fmt.Errorf("%q: want a node from 0 to %d", text, MaxNodes-1)
}

// Path returns the ends of a path with the given numbers of links between
// mezzanines, within mezzanines and inside boards: TR-488's (i,j,k). The first
// end is as near to node 0 as possible. Without links between boards the path
// is within a board. Else it begins at F1, or with two links in boards at F2.
func (q QFDBs) Path(between, within, inside int) (src, dst int, err error) {
	most := q.Y/2 + q.Z/2
	switch {
	case between < 0 || between > most:
		return 0, 0, fmt.Errorf("%d links between mezzanines: %v has ways of at most %d, halfway round rings of %d and %d", between, q, most, q.Y, q.Z)
	case within < 0 || within > q.X/2:
		return 0, 0, fmt.Errorf("%d links on mezzanines: %v has ways of at most %d, halfway round rings of %d", within, q, q.X/2, q.X)
	case inside < 0 || inside > 2:
		return 0, 0, fmt.Errorf("%d links in boards: want at most 2, one at each end", inside)
	case inside == 2 && between+within == 0:
		return 0, 0, fmt.Errorf("2 links in boards: within a board every two MPSoCs have one")
	}
	a, b := Place{}, Place{X: within, Y: min(between, q.Y/2), F: inside}
	b.Z = between - b.Y
	if inside == 2 {
		a.F = 1
	}
	return q.Node(a), q.Node(b), nil
}
