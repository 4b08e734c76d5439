package graph

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// random draws a graph: often in parts, with edges that are there several times
// and such that lead nowhere else.
func random(t *rapid.T) *Graph {
	n := rapid.IntRange(1, 20).Draw(t, "vertices")
	vertex := rapid.Custom(func(t *rapid.T) uint32 { return uint32(rapid.IntRange(0, n-1).Draw(t, "vertex")) })
	return New(n, rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Edge {
		return Edge{vertex.Draw(t, "from"), vertex.Draw(t, "to"), uint32(rapid.IntRange(1, 9).Draw(t, "weight"))}
	}), 0, 40).Draw(t, "edges"))
}

// slow finds distances by looking at all edges as often as there are vertices.
func slow(g *Graph, root int, weighted bool) []uint32 {
	d := make([]uint32, g.Vertices)
	for v := range d {
		d[v] = None
	}
	d[root] = 0
	for range g.Vertices {
		for v := range g.Vertices {
			for i := g.Start[v]; i < g.Start[v+1]; i++ {
				if to := g.Target[i]; d[v] != None && uint64(d[v])+g.weight(i, weighted) < uint64(d[to]) {
					d[to] = d[v] + uint32(g.weight(i, weighted))
				}
			}
		}
	}
	return d
}

// tree finds a parent for each vertex that was reached.
func tree(g *Graph, root int, distance []uint32, weighted bool) []uint32 {
	parent := make([]uint32, g.Vertices)
	for v := range parent {
		parent[v] = None
		for i := g.Start[v]; i < g.Start[v+1]; i++ {
			if to := g.Target[i]; distance[v] != None && uint64(distance[to])+g.weight(i, weighted) == uint64(distance[v]) {
				parent[v] = to
			}
		}
	}
	parent[root] = uint32(root)
	return parent
}

// The reference finds what a slow one finds, and the validation says so. It
// does not say so when one distance or one parent is another one.
func TestSolveAndValidate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := random(t)
		root, weighted := rapid.IntRange(0, g.Vertices-1).Draw(t, "root"), rapid.Bool().Draw(t, "weighted")
		distance, err := g.Solve(root, weighted)
		require.NoError(t, err)
		require.Equal(t, slow(g, root, weighted), distance)
		parent := tree(g, root, distance, weighted)
		require.NoError(t, g.Validate(root, distance, parent, weighted))
		v := rapid.IntRange(0, g.Vertices-1).Draw(t, "changed")
		if rapid.Bool().Draw(t, "of the distances") {
			distance[v] += rapid.SampledFrom([]uint32{1, 2, math.MaxUint32}).Draw(t, "by")
		} else {
			parent[v] = rapid.SampledFrom([]uint32{None, uint32(root), uint32(g.Vertices), uint32(v)}).Draw(t, "parent")
		}
		legal := true
		for i, p := range tree(g, root, slow(g, root, weighted), weighted) {
			legal = legal && (i == root && parent[i] == uint32(i) || i != root && (p == None) == (parent[i] == None))
			if i != root && parent[i] != None && legal {
				legal = parent[i] < uint32(g.Vertices) && joined(g, i, parent[i], slow(g, root, weighted), weighted)
			}
		}
		for i, d := range slow(g, root, weighted) {
			legal = legal && d == distance[i]
		}
		require.Equal(t, legal, g.Validate(root, distance, parent, weighted) == nil)
	})
}

func joined(g *Graph, v int, parent uint32, distance []uint32, weighted bool) bool {
	for i := g.Start[v]; i < g.Start[v+1]; i++ {
		if g.Target[i] == parent && uint64(distance[parent])+g.weight(i, weighted) == uint64(distance[v]) {
			return true
		}
	}
	return false
}

// Each rule of the validation refuses what breaks it, by name.
func TestRules(t *testing.T) {
	// 0 - 1 - 2 - 3 - 0, and 4 - 5
	g := New(6, []Edge{{0, 1, 1}, {1, 2, 1}, {2, 3, 1}, {3, 0, 1}, {4, 5, 1}})
	for want, c := range map[string]struct{ distance, parent []uint32 }{
		"": {[]uint32{0, 1, 2, 1, None, None}, []uint32{0, 0, 1, 0, None, None}},
		"the root, 0, has distance 1 and parent 0":                                   {[]uint32{1, 2, 3, 2, None, None}, []uint32{0, 0, 1, 0, None, None}},
		"vertex 1 is its own ancestor":                                               {[]uint32{0, 1, 2, 1, None, None}, []uint32{0, 2, 1, 0, None, None}},
		"vertex 1 has parent 9, expected a vertex below 6":                           {[]uint32{0, 1, 2, 1, None, None}, []uint32{0, 9, 1, 0, None, None}},
		"vertex 2 at distance 2 has parent 0, to which no edge of that length leads": {[]uint32{0, 1, 2, 1, None, None}, []uint32{0, 0, 0, 0, None, None}},
		"vertex 2 has distance 3, and its neighbour 1 by an edge of 1 has 1":         {[]uint32{0, 1, 3, 1, None, None}, []uint32{0, 0, 1, 0, None, None}},
		"vertices 1 and 2 are neighbours, and their distances are 1 and 4294967295":  {[]uint32{0, 1, None, 1, None, None}, []uint32{0, 0, None, 0, None, None}},
		"vertex 4 has distance 4294967295 and parent 5":                              {[]uint32{0, 1, 2, 1, None, None}, []uint32{0, 0, 1, 0, 5, 0}},
		"vertex 4 at distance 2 has parent 0, to which no edge of that length leads": {[]uint32{0, 1, 2, 1, 2, 3}, []uint32{0, 0, 1, 0, 0, 4}},
	} {
		err := g.Validate(0, c.distance, c.parent, false)
		if want == "" {
			require.NoError(t, err)
		} else {
			require.EqualError(t, err, want)
		}
	}
}

// Distances that 32 bits cannot hold are an error of the reference.
func TestTooFar(t *testing.T) {
	var list []Edge
	for v := range uint32(4096) {
		list = append(list, Edge{v, v + 1, MaxWeight})
	}
	_, err := New(4097, list).Solve(0, true)
	require.EqualError(t, err, "vertex 4096 is 4294967296 from vertex 0, expected less than 4294967295")
	list[0].Weight -= 2
	d, err := New(4097, list).Solve(0, true)
	require.NoError(t, err)
	require.Equal(t, uint32(None-1), d[4096])
}

// R-MAT graphs are the same for the same seed, have as many edges as
// Graph500's, and degrees that are far from even. Every fourth or so vertex has
// none.
func TestRMAT(t *testing.T) {
	g := RMAT(12, Factor, 5)
	require.Equal(t, g, RMAT(12, Factor, 5))
	require.NotEqual(t, g.Target, RMAT(12, Factor, 6).Target)
	require.Equal(t, 12, int(math.Log2(float64(g.Vertices))))
	require.Equal(t, 16*4096, g.Edges())
	most, none := 0, 0
	for v := range g.Vertices {
		most = max(most, g.Degree(v))
		if g.Degree(v) == 0 {
			none++
		}
	}
	require.Greater(t, most, 40*2*Factor, "hubs")
	require.InDelta(t, 0.25, float64(none)/4096, 0.1)
	weights := map[uint32]int{}
	for _, w := range g.Weight {
		weights[w]++
	}
	require.Len(t, weights, 255)
	require.NotContains(t, weights, uint32(0))
	for n := range 20 {
		require.Positive(t, g.Degree(g.Root(n, 1)))
	}
	root := g.Root(3, 1)
	require.Equal(t, root, RMAT(12, Factor, 5).Root(3, 1))
	require.Zero(t, New(5, nil).Degree(New(5, nil).Root(0, 1)), "no vertex has edges")
}

// Edges count once, loops and all, if an end was reached.
func TestTraversed(t *testing.T) {
	g := New(6, []Edge{{0, 1, 1}, {0, 1, 1}, {1, 1, 1}, {2, 3, 1}, {3, 3, 1}})
	d, err := g.Solve(0, false)
	require.NoError(t, err)
	require.Equal(t, 3, g.Traversed(d))
	require.Equal(t, 5, g.Edges())
}

func TestRead(t *testing.T) {
	g, err := Read("g.txt", strings.NewReader("# a graph\n% more\n0 1\n\n 1\t4 7 \r\n4 4\n"))
	require.NoError(t, err)
	require.Equal(t, New(5, []Edge{{0, 1, 1}, {1, 4, 7}, {4, 4, 1}}), g)
	for text, want := range map[string]string{
		"":                                   "g.txt:1: the file ends without an edge, expected lines of two vertices and perhaps a weight",
		"# nothing\n":                        "g.txt:2: the file ends without an edge, expected lines of two vertices and perhaps a weight",
		"0 1\n0\n":                           "g.txt:2: 1 field, expected two vertices and perhaps a weight",
		"0 1 2 3\n":                          "g.txt:1: 4 fields, expected two vertices and perhaps a weight",
		"0 1\n\n0 x\n":                       `g.txt:3: vertex "x", expected a number from 0 to 67108863`,
		"-1 1\n":                             `g.txt:1: vertex "-1", expected a number from 0 to 67108863`,
		"0 67108864\n":                       `g.txt:1: vertex "67108864", expected a number from 0 to 67108863`,
		"0 1 0\n":                            `g.txt:1: weight "0", expected a number from 1 to 1048576`,
		"0 1 1.5\n":                          `g.txt:1: weight "1.5", expected a number from 1 to 1048576`,
		"0 1 1048577\n":                      `g.txt:1: weight "1048577", expected a number from 1 to 1048576`,
		"\x7fELF\x02\x01\x01\x00 a":          `g.txt:1: vertex "\x7fELF\x02\x01\x01\x00", expected a number from 0 to 67108863`,
		"0 1\n" + strings.Repeat("x", 1<<17): "g.txt:2: a line of more than 65536 bytes, expected two vertices and perhaps a weight",
	} {
		_, err := Read("g.txt", strings.NewReader(text))
		require.EqualError(t, err, want)
	}
}

// A matrix is the graph of its entries, and what is no graph is refused, with its line.
func TestReadMatrixMarket(t *testing.T) {
	for text, want := range map[string]*Graph{
		"%%MatrixMarket matrix coordinate pattern general\n% by hand\n\n4 4 3\n1 2\n% in between\n2 3\n 3\t1 \r\n\n": New(4, []Edge{{0, 1, 1}, {1, 2, 1}, {2, 0, 1}}),
		"%%matrixmarket MATRIX Coordinate Integer Symmetric\n3 3 2\n2 1 7\n3 3 1\n":                                  New(3, []Edge{{1, 0, 7}, {2, 2, 1}}),
		"%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 3.0e1":                                            New(2, []Edge{{0, 1, 30}}),
		"%%MatrixMarket matrix coordinate real skew-symmetric\n3 3 2\n2 1 -4\n3 1 5.0\n":                             New(3, []Edge{{1, 0, 4}, {2, 0, 5}}),
		"%MatrixMarket matrix coordinate pattern symmetric\n2 2 1\n2 1\n":                                            New(2, []Edge{{1, 0, 1}}),
		"%%MatrixMarket\tmatrix\tcoordinate\tinteger\tgeneral\n3 3 1\n1 2 5\n":                                       New(3, []Edge{{0, 1, 5}}),
		"% MatrixMarketing is no banner\n2 2 1\n":                                                                    New(3, []Edge{{2, 2, 1}}),
	} {
		g, err := Read("g.mtx", strings.NewReader(text))
		require.NoError(t, err, text)
		require.Equal(t, want, g, text)
	}
	const general, symmetric = "%%MatrixMarket matrix coordinate integer general\n", "%%MatrixMarket matrix coordinate pattern symmetric\n"
	for text, want := range map[string]string{
		"%%MatrixMarket matrix coordinate real\n":                               "1: 4 words, expected %%MatrixMarket matrix coordinate, then pattern, integer or real, then general, symmetric or skew-symmetric",
		"%%MatrixMarket matrix array real general\n2 2\n":                       `1: "array" is no graph, expected`,
		"%%MatrixMarket matrix coordinate complex general\n":                    `1: "complex" is no graph, expected`,
		"%%MatrixMarket matrix coordinate real hermitian\n":                     `1: "hermitian" is no graph, expected`,
		"%%MatrixMarket vector coordinate real general\n":                       `1: "vector" is no graph, expected`,
		"%%MatrixMarket matrix coordinate pattern skew-symmetric\n2 2 1\n2 1\n": "1: pattern and skew-symmetric: entries without a value have no sign",
		general:                                  "2: the file ends, expected the size: rows, columns and entries",
		general + "% c\n3 3\n":                   "3: 2 fields, expected the size: rows, columns and entries",
		general + "3 x 1\n":                      `2: "x" in the size, expected a number`,
		general + "3 4 1\n1 1 1\n":               "2: 3 rows and 4 columns, expected as many",
		general + "0 0 0\n":                      "2: 0 rows, expected 1 to 67108864 vertices",
		general + "67108865 67108865 1\n1 1 1\n": "2: 67108865 rows, expected 1 to 67108864 vertices",
		general + "3 3 0\n":                      "2: no entries, expected an edge at least",
		general + "3 3 2\n1 2 1\n":               "4: the file ends, expected 2 entries, as the size has it, and there are 1",
		general + "3 3 1\n1 2 1\n\n2 3 1\n":      `5: "2 3 1", expected the end: the size has 1 entries`,
		general + "3 3 1\n0 2 1\n":               `3: vertex "0", expected a number from 1 to 3`,
		general + "3 3 1\n1 4 1\n":               `3: vertex "4", expected a number from 1 to 3`,
		general + "3 3 1\n1 2\n":                 "3: 2 fields, expected row and column and value",
		general + "3 3 1\n1 2 0\n":               `3: weight "0", expected a whole number from 1 to 1048576`,
		general + "3 3 1\n1 2 -1\n":              `3: weight "-1", expected a whole number`,
		general + "3 3 1\n1 2 1.5\n":             `3: weight "1.5", expected a whole number`,
		general + "3 3 1\n1 2 nan\n":             `3: weight "nan", expected a whole number`,
		general + "3 3 1\n1 2 1e2\n":             `3: weight "1e2", expected a whole number`,
		"\n" + general + "3 3 1\n1 2 1\n":        "2: the banner of MatrixMarket, expected on the first line",
		"% mine\n" + general + "3 3 1\n1 2 1\n":  "2: the banner of MatrixMarket, expected on the first line",
		"1 2 3\n" + general + "3 3 1\n1 2 1\n":   "2: the banner of MatrixMarket, expected on the first line",
		symmetric + "3 3 1\n2 1 1\n":             "3: 3 fields, expected row and column, without a value",
		symmetric + "3 3 1\n1 2\n":               "3: row 1 and column 2, expected an entry on or below the diagonal: the matrix is symmetric",
		"%%MatrixMarket matrix coordinate real skew-symmetric\n3 3 1\n2 2 1\n": "3: row 2 and column 2, expected an entry below the diagonal",
		general + "3 3 1\n" + strings.Repeat("1", 1<<17):                       "3: a line of more than 65536 bytes",
	} {
		_, err := Read("g.mtx", strings.NewReader(text))
		require.ErrorContains(t, err, "g.mtx:"+want, text)
	}
}

// Whatever is in a file, reading it ends with a graph or with an error that names the file.
func FuzzRead(f *testing.F) {
	for _, text := range []string{
		"", "0 1\n", "0 1 5\n1 2 3\n# x\n", "a b\n", "0 1 2 3", "5 5 1048576",
		"%%MatrixMarket matrix coordinate pattern symmetric\n% c\n3 3 2\n2 1\n3 3\n", "%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n2 1 -3.0\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		g, err := Read("g", strings.NewReader(string(b)))
		if err != nil {
			require.True(t, strings.HasPrefix(err.Error(), "g:"), err)
			return
		}
		require.Positive(t, g.Edges())
		require.Equal(t, uint64(len(g.Target)), g.Start[g.Vertices])
	})
}
