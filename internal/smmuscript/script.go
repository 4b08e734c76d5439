package smmuscript

import (
	"fmt"
	"io"

	"github.com/spinsim/spinsim/internal/smmutest"
	"github.com/spinsim/spinsim/sim"
	"github.com/spinsim/spinsim/smmu"
)

// world is the state of a script.
type world struct {
	out     io.Writer
	spec    *smmu.Spec
	latency sim.Time
	rate    sim.Rate
	node    *smmutest.Node // nil until it is needed
	tables  map[uint16]*smmutest.Tables
	access  map[string]*access
	syncs   map[string]bool
	keep    bool
	trace   bool
	err     error // of out
}

// access is one access of a script.
type access struct {
	smmu.Request
	name     string
	asked    bool // no answer yet
	inFlight bool
}

// Run runs a script and writes what it prints to out. It returns an *Error for
// a mistake in the script, or the error of out.
func Run(text string, out io.Writer) error {
	commands, err := parse(text)
	if err != nil {
		return err
	}
	w := &world{out: out, tables: map[uint16]*smmutest.Tables{}, access: map[string]*access{}, syncs: map[string]bool{}}
	if w.spec, err = smmutest.Spec(); err != nil {
		return err
	}
	for i := range commands {
		c := &commands[i]
		if err := w.do(c); err != nil {
			return err
		}
		if w.err != nil {
			return w.err
		}
	}
	return nil
}

// do carries out a command.
func (w *world) do(c *command) error {
	v, known := verbs[c.verb]
	switch {
	case !known:
		return &Error{Line: c.line, Why: fmt.Sprintf("unknown command %q", c.verb)}
	case len(c.pos) < v.least || len(c.pos) > v.most:
		return c.errorf("%d words, expected %s", len(c.pos), v.usage)
	}
	if !v.early && w.node == nil {
		var watcher smmu.Watcher = w
		w.node = smmutest.NewNode(w.spec, w.latency, watcher)
		w.node.Memory.Rate = w.rate
		w.node.Lines.Told = func(bank int) { w.printf("interrupt of bank %d", bank) }
	}
	if v.early && w.node != nil {
		return c.errorf("expected before the first command that uses the SMMU")
	}
	return v.run(w, c)
}

func (w *world) printf(format string, args ...any) {
	if w.err == nil {
		_, w.err = fmt.Fprintf(w.out, "%v: "+format+"\n", append([]any{w.node.Engine.Now()}, args...)...)
	}
}

// of returns the tables of a process; they are made when they are first named.
func (w *world) of(pdid uint16) *smmutest.Tables {
	t := w.tables[pdid]
	if t == nil {
		t = smmutest.NewTables(w.spec.AddressBits)
		w.tables[pdid] = t
	}
	return t
}

// answered is the end of the translation of an access.
func (w *world) answered(a *access, res smmu.Result) {
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

func (w *world) done(a *access) {
	a.inFlight = false
	w.node.SMMU.Done(&a.Request)
}

// Translated implements smmu.Client.
func (w *world) Translated(r *smmu.Request, res smmu.Result) {
	if a, is := r.Ref.(*access); is {
		w.answered(a, res)
	}
}

// Synced implements smmu.SyncClient.
func (w *world) Synced(y *smmu.Sync) {
	if name, is := y.Ref.(string); is {
		delete(w.syncs, name)
		w.printf("%s synced", name)
	}
}

// Walked implements smmu.Watcher.
func (w *world) Walked(i smmu.WalkInfo) {
	if w.trace {
		cached := ""
		if i.Cached {
			cached = ", from the walk cache"
		}
		w.printf("walk for %#x of bank %d since %v: %d reads, level %d, %v%s", i.Addr, i.Bank, i.From, i.Reads, i.Level, i.Result, cached)
	}
}

// Faulted implements smmu.Watcher.
func (w *world) Faulted(i smmu.FaultInfo) {
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
func (w *world) Stalled(i smmu.StallInfo) {
	if w.trace {
		w.printf("%#x of bank %d was stalled since %v", i.Addr, i.Bank, i.From)
	}
}

// Stale implements smmu.Watcher.
func (w *world) Stale(i smmu.StaleInfo) {
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
