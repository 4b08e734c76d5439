package nic

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/sim"
)

// tenants are the owners of the handlers of a NIC. They decide whose handler an
// idle processor takes, and keep the books of each.
type tenants struct {
	env     *env
	list    []tenant // the first has the processes that no other has
	of      map[uint32]uint16
	waiting int // handlers of all
	beyond  int // completion handlers of them, beyond what their tenants may have waiting
	pick    func(t *tenants) int
	limit   bool           // WLBVT
	act     *act           // whose turns are theirs
	module  *arbiterModule // in place of the arbiter; nil: none
	turn    int            // of RoundRobin: who was last
	now     float64        // WFQ: nobody who wants a processor has less virtual time
	ready   []*run         // serve: by tenant, the first handler of the free core that can go on
	full    bool           // serve: that core has no context left
}

// tenant is the books of one.
type tenant struct {
	Tenant
	TenantStats

	number   uint16
	tasks    ring[task] // that wait; those of all are the first's, in the order of arrival
	handlers int        // under way
	waiting  int        // handlers
	paused   int        // handlers that can go on, and wait for their core
	buffered int64      // bytes of packets
	memory   int64      // bytes of its programs
	commands int        // of its handlers
	promised int        // of its handlers: packets that have not come to the egress
	virtual  float64    // time by weight, ps
	wanted   sim.Time   // for how long it has wanted processors, up to since
	since    sim.Time   // when it began to want some; -1: it wants none
	waits    sim.Time   // since when a handler or more waits, if any does
}

// TenantStats are the counts of a tenant at a NIC since the start of the run.
type TenantStats struct {
	// Name is the one in the profile; empty for the processes that no tenant has.
	Name string
	// Calls counts its handlers, Killed those of them that the watchdog ended, and
	// Time is for how long they have had processors, waits excluded: with hpu.dispatch
	// where that holds a processor.
	Calls, Killed int64
	Time          sim.Time
	// Waited is for how long one of its handlers or more waited for a processor.
	Waited sim.Time
	// Dropped counts packets that found no room, of the device or of its budgets.
	Dropped int64
}

// newTenants makes the books of a NIC; nil: the profile names no tenant.
func newTenants(e *env, t Tenants) *tenants {
	if len(t) == 0 {
		return nil
	}
	s := &tenants{env: e, of: make(map[uint32]uint16), pick: pickers[cmp.Or(e.hpu.Arbiter, FIFO)], limit: e.hpu.Arbiter == WLBVT}
	s.list = append(s.list, tenant{Tenant: Tenant{Weight: 1}, since: -1})
	for _, name := range t.Names() {
		s.of[t[name].UID] = uint16(len(s.list))
		s.list = append(s.list, tenant{number: uint16(len(s.list)), Tenant: t[name], TenantStats: TenantStats{Name: name}, since: -1})
	}
	s.ready = make([]*run, len(s.list))
	return s
}

func (t *tenants) owner(k task) *tenant { return &t.list[k.in.handlers.memory.tenant] }

// push lets a handler wait.
func (t *tenants) push(k task) {
	o := t.owner(k)
	if t.pick == nil {
		o = &t.list[0] // the order of arrival
	}
	o.tasks.push(k)
	o = t.owner(k)
	if o.waiting == 0 {
		o.waits = t.env.now()
	}
	if o.waiting++; o.isBeyond(o.waiting) {
		t.beyond++
	}
	t.waiting++
	t.wants(o)
}

// pop takes the handler that is next. Not ok: there is none that may begin.
func (t *tenants) pop() (k task, ok bool) {
	i := 0
	switch {
	case t.waiting == 0:
		return k, false
	case t.pick != nil:
		if i = t.pick(t); i < 0 {
			return k, false
		}
	}
	return t.popOf(i), true
}

// popOf takes the handler of a tenant that is next.
func (t *tenants) popOf(i int) task {
	k := t.list[i].tasks.pop()
	o := t.owner(k)
	if o.isBeyond(o.waiting) {
		t.beyond--
	}
	if o.waiting--; o.waiting == 0 {
		o.Waited += t.env.now() - o.waits
	}
	t.waiting--
	return k
}

// fill gives idle cores the handlers that their tenants may begin.
func (t *tenants) fill(s *schedule, p *pool) {
	for t.waiting > 0 {
		c := p.choose()
		if c == nil {
			return
		}
		k, ok := s.nextTask(p)
		if !ok {
			return
		}
		s.start(c, k)
	}
}

// fillClusters gives clusters with room the handlers that their tenants may begin.
func (t *tenants) fillClusters(s *schedule) {
	h := s.homes
	for slices.ContainsFunc(h.clusters, func(c home) bool { return c.has < h.most }) {
		k, ok := t.pop()
		if !ok {
			return
		}
		s.waiting--
		t.begins(k)
		i, _ := h.choose(k.in.flow)
		s.take(i, k)
	}
}

// isBeyond reports whether a number of handlers that wait is more than a tenant's
// budget.
func (o *tenant) isBeyond(waiting int) bool {
	return o.WaitingHandlers > 0 && waiting > o.WaitingHandlers
}

// wants notes that a tenant has a handler that waits or is under way.
func (t *tenants) wants(o *tenant) {
	if o.since >= 0 {
		return
	}
	o.since = t.env.now()
}

// begins notes that a handler gets a processor, or a cluster takes it.
func (t *tenants) begins(k task) {
	o := t.owner(k)
	o.handlers++
	t.wants(o)
	t.chosen(o)
}

// runs notes that a handler has a processor for a time.
func (t *tenants) runs(k task, d sim.Time) {
	o := t.owner(k)
	o.Time += d
	o.virtual += float64(d) / float64(o.Weight)
}

// chosen notes that a tenant's handler gets a processor, before it has used any of it.
// Who comes later, even before the handler's first cycle, is behind.
func (t *tenants) chosen(o *tenant) {
	o.virtual = t.virtual(o)
	least := o.virtual
	for i := range t.list {
		if p := &t.list[i]; p.paused > 0 || t.begin(p) {
			least = min(least, t.virtual(p))
		}
	}
	t.now = max(t.now, least)
}

// virtual is the virtual time of a tenant. What it could not use because it wanted
// nothing, or had as many handlers under way as it may, is no credit.
func (t *tenants) virtual(o *tenant) float64 { return max(o.virtual, t.now) }

// ends notes the end of a handler.
func (t *tenants) ends(k task, out *hpu.Outcome) {
	o := t.owner(k)
	o.handlers--
	o.Calls++
	if out.Err != nil && out.Err.Kind == hpu.TrapBudget {
		o.Killed++
	}
	if o.handlers+o.waiting == 0 {
		o.wanted += t.env.now() - o.since
		o.since = -1
	}
}

// pickers choose the tenant whose handler is next; a negative number: none has one
// that may begin. nil: the order of arrival.
var pickers = map[string]func(t *tenants) int{
	FIFO:       nil,
	RoundRobin: (*tenants).nextInTurn,
	WFQ: func(t *tenants) int {
		return t.least(t.virtual)
	},
	WLBVT: func(t *tenants) int { return t.least(t.mean) },
}

func (t *tenants) nextInTurn() int {
	for k := range t.list {
		if i := (t.turn + 1 + k) % len(t.list); t.may(i) {
			t.turn = i
			return i
		}
	}
	return -1
}

func (t *tenants) least(key func(o *tenant) float64) int {
	best, least := -1, 0.0
	for i := range t.list {
		if t.may(i) {
			if k := key(&t.list[i]); best < 0 || k < least {
				best, least = i, k
			}
		}
	}
	return best
}

// mean is the processors that a tenant has had on average while it wanted some,
// divided by its weight.
func (t *tenants) mean(o *tenant) float64 {
	return float64(o.Time) / float64(max(t.wantedBy(o), 1)) / float64(o.Weight)
}

// wantedBy is for how long a tenant has wanted processors.
func (t *tenants) wantedBy(o *tenant) sim.Time {
	if o.since < 0 {
		return o.wanted
	}
	return o.wanted + t.env.now() - o.since
}

// may reports whether a tenant has a handler for the core that is free: one that can
// go on there, or one that may begin.
func (t *tenants) may(i int) bool {
	return t.ready[i] != nil || !t.full && t.begin(&t.list[i])
}

// begin reports whether a tenant has a handler that waits and may begin.
func (t *tenants) begin(o *tenant) bool {
	return o.tasks.len() > 0 && (o.Handlers == 0 || o.handlers < o.Handlers) && (!t.limit || o.handlers < t.part(o))
}

// part is a tenant's part of the processors among those with handlers that wait. Handlers
// that wait for something count, though others could have their processor.
func (t *tenants) part(o *tenant) int {
	all := t.weights()
	return (t.env.hpu.Cores*o.Weight + all - 1) / all
}

// weights adds up the weights of the tenants with handlers that wait.
func (t *tenants) weights() (all int) {
	for i := range t.list {
		if t.list[i].waiting > 0 {
			all += t.list[i].Weight
		}
	}
	return all
}

// oldest is when the message of the handler began that waits longest.
func (t *tenants) oldest() sim.Time {
	at := t.env.now()
	for i := range t.list {
		if r := &t.list[i].tasks; r.len() > 0 {
			at = min(at, r.front().in.started)
		}
	}
	return at
}

// room reports whether the budget of a memory's tenant has room for a handler more
// that waits, and for bytes of a packet.
func (t *tenants) room(m *Memory, handlers int, bytes int64) bool {
	o := &t.list[m.tenant]
	return (handlers == 0 || o.WaitingHandlers == 0 || o.waiting+handlers <= o.WaitingHandlers) &&
		(o.PacketBuffer == 0 || o.buffered+bytes <= int64(o.PacketBuffer))
}

// Tenants returns the counts of the tenants, in the order of their names, behind
// those of the processes that no tenant has; nil: the profile names none.
func (n *NIC) Tenants() (list []TenantStats) {
	if t := n.schedule.tenants; t != nil {
		for i := range t.list {
			o := &t.list[i]
			s := o.TenantStats
			if o.waiting > 0 {
				s.Waited += t.env.now() - o.waits
			}
			list = append(list, s)
		}
		for _, r := range n.schedule.runs { // segments are booked when they begin
			if r != nil && r.active && r.since < 0 && r.core.pool.hpu != nil {
				list[t.owner(r.task).number].Time -= max(0, r.over()-t.env.now())
			}
		}
	}
	return list
}

// byUID returns the tenant of the processes of a user; nil: there are no tenants.
func (t *tenants) byUID(uid uint32) *tenant {
	if t == nil {
		return nil
	}
	return &t.list[t.of[uid]]
}

// budget is how many cycles a handler may take, of those that the device allows.
func (t *tenants) budget(m *Memory, device int64) int64 {
	if most := t.list[m.tenant].MaxCycles; most > 0 {
		return min(most, device)
	}
	return device
}

// explains adds to the error of a handler that the watchdog ended the field that
// bounds it, if it is the tenant's.
func (t *tenants) explains(k task, err error) error {
	if t == nil || t.owner(k).MaxCycles == 0 {
		return err
	}
	return fmt.Errorf("%w; tenants.%s.max_cycles: %d", err, t.owner(k).Name, t.owner(k).MaxCycles)
}

// blames names the tenant of a message whose own budget has no room; empty: it is
// the device that has none.
func (t *tenants) blames(s *schedule, in *inbound, cause fate) string {
	if t == nil || in.handlers == nil || cause != packetBufferFull && cause != handlersWaiting {
		return ""
	}
	o := &t.list[in.handlers.memory.tenant]
	if cause == packetBufferFull && (o.PacketBuffer == 0 || s.buffered+int64(in.frame.MTU) > int64(s.spec.PacketBuffer)) || cause == handlersWaiting && (o.WaitingHandlers == 0 || o.waiting < o.WaitingHandlers) {
		return ""
	}
	return o.Name
}

// check compares the books with each other.
func (t *tenants) check(wrong func(format string, args ...any)) {
	tasks, waiting := 0, 0
	for i := range t.list {
		o := &t.list[i]
		tasks, waiting = tasks+o.tasks.len(), waiting+o.waiting
		if o.handlers < 0 || o.waiting < 0 || o.paused < 0 || o.buffered < 0 || o.memory < 0 || o.commands < 0 || (o.since >= 0) != (o.handlers+o.waiting > 0) {
			wrong("tenant %q has %d handlers under way, %d that wait, %d bytes buffered, %d of memory", o.Name, o.handlers, o.waiting, o.buffered, o.memory)
		}
	}
	if tasks != t.waiting || waiting != t.waiting {
		wrong("tenants have %d handlers that wait, %d in their counts, counted %d", tasks, waiting, t.waiting)
	}
}
