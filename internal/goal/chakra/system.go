package chakra

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spinsim/spinsim/goal"
	"github.com/spinsim/spinsim/internal/strictyaml"
)

// Kind is a kind of collective that is expanded.
type Kind uint8

// The kinds of collectives.
const (
	AllReduce Kind = iota
	AllGather
	ReduceScatter
	AllToAll
	kinds // their number
)

var kindNames = [kinds]string{string(goal.AllReduce), string(goal.AllGather), string(goal.ReduceScatter), string(goal.AllToAll)}

func (k Kind) String() string { return kindNames[k] }

// Shape is the shape of an algorithm.
type Shape uint8

// The shapes of algorithms. Tree is two binary trees in turn, one a chunk.
const (
	Ring Shape = iota
	Direct
	HalvingDoubling
	Tree
)

// shapeNames are the names for --collective, then ASTRA-sim's own.
var shapeNames = map[string]Shape{
	"ring": Ring, "direct": Direct, "halving-doubling": HalvingDoubling, "tree": Tree,
	"oneRing": Ring, "oneDirect": Direct, "halvingDoubling": HalvingDoubling, "oneHalvingDoubling": HalvingDoubling, "doubleBinaryTree": Tree,
}

// Algorithm is how a collective is done.
type Algorithm struct {
	Shape  Shape
	Window int // of Direct: messages of an NPU under way, 0: all
}

// System is what ASTRA-sim's description of a system says about collectives.
type System struct {
	Algorithms [kinds]Algorithm
	Splits     int     // chunks of a collective
	Active     int     // chunks under way
	Delay      uint64  // before each message and after the last, ns
	Reduction  float64 // speed of memory, GB/s (10^9 bytes); 0: reducing takes no time
	GroupDelay uint64  // Delay in groups smaller than the machine
}

// DefaultSystem has rings, direct exchange for all-to-all, one chunk, no
// delays.
func DefaultSystem() System {
	s := System{Splits: 1, Active: 1}
	s.Algorithms[AllToAll].Shape = Direct
	return s
}

// Set sets algorithms from a list such as allreduce=ring,alltoall=direct4.
func (s *System) Set(list string) error {
	for item := range strings.SplitSeq(list, ",") {
		name, algorithm, ok := strings.Cut(strings.TrimSpace(item), "=")
		k := slices.Index(kindNames[:], name)
		if !ok || k < 0 {
			return fmt.Errorf("%q, expected COLLECTIVE=ALGORITHM, with a collective of %s", item, strings.Join(kindNames[:], ", "))
		}
		if err := s.set(Kind(k), algorithm); err != nil {
			return err
		}
	}
	return nil
}

func (s *System) set(k Kind, text string) error {
	name := strings.TrimRight(text, "0123456789")
	shape, ok := shapeNames[name]
	a := Algorithm{Shape: shape}
	if digits := text[len(name):]; ok && digits != "" {
		var err error
		a.Window, err = strconv.Atoi(digits)
		ok = err == nil && shape == Direct && a.Window > 0
	}
	switch {
	case !ok:
		return fmt.Errorf("%s: %q, expected one of %s, or direct with the number of messages under way", k, text,
			strings.Join(slices.Sorted(maps.Keys(shapeNames)), ", "))
	case shape == Tree && k != AllReduce:
		return fmt.Errorf("%s: a tree does only allreduce", k)
	case shape == HalvingDoubling && k == AllToAll:
		return fmt.Errorf("%s: halving-doubling does not do this collective", k)
	}
	s.Algorithms[k] = a
	return nil
}

// systemFile is ASTRA-sim's description of a system. What it has besides is
// refused by name.
type systemFile struct {
	Splits    int      `yaml:"preferred-dataset-splits"`
	Active    int      `yaml:"active-chunks-per-dimension"`
	Delay     int      `yaml:"endpoint-delay"`
	Memory    float64  `yaml:"local-mem-bw"`
	Reduce    []string `yaml:"all-reduce-implementation"`
	Gather    []string `yaml:"all-gather-implementation"`
	Scatter   []string `yaml:"reduce-scatter-implementation"`
	All       []string `yaml:"all-to-all-implementation"`
	Roofline  int      `yaml:"roofline-enabled"`
	Bus       int      `yaml:"model-shared-bus"`
	Replay    int      `yaml:"replay-only"`
	Policy    string   `yaml:"scheduling-policy"`
	Optimize  string   `yaml:"collective-optimization"`
	Boost     int      `yaml:"boost-mode"`
	Peak      float64  `yaml:"peak-perf"`
	Trace     int      `yaml:"trace-enabled"`
	LocalMem  int      `yaml:"track-local-mem"`
	Reduction int      `yaml:"local-reduction-delay"`
}

// maxChunks bounds the chunks of a collective, maxDelay the delays in ns.
const (
	maxChunks = 1 << 16
	maxDelay  = 1_000_000_000
)

// ReadSystem reads a description of a system of one dimension.
func ReadSystem(file string, text []byte) (System, error) {
	s := DefaultSystem()
	s.GroupDelay = 10 // ASTRA-sim's, whatever the file says
	tree, err := strictyaml.Parse(file, text)
	if err != nil {
		return s, err
	}
	f := systemFile{Splits: 1, Active: 1, Delay: 10}
	r := strictyaml.Reader{File: file}
	r.Read(tree, &f)
	if r.Errors != nil {
		return s, r.Errors.Join()
	}
	s.Splits, s.Active, s.Delay, s.Reduction = f.Splits, f.Active, uint64(f.Delay), f.Memory
	err = f.check()
	for k, list := range [kinds][]string{f.Reduce, f.Gather, f.Scatter, f.All} {
		if err == nil && len(list) > 0 {
			err = s.set(Kind(k), list[0])
		}
		if err == nil && len(list) > 1 {
			err = fmt.Errorf("%s: %d algorithms, expected one: networks have one dimension", Kind(k), len(list))
		}
	}
	if err != nil {
		return s, fmt.Errorf("%s: %w", file, err)
	}
	return s, nil
}

func (f *systemFile) check() error {
	for _, n := range []struct {
		name               string
		value, least, most int
	}{
		{"preferred-dataset-splits", f.Splits, 1, maxChunks}, {"active-chunks-per-dimension", f.Active, 1, maxChunks}, {"endpoint-delay", f.Delay, 0, maxDelay},
	} {
		if n.value < n.least || n.value > n.most {
			return fmt.Errorf("%s: %d, expected %d to %d", n.name, n.value, n.least, n.most)
		}
	}
	switch {
	case f.Memory < 0 || f.Memory > 0 && f.Memory < 1e-3:
		return fmt.Errorf("local-mem-bw: %v, expected at least 0.001 GB/s, or 0: reducing takes no time", f.Memory)
	case f.Roofline != 0:
		return errors.New("roofline-enabled: a schedule has no roofline model, expected 0")
	case f.Bus != 0:
		return errors.New("model-shared-bus: a schedule has no bus, expected 0")
	case f.Replay != 0:
		return errors.New("replay-only: a schedule has messages, expected 0")
	}
	return nil
}

// overlaps reports whether a node is a collective with several messages of an
// NPU under way.
func (s *System) overlaps(n node) bool {
	kind, ok := kindOf(n.coll)
	return ok && n.kind == coll && !n.cpu && (s.Active > 1 && s.Splits > 1 || s.Algorithms[kind].Shape == Direct || s.Algorithms[kind].Shape == Tree)
}

// wait is the delay before a message of some bytes or after the last one.
func (s *System) wait(delay, bytes uint64, reduced bool) uint64 {
	if !reduced || s.Reduction == 0 {
		return delay
	}
	return delay + 3*uint64(float64(bytes)/(s.Reduction*1e9)*1e9)
}
