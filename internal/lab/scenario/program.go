package scenario

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/spinsim/spinsim/internal/lab"

	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// steps executes the steps of a program, or of a repeat in it.
func (r *run) steps(st *rankState, steps []Step, path string, at *env) error {
	for i := range steps {
		if err := context.Cause(r.ctx); err != nil {
			return err
		}
		s := &steps[i]
		st.step, st.waits = fmt.Sprintf("%s[%d]", path, i), waiting{}
		if s.Repeat != nil {
			if err := r.repeat(st, s.Repeat, at); err != nil {
				return err
			}
			continue
		}
		if err := r.step(st, s, st.step, at); err != nil {
			return r.at(st.step, err)
		}
	}
	return nil
}

// repeat executes steps many times.
func (r *run) repeat(st *rankState, x *Repeat, at *env) error {
	times, err := x.Times.int(at, 1, 0, maxCount)
	if err != nil {
		return r.at(st.step, err)
	}
	if !acts(x.Steps) { // a billion rounds of nothing
		return nil
	}
	inner := st.step + ".repeat.steps"
	for round := range times {
		if err := r.turn(st); err != nil {
			return err
		}
		if err := r.steps(st, x.Steps, inner, at.with(varRound, round)); err != nil {
			return err
		}
	}
	return nil
}

// acts reports whether any step does something.
func acts(steps []Step) bool {
	return slices.ContainsFunc(steps, func(s Step) bool { return s.Repeat == nil || acts(s.Repeat.Steps) })
}

// idleRounds is the number of rounds without an event before the engine runs.
const idleRounds = 1024

// turn is called before each of many repetitions. It returns an error if the
// run must end. Rounds that take no time and send nothing, such as marks, would
// keep the engine from checking its limits. So turn gives the engine an event
// now and then.
func (r *run) turn(st *rankState) error {
	if err := context.Cause(r.ctx); err != nil {
		return err
	}
	if handled := r.Cluster.Engine().Handled(); handled != st.handled {
		st.handled, st.idle = handled, 0
		return nil
	}
	if st.idle++; st.idle == idleRounds {
		st.idle = 0
		st.Sleep(0)
	}
	return nil
}

// step executes one step.
func (r *run) step(st *rankState, s *Step, path string, at *env) error {
	p := st.Proc
	switch {
	case s.target() != nil:
		return r.each(st, s.target(), at, func(at *env) error { return r.post(st, s, path, at) })
	case s.Wait != nil:
		return r.wait(st, s.Wait, at)
	case s.WriteHPU != nil:
		return r.writeHPU(st, s.WriteHPU, at)
	case s.WaitHPU != nil:
		return r.waitHPU(st, s.WaitHPU, at)
	case s.Sleep != nil:
		if err := soon(p.Now(), *s.Sleep); err != nil {
			return err
		}
		p.Sleep(*s.Sleep)
	case s.Until != nil:
		p.SleepUntil(max(p.Now(), *s.Until))
	case s.Compute != nil:
		if err := soon(p.Now(), *s.Compute); err != nil {
			return err
		}
		p.Compute(*s.Compute)
	case s.UserID != nil:
		uid, err := userID(s, at)
		if err != nil {
			return err
		}
		p.SetUID(uid)
	case s.Copy != nil:
		from, into, err := r.copy(p.Rank(), s.Copy, at)
		if err != nil {
			return err
		}
		p.Copy(st.view(into), st.view(from))
	case s.Mark != nil:
		st.marks[*s.Mark] = p.Now()
	case s.Measure != nil:
		return r.doMeasure(st, s.Measure, at)
	case s.Expect != nil:
		r.expect(s.Expect, path+".expect", []int{p.Rank()}, at)
	}
	return nil
}

// maxTime is the latest end of a run, so that no sum of times overflows.
const maxTime = sim.Time(math.MaxInt64 / 2)

// soon returns an error if the time would be after maxTime.
func soon(now, d sim.Time) error {
	if d > maxTime-now {
		return fmt.Errorf("the run would go on beyond %v", maxTime)
	}
	return nil
}

// view returns the memory of a span.
func (st *rankState) view(s span) runtime.View {
	return st.regions[s.of].Slice(int(s.off), int(s.off+s.len))
}

// addr returns the address of a span.
func (st *rankState) addr(s span) uint64 { return st.regions[s.of].Addr() + uint64(s.off) }

// each repeats an operation, at intervals if there is one.
func (r *run) each(st *rankState, t *Target, at *env, post func(*env) error) error {
	n, err := t.Count.int(at, 1, 0, maxCount)
	if err != nil {
		return err
	}
	start := st.Now()
	for i := range n {
		if err := r.turn(st); err != nil {
			return err
		}
		if t.Interval != nil {
			if err := soon(start, sim.Time(i)**t.Interval); err != nil {
				return err
			}
			st.SleepUntil(max(st.Now(), start+sim.Time(i)**t.Interval))
		}
		if err := post(at.with(varI, i)); err != nil {
			return err
		}
	}
	return nil
}

// own allocates memory for a step when the step first needs it.
func (r *run) own(st *rankState, s span, path string, fill *Content) error {
	if s.of != path {
		return nil
	}
	if have, ok := st.regions[path]; ok && int64(have.Len()) >= s.len {
		return nil
	}
	if !fill.IsSet() {
		fill = &Content{kind: contentPattern}
	}
	return r.allocate(st, st.Rank(), path, s.len, fill, runtime.View.Write)
}

// stepPtr is set in the user pointers of operations of steps. Entries have
// small user pointers.
const stepPtr = 1 << 40

// post posts the operation of a step, to each of its targets.
func (r *run) post(st *rankState, s *Step, path string, at *env) error {
	g, err := r.posting(st.Rank(), path, s, at)
	if err == nil {
		err = r.own(st, g.src, path, g.fill)
	}
	if err == nil {
		err = r.own(st, g.dst, path, &Content{kind: contentZero})
	}
	ni, ptr := st.NI(), stepPtr|uint64(r.stepID[path])
	src, n := g.src, uint64(g.src.len)
	for i := range g.to {
		if err != nil {
			break
		}
		a := &g.to[i]
		switch {
		case s.Put != nil:
			err = ni.Put(portals.Put{MD: st.puts, Offset: st.addr(src), Length: n, Ack: g.ack, Target: a.id(), PT: a.pt, MatchBits: a.bits, RemoteOffset: a.remote, UserPtr: ptr, HdrData: g.hdr})
		case s.Get != nil:
			err = ni.Get(portals.Get{MD: st.gets, Offset: st.addr(g.dst), Length: uint64(g.dst.len), Target: a.id(), PT: a.pt, MatchBits: a.bits, RemoteOffset: a.remote, UserPtr: ptr})
		case !g.fetches:
			err = ni.Atomic(portals.Atomic{MD: st.puts, Offset: st.addr(src), Length: n, Ack: g.ack, Target: a.id(), PT: a.pt, MatchBits: a.bits, RemoteOffset: a.remote, UserPtr: ptr, HdrData: g.hdr, Op: g.op, Type: g.typ})
		case g.op < portals.OpSWAP:
			err = ni.FetchAtomic(portals.FetchAtomic{GetMD: st.gets, GetOffset: st.addr(g.dst), MD: st.puts, Offset: st.addr(src), Length: n, Target: a.id(), PT: a.pt, MatchBits: a.bits, RemoteOffset: a.remote, UserPtr: ptr, HdrData: g.hdr, Op: g.op, Type: g.typ})
		default:
			err = ni.Swap(portals.Swap{GetMD: st.gets, GetOffset: st.addr(g.dst), MD: st.puts, Offset: st.addr(src), Length: n, Target: a.id(), PT: a.pt, MatchBits: a.bits, RemoteOffset: a.remote, UserPtr: ptr, HdrData: g.hdr, Operand: g.operand, Op: g.op, Type: g.typ})
		}
	}
	return err
}

// wait waits until the counter has grown by the given amount.
func (r *run) wait(st *rankState, w *Wait, at *env) error {
	n, err := w.amount(at)
	if err != nil {
		return err
	}
	var c *waitable
	var what string
	switch {
	case w.Acks.IsSet():
		c, what = &st.acks, "acknowledgements"
	case w.Replies.IsSet():
		c, what = &st.replies, "replies"
	default:
		c, what = &st.entries[w.Entry].waitable, "messages in entry "+w.Entry
		if w.Bytes.IsSet() {
			what = "bytes in entry " + w.Entry
		}
	}
	st.waits = waiting{ct: c.ct, count: c.waited + n, things: what}
	v, err := st.NI().CTWait(c.ct, c.waited+n)
	if err == nil && v.Failure > 0 {
		err = fmt.Errorf("%s while the program waited for %s", lab.Plural(int(v.Failure), "operation failed", "operations failed"), what)
		if last := r.Nodes[st.Rank()].LastFail; last != portals.NIOK {
			err = fmt.Errorf("%w: %s", err, last)
		}
	}
	c.waited += n
	return err
}

var errNotMarked = errors.New("the mark has not been passed")

func (r *run) doMeasure(st *rankState, m *Measure, at *env) error {
	whose, divide, err := r.measure(st.Rank(), m, at)
	if err != nil {
		return err
	}
	since, ok := r.states[whose].marks[m.Since]
	if !ok {
		return fmt.Errorf("mark %s of rank %d: %w", m.Since, whose, errNotMarked)
	}
	l := st.latency(m.name())
	if l == nil {
		l = &latency{name: m.name()}
		st.latencies = append(st.latencies, l)
	}
	l.samples = append(l.samples, (st.Now()-since)/sim.Time(divide))
	if r.followed != nil {
		l.measured = append(l.measured, measured{since, st.Now(), int(divide)})
	}
	return nil
}

// latency returns the measurement with that name, nil if there is no sample.
func (st *rankState) latency(name string) *latency {
	for _, l := range st.latencies {
		if l.name == name {
			return l
		}
	}
	return nil
}
