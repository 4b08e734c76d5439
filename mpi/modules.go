package mpi

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/spinsim/spinsim/handlers/allreduce"
	"github.com/spinsim/spinsim/handlers/reduction"
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
)

// Allreduce in the network interface. At each rank, each communicator has a
// module (handlers/allreduce), to which the process gives a vector. If the
// modules do not take a call, the process computes it as usual, and the reason
// is counted. Trees (trees.go) also do other calls.

// Mode selects who computes Allreduce.
type Mode string

// The choices.
const (
	// ModeHost is the process, with messages.
	ModeHost Mode = "host"
	// ModeAccelerator is ExaNeSt's hardware (TR-488 §4.7) with its limits: sum,
	// min and max of int32, float32 and float64, for whole QFDBs with a rank on
	// each MPSoC, in order, up to 1,024 ranks. A run is 256 B of a vector, and
	// the process starts one run after the other.
	ModeAccelerator Mode = "accelerator"
	// ModeBoards, ModeDoubling and ModeRing are algorithms of the same modules as
	// sPIN handlers. Ranks may be anywhere and of any number (ModeBoards: a
	// multiple of 4), and several runs are under way at a time.
	ModeBoards   Mode = "offload-boards"
	ModeDoubling Mode = "offload-doubling"
	ModeRing     Mode = "offload-ring"
	// ModeTree and ModeSwitch are trees of aggregators (handlers/reduction), in the
	// NICs of the ranks and in switches (fabric.Spec.Units). The world has one, or
	// each of Options.Groups.
	ModeTree   Mode = "offload-tree"
	ModeSwitch Mode = "switch"
)

// AllreduceChoices lists the choices; the first is the default.
func AllreduceChoices() []Mode {
	return []Mode{ModeHost, ModeAccelerator, ModeBoards, ModeDoubling, ModeRing, ModeTree, ModeSwitch}
}

func (o Options) allreduce() Mode { return cmp.Or(o.Allreduce, ModeHost) }

const maxWindow = 4096

// Default windows: large enough that with doubling one run follows the other
// without a gap, and that a ring of moderate size is full.
const (
	fewRuns  = 8
	mostRuns = 128
)

// window returns the runs under way at a time. runs is host.library.runs.
func (o Options) window(ranks, runs int) int {
	switch {
	case o.allreduce() == ModeAccelerator:
		return max(1, runs)
	case o.Window > 0:
		return o.Window
	case o.Allreduce == ModeRing:
		return min(max(ranks, fewRuns), mostRuns)
	}
	return fewRuns
}

var moduleAlgorithms = map[Mode]uint32{
	ModeAccelerator: allreduce.Boards, ModeBoards: allreduce.Boards, ModeDoubling: allreduce.Doubling, ModeRing: allreduce.Ring,
}

var moduleTypes = [kinds]uint16{kindInt32: allreduce.Int32, kindInt64: allreduce.Int64, kindFloat32: allreduce.Float32, kindFloat64: allreduce.Float64}

func moduleOp(op *Op) uint16 {
	switch op {
	case Sum:
		return allreduce.Sum
	case Min:
		return allreduce.Min
	case Max:
		return allreduce.Max
	}
	return 0
}

// module is the module of a communicator at one rank.
type module struct {
	comm   *Comm
	unit   unit   // nil: the communicator has none
	why    string // reason why it has none
	most   int    // most bytes given to it at a time; 0: no limit
	jobs   []job  // calls in order; the first is under way
	begun  int    // bytes of the first call given to it so far
	active bool
}

// unit is what combines vectors outside of the process.
type unit interface {
	Begin(c allreduce.Call) error
	Done() (bool, error)
	NI() *runtime.NI
	Signal() portals.Handle // a counter of calls that are over, the same for all of a process
}

type job struct {
	s        *schedule
	from, to runtime.View
}

type moduleSet struct {
	any      *module // the first opened; all use its counter
	active   []*module
	seen     uint64 // completed calls at the program's last look
	fellBack map[string]int64
	internal bool // the library's own call, which is not counted
}

func (s *moduleSet) count() uint64 {
	v, err := s.any.unit.NI().Objects().CTGet(s.any.unit.Signal())
	if err != nil {
		panic(err) //lint:panic the driver has allocated it
	}
	return v.Success
}

// computed reports whether a module has completed a call that the program has
// not seen.
func (s *moduleSet) computed() bool {
	return len(s.active) > 0 && s.count() > s.seen
}

// loadModules loads the library if the options ask for it.
func (w *World) loadModules() (err error) {
	switch {
	case w.o.inTrees():
		return w.loadTrees()
	case w.o.allreduce() != ModeHost:
		w.modules, err = allreduce.Load(w.c)
	}
	return err
}

// unfit returns the reason why no module serves a communicator; "": one does.
// The answer is the same at all its ranks.
func (w *World) unfit(c *Comm) string {
	n := c.Size()
	switch {
	case w.trees != nil && c == &c.r.world0 && len(w.groups) > 0:
		return "groups have trees, and the world has none"
	case w.trees != nil && c != &c.r.world0 && c.planned == 0:
		return "a communicator that was made during the run has no tree"
	case w.trees != nil:
		return ""
	}
	if by := w.o.allreduce(); n%allreduce.Board != 0 && (by == ModeAccelerator || by == ModeBoards) {
		return fmt.Sprintf("no whole QFDBs: %d ranks", n)
	}
	if int(c.id) >= allreduce.Groups {
		return fmt.Sprintf("no more than %d communicators have modules", allreduce.Groups)
	}
	if w.o.allreduce() != ModeAccelerator {
		return ""
	}
	if w.c.Profile().Serve["allreduce"] == nil {
		return "the device has no accelerator (serve.allreduce)"
	}
	if n > allreduce.MaxRanks {
		return fmt.Sprintf("%d ranks, at most %d", n, allreduce.MaxRanks)
	}
	at := func(i int) int { return c.Translate(i) / w.o.perNode() }
	for i := range n {
		if node := at(i); node%allreduce.Board != i%allreduce.Board || node-node%allreduce.Board != at(i-i%allreduce.Board) {
			return "ranks do not fill QFDBs in order, one on each MPSoC"
		}
	}
	return ""
}

// openModule opens the module of a communicator. late: the program is running.
func (c *Comm) openModule(late bool) error {
	r, w := c.r, c.r.world
	if w.modules == nil && w.trees == nil || c.Size() == 1 {
		return nil
	}
	m := &module{comm: c}
	c.module = m
	if m.why = w.unfit(c); m.why != "" {
		return nil
	}
	var err error
	if w.trees != nil {
		m.unit, err = w.trees.join(c)
	} else {
		err = m.open(late)
	}
	if err != nil {
		return fmt.Errorf("mpi: rank %d: %s: %w", r.rank, c.name, err)
	}
	if r.modules.any == nil {
		r.modules.any = m
	}
	if !late {
		return nil
	}
	r.modules.internal = true
	defer func() { r.modules.internal = false }()
	return c.Barrier() // all modules are open before the first call
}

// open makes a module of handlers/allreduce.
func (m *module) open(late bool) error {
	c := m.comm
	r, w := c.r, c.r.world
	o := allreduce.Options{
		Members: make([]portals.ID, c.Size()), Rank: c.rank, Group: c.id, PDID: uint16(w.o.ExaNet.PDID),
		Algorithm: moduleAlgorithms[w.o.Allreduce], Window: w.o.window(c.Size(), codeOf(r, used.Accelerator).Runs), Late: late,
	}
	for i := range o.Members {
		o.Members[i] = w.places[c.Translate(i)]
	}
	if w.o.Allreduce == ModeAccelerator {
		if codeOf(r, used.Accelerator).Vectors != host.VectorsOnce {
			m.most = allreduce.MaxBytes
		}
		o.Block = min(allreduce.MaxBytes, int(w.c.Profile().Fabric.MTU)&^7)
	}
	if r.modules.any != nil {
		o.Beside = r.modules.any.unit.(*allreduce.Module) //nolint:forcetypeassert // a world has one kind
	}
	unit, err := w.modules.Open(r.p, o)
	m.unit = unit
	return err
}

func (c *Comm) closeModule() error {
	if c.module == nil || c.module.unit == nil {
		return nil
	}
	if unit, is := c.module.unit.(*allreduce.Module); is {
		if err := unit.Close(); err != nil {
			return fmt.Errorf("mpi: rank %d: %s: %w", c.r.rank, c.name, err)
		}
	}
	c.module = nil
	return nil
}

// refuses returns the reason why a module does not take a call; "": it does.
func (m *module) refuses(k *call) string {
	if m.why != "" {
		return m.why
	}
	if by := m.comm.r.world.o.allreduce(); k.kind != callAllreduce && !by.Rooted() {
		return fmt.Sprintf("%s by %s, which does Allreduce alone", callNames[k.kind], by)
	}
	if k.uneven {
		return "pieces of different lengths"
	}
	if k.op != nil && (k.op.own != nil || moduleOp(k.op) == 0) {
		return "operation " + k.op.name
	}
	if m.comm.r.world.o.allreduce() == ModeAccelerator && k.t.kind == kindInt64 {
		return "type " + k.t.name
	}
	return ""
}

// offloads gives a call to the module of its communicator, if that takes it.
func (s builder) offloads(in, recv runtime.View) bool {
	c := s.comm
	if c.module == nil || in.Len() == 0 && s.call.kind != callBarrier || s.call.kind != callAllreduce && !s.r.world.o.Rooted {
		return false
	}
	if why := c.module.refuses(&s.call); why != "" {
		if set := &s.r.modules; !set.internal {
			if set.fellBack == nil {
				set.fellBack = map[string]int64{}
			}
			set.fellBack[why]++
			s.r.stats.FellBack++
		}
		return false
	}
	s.steps = append(s.steps, step{kind: stepModule, from: in, to: recv})
	return true
}

// give starts a call, or queues it behind earlier ones.
func (m *module) give(j job) error {
	j.s.pending++
	j.s.r.stats.Offloaded++
	m.jobs = append(m.jobs, j)
	if len(m.jobs) > 1 {
		return nil
	}
	m.begun = 0
	return m.next()
}

// next gives the module the next part of its first call.
func (m *module) next() error {
	r, j := m.comm.r, &m.jobs[0]
	n := j.from.Len() - m.begun
	if m.most > 0 {
		n = min(n, m.most)
	}
	r.p.Compute(r.p.Reads(used.Message).Host.Message)
	from, to := m.begun, m.begun+n
	m.begun = to
	if !m.active {
		m.active = true
		r.modules.active = append(r.modules.active, m)
	}
	var err error
	if k := &j.s.call; k.kind == callAllreduce {
		err = m.unit.Begin(k.vector(j.from.Slice(from, to), j.to.Slice(from, to)))
	} else {
		err = k.beginRooted(m.unit.(*reduction.Member), j) //nolint:forcetypeassert // others refuse
	}
	if err != nil {
		return fmt.Errorf("mpi: rank %d: %s: %w", r.rank, j.s.call.describe(m.comm), err)
	}
	return nil
}

// vector is a call to combine a vector.
func (k *call) vector(from, to runtime.View) allreduce.Call {
	return allreduce.Call{Source: from, Result: to, Op: moduleOp(k.op), Type: moduleTypes[k.t.kind]}
}

// collect handles the completed calls: it looks at what their modules have
// written.
func (r *Rank) collect() error {
	r.modules.seen = r.modules.count()
	if codeOf(r, used.Accelerator).Notice == host.NoticeMailbox {
		r.p.Look(r.p.Reads(used.LookCached).Host.LookCached())
	} else {
		r.looked()
	}
	for i := 0; i < len(r.modules.active); {
		m := r.modules.active[i]
		over, err := m.unit.Done()
		switch {
		case err != nil:
			return fmt.Errorf("mpi: rank %d: %s: %w", r.rank, m.jobs[0].s.call.describe(m.comm), err)
		case !over:
			i++
			continue
		}
		if m.begun == m.jobs[0].from.Len() {
			m.jobs[0].s.part()
			m.jobs = m.jobs[:copy(m.jobs, m.jobs[1:])]
			m.begun = 0
		}
		if len(m.jobs) > 0 {
			if err := m.next(); err != nil {
				return err
			}
			i++
			continue
		}
		m.active = false
		r.modules.active = slices.Delete(r.modules.active, i, i+1)
	}
	return nil
}

// part counts down one thing that the schedule waits for.
func (s *schedule) part() {
	if s.pending--; s.pending == 0 && !s.queued {
		s.queued = true
		s.r.runnable = append(s.r.runnable, s)
	}
}

// Fallback is a reason why processes did calls that modules were to do, with their
// number.
type Fallback struct {
	Why   string
	Calls int64 // of all ranks
}

// Fallbacks lists why processes did calls that Options.Allreduce and Options.Rooted
// give to modules. The list is sorted by reason.
func (w *World) Fallbacks() (list []Fallback) {
	sum := map[string]int64{}
	for _, r := range w.ranks {
		if r != nil {
			for why, n := range r.modules.fellBack { //lint:maporder a sum
				sum[why] += n
			}
		}
	}
	for _, why := range slices.Sorted(maps.Keys(sum)) {
		list = append(list, Fallback{why, sum[why]})
	}
	return list
}
