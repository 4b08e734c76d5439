package fabric

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/sim"
)

// exanestSpec has round numbers: 100 ns for a router, 50 ns for a link with the
// switch behind it, 10 ns inside an MPSoC.
func exanestSpec(dims ...int) Spec {
	return Spec{
		Kind: ExaNeSt, Dims: dims, Rate: sim.NewRate(400, 1), SwitchRate: sim.NewRate(500, 1), Wire: 2000, SwitchWire: 44000, Switch: 6000,
		Header: 32, MTU: 256, Buffer: Buffers{4096},
		Exanest: ExanestSpec{LinkRate: sim.NewRate(800, 1), Router: 100000, Order: "xyz", Ties: tiesSource, Channels: 2, ZLinks: 1},
	}
}

// drawExanest draws a system and everything that routing depends on.
func drawExanest(t *rapid.T, longest int) Spec {
	spec := exanestSpec(rapid.SliceOfN(rapid.IntRange(1, longest), 3, 3).Draw(t, "dims")...)
	e := &spec.Exanest
	e.Order = strings.Join(rapid.Permutation([]string{"x", "y", "z"}).Draw(t, "order"), "")
	e.Ties = rapid.SampledFrom([]string{tiesSource, tiesDestination, tiesUp}).Draw(t, "ties")
	e.ZLinks = rapid.IntRange(1, 2).Draw(t, "Z links")
	return spec
}

// Node numbers, places and names are three ways to name an MPSoC, for any size.
func TestNamesOfMPSoCs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		length := rapid.OneOf(rapid.IntRange(1, 5), rapid.IntRange(1, 100))
		q := QFDBs{length.Draw(t, "x"), length.Draw(t, "y"), length.Draw(t, "z")}
		require.NoError(t, q.Validate())
		read, err := ParseQFDBs(q.String())
		require.NoError(t, err)
		require.Equal(t, q, read)
		node := rapid.IntRange(0, q.Nodes()-1).Draw(t, "node")
		p := q.Place(node)
		require.Equal(t, node, q.Node(p))
		require.Equal(t, node, p.F+4*(p.X+q.X*(p.Y+q.Y*p.Z)), "F before X before Y before Z")
		require.True(t, 0 <= p.F && p.F < 4 && p.X < q.X && p.Y < q.Y && p.Z < q.Z)
		found, err := q.Find(q.Name(node))
		require.NoError(t, err, q.Name(node))
		require.Equal(t, node, found)
		found, err = q.Find(strings.ToLower(q.Name(node)))
		require.NoError(t, err)
		require.Equal(t, node, found)
	})
	q := QFDBs{4, 4, 2}
	for name, place := range map[string]Place{
		"M1QAF1": {}, "M1QAF2": {F: 1}, "M1QBF1": {X: 1}, "M3QBF4": {X: 1, Y: 2, F: 3}, "M5QAF1": {Z: 1}, "M8QDF4": {3, 3, 1, 3},
	} {
		node, err := q.Find(name)
		require.NoError(t, err)
		require.Equal(t, place, q.Place(node), name)
	}
	wide := QFDBs{800, 1, 1}
	for x, board := range map[int]string{0: "M1QA", 25: "M1QZ", 26: "M1QAA", 51: "M1QAZ", 52: "M1QBA", 701: "M1QZZ", 702: "M1QAAA"} {
		require.Equal(t, board, wide.Board(Place{X: x}))
		node, err := wide.Find(board + "F3")
		require.NoError(t, err)
		require.Equal(t, Place{X: x, F: 2}, wide.Place(node))
	}
}

// A wrong name or size is refused, with the range that exists.
func TestNamesOutOfRange(t *testing.T) {
	q := QFDBs{4, 4, 2}
	for name, want := range map[string]string{
		"":             `"": want an MPSoC such as M3QBF4: mezzanine 3, QFDB B, F4`,
		"M1QA":         `"M1QA": want an MPSoC such as M3QBF4: mezzanine 3, QFDB B, F4`,
		"QAF1":         `"QAF1": want an MPSoC such as M3QBF4: mezzanine 3, QFDB B, F4`,
		"M1QF1":        `"M1QF1": want an MPSoC such as M3QBF4: mezzanine 3, QFDB B, F4`,
		"M1Q7F1":       `"M1Q7F1": want letters between Q and F, such as M3QBF4`,
		"M0QAF1":       `"M0QAF1": want a mezzanine from M1 to M8: 4x4x2 has 4 x 2, in a group and groups`,
		"M9QAF1":       `"M9QAF1": want a mezzanine from M1 to M8: 4x4x2 has 4 x 2, in a group and groups`,
		"M-1QAF1":      `"M-1QAF1": want a mezzanine from M1 to M8: 4x4x2 has 4 x 2, in a group and groups`,
		"M1QEF1":       `"M1QEF1": want a QFDB from QA to QD: 4x4x2 has 4 on a mezzanine`,
		"M1QZZZZZZZF1": `"M1QZZZZZZZF1": want a QFDB from QA to QD: 4x4x2 has 4 on a mezzanine`,
		"M1QAF0":       `"M1QAF0": want an MPSoC from F1 to F4`,
		"M1QAF5":       `"M1QAF5": want an MPSoC from F1 to F4`,
		"M1QAFx":       `"M1QAFx": want an MPSoC from F1 to F4`,
	} {
		_, err := q.Find(name)
		require.EqualError(t, err, want)
	}
	for text, want := range map[string]string{
		"5x":                       `"5x": want three numbers of QFDBs such as 4x4x2: on a mezzanine, mezzanines in a group, groups`,
		"4x4":                      `"4x4": want three numbers of QFDBs such as 4x4x2: on a mezzanine, mezzanines in a group, groups`,
		"4x4x2x1":                  `"4x4x2x1": want three numbers of QFDBs such as 4x4x2: on a mezzanine, mezzanines in a group, groups`,
		"axbxc":                    `"axbxc": want three numbers of QFDBs such as 4x4x2: on a mezzanine, mezzanines in a group, groups`,
		"0x4x2":                    "0x4x2: want three numbers of QFDBs, each at least 1, with at most 1048576 QFDBs (4194304 MPSoCs) together",
		"-1x4x2":                   "-1x4x2: want three numbers of QFDBs, each at least 1, with at most 1048576 QFDBs (4194304 MPSoCs) together",
		"1024x1024x2":              "1024x1024x2: want three numbers of QFDBs, each at least 1, with at most 1048576 QFDBs (4194304 MPSoCs) together",
		"99999999999999999999x1x1": "4194305x1x1: want three numbers of QFDBs, each at least 1, with at most 1048576 QFDBs (4194304 MPSoCs) together",
	} {
		_, err := ParseQFDBs(text)
		require.EqualError(t, err, want)
	}
	largest, err := ParseQFDBs("1024x512x2")
	require.NoError(t, err)
	require.Equal(t, MaxNodes, largest.Nodes())
}

// boardHop is one link of a path between boards, found without the topology: a
// dimension, a direction, and the board it leaves.
type boardHop struct {
	from Place
	k    int
	up   bool
}

// waysOf is routing by hand: dimension after dimension, one step at a time in
// the direction with fewer steps left.
func waysOf(s *Spec, src, dst Place) (list []boardHop) {
	at := src
	at.F = 0
	for _, letter := range s.Exanest.Order {
		k := strings.IndexRune("xyz", letter)
		c := []*int{&at.X, &at.Y, &at.Z}[k]
		to, length := []int{dst.X, dst.Y, dst.Z}[k], s.Dims[k]
		steps := ringDistance(*c, to, length)
		up := (*c+steps)%length == to
		if up && (*c-steps+length)%length == to && length > 2 { // both directions are equally short
			switch s.Exanest.Ties {
			case tiesSource:
				up = *c%2 == 0
			case tiesDestination:
				up = dst.F%2 == 0
			}
		}
		if length == 2 {
			up = k != 2 || s.Exanest.ZLinks == 1 || dst.F%2 == 0
		}
		for range steps {
			list = append(list, boardHop{at, k, up})
			if up {
				*c = (*c + 1) % length
			} else {
				*c = (*c + length - 1) % length
			}
		}
	}
	return list
}

// linksOf is the path of a packet by hand, as names of links.
func linksOf(s *Spec, src, dst int) []string {
	q := s.qfdbs()
	from, to := q.Place(src), q.Place(dst)
	list := []string{nodeLink(src)}
	link := func(a, b string) { list = append(list, a+"->"+b) }
	at := q.Name(src)
	step := func(next string) {
		if next != at {
			link(at, next)
			at = next
		}
	}
	if from.X != to.X || from.Y != to.Y || from.Z != to.Z {
		step(q.Board(from) + "F1")
		step(q.Board(from) + "R")
		for _, h := range waysOf(s, from, to) {
			next := h.from
			c := []*int{&next.X, &next.Y, &next.Z}[h.k]
			if *c--; h.up {
				*c += 2
			}
			*c = (*c + s.Dims[h.k]) % s.Dims[h.k]
			step(q.Board(next) + "R")
			if h.k == 2 && s.Dims[2] == 2 && !h.up {
				list[len(list)-1] += "[1]"
			}
		}
		step(q.Board(to) + "F1")
	}
	step(q.Name(dst))
	link(at, fmt.Sprintf("Node[%d]", dst))
	return list
}

func hopsOf(f Fabric, src, dst int) (names []string) {
	for _, h := range f.Path(src, dst) {
		names = append(names, h.Link)
	}
	return names
}

// Every pair's path equals the one found by hand, in all orders and ties. Its
// time is the report's: the time inside an MPSoC, 50 ns for each link between
// MPSoCs and 100 ns for each router, and the cell's bytes at the slowest rate
// with the waits of faster links for slower ones.
func TestExanestRoutesAreTheReports(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := drawExanest(t, 5)
		q := spec.qfdbs()
		f, err := New(sim.New(1), spec, q.Nodes())
		require.NoError(t, err)
		for range 40 {
			src, dst := rapid.IntRange(0, q.Nodes()-1).Draw(t, "src"), rapid.IntRange(0, q.Nodes()-1).Draw(t, "dst")
			names := linksOf(&spec, src, dst)
			require.Equal(t, names, hopsOf(f, src, dst), "%s to %s", q.Name(src), q.Name(dst))
			ways := len(waysOf(&spec, q.Place(src), q.Place(dst)))
			links, routers := len(names)-2, 0
			if ways > 0 {
				links, routers = len(names)-4, ways+1
			}
			head := 2*2000 + 6000 + sim.Time(links)*50000 + sim.Time(routers)*100000
			require.Equal(t, head+bytesOn(f.Path(src, dst), 132), f.Latency(src, dst, 100), "%s to %s", q.Name(src), q.Name(dst))
		}
	})
}

// bytesOn is the time that the bytes of a packet add to the time of its head:
// on the last link, and every time that a faster link waits for a slower one.
func bytesOn(path []Hop, bytes int64) (t sim.Time) {
	for i, h := range path[1:] {
		t += max(0, path[i].Rate.Time(bytes)-h.Rate.Time(bytes))
	}
	return t + path[len(path)-1].Rate.Time(bytes)
}

// Every switch's links lead to their named ends and back, and none is there
// twice. The topology passes the checks for a user's own topology, which also
// look for circles. With one channel there is a circle exactly where the
// profile is refused.
func TestExanestHasNoCircle(t *testing.T) {
	refused := 0
	for _, dims := range [][]int{{1, 1, 1}, {2, 1, 1}, {3, 1, 1}, {4, 1, 1}, {5, 1, 1}, {6, 1, 1}, {4, 4, 2}, {2, 2, 2}, {1, 5, 1}, {1, 1, 4}, {3, 2, 4}, {3, 3, 3}} {
		for _, ties := range []string{tiesSource, tiesDestination, tiesUp} {
			for _, order := range []string{"xyz", "zxy"} {
				spec := exanestSpec(dims...)
				spec.Exanest.Ties, spec.Exanest.Order, spec.Exanest.ZLinks = ties, order, 1+len(ties)%2
				nodes := spec.qfdbs().Nodes()
				topo := newExanest(&spec, nodes)
				require.NoError(t, CheckRoutes(topo, nodes, true), "%v", spec)
				spec.Exanest.Channels = 1
				err := CheckRoutes(newExanest(&spec, nodes), nodes, true)
				if err != nil {
					require.ErrorContains(t, err, "packets could wait for each other in a circle: ")
					refused++
				}
				require.Equal(t, err == nil, spec.Validate() == nil, "%v with ties %s", dims, ties)
			}
		}
	}
	require.Greater(t, refused, 20)
	spec := exanestSpec(4, 3, 2)
	spec.Exanest.ZLinks = 2
	topo := newExanest(&spec, 96)
	switches, links := topo.Size()
	require.Equal(t, []int{24 * 5, 24 * 24}, []int{switches, links})
	seen := map[string]bool{}
	for i := range links {
		l, name := topo.Link(i), topo.LinkName(i)
		require.False(t, seen[name], name)
		seen[name] = true
		if l.To != nowhere && !l.Node {
			require.True(t, strings.HasPrefix(name, topo.SwitchName(l.From)+"->"+topo.SwitchName(l.To)), name)
			back := func(j int) bool { o := topo.Link(j); return o.From == l.To && o.To == l.From && !o.Node }
			require.True(t, slices.ContainsFunc(upTo(links), back), "links are full duplex: %s", name)
		}
	}
}

func upTo(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// A system may be used in part; all its routers exist.
func TestExanestInPart(t *testing.T) {
	s := build(t, exanestSpec(4, 1, 1), 13, nil)
	s.ports[0].Send(Packet{Src: 0, Dst: 12, Bytes: 10})
	require.Equal(t, s.f.Latency(0, 12, 10), s.run(t)[0].at)
	_, err := New(sim.New(0), exanestSpec(4, 1, 1), 17)
	require.EqualError(t, err, "fabric: dims: 4x1x1 QFDBs have 16 MPSoCs, too few for 17 nodes")
}

// Control data after a packet takes time on the link but does not delay the
// packet: a full link carries 256 of 256 + 32 + 112 bytes. With 6 bytes to each
// of 18 words and 4 to the packet it is as much.
func TestControlDataTakesBandwidthOnly(t *testing.T) {
	for _, of := range []struct {
		bounded       bool
		control, word int32
	}{{true, 112, 0}, {false, 112, 0}, {true, 4, 6}, {false, 4, 6}} {
		spec := exanestSpec(2, 1, 1)
		plain := build(t, spec, 8, nil).f.Latency(0, 4, 256)
		if spec.Exanest.Control, spec.Exanest.ControlWord = of.control, of.word; !of.bounded {
			spec.Buffer = nil
		}
		s := build(t, spec, 8, nil)
		require.Equal(t, plain, s.f.Latency(0, 4, 256))
		const cells = 200
		s.held = make([][Classes][]Packet, 8)
		for i := range uint32(cells) {
			s.held[0][0] = append(s.held[0][0], Packet{Src: 0, Dst: 4, Bytes: 256, Seq: i})
		}
		s.sendHeld(0, 0)
		got := s.run(t)
		require.Len(t, got, cells)
		require.Equal(t, sim.Time((cells-1)*400*800), got[cells-1].at-got[0].at)
		require.Equal(t, plain, got[0].at)
		for _, l := range s.f.Links() {
			bytes := int64(cells * 288)
			if l.Name == "M1QAR->M1QBR" {
				bytes = cells * 400
				require.Equal(t, sim.Time(bytes*800), l.Busy)
			}
			require.Equal(t, bytes, l.Bytes, l.Name)
		}
	}
}

// One mistake at a time, each named by its field.
func TestExanestNamesTheField(t *testing.T) {
	for want, spoil := range map[string]func(*Spec){
		"dims: want three numbers of QFDBs such as [4, 4, 2], on a mezzanine, mezzanines in a group and groups, got [4 4]": func(s *Spec) { s.Dims = []int{4, 4} },
		"dims: 0x4x2: want three numbers of QFDBs, each at least 1, with at most 1048576 QFDBs (4194304 MPSoCs) together":  func(s *Spec) { s.Dims[0] = 0 },
		"dims: 1024x1025x1: want three numbers of QFDBs, each at least 1, with at most 1048576 QFDBs (4194304 MPSoCs) together": func(s *Spec) {
			s.Dims = []int{1024, 1025, 1}
		},
		"exanest.link_rate: want a rate such as 10Gb/s":                                                           func(s *Spec) { s.Exanest.LinkRate = sim.Rate{} },
		"exanest.link_rate: 2000000000ps/B is slower than 1 ms for a byte":                                        func(s *Spec) { s.Exanest.LinkRate = sim.NewRate(2e9, 1) },
		"exanest.router: want more than two wires and a switch, 10 ns, to 1 s, got 10 ns":                         func(s *Spec) { s.Exanest.Router = 10000 },
		"exanest.control_word: want 0 to 65536 bytes, got -1":                                                     func(s *Spec) { s.Exanest.ControlWord = -1 },
		"exanest.control: want 0 to 65536 bytes, got -1":                                                          func(s *Spec) { s.Exanest.Control = -1 },
		`exanest.order: want the letters x, y and z in the order in which packets take the dimensions, got "xxz"`: func(s *Spec) { s.Exanest.Order = "xxz" },
		`exanest.ties: want source, destination or up, got "left"`:                                                func(s *Spec) { s.Exanest.Ties = "left" },
		"exanest.channels: want 1 or 2, got 3":                                                                    func(s *Spec) { s.Exanest.Channels = 3 },
		`exanest.channels: want 2: packets on a ring of 4 with ties "up" could wait for each other in a circle`:   func(s *Spec) { s.Exanest.Ties, s.Exanest.Channels = tiesUp, 1 },
		"exanest.z_links: want 1 or 2, got 0":                                                                     func(s *Spec) { s.Exanest.ZLinks = 0 },
		"exanest.router: has no meaning with kind torus, want kind exanest":                                       func(s *Spec) { s.Kind, s.Exanest = Torus, ExanestSpec{Router: 1} },
		"dims: [4 4 2] has no meaning with kind crossbar, want kind " + names(dimsField):                          func(s *Spec) { s.Kind, s.Exanest = Crossbar, ExanestSpec{} },
	} {
		spec := exanestSpec(4, 4, 2)
		spoil(&spec)
		require.EqualError(t, spec.Validate(), want)
	}
	spec := exanestSpec(4, 4, 2)
	require.NoError(t, spec.Validate())
	q, is := spec.QFDBs()
	require.Equal(t, QFDBs{4, 4, 2}, q)
	require.True(t, is)
	spec.Dims = nil
	_, is = spec.QFDBs()
	require.False(t, is)
}

// Way agrees with the network, for every network. It also works for the largest
// system, which no machine could hold.
func TestWayNeedsNoNetwork(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec, nodes := drawSpec(t)
		if rapid.Bool().Draw(t, "boards") {
			spec = drawExanest(t, 4)
			nodes = spec.qfdbs().Nodes()
		}
		f, err := New(sim.New(1), spec, nodes)
		require.NoError(t, err)
		src, dst, bytes := rapid.IntRange(0, nodes-1).Draw(t, "src"), rapid.IntRange(0, nodes-1).Draw(t, "dst"), rapid.Int32Range(0, spec.MTU).Draw(t, "bytes")
		path, latency, err := Way(spec, nodes, src, dst, bytes)
		require.NoError(t, err)
		require.Equal(t, f.Path(src, dst), path)
		require.Equal(t, f.Latency(src, dst, bytes), latency)
	})
	spec := exanestSpec(1024, 512, 2)
	path, latency, err := Way(spec, MaxNodes, 1, MaxNodes-1, 0)
	require.NoError(t, err)
	require.Len(t, path, 1+1+1+3+1+1+1)
	require.Equal(t, sim.Time(10000+5*50000+4*100000)+bytesOn(path, 32), latency)
	require.Equal(t, "M1QAF2->M1QAF1", path[1].Link)
	for _, c := range [][3]int{{-1, 0, 0}, {0, 128, 0}, {0, 0, 257}} {
		_, _, err = Way(exanestSpec(4, 4, 2), 128, c[0], c[1], int32(c[2]))
		require.ErrorContains(t, err, "fabric: want nodes from 0 to 127 and 0 to 256 bytes")
	}
}
