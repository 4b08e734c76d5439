package fabric

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TR-488's Table 1 and its longest path, with the MPSoCs of the report's
// examples.
func TestPathsOfTable1(t *testing.T) {
	s := exanestSpec(4, 4, 2)
	q, _ := s.QFDBs()
	for text, want := range map[string]string{
		"intra-fpga":       "M1QAF1 M1QAF1",
		"intra-qfdb":       "M1QAF1 M1QAF2",
		"intra-mezz:1":     "M1QAF1 M1QBF1",
		"intra-mezz:2":     "M1QAF1 M1QBF2",
		"intra-mezz:3":     "M1QAF2 M1QBF3",
		"inter-mezz:1,0,0": "M1QAF1 M2QAF1",
		"inter-mezz:3,1,2": "M1QAF2 M7QBF3",
		"M2QCF4-m1qaf1":    "M2QCF4 M1QAF1",
		"127-0":            "M8QDF4 M1QAF1",
	} {
		src, dst, err := s.Path(text)
		require.NoError(t, err, text)
		require.Equal(t, want, q.Name(src)+" "+q.Name(dst), text)
	}
}

// A path (i,j,k) has i + j links of 10 Gb/s, k of 16 Gb/s, and passes i + j + 1
// routers, on systems of any shape.
func TestPathHasItsLinks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dim := rapid.IntRange(1, 7)
		s := exanestSpec(dim.Draw(t, "x"), dim.Draw(t, "y"), dim.Draw(t, "z"))
		q, _ := s.QFDBs()
		i, j, k := rapid.IntRange(0, q.Y/2+q.Z/2).Draw(t, "i"), rapid.IntRange(0, q.X/2).Draw(t, "j"), rapid.IntRange(0, 2).Draw(t, "k")
		src, dst, err := q.Path(i, j, k)
		if k == 2 && i+j == 0 {
			require.ErrorContains(t, err, "every two MPSoCs have one")
			return
		}
		require.NoError(t, err)
		path, _, err := Way(s, q.Nodes(), src, dst, 0)
		require.NoError(t, err)
		var slow, fast, between int
		for _, h := range path {
			switch h.Rate {
			case s.Exanest.LinkRate:
				slow++
				if mezzanine, _, _ := strings.Cut(h.Link, "Q"); !strings.Contains(h.Link, "->"+mezzanine+"Q") {
					between++
				}
			case s.SwitchRate:
				fast++
			}
		}
		require.Equal(t, [3]int{i + j, k, i}, [3]int{slow, fast, between}, "%v", path)
	})
}

func TestImpossiblePaths(t *testing.T) {
	s := exanestSpec(4, 4, 2)
	for text, want := range map[string]string{
		"inter-mezz:4,0,0": `path "inter-mezz:4,0,0": 4 links between mezzanines: 4x4x2 has ways of at most 3, halfway round rings of 4 and 2`,
		"inter-mezz:0,3,0": "3 links on mezzanines: 4x4x2 has ways of at most 2",
		"inter-mezz:0,1,3": "3 links in boards: want at most 2",
		"inter-mezz:0,0,2": "every two MPSoCs have one",
		"inter-mezz:1,2":   "want intra-fpga, intra-qfdb",
		"intra-mezz:4":     "want intra-fpga",
		"intra-mezz":       "want intra-fpga",
		"intra-qfdb:1":     "want intra-fpga",
		"intra-mezz:x":     "want intra-fpga",
		"":                 "want intra-fpga",
		"0-128":            "want a node from 0 to 127, got 128",
		"0-M9QAF1":         "want a mezzanine from M1 to M8: 4x4x2 has 4 x 2, in a group and groups",
		"-1-2":             `path "-1-2": want intra-fpga`,
		"3-":               `or two nodes such as 0-5 or M1QAF2-M3QBF1`,
	} {
		_, _, err := s.Path(text)
		require.ErrorContains(t, err, want, text)
	}
	tree := Spec{Kind: FatTree}
	_, _, err := tree.Path("intra-qfdb")
	require.ErrorContains(t, err, "a network of kind fat-tree has no QFDBs, want two nodes such as 0-1")
	_, _, err = tree.Path("0-M1QAF1")
	require.EqualError(t, err, `path "0-M1QAF1": a network of kind fat-tree has no MPSoCs such as M1QAF1, want two nodes such as 0-1`)
	_, _, err = tree.Path("0-x")
	require.ErrorContains(t, err, `"x": want a node from 0`)
	src, dst, err := tree.Path("3-17")
	require.NoError(t, err)
	require.Equal(t, [2]int{3, 17}, [2]int{src, dst})
}
