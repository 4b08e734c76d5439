package scenario

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/internal/manifest"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/sim"
	"github.com/spinsim/spinsim/trace"
)

// checkRanks checks that the network, if it is known, has room for the ranks.
func (p *planner) checkRanks() {
	if p.ranks < 1 || p.ranks > maxRanks {
		p.fail("ranks", "%d, expected 1 to %d", p.ranks, maxRanks)
	} else if p.profile != nil && p.ranks > p.profile.Fabric.Most() {
		p.fail("ranks", "%d, but the network of profile %s has places for %d", p.ranks, p.profile.Name, p.profile.Fabric.Most())
	}
}

// checkMemory evaluates the allocations and entries of every rank.
func (p *planner) checkMemory() {
	total := int64(0)
	for _, e := range p.entries {
		for _, rank := range e.ranks {
			n, err := p.checkEntry(e, rank)
			total += n
			if err != nil {
				p.fail(e.path, "on rank %d: %w", rank, err)
				break
			}
		}
	}
	for _, g := range p.programs {
		for _, rank := range g.ranks {
			for i := range g.Buffers {
				b := &g.Buffers[i]
				n, err := b.size(p.on(rank))
				if err == nil {
					total += n
					err = p.checkFill(&b.Fill, n, rank)
				}
				if err != nil {
					p.failOnce(fmt.Sprintf("%s.buffers[%d]", g.path, i), "on rank %d: %w", rank, err)
				}
			}
		}
	}
	p.memory = total
	if total > maxMemory {
		p.fail("ranks", "the memory of all ranks is %d bytes, expected at most %d", total, int64(maxMemory))
	}
	if _, err := p.spec.EventQueue.int(p.env, 0, 1, maxCount); err != nil {
		p.fail("event_queue", "%w", err)
	}
}

// checkFill reports content that does not fit in n bytes.
func (p *planner) checkFill(c *Content, n int64, rank int) error {
	own, err := c.make(p.on(rank), source{})
	if err != nil {
		return fmt.Errorf("fill%w", err)
	}
	if int64(len(own)) > n {
		return fmt.Errorf("fill: %d bytes, which do not fit in %d", len(own), n)
	}
	return nil
}

// checkEntry evaluates an entry for a rank and returns its size in bytes.
func (p *planner) checkEntry(e *entryPlan, rank int) (bytes int64, err error) {
	if bytes, err = e.size(p.on(rank)); err != nil {
		return 0, err
	}
	if err := p.checkFill(&e.Fill, bytes, rank); err != nil {
		return 0, err
	}
	if _, err := p.matchEntry(e, rank); err != nil {
		return 0, err
	}
	if e.handlers == nil {
		return bytes, nil
	}
	size, _, err := p.state(e.owner(), rank)
	if e.shares != nil {
		size = 0
	}
	if err == nil {
		_, _, err = p.handlerMemory(e, rank)
		if err == nil {
			_, err = e.stamp(p.on(rank))
		}
	}
	if err == nil {
		err = p.checkLayout(e, rank)
	}
	if err != nil {
		return 0, fmt.Errorf("handlers.%w", err)
	}
	return bytes + size, nil
}

// checkLayout reports a state whose list has its fields at other places than on
// the first of the ranks. Names and numbers of fields must mean the same on all
// ranks.
func (p *planner) checkLayout(e *entryPlan, rank int) error {
	if e.Handlers.State.kind != contentFields {
		return nil
	}
	l := stateLayout{described: e.layout.described}
	i, err := l.list(e.Handlers.State.fields, 0, p.on(rank), p.device(rank))
	if err != nil {
		return fmt.Errorf("state[%d].%w", i, err)
	}
	same := func(a, b manifest.Number) bool {
		return a.Name == b.Name && a.Offset == b.Offset && a.Field.Type == b.Field.Type
	}
	if !slices.EqualFunc(l.listed, e.layout.listed, same) {
		return fmt.Errorf("state: its fields lie elsewhere than on rank %d", e.ranks[0])
	}
	return nil
}

// matchEntry evaluates the criteria and options of an entry.
func (p *Plan) matchEntry(e *entryPlan, rank int) (*portals.ME, error) {
	at := p.on(rank)
	_, bits, err := p.criteria(e, rank)
	if err != nil {
		return nil, err
	}
	me := &portals.ME{MatchBits: bits, UID: portals.UIDAny, MatchID: portals.AnyID, Options: portals.OptMEOpPut | portals.OptMEOpGet}
	if me.IgnoreBits, err = e.IgnoreBits.u64(at); err != nil {
		return nil, fmt.Errorf("ignore_bits: %w", err)
	}
	if me.MinFree, err = e.MinFree.u64(at); err != nil {
		return nil, fmt.Errorf("min_free: %w", err)
	}
	if e.Source.IsSet() {
		source, err := e.Source.int(at, 0, 0, int64(p.ranks-1))
		if err != nil {
			return nil, fmt.Errorf("source: %w", err)
		}
		me.MatchID = portals.PhysID(uint32(source), portals.PIDAny)
	}
	if e.Options != nil {
		me.Options = portals.EntryOptions(optionBits(e.Options, portals.EntryNames))
	} else if e.handlers != nil {
		me.Options |= e.handlers.EntryOptions
	}
	me.Options |= portals.OptMEEventCTComm
	if e.inBytes != "" {
		me.Options |= portals.OptMEEventCTBytes
	}
	return me, nil
}

// userID evaluates a step that sets the user id of a process.
func userID(s *Step, at *env) (uint32, error) {
	uid, err := s.UserID.int(at, 0, 0, int64(portals.UIDAny)-1)
	if err != nil {
		return 0, fmt.Errorf("user_id: %w", err)
	}
	return uint32(uid), nil
}

// stamp evaluates the place where handlers of an entry see the user id of a
// message.
func (e *entryPlan) stamp(at *env) (s portals.Stamp, err error) {
	if e.Handlers.Stamp == nil {
		return s, nil
	}
	shift, err := e.Handlers.Stamp.Shift.int(at, 0, 0, 63)
	if err != nil {
		return s, fmt.Errorf("stamp.shift: %w", err)
	}
	bits, err := e.Handlers.Stamp.Bits.int(at, 0, 1, min(32, 64-shift))
	if err != nil {
		return s, fmt.Errorf("stamp.bits: %w", err)
	}
	return portals.Stamp{Shift: uint8(shift), Bits: uint8(bits)}, nil
}

// checkNeeds compares the given options with the options that the handlers
// need. An entry without options gets the needed ones.
func (p *planner) checkNeeds(e *entryPlan) {
	const always = portals.OptMEEventCTComm // of every entry of a scenario
	if own := e.handlers.EntryOptions & ownOptions &^ always; own != 0 {
		p.fail(e.path+".handlers.module", "module %s needs entry option %s, which a scenario chooses itself", e.Handlers.Module, strings.ToLower(own.String()))
	}
	if missing := e.handlers.EntryOptions &^ (portals.EntryOptions(optionBits(e.Options, portals.EntryNames)) | ownOptions); e.Options != nil && missing != 0 {
		p.fail(e.path+".options", "module %s needs %v as well", e.Handlers.Module, strings.ToLower(missing.String()))
	}
	if missing := e.handlers.PTOptions &^ portals.PTOptions(optionBits(e.PTOptions, portals.PTNames)); e.PTOptions != nil && missing != 0 {
		p.fail(e.path+".pt_options", "module %s needs %v as well", e.Handlers.Module, strings.ToLower(missing.String()))
	}
}

// handlerMemory evaluates user header and host memory of an entry's handlers.
func (p *Plan) handlerMemory(e *entryPlan, rank int) (userHeader, hostMemory int64, err error) {
	at := p.on(rank)
	most := min(int64(p.profile.Limits.MaxUserHdrSize), int64(p.profile.Fabric.MTU))
	read := e.handlers.UserHeader
	if userHeader, err = e.Handlers.UserHeader.int(at, read, 0, most); err == nil && (userHeader < read || read > most) {
		err = fmt.Errorf("%d, but the handlers of %s read %d, at most %d on this device", userHeader, e.Handlers.Module, read, most)
	}
	if unit := p.profile.PortalsLimits().MinFragmentationLimit; err == nil && uint64(userHeader)%unit != 0 {
		err = fmt.Errorf("%d, expected a multiple of %d (min_fragmentation_limit)", userHeader, unit)
	}
	if err == nil {
		err = e.handlers.CheckUserHeader(userHeader)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("user_header: %w", err)
	}
	needed, err := e.handlers.HostMemory(p.device(rank))
	if err != nil {
		return 0, 0, err
	}
	if hostMemory, err = e.Handlers.HostMemory.int(at, needed, 0, maxBytes); err == nil && (hostMemory < needed || needed > maxBytes) {
		err = fmt.Errorf("%d, but the handlers of %s need %d, at most %d", hostMemory, e.Handlers.Module, needed, maxBytes)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("host_memory: %w", err)
	}
	return userHeader, hostMemory, nil
}

// checkPrograms evaluates every step on every rank, for the first and the last
// repetition.
func (p *planner) checkPrograms() {
	for _, g := range p.programs {
		p.eachStep(g.Steps, g.path+".steps", func(s *Step, path string) {
			before := len(p.errs)
			p.checkUse(g, s, path)
			if len(p.errs) > before {
				p.failed[path] = true
			}
		})
	}
	for _, g := range p.programs {
		for _, rank := range g.ranks {
			p.checkSteps(rank, g.Steps, g.path+".steps", p.on(rank), 0)
		}
	}
}

// failOnce is fail for an error that every rank and round would repeat.
func (p *planner) failOnce(path, format string, args ...any) {
	if !p.failed[path] {
		p.failed[path] = true
		p.fail(path, format, args...)
	}
}

// eachStep visits the steps with their paths, including the steps in repeats.
func (p *planner) eachStep(steps []Step, path string, visit func(*Step, string)) {
	for i := range steps {
		s := &steps[i]
		at := fmt.Sprintf("%s[%d]", path, i)
		visit(s, at)
		if s.Repeat != nil {
			p.eachStep(s.Repeat.Steps, at+".repeat.steps", visit)
		}
	}
}

// checkUse reads files and notes how programs wait for entries.
func (p *planner) checkUse(g *programPlan, s *Step, path string) {
	p.stepID[path] = len(p.stepPaths)
	p.stepPaths = append(p.stepPaths, path)
	fill := func(c *Content, path string) {
		p.readFile(c, path)
		if c.kind == contentValues {
			p.fail(path, "only a state has fields with names")
		}
	}
	switch {
	case s.Put != nil:
		fill(&s.Put.Fill, path+".put.fill")
	case s.Atomic != nil:
		fill(&s.Atomic.Fill, path+".atomic.fill")
		fill(&s.Atomic.Operand, path+".atomic.operand")
	case s.Wait != nil:
		p.checkWait(s.Wait, path+".wait")
	case s.WriteHPU != nil, s.WaitHPU != nil:
		p.checkHPU(s, path)
	case s.Mark != nil:
		g.marks[*s.Mark] = true
	case s.Measure != nil:
		g.measures[s.Measure.name()] = true
	case s.Expect != nil:
		p.checkExpectation(s.Expect, path+".expect")
	}
}

func (p *planner) checkWait(w *Wait, path string) {
	given := 0
	for _, x := range []Expr{w.Messages, w.Bytes, w.Acks, w.Replies} {
		if x.IsSet() {
			given++
		}
	}
	ofEntry := w.Messages.IsSet() || w.Bytes.IsSet()
	if given != 1 || ofEntry != (w.Entry != "") {
		p.fail(path, "expected one of: entry with messages, entry with bytes, acks, replies")
		return
	}
	if !ofEntry {
		return
	}
	e := p.entry(w.Entry)
	if e == nil {
		p.fail(path+".entry", "there is no entry %s", w.Entry)
		return
	}
	mine, other := &e.inMessages, e.inBytes
	if w.Bytes.IsSet() {
		mine, other = &e.inBytes, e.inMessages
	}
	*mine = path
	if other != "" {
		p.fail(path, "an entry counts either messages or bytes, and %s waits for the other of %s", other, w.Entry)
	}
}

// checkSteps evaluates steps on a rank.
func (p *planner) checkSteps(rank int, steps []Step, path string, at *env, depth int) {
	for i := range steps {
		s := &steps[i]
		where := fmt.Sprintf("%s[%d]", path, i)
		if p.failed[where] {
			continue
		}
		if s.Repeat == nil {
			if err := p.checkStep(rank, s, where, at); err != nil {
				p.failOnce(where, "on rank %d: %w", rank, err)
			}
			continue
		}
		times, err := s.Repeat.Times.int(at, 1, 0, maxCount)
		if err == nil && depth == maxNested {
			err = fmt.Errorf("more than %d repeats within each other", maxNested)
		}
		if err != nil {
			p.failOnce(where+".repeat", "on rank %d: times: %w", rank, err)
			continue
		}
		for _, round := range ends(times) {
			p.checkSteps(rank, s.Repeat.Steps, where+".repeat.steps", at.with(varRound, round), depth+1)
		}
	}
}

// ends returns the first and the last of n repetitions.
func ends(n int64) []int64 { return []int64{0, n - 1}[:min(n, 2)] }

// checkStep evaluates a step that is not a repeat.
func (p *planner) checkStep(rank int, s *Step, path string, at *env) error {
	switch {
	case s.target() != nil:
		return p.eachEnd(s.target(), at, func(at *env) error { _, err := p.posting(rank, path, s, at); return err })
	case s.Wait != nil:
		if s.Wait.Entry != "" && !p.entry(s.Wait.Entry).on[rank] {
			return fmt.Errorf("entry %s is not on this rank", s.Wait.Entry)
		}
		_, err := s.Wait.amount(at)
		return err
	case s.WriteHPU != nil:
		_, err := p.hpuWrites(rank, s.WriteHPU, at)
		return err
	case s.WaitHPU != nil:
		if !p.entry(s.WaitHPU.Of).on[rank] {
			return fmt.Errorf("entry %s is not on this rank", s.WaitHPU.Of)
		}
		return s.WaitHPU.check(at)
	case s.UserID != nil:
		_, err := userID(s, at)
		return err
	case s.Copy != nil:
		_, _, err := p.copy(rank, s.Copy, at)
		return err
	case s.Measure != nil:
		_, _, err := p.measure(rank, s.Measure, at)
		return err
	case s.Expect != nil:
		return p.checkAt(s.Expect, []int{rank}, at)
	}
	for name, t := range map[string]*sim.Time{"sleep": s.Sleep, "until": s.Until, "compute": s.Compute} {
		if t != nil && (*t < 0 || *t > maxTime) {
			return fmt.Errorf("%s: %v, expected 0 s to %v", name, *t, maxTime)
		}
	}
	return nil
}

// eachEnd evaluates the first and the last repetition of an operation.
func (p *planner) eachEnd(t *Target, at *env, check func(*env) error) error {
	n, err := t.Count.int(at, 1, 0, maxCount)
	if err != nil {
		return fmt.Errorf("count: %w", err)
	}
	if t.Interval != nil && (*t.Interval < 0 || *t.Interval > maxTime/sim.Time(max(n, 1))) {
		return fmt.Errorf("interval: %v, expected 0 s to %v", *t.Interval, maxTime/sim.Time(max(n, 1)))
	}
	for _, i := range ends(n) {
		if err := check(at.with(varI, i)); err != nil {
			return err
		}
	}
	return nil
}

// checkOutput resolves the outputs.
func (p *planner) checkOutput() {
	o := &p.output
	if _, err := o.Stats.list(p.env); err != nil {
		p.fail("output.stats", "%w", err)
	}
	for i := range o.State {
		path := fmt.Sprintf("output.state[%d]", i)
		e := p.entry(o.State[i].Of)
		if e == nil || e.handlers == nil {
			p.fail(path+".of", "there is no entry %s with handlers", o.State[i].Of)
			continue
		}
		for _, name := range o.State[i].Fields {
			if _, err := e.layout.field(name); err != nil {
				p.fail(path+".fields", "%w", err)
			}
		}
		if _, err := p.holders(o.State[i].Of, o.State[i].Ranks, nil, p.env); err != nil {
			p.fail(path+".ranks", "%w", err)
		}
	}
	for i := range o.Memory {
		m := &o.Memory[i]
		ranks, err := p.holders(m.Of, m.Ranks, nil, p.env)
		for _, r := range ranks {
			if err == nil {
				_, err = p.spanOf(r, m.Of, m.Offset, m.Bytes, p.on(r))
			}
		}
		if err != nil {
			p.fail(fmt.Sprintf("output.memory[%d]", i), "%w", err)
		}
	}
	if o.Trace != "" {
		known := strings.FieldsFunc(trace.Extensions, func(r rune) bool { return strings.ContainsRune(",; ", r) })
		if !slices.Contains(known, filepath.Ext(strings.TrimSuffix(o.Trace, ".gz"))) {
			p.fail("output.trace", "%s, expected a name that ends in one of %s", o.Trace, trace.Extensions)
		}
	}
}

// holders returns the ranks for an expectation or an output about a memory: the
// given ranks, else own, else all ranks that have the memory.
func (p *Plan) holders(of string, given RankSet, own []int, at *env) ([]int, error) {
	var list []int
	var err error
	switch {
	case given.IsSet():
		list, err = given.list(at)
	case own != nil:
		list = own
	default:
		for r := range p.ranks {
			if _, err := p.sizeOf(r, of); err == nil {
				list = append(list, r)
			}
		}
		if list == nil {
			err = fmt.Errorf("no rank has an entry or a buffer %s", of)
		}
	}
	for _, r := range list {
		if _, e := p.sizeOf(r, of); e != nil && err == nil {
			err = e
		}
	}
	return list, err
}
