package scenario

import (
	"context"
	"errors"
	"fmt"

	"github.com/spinsim/spinsim/internal/lab"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/internal/breakdown"
	"github.com/spinsim/spinsim/internal/cli"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// run is a scenario in progress.
type run struct {
	*Plan
	*lab.Run

	ctx      context.Context // checked between steps
	states   []rankState
	logs     []logRow
	logBytes int               // bytes of log text
	unlogged int               // lines left out
	followed *breakdown.Record // nil: no breakdown
	failures []error
	more     int // failures that are counted but not kept
	checked  int // comparisons made
	excused  map[excuse]bool
	cut      string // as in Result
}

// excuse is a number that an expectation has checked. Then failed handlers, or
// lost or refused messages, are no surprise.
type excuse struct {
	stat StatName
	rank int
}

// rankState is the state of a process of a run.
type rankState struct {
	*lab.Node      // nil: the run ended before time began
	regions        map[string]runtime.View
	entries        map[string]*installed
	puts, gets     portals.Handle // descriptors of all memory
	acks, replies  waitable
	marks          map[string]sim.Time
	latencies      []*latency // in the order of their first samples
	step           string     // path of the current step; "": none
	waits          waiting
	handlersFailed int64
	ended          sim.Time // when its program finished
	ready          bool     // its entries and buffers exist
	handled        uint64   // events at the beginning of a repetition
	idle           int      // repetitions since then
}

// waitable is a counter with the value that the program has waited for so far.
type waitable struct {
	ct     portals.Handle
	waited uint64
}

// waiting is the goal of a waiting step. The zero value is nothing.
type waiting struct {
	ct     portals.Handle
	count  uint64
	things string
	text   string // for a goal without a counter
	now    string // how that is
}

// installed is an entry on a rank.
type installed struct {
	waitable
	plan   *entryPlan
	handle portals.Handle
	made   *handlers.Installed // nil: no handlers
}

// latency is a measured interval.
type latency struct {
	name     string
	samples  []sim.Time
	measured []measured // likewise, for a breakdown
}

// measured is the beginning, the end and the divisor of a sample.
type measured struct {
	from, to sim.Time
	divide   int
}

// maxLogLines is the most lines of the handlers' log that a run keeps; further
// ones are counted.
const maxLogLines = 10_000

// Run executes the scenario. watched has what looks at the run and bounds it; the
// rest of the configuration is the scenario's. If the simulation began, Run
// returns a result even with an error: the error gives the failures, the result
// the tables.
func (p *Plan) Run(ctx context.Context, watched runtime.Config) (result *Result, err error) {
	r := &run{Plan: p, Run: &lab.Run{}, states: make([]rankState, p.ranks), excused: make(map[excuse]bool)}
	if p.options.Breakdown {
		r.followed = breakdown.NewRecord()
		var end context.CancelCauseFunc
		ctx, end = context.WithCancelCause(ctx)
		defer end(nil)
		r.followed.Limit(p.room, func() { end(&breakdown.FullError{Left: p.room}) })
		watched.Tracer = breakdown.Follow(r.followed, watched.Tracer)
	}
	r.ctx = ctx
	r.Keep = func(_ int, e *portals.Event) bool { return p.output.Events.chosen[e.Type] }
	if tell := p.explain; tell != nil {
		r.See = func(s lab.Step) {
			tell(&ExplainStep{s, func(h portals.Handle) string { return r.name(s.Rank, h) }})
		}
	}
	watched.Profile, watched.Nodes, watched.Seed, watched.Engine = p.profile, p.ranks, p.seed, p.engine
	watched.Stop = func() error { return context.Cause(ctx) }
	watched.Log = r.log
	err = r.Do(ctx, watched, p.nameOf, r.main, func(err error) error {
		result, err = r.finish(err)
		return err
	})
	if watched.Used != nil {
		watched.Used(p.env.facts())
	}
	return result, err
}

// nameOf names the program of a rank.
func (p *Plan) nameOf(rank int) string {
	if g := p.programOf[rank]; g != nil {
		return g.Name
	}
	return "host"
}

// log keeps a line that a handler has logged.
func (r *run) log(rank int, at sim.Time, module, line string) {
	if len(r.logs) == maxLogLines || r.logBytes+len(line) > lab.MaxLogBytes {
		r.unlogged++
		return
	}
	r.logBytes += len(line)
	r.logs = append(r.logs, logRow{at, rank, module, line})
}

// finish makes the checks at the end of the run and collects its result.
func (r *run) finish(err error) (*Result, error) {
	if full := (*breakdown.FullError)(nil); errors.As(context.Cause(r.ctx), &full) {
		return nil, full // also if the run ended before it noticed
	}
	if _, limited := errors.AsType[*sim.LimitError](err); err != nil && r.ctx.Err() != nil && !limited {
		return nil, err
	}
	failed, total := r.Cluster.HandlerErrors()
	for _, f := range failed {
		r.states[f.Rank].handlersFailed++
	}
	for rank := range r.states {
		if r.states[rank].Node == nil {
			return nil, err
		}
	}
	r.cut = cli.CutBy(err)
	if err != nil {
		if lab.Early(err) {
			err = errors.Join(err, r.whereStuck())
		}
		err = errors.Join(err, r.whatWentWrong(failed))
	} else {
		for i := range r.spec.Expect {
			r.expect(&r.spec.Expect[i], fmt.Sprintf("expect[%d]", i), nil, r.env)
		}
		r.surprises(failed, total)
	}
	if r.more > 0 {
		r.failures = append(r.failures, fmt.Errorf("and %d more failures", r.more))
	}
	err = errors.Join(append([]error{err}, r.failures...)...)
	return r.result(err), err
}

// surprises turns failed handlers, lost and refused messages into failures of
// the run, unless an expectation has checked their number.
func (r *run) surprises(failed []nic.HandlerError, total int) {
	for _, f := range failed {
		if !r.excused[excuse{"handler_errors", f.Rank}] {
			r.fail(f)
		}
	}
	if total > len(failed) {
		r.fail(fmt.Errorf("%d handlers failed, of which %d are known", total, len(failed)))
	}
	lost, all := r.Cluster.LostMessages()
	for _, l := range lost {
		if !r.excused[excuse{"messages_lost", l.Rank}] {
			r.fail(l)
		}
	}
	if known := nic.Messages(lost); all > known {
		r.fail(fmt.Errorf("%d messages were lost, of which %d are known", all, known))
	}
	for _, m := range r.Refused {
		if !r.excused[excuse{"messages_refused", m.Rank}] {
			r.fail(m)
		}
	}
}

// keptFailures is the most failures that a run lists; the others are counted.
const keptFailures = 20

func (r *run) fail(err error) {
	if len(r.failures) == keptFailures {
		r.more++
		return
	}
	r.failures = append(r.failures, err)
}

// whereStuck names the steps at which programs wait.
func (r *run) whereStuck() error {
	var errs []error
	for rank := range r.states {
		st := &r.states[rank]
		if st.step == "" || st.waits.things == "" && st.waits.text == "" {
			continue
		}
		if len(errs) == keptFailures {
			errs = append(errs, errors.New("and further ranks"))
			break
		}
		if w := &st.waits; w.text != "" {
			errs = append(errs, r.at(st.step, fmt.Errorf("rank %d waits here for %s, it is %s", rank, w.text, w.now)))
			continue
		}
		v, err := st.NI().Objects().CTGet(st.waits.ct)
		if err != nil {
			return err
		}
		if v.Success >= st.waits.count { // a limit ended the run before the program saw the count
			continue
		}
		errs = append(errs, r.at(st.step, fmt.Errorf("rank %d waits here for %d %s, %d have come", rank, st.waits.count, st.waits.things, v.Success)))
	}
	return errors.Join(errs...)
}

// whatWentWrong lists possible reasons for an early end of the run.
func (r *run) whatWentWrong(failed []nic.HandlerError) error {
	var errs []error
	for i, f := range failed {
		if i == keptFailures {
			errs = append(errs, fmt.Errorf("and %d more handlers failed", len(failed)-i))
			break
		}
		errs = append(errs, f)
	}
	lost, all := r.Cluster.LostMessages()
	for i, l := range lost {
		if i == keptFailures {
			errs = append(errs, fmt.Errorf("and %d more messages were lost", all-nic.Messages(lost[:i])))
			break
		}
		errs = append(errs, l)
	}
	for _, m := range r.Refused {
		errs = append(errs, m)
	}
	return errors.Join(errs...)
}

// main is the process of a rank.
func (r *run) main(n *lab.Node) error {
	rank := n.Rank()
	st := &r.states[rank]
	st.Node = n
	if err := r.setup(st, rank); err != nil {
		return err
	}
	g := r.programOf[rank]
	if g == nil {
		return nil
	}
	err := r.steps(st, g.Steps, g.path+".steps", r.on(rank))
	if err == nil {
		st.step = ""
		st.ended = n.Now()
	}
	return err
}

// setup allocates memory, descriptors and counters, and appends the entries.
func (r *run) setup(st *rankState, rank int) (err error) {
	ni := st.NI()
	st.regions, st.entries, st.marks = make(map[string]runtime.View), make(map[string]*installed), make(map[string]sim.Time)
	slots, err := r.spec.EventQueue.int(r.env, defaultEventQueue, 1, maxCount)
	if err != nil {
		return r.at("event_queue", err)
	}
	if err = st.MakeQueue(uint64(slots)); err != nil {
		return r.at("event_queue", err)
	}
	if st.acks.ct, err = ni.Objects().CTAlloc(); err != nil {
		return err
	}
	if st.replies.ct, err = ni.Objects().CTAlloc(); err != nil {
		return err
	}
	ni.Objects().Label(st.Queue, "events")
	ni.Objects().Label(st.acks.ct, "acks")
	ni.Objects().Label(st.replies.ct, "replies")
	all := portals.MD{Length: portals.SizeMax, EQ: st.Queue, CT: st.acks.ct, Options: portals.OptMDEventCTAck}
	if st.puts, err = ni.Objects().MDBind(&all); err != nil {
		return err
	}
	all.CT, all.Options = st.replies.ct, portals.OptMDEventCTReply
	if st.gets, err = ni.Objects().MDBind(&all); err != nil {
		return err
	}
	if err := r.offer(st, rank); err != nil {
		return err
	}
	if g := r.programOf[rank]; g != nil {
		for i := range g.Buffers {
			b := &g.Buffers[i]
			n, err := b.size(r.on(rank))
			if err == nil {
				err = r.allocate(st, rank, b.Name, n, &b.Fill, runtime.View.Raw)
			}
			if err != nil {
				return r.at(fmt.Sprintf("%s.buffers[%d]", g.path, i), err)
			}
		}
	}
	st.ready = true
	return nil
}

// defaultEventQueue is the default number of slots of an event queue.
const defaultEventQueue = 4096

// allocate gives a rank named memory. access is the way of writing its content.
func (r *run) allocate(st *rankState, rank int, name string, n int64, fill *Content, access func(runtime.View) []byte) error {
	v := st.Alloc(int(n))
	st.regions[name] = v
	if !fill.IsSet() {
		return nil
	}
	return fill.fill(access(v), r.on(rank), r.stream(rank, name))
}

// offer appends the entries of a rank.
func (r *run) offer(st *rankState, rank int) error {
	var all []*installed
	var entries []lab.Entry
	for _, e := range r.entries {
		if !e.on[rank] {
			continue
		}
		in := &installed{plan: e}
		st.entries[e.Name] = in
		entry, err := r.install(st, in, rank)
		if err != nil {
			return r.at(e.path, fmt.Errorf("on rank %d: %w", rank, err))
		}
		all, entries = append(all, in), append(entries, entry)
	}
	handles, err := st.Offer(entries)
	for i, h := range handles {
		all[i].handle = h
	}
	if err != nil {
		err = r.at(all[len(handles)].plan.path, fmt.Errorf("on rank %d: %w", rank, err))
	}
	return err
}

// install makes an entry with its memory, counter and handlers.
func (r *run) install(st *rankState, in *installed, rank int) (entry lab.Entry, err error) {
	e := in.plan
	n, err := e.size(r.on(rank))
	if err != nil {
		return entry, err
	}
	if err = r.allocate(st, rank, e.Name, n, &e.Fill, runtime.View.Raw); err != nil {
		return entry, err
	}
	me, err := r.matchEntry(e, rank)
	if err != nil {
		return entry, err
	}
	if in.ct, err = st.NI().Objects().CTAlloc(); err != nil {
		return entry, err
	}
	st.NI().Objects().Label(in.ct, "entry "+e.Name)
	me.CT = in.ct
	pt, _, err := r.criteria(e, rank)
	if err != nil {
		return entry, err
	}
	entry = lab.Entry{ME: *me, PT: uint32(pt), PTs: portals.PTOptions(optionBits(e.PTOptions, portals.PTNames)), List: portals.List(indexOf(e.List)), UserPtr: uint64(e.index + 1), Memory: st.regions[e.Name]}
	if e.handlers != nil {
		entry.PTs |= e.handlers.PTOptions
		in.made, err = r.handlers(st, in, rank)
		entry.Handlers = in.made
	}
	return entry, err
}

// handlers installs the handlers of an entry.
func (r *run) handlers(st *rankState, in *installed, rank int) (made *handlers.Installed, err error) {
	e := in.plan
	userHeader, hostBytes, err := r.handlerMemory(e, rank)
	if err != nil {
		return nil, err
	}
	if e.shares != nil {
		if made, err = e.handlers.Share(st.entries[e.shares.Name].made); err != nil {
			return nil, err
		}
		made.UserHeader, made.Spin.UserHdrLen = userHeader, uint64(userHeader)
	} else {
		size, initial, err := r.state(e, rank)
		if err != nil {
			return nil, err
		}
		if err = r.allocate(st, rank, e.Name+hostMemory, hostBytes, &Content{}, runtime.View.Raw); err != nil {
			return nil, err
		}
		made, err = st.Install(e.handlers, handlers.Options{State: initial, Memory: size, UserHeader: userHeader}, st.regions[e.Name+hostMemory])
		if err != nil {
			return nil, err
		}
	}
	made.Spin.Stamp, err = e.stamp(r.on(rank))
	return made, err
}
