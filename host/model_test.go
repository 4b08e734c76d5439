package host_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/internal/hosttest"
)

var modelOps = flag.Int("model.ops", 40_000, "operations of the seeded run against the model of memory")

// model is programs and a device on a node with far too little memory, and a
// reference: the expected value of every byte.
type model struct {
	*hosttest.Node
	rng      *rand.Rand
	programs []*job
	constant *host.File // never written: for private mappings
	file     *host.File // shared mappings
	content  [2][]*refPage
	budget   int // operations
	done     int
	born     int
	device   nicModel
	driver   *host.Tasklet
	faults   []*flight
	short    int  // out of memory
	large    bool // most mappings are large
	err      error
}

// refPage is the expected content of a page. After fork some bytes may have one
// of two values.
type refPage struct {
	data [page]byte
	alt  map[int][]byte
}

// refMap is a mapping of a program. Unmapped pages are nil.
type refMap struct {
	addr   uint64
	length int
	pages  []*refPage
	origin []*refPage // a private mapping of a file: its pages
	prot   []host.Prot
	shared bool
	alone  []bool // pages that children do not get
}

type job struct {
	m       *model
	p       *host.Process
	th      *host.Thread
	maps    []*refMap
	pins    []*held
	forking bool
	// Discard has not returned
	discarding bool
	landed     []landing
	over       bool
}

type held struct {
	pin   host.Pin
	addr  uint64
	pages []*refPage
}

type landing struct {
	at  *refPage
	off int
	old byte
}

// check records the first error.
func (m *model) check(ok bool, format string, args ...any) {
	if !ok && m.err == nil {
		m.err = fmt.Errorf("at %v, operation %d: %s", m.Engine.Now(), m.done, fmt.Sprintf(format, args...))
		m.Engine.Fail(m.err)
	}
}

func (g *refPage) write(off int, b []byte) {
	copy(g.data[off:], b)
	for i := range b {
		delete(g.alt, off+i)
	}
}

// match reports whether bytes have an expected value, and records which.
func (g *refPage) match(off int, b []byte) bool {
	for i, v := range b {
		if g.data[off+i] == v {
			continue
		}
		if !slices.Contains(g.alt[off+i], v) {
			return false
		}
		g.data[off+i] = v
		delete(g.alt, off+i)
	}
	return true
}

func (g *refPage) child() *refPage {
	c := &refPage{data: g.data}
	for off, v := range g.alt { //lint:maporder copied
		c.allow(off, v...)
	}
	return c
}

func (g *refPage) allow(off int, v ...byte) {
	if g.alt == nil {
		g.alt = map[int][]byte{}
	}
	g.alt[off] = append(slices.Clone(g.alt[off]), v...)
}

func newModel(seed uint64, ops int) (*model, error) {
	m := &model{rng: rand.New(rand.NewPCG(seed, 5)), budget: ops}
	huge := []string{"never", "always"}[m.rng.IntN(2)]
	memory := []int{2, 4, 16}[m.rng.IntN(3)]
	m.large = huge == "always" && memory == 16
	spec, err := hosttest.Spec(fmt.Sprintf("memory=%dMiB", memory), "watermark_min=128KiB", "watermark_low=256KiB", "watermark_high=512KiB",
		"huge_pages="+huge, fmt.Sprintf("collapse_min=%d", 1+m.rng.IntN(8)), "collapse_delay=50us", fmt.Sprintf("collapse_page=%dns", 100*m.rng.IntN(2)),
		fmt.Sprintf("address_bits=%d", 39+9*m.rng.IntN(2)), "device_tables="+[]string{host.ProcessTables, host.OwnTables}[m.rng.IntN(2)],
		// an mlock that takes long lets kswapd keep pace, and nobody reclaims directly
		"lock_present=0ns", "lock_drain=0ns")
	if err != nil {
		return nil, err
	}
	m.Node = hosttest.NewNode(spec)
	storage, err := hosttest.Storage("swap=24MiB", "read_latency=10us", "write_latency=5us", fmt.Sprintf("queue_depth=%d", 1+m.rng.IntN(40)))
	if err != nil {
		return nil, err
	}
	m.Kernel.Attach("Node[0].Storage", storage)
	m.device = nicModel{m: m, tlbs: map[*host.Process]map[uint64]translation{}}
	m.driver = m.CPU.NewTasklet("faults", m.resolve)
	for i, file := range []**host.File{&m.constant, &m.file} {
		n := 20*page + 100
		var disk []byte
		if *file, disk, err = m.Kernel.Create(fmt.Sprint("file", i), n); err != nil {
			return nil, err
		}
		for j := range disk {
			disk[j] = byte(m.rng.Uint32())
		}
		for at := 0; at < n; at += page {
			g := &refPage{}
			copy(g.data[:], disk[at:])
			m.content[i] = append(m.content[i], g)
		}
	}
	for range 2 {
		m.start(m.Kernel.NewProcess(fmt.Sprint("program ", m.born)), nil)
	}
	return m, nil
}

// start starts a program on a process.
func (m *model) start(p *host.Process, maps []*refMap) *job {
	g := &job{m: m, p: p, maps: maps}
	p.Tables().Register(&m.device)
	m.device.tlbs[p] = map[uint64]translation{}
	m.programs = append(m.programs, g)
	m.born++
	g.th = m.Go(m.rng.IntN(hosttest.Cores), p.Name(), func(t *host.Thread) error { g.th = t; g.main(); return nil })
	return g
}

func (g *job) main() {
	m := g.m
	for m.done < m.budget && m.err == nil && !g.over {
		m.done++
		g.step()
		if m.done%500 == 0 {
			err := m.Kernel.Audit()
			m.check(err == nil, "%v", err)
		}
	}
	g.exit()
}

func (g *job) exit() {
	for _, h := range g.pins {
		h.pin.Put(g.th)
	}
	g.over = true
	g.m.programs = slices.DeleteFunc(g.m.programs, func(o *job) bool { return o == g })
	err := g.p.Exit(g.th)
	g.m.check(err == nil, "exit: %v", err)
	g.p.Space().Release()
}

// finish checks the final state when all programs have ended.
func (m *model) finish() error {
	if err := m.Engine.Run(); err != nil {
		return err
	}
	m.Go(0, "end", func(t *host.Thread) error { return m.file.Sync(t) })
	if err := m.Engine.Run(); err != nil {
		return err
	}
	for i, f := range []*host.File{m.constant, m.file} {
		content := f.Content()
		for j, g := range m.content[i] {
			b := content[j*page : min((j+1)*page, len(content))]
			m.check(g.match(0, b), "page %d of %s is wrong", j, f.Name())
			m.check(string(f.Disk()[j*page:j*page+len(b)]) == string(b), "page %d of %s is wrong on storage", j, f.Name())
		}
	}
	err := m.Kernel.Audit()
	m.check(err == nil, "%v", err)
	s := m.Kernel.Stats()
	m.check(s.FreePages == s.TotalPages-1-m.constant.Cached()-m.file.Cached(), "%d of %d pages are free at the end", s.FreePages, s.TotalPages)
	m.check(s.SwapUsed == 0, "%d slots are in use at the end", s.SwapUsed)
	m.check(s.TablePages == 0, "%d tables are in use at the end", s.TablePages)
	m.Engine.Close()
	return m.err
}

func runModel(seed uint64, ops int) (*model, error) {
	m, err := newModel(seed, ops)
	if err != nil {
		return nil, err
	}
	return m, m.finish()
}

// Random programs and a device run with too little memory: no byte is wrong, no
// page is used twice, no page is freed while a device uses it, and the kernel's
// books agree.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		_, err := runModel(rapid.Uint64().Draw(t, "seed"), rapid.IntRange(1, 300).Draw(t, "operations"))
		require.NoError(t, err)
	})
}

// The same for longer, so that every kind of operation happens.
func TestModelLong(t *testing.T) {
	var all host.KernelStats
	const each, enough = 2000, 40_000 // enough for all kinds to happen
	ops := *modelOps
	if testing.Short() {
		ops = min(ops, 10*each)
	}
	for i := 0; i*each < ops; i++ {
		m, err := runModel(uint64(i), each)
		require.NoError(t, err, "seed %d", i)
		s := m.Kernel.Stats()
		all.Copies += s.Copies
		all.Major += s.Major
		all.SwappedOut += s.SwappedOut
		all.FileWrites += s.FileWrites
		all.Dirtied += s.Dirtied
		all.Migrated += s.Migrated
		all.Huge += s.Huge
		all.Collapsed += s.Collapsed
		all.Splits += s.Splits
		all.Shortages += s.Shortages
		all.Minor += int64(m.device.landed)
	}
	t.Logf("%+v", all)
	if ops < enough {
		return
	}
	for what, n := range map[string]int64{
		"copies": all.Copies, "major faults": all.Major, "swap": all.SwappedOut, "file writes": all.FileWrites, "dirtied": all.Dirtied,
		"migrated": all.Migrated, "huge": all.Huge, "collapsed": all.Collapsed, "split": all.Splits, "direct reclaim": all.Shortages, "device": all.Minor,
	} {
		require.Greater(t, n, int64(3), what)
	}
}
