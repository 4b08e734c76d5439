//go:build !race

// Under the race detector the loader and the compiler take 5 to 20 times as
// long and three times the memory: what is measured here would be the
// detector's.

package hpu

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The search for modules that are slow to load. A chromosome stands for a
// module; what it costs is measured in a process of its own, which knows its
// own memory (linux); the worst are changed and measured again.
var (
	effortCount = flag.Int("effort.count", 0, "modules that TestEffort measures besides those of testdata/effort")
	effortSeed  = flag.Uint64("effort.seed", 0, "where the search begins")
	effortKeep  = flag.String("effort.keep", "", "folder for the worst modules that TestEffort finds")
)

// What the loader promises for every module within the limits of the built-in
// profiles (README.md, "The way of a module").
const (
	effortTime   = 2 * time.Second
	effortMemory = 256 << 20
)

// effortSpec has the limits of the built-in profiles, and SIMD.
func effortSpec() *Spec {
	s := vectorSpec()
	s.Cores, s.Contexts, s.PacketBytes, s.StackBytes, s.MaxCallDepth = 4, 2, 4096, 4096, 256
	s.MaxCodeBytes, s.MaxFunctions, s.MaxMemoryBytes, s.MaxHPUMemoryBytes = 262_144, 4096, 1<<20, 16<<20
	return s
}

// effort is what it took to load and compile a module.
type effort struct {
	Time   time.Duration // of all processors
	Memory int64         // that was added to the process at the worst, bytes
}

// worse orders efforts by the share of the promise that they use up.
func (e effort) share() float64 {
	return max(float64(e.Time)/float64(effortTime), float64(e.Memory)/effortMemory)
}

func (e effort) String() string {
	return fmt.Sprintf("%v, %d MiB", e.Time.Round(time.Millisecond), e.Memory>>20)
}

// used is the time of all processors and the most memory that the process has
// used so far. Getrusage knows the memory as well, but takes that of the
// process which has started this one for its own.
func used() (cpu time.Duration, memory int64, err error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, 0, err
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, 0, err
	}
	_, line, _ := strings.Cut(string(status), "VmHWM:")
	_, err = fmt.Sscanf(line, "%d kB", &memory)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), memory << 10, err
}

func init() { child = effortMain }

// What TestEffort holds the loader to is said for the machine of README.md. On
// another one, or beside other programs, everything takes longer, and so does a
// piece of work that is no concern of the loader's: pace. It is measured in the
// same run, in processes of the same kind; the least of several counts, of the
// pace as of the modules, because other programs can only add to it. A loader
// that has become slower does not change the pace.
const (
	paceFile = "pace" // what the child is given instead of a module
	paceHere = 60 * time.Millisecond
)

type paceNode struct {
	key         uint64
	left, right *paceNode
	more        []uint32
}

// pace does what compilers do: small objects, trees, maps, sorting, garbage.
func pace() (sum uint64) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 4 {
		var root *paceNode
		seen := map[uint64]*paceNode{}
		for range 30_000 {
			n := &paceNode{key: rng.Uint64(), more: make([]uint32, rng.IntN(16))}
			at := &root
			for *at != nil {
				if (*at).key < n.key {
					at = &(*at).right
				} else {
					at = &(*at).left
				}
			}
			*at, seen[n.key] = n, n
		}
		keys := make([]uint64, 0, len(seen))
		for k := range seen {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			sum += k * uint64(len(seen[k].more))
		}
	}
	return sum
}

func paceMain() error {
	before, _, err := used()
	if err != nil {
		return err
	}
	if pace() == 0 {
		return errors.New("pace: nothing was done")
	}
	after, _, err := used()
	return errors.Join(err, json.NewEncoder(os.Stdout).Encode(effort{Time: after - before}))
}

// slowness says how much longer than on the machine of README.md things take
// here and now, at least 1.
type slowness struct{ least time.Duration }

func (s *slowness) measure(t *testing.T) float64 {
	for range 3 {
		if p := run(t, paceFile).Time; s.least == 0 || p < s.least {
			s.least = p
		}
	}
	return max(1, float64(s.least)/float64(paceHere))
}

// effortMain is the program of the child.
func effortMain(file string) error {
	if file == paceFile {
		return paceMain()
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	e, err := NewEngine("wazero")
	if err != nil {
		return err
	}
	cpu, memory, err := used()
	if err != nil {
		return err
	}
	m, err := Load("worst", b, effortSpec())
	if err != nil {
		return err
	}
	if _, err := e.Compile(m, 16<<20); err != nil {
		return err
	}
	cpuAfter, memoryAfter, err := used()
	return errors.Join(err, json.NewEncoder(os.Stdout).Encode(effort{cpuAfter - cpu, memoryAfter - memory}))
}

func measure(t *testing.T, dir string, module []byte) (e effort) {
	file := filepath.Join(dir, "module.wasm")
	require.NoError(t, os.WriteFile(file, module, 0o644))
	return run(t, file)
}

// run starts a child.
func run(t *testing.T, file string) (e effort) {
	program, err := os.Executable()
	require.NoError(t, err)
	// of a clock, on a machine that may be busy
	ctx, cancel := context.WithTimeout(t.Context(), 30*effortTime)
	defer cancel()
	c := exec.CommandContext(ctx, program)
	c.Env = append(os.Environ(), effortChild+"="+file)
	out, err := c.Output()
	if ctx.Err() != nil {
		return effort{Time: 30 * effortTime}
	}
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(out, &e))
	return e
}

// fits reports whether the loader accepts the module of c.
func (c *chromosome) fits() (module []byte, ok bool) {
	b := c.module()
	_, err := Load("m", b, effortSpec())
	return b, err == nil
}

// What grows when a chromosome does: one gene, by its index, or one of these.
const (
	functionsGrow = -1
	genesGrow     = -2
)

// scale multiplies how often something happens.
func (c *chromosome) scale(by float64, what int) *chromosome {
	d := *c
	if what == functionsGrow {
		d.Funcs = max(1, int(float64(c.Funcs)*by))
		return &d
	}
	d.Genes = slices.Clone(c.Genes)
	for i := range d.Genes {
		if what == genesGrow || what == i {
			d.Genes[i].Count = max(1, int(float64(c.Genes[i].Count)*by))
		}
	}
	return &d
}

// grown makes c as large as the loader accepts, nil if it does not accept it at all.
func (c *chromosome) grown(what int) *chromosome {
	if _, ok := c.fits(); !ok {
		for range 12 {
			c = c.scale(0.5, what)
			if _, ok := c.fits(); ok {
				break
			}
		}
	}
	if _, ok := c.fits(); !ok {
		return nil
	}
	least, most := 1.0, 2.0
	for range 16 {
		if _, ok := c.scale(most, what).fits(); !ok {
			break
		}
		least, most = most, 2*most
	}
	for range 6 {
		middle := (least + most) / 2
		if _, ok := c.scale(middle, what).fits(); ok {
			least = middle
		} else {
			most = middle
		}
	}
	return c.scale(least, what)
}

type found struct {
	c *chromosome
	e effort
}

// seeds are chromosomes to begin with: every kind of gene alone, and behind
// accesses to memory at many addresses, which compilers remember.
func seeds() (list []*chromosome) {
	for _, kind := range geneNames {
		g := gene{Kind: kind, Count: 16, Arg: 10, Inner: []gene{{Kind: "move", Count: 2}}}
		list = append(list,
			&chromosome{Funcs: 1, Locals: 20, Genes: []gene{g}},
			&chromosome{Funcs: 1, Locals: 500, Genes: []gene{{Kind: "load", Count: 500}, g}})
	}
	return list
}

// committed are the worst modules that long searches have found, for this
// loader or for earlier ones.
func committed(t *testing.T) (list []*chromosome) {
	files, err := filepath.Glob("testdata/effort/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		c := &chromosome{}
		require.NoError(t, json.Unmarshal(b, c), file)
		list = append(list, c)
	}
	return list
}

// TestEffort looks for a module that takes the loader and the engine longer, or
// more memory, than is promised. The short form measures the worst that were
// found so far; with -effort.count it goes on from them.
func TestEffort(t *testing.T) {
	rng := rand.New(rand.NewPCG(*effortSeed, 3))
	dir := t.TempDir()
	var best []found
	var slow slowness
	try := func(c *chromosome, what int) {
		if c = c.grown(what); c == nil {
			return
		}
		b := c.module()
		f := found{c, measure(t, dir, b)}
		for range 4 { // others disturb
			if f.e.share() < 1 {
				break
			}
			again, by := measure(t, dir, b), slow.measure(t)
			t.Logf("%v, then %v where things take %.2f times as long: %s", f.e, again, by, c.text())
			again.Time = time.Duration(float64(again.Time) / by)
			f.e = effort{min(f.e.Time, again.Time), min(f.e.Memory, again.Memory)}
		}
		i := slices.IndexFunc(best, func(o found) bool { return o.e.share() < f.e.share() })
		if i < 0 {
			i = len(best)
		}
		best = slices.Insert(best, i, f)
		best = best[:min(len(best), 24)]
		if i == 0 {
			t.Logf("%v, %d bytes: %s", f.e, len(b), c.text())
		}
	}
	for _, c := range committed(t) {
		try(c, len(c.Genes)-1)
	}
	first := seeds()
	for i := range *effortCount {
		switch {
		case i < len(first):
			try(first[i], len(first[i].Genes)-1)
		case rng.IntN(5) == 0:
			c := randomChromosome(rng)
			try(c, rng.IntN(len(c.Genes)+2)-2)
		default:
			c := best[rng.IntN(len(best))].c.changed(rng)
			try(c, rng.IntN(len(c.Genes)+2)-2)
		}
	}
	for i, f := range best {
		t.Logf("worst %d: %v: %s", i, f.e, f.c.text())
		if *effortKeep != "" {
			b, err := json.Marshal(f.c)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(*effortKeep, fmt.Sprintf("%02d.json", i)), append(b, '\n'), 0o644))
		}
	}
	require.Less(t, best[0].e.share(), 1.0, best[0].c.text())
}
