package smmu_test

import (
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/spinsim/spinsim/internal/script"
	"github.com/spinsim/spinsim/internal/smmutest"
	"github.com/spinsim/spinsim/sim"
	"github.com/spinsim/spinsim/smmu"
)

// A script runs against an SMMU: map these pages, ask for these accesses, read
// and write these registers, print what happened and when. The script is the
// driver. The tests of registers and times are written in it.
//
// A script is a list of lines; # begins a comment. Everything happens at the
// present time until "run" or "wait".
//
//	smmu walks=2 hit_under_fault=false   # fields of smmu.Spec that differ from the ExaNeSt node's; first, if at all
//	memory latency=150ns rate=1ps/B      # of the controller that walks read from; second
//	bank 0 7                             # process (PDID) 7 has bank 0
//	map 7 0x1000 0x5000 ro               # page at the physical address 0x5000; size=2MiB, pages=4
//	read a 7 0x1000                      # an access, called a, of 64 bytes; len=4096
//	write b 7 0x1fff len=2
//	run                                  # until nothing happens any more
//	get 0 FSR FAR FSYNR SCTLR
//	set 0 SCTLR=+CFCFG,-HUPCF FSR=all RESUME=0 TLBIVA=0x1000
//
// The other commands: release BANK; unmap PDID VA; protect PDID VA ro; prune
// PDID VA size=2MiB (frees the tables below); tlbi (forget all); keep (accesses
// that are OK stay in flight) and done NAME...; sync BANK NAME; wait TIME;
// trace (walks, faults and stalls); count NAME... (counters, their names as in
// smmu.Counters).
//
// Every line printed begins with the time.

// command is one line of a script.
type command struct{ script.Command }

// number reads an unsigned number of at most bits bits, decimal or 0x hexadecimal.
func (c *command) number(what, text string, bits int) (uint64, error) {
	v, err := strconv.ParseUint(text, 0, bits)
	if err != nil {
		return 0, c.Errorf("%s %q, expected a number below 2^%d", what, text, bits)
	}
	return v, nil
}

// size reads a number of bytes up to most.
func (c *command) size(what, text string, most int64) (int64, error) {
	v, err := sim.ParseSize(text)
	if err != nil || int64(v) > most {
		return 0, c.Errorf("%s %q, expected a size up to %v", what, text, sim.Size(most))
	}
	return int64(v), nil
}

// scriptWorld is the state of a script.
type scriptWorld struct {
	out     io.Writer
	spec    *smmu.Spec
	latency sim.Time
	rate    sim.Rate
	node    *smmutest.Node // nil until it is needed
	tables  map[uint16]*smmutest.Tables
	access  map[string]*scriptAccess
	syncs   map[string]bool
	keep    bool
	trace   bool
	err     error // of out
}

// scriptAccess is one access of a script.
type scriptAccess struct {
	smmu.Request
	name     string
	asked    bool // no answer yet
	inFlight bool
}

// runScript runs a script and writes what it prints to out. It returns an *script.Error for
// a mistake in the script, or the error of out.
func runScript(text string, out io.Writer) error {
	commands, err := script.Parse(text)
	if err != nil {
		return err
	}
	w := &scriptWorld{out: out, tables: map[uint16]*smmutest.Tables{}, access: map[string]*scriptAccess{}, syncs: map[string]bool{}}
	if w.spec, err = smmutest.Spec(); err != nil {
		return err
	}
	for _, line := range commands {
		if err := w.do(&command{line}); err != nil {
			return err
		}
		if w.err != nil {
			return w.err
		}
	}
	return nil
}

// do carries out a command.
func (w *scriptWorld) do(c *command) error {
	v, known := verbs[c.Verb]
	switch {
	case !known:
		return &script.Error{Line: c.Line, Why: fmt.Sprintf("unknown command %q", c.Verb)}
	case slices.ContainsFunc(c.Args, func(a script.Arg) bool { return a.Value == "" }):
		return c.Errorf("%v, expected key=value with a value", c.Args)
	case len(c.Pos) < v.least || len(c.Pos) > v.most:
		return c.Errorf("%d words, expected %s", len(c.Pos), v.usage)
	}
	if !v.early && w.node == nil {
		var watcher smmu.Watcher = w
		w.node = smmutest.NewNode(w.spec, w.latency, watcher)
		w.node.Memory.Rate = w.rate
		w.node.Lines.Told = func(bank int) { w.printf("interrupt of bank %d", bank) }
	}
	if v.early && w.node != nil {
		return c.Errorf("expected before the first command that uses the SMMU")
	}
	return v.run(w, c)
}

func (w *scriptWorld) printf(format string, args ...any) {
	if w.err == nil {
		_, w.err = fmt.Fprintf(w.out, "%v: "+format+"\n", append([]any{w.node.Engine.Now()}, args...)...)
	}
}

// of returns the tables of a process; they are made when they are first named.
func (w *scriptWorld) of(pdid uint16) *smmutest.Tables {
	t := w.tables[pdid]
	if t == nil {
		t = smmutest.NewTables(w.spec.AddressBits)
		w.tables[pdid] = t
	}
	return t
}

// answered is the end of the translation of an access.
func (w *scriptWorld) answered(a *scriptAccess, res smmu.Result) {
	a.asked = false
	switch {
	case res != smmu.OK && res != smmu.Denied:
		w.printf("%s %v at %#x", a.name, res, a.Failed())
	case res != smmu.OK || len(a.Frames) == 0:
		w.printf("%s %v", a.name, res)
	default:
		w.printf("%s OK %#x", a.name, a.Frames)
	}
	if res != smmu.OK {
		return
	}
	a.inFlight = true
	if !w.keep {
		w.done(a)
	}
}

func (w *scriptWorld) done(a *scriptAccess) {
	a.inFlight = false
	w.node.SMMU.Done(&a.Request)
}

// Translated implements smmu.Client.
func (w *scriptWorld) Translated(r *smmu.Request, res smmu.Result) {
	if a, is := r.Ref.(*scriptAccess); is {
		w.answered(a, res)
	}
}

// Synced implements smmu.SyncClient.
func (w *scriptWorld) Synced(y *smmu.Sync) {
	if name, is := y.Ref.(string); is {
		delete(w.syncs, name)
		w.printf("%s synced", name)
	}
}

// Walked implements smmu.Watcher.
func (w *scriptWorld) Walked(i smmu.WalkInfo) {
	if w.trace {
		cached := ""
		if i.Cached {
			cached = ", from the walk cache"
		}
		w.printf("walk for %#x of bank %d since %v: %d reads, level %d, %v%s", i.Addr, i.Bank, i.From, i.Reads, i.Level, i.Result, cached)
	}
}

// Faulted implements smmu.Watcher.
func (w *scriptWorld) Faulted(i smmu.FaultInfo) {
	if !w.trace {
		return
	}
	what, where := "read", "only MULTI"
	if i.Write {
		what = "write"
	}
	if i.Recorded {
		where = "recorded"
	}
	w.printf("%v of bank %d, PDID %d: %s at %#x, level %d, %s", i.Kind, i.Bank, i.PDID, what, i.Addr, i.Level, where)
}

// Stalled implements smmu.Watcher.
func (w *scriptWorld) Stalled(i smmu.StallInfo) {
	if w.trace {
		w.printf("%#x of bank %d was stalled since %v", i.Addr, i.Bank, i.From)
	}
}

// Stale implements smmu.Watcher.
func (w *scriptWorld) Stale(i smmu.StaleInfo) {
	w.printf("stale: bank %d had %s for %#x at level %d, the tables have %s", i.Bank, entry(i.Had), i.Addr, i.Level, entry(i.Is))
}

// entry is a descriptor as scripts print it.
func entry(e smmu.Entry) string {
	switch {
	case e.Kind == smmu.Invalid:
		return "nothing"
	case e.Kind == smmu.Table:
		return fmt.Sprintf("the table %#x", e.Addr)
	case e.Write:
		return fmt.Sprintf("%#x", e.Addr)
	}
	return fmt.Sprintf("%#x read only", e.Addr)
}
