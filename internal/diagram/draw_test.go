package diagram

import (
	"cmp"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/report"
)

func spec(t require.TestingT, set ...string) *fabric.Spec {
	p, err := profile.Load("exanest", set...)
	require.NoError(t, err)
	return &p.Fabric
}

// near is the distance below which two lines look like one.
const near = 2

// segment is a straight piece of a wire.
type segment struct {
	wire           int
	x1, y1, x2, y2 float64
}

// left and right are the ends of a piece along x.
func (s segment) left() float64  { return min(s.x1, s.x2) }
func (s segment) right() float64 { return max(s.x1, s.x2) }

// covers reports whether two pieces cover each other: they are parallel, near
// each other, and side by side for some length.
func (s segment) covers(o segment) bool {
	dx, dy := s.x2-s.x1, s.y2-s.y1
	length := math.Hypot(dx, dy)
	dx, dy = dx/length, dy/length
	along := func(x, y float64) float64 { return (x-s.x1)*dx + (y-s.y1)*dy }
	off := func(x, y float64) float64 { return math.Abs((x-s.x1)*dy - (y-s.y1)*dx) }
	if off(o.x1, o.y1) > near || off(o.x2, o.y2) > near {
		return false
	}
	a, b := along(o.x1, o.y1), along(o.x2, o.y2)
	return min(max(a, b), length)-max(min(a, b), 0) > 4
}

// Every link has its own line from its board to the next one, and no other line
// covers it. Boards do not cover each other.
func TestEveryLinkCanBeSeen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := spec(t)
		length := rapid.IntRange(1, 4)
		s.Dims = []int{length.Draw(t, "x"), length.Draw(t, "y"), length.Draw(t, "z")}
		s.Exanest.ZLinks = rapid.IntRange(1, 2).Draw(t, "Z links")
		d, err := ExaNeSt(*s, nil)
		require.NoError(t, err)
		q, _ := s.QFDBs()
		links := slices.Collect(s.BoardLinks())
		require.Len(t, d.Wires, len(links))
		require.Len(t, d.Boxes, q.Boards()*6)

		g := &drawing{QFDBs: q}
		var all []segment
		for i, w := range d.Wires {
			from, to := links[i].From, links[i].To
			ends := [][2]float64{w.Path[0], w.Path[len(w.Path)-1]}
			require.True(t, touches(g, from, ends[0]) && touches(g, to, ends[1]) || touches(g, from, ends[1]) && touches(g, to, ends[0]), links[i].Name())
			for j := range w.Path[1:] {
				a, b := w.Path[j], w.Path[j+1]
				all = append(all, segment{i, a[0], a[1], b[0], b[1]})
			}
		}
		slices.SortFunc(all, func(a, b segment) int { return cmp.Compare(a.left(), b.left()) })
		for i, a := range all {
			for _, b := range all[i+1:] {
				if b.left() > a.right()+near { // boards behind it are not beside this one either
					break
				}
				if a.wire != b.wire && (a.covers(b) || b.covers(a)) {
					require.Fail(t, "one wire covers another", "%s, %s", links[a.wire].Name(), links[b.wire].Name())
				}
			}
		}
		for i, a := range d.Boxes {
			for _, b := range d.Boxes[:i] {
				apart := a.X >= b.X+b.Width || b.X >= a.X+a.Width || a.Y >= b.Y+b.Height || b.Y >= a.Y+a.Height
				require.True(t, apart || a.Width != b.Width, "boxes of one size are apart")
			}
		}
	})
}

// touches reports whether a point is at the edge of a board, or in it, with
// some room for lines beside each other.
func touches(g *drawing, p fabric.Place, at [2]float64) bool {
	x, y := g.corner(p)
	const room = 4 * apart
	return at[0] >= x-room && at[0] <= x+board+room && at[1] >= y-room && at[1] <= y+height+room
}

// Loads go to the links by name, and the file has them all.
func TestLoadsAreDrawn(t *testing.T) {
	s := spec(t)
	asked := map[string]bool{}
	d, err := ExaNeSt(*s, func(link string) float64 {
		asked[link] = true
		if link == "M1QAR->M1QBR" {
			return 0.75
		}
		return 0
	})
	require.NoError(t, err)
	i := 0
	for l := range s.BoardLinks() {
		require.True(t, asked[l.Name()], l.Name())
		want := 0.0
		if l.Name() == "M1QAR->M1QBR" {
			want = 0.75
		}
		require.InDelta(t, want, d.Wires[i].Load, 0)
		i++
	}
	d.Title, d.Load = "M", "load"
	file := filepath.Join(t.TempDir(), "d.svg")
	require.NoError(t, d.DrawFile(file))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(text), "stroke:#C83B1E", "the colour of three quarters, once among those of none")
	for _, name := range []string{"M1QA", "M8QD", "F4", "0 to 100%: load"} {
		require.Contains(t, string(text), name)
	}
}

// A system that cannot be drawn is an error.
func TestWhatHasNoPicture(t *testing.T) {
	p, err := profile.Load("spin-int")
	require.NoError(t, err)
	_, err = ExaNeSt(p.Fabric, nil)
	require.EqualError(t, err, `fabric.kind: "fat-tree", expected exanest: other networks have no picture`)
	_, err = ExaNeSt(*spec(t, "fabric.dims=[32, 33, 1]"), nil)
	require.EqualError(t, err, "32x33x1 has 1056 QFDBs, more than the 1024 that a picture can show")
	d, err := ExaNeSt(*spec(t), nil)
	require.NoError(t, err)
	require.ErrorContains(t, d.DrawFile("x.pdf"), `x.pdf: cannot draw ".pdf" files`)
	d.Boxes = append(d.Boxes, report.Box{X: 1e6})
	require.ErrorContains(t, d.DrawFile(filepath.Join(t.TempDir(), "x.svg")), "points, more than 14000 either way")
}
