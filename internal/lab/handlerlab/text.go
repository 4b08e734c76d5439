package handlerlab

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/internal/lab"
	"github.com/spinsim/spinsim/internal/visible"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/sim"
)

// collect collects the results of the run.
func (x *trial) collect(end error) *Report {
	r, p := x.record, x.Profile
	rep := &Report{
		Module: x.Module.Name, Profile: p.Name, Node: x.Node, HPUs: p.HPU.Cores, ClockHz: int64(p.HPU.Clock), MTU: int(p.Fabric.MTU),
		State: bytes.Clone(x.in.HPU.Bytes()), Host: x.host.Snapshot(), Handler: x.handler.Snapshot(), format: x.Format,
		Handlers: r.handlers, Events: x.events(), End: r.end, Calls: len(r.handlers) + r.left.Handlers, Cycles: r.totals.cycles, Omitted: r.left, totals: r.totals,
	}
	x.memories(rep)
	rep.totals.dropped = x.Cluster.Stats().PacketsDropped
	for i := range x.Messages {
		m := &x.Messages[i]
		rep.Messages = append(rep.Messages, MessageReport{
			i + 1, m.Source, len(m.Data), m.Offset, m.MatchBits, m.HdrData, r.refused[i+1],
		})
	}
	for i, ct := range x.cts {
		if v, err := x.Run.Nodes[x.Node].NI().Objects().CTGet(ct); err == nil {
			rep.Counters = append(rep.Counters, CounterReport{fmt.Sprintf("ct%d", i), v.Success, v.Failure})
		}
	}
	slices.SortStableFunc(rep.Handlers, func(a, b *HandlerReport) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(slices.Index(Kinds[:], a.Kind), slices.Index(Kinds[:], b.Kind)), cmp.Compare(a.Packet, b.Packet))
	})
	for i, h := range rep.Handlers {
		h.Number = i + 1
		for k := range h.Actions {
			h.Actions[k].Number = h.Number
		}
	}
	rep.Errors = x.failures()
	for _, m := range rep.Messages {
		if m.Refused != "" {
			rep.Errors = append(rep.Errors, fmt.Sprintf("message %d was refused: %s", m.Number, m.Refused))
		}
	}
	r.found(rep)
	if end != nil {
		rep.Errors, rep.end = append(rep.Errors, end.Error()), end
	}
	if left := r.left; left != (Omitted{}) {
		rep.Notes = append(rep.Notes, fmt.Sprintf("not listed, because there are too many: %d handlers, %d actions, %d events", left.Handlers, left.Actions, left.Events))
	}
	if n := x.Cluster.Node(x.Node).Stats().LostActions; n > 0 {
		rep.Notes = append(rep.Notes, fmt.Sprintf("%s of a counter had no effect: an increment has either successes or failures", lab.Plural(int(n), "change", "changes")))
	}
	if n := x.Cluster.Node(x.Node).Stats().MissedExpiries; n > 0 {
		rep.Notes = append(rep.Notes, fmt.Sprintf("periodic timers expired %s while the message of an earlier time was still being handled", lab.Plural(int(n), "time", "times")))
	}
	if r.unlogged > 0 {
		rep.Notes = append(rep.Notes, fmt.Sprintf("%s of log beyond the first %d bytes not kept", lab.Plural(r.unlogged, "line", "lines"), lab.MaxLogBytes))
	}
	for _, number := range slices.Sorted(maps.Keys(x.Faults)) {
		if number > r.dma {
			rep.Notes = append(rep.Notes, fmt.Sprintf("DMA operation %d was to fail, but there were %d", number, r.dma))
		}
	}
	return rep
}

// events lists the events.
func (x *trial) events() (list []EventReport) {
	for i := range x.Events {
		e := &x.Events[i]
		list = append(list, EventReport{
			At: e.At, Node: e.Rank, Type: e.Type.String(), Fail: e.Fail.String(), PT: int(e.PTIndex),
			Length: e.MLength, Requested: e.RLength, Offset: e.RemoteOffset, MatchBits: e.MatchBits, HdrData: e.HdrData,
			Source: int(e.Initiator.NID),
		})
	}
	return list
}

// failures returns the handlers that failed and the messages that were lost.
func (x *trial) failures() (errs []string) {
	failed, n := x.Cluster.HandlerErrors()
	for _, e := range failed {
		errs = append(errs, fmt.Sprintf("%s at %s ns: %v", e.Who(), ns(e.At, -1), e.Err))
	}
	if n > len(failed) {
		errs = append(errs, fmt.Sprintf("%d more handlers failed", n-len(failed)))
	}
	lost, n := x.Cluster.LostMessages()
	for _, l := range lost {
		errs = append(errs, fmt.Sprintf("a message was lost: %v", l))
	}
	if known := nic.Messages(lost); n > known {
		errs = append(errs, fmt.Sprintf("%d more messages were lost", n-known))
	}
	return errs
}

// Err returns nil if no handler failed, no message was refused or lost, and the
// run came to its end. It wraps the *sim.LimitError that ended the run, if
// there is one.
func (r *Report) Err() error {
	if len(r.Errors) == 0 {
		return nil
	}
	return &reportError{strings.Join(r.Errors, "\n"), r.end}
}

// reportError describes the failures of a run.
type reportError struct {
	text string
	end  error // why the run stopped early; nil: it did not
}

func (e *reportError) Error() string { return e.text }
func (e *reportError) Unwrap() error { return e.end }

// Text is the options for a report for people.
type Text struct {
	// Plain leaves out everything that depends on the profile and on the
	// compiler: times, cycles, HPUs and addresses. Tests compare this form.
	Plain bool
}

// Write writes the report, but not the errors of Report.Err.
func (t Text) Write(w io.Writer, r *Report) error {
	p := &printer{Text: t, Report: r}
	p.width()
	if !t.Plain {
		p.line("%s on %s: %d HPUs at %s, packets of up to %d B", r.Module, r.Profile, r.HPUs, hertz(r.ClockHz), r.MTU)
		p.line("")
	}
	p.messages()
	p.list("events", len(r.Events), p.event)
	p.list("counters", len(r.Counters), func(i int) {
		c := r.Counters[i]
		p.line("  %s  success %d, failure %d", c.Name, c.Success, c.Failure)
	})
	p.state()
	for i := range r.Memory {
		p.memory(&r.Memory[i])
	}
	p.list("notes", len(r.Notes), func(i int) { p.line("  %s", r.Notes[i]) })
	if !t.Plain {
		p.line("%s took %d cycles, the run %s ns", lab.Plural(r.Calls, "handler", "handlers"), r.Cycles, ns(r.End, -1))
	}
	_, err := w.Write(p.out.Bytes())
	return err
}

func hertz(hz int64) string { return fmt.Sprintf("%g GHz", float64(hz)/1e9) }

// printer writes one report. Times have the same number of digits everywhere.
type printer struct {
	Text
	*Report
	out  bytes.Buffer
	run  column // times in the run
	own  column // times in a handler
	cost int    // width of the column of cycles
}

// column is the format of times below each other.
type column struct{ digits, wide int }

func (c *column) see(n sim.Time) {
	c.digits = max(c.digits, digits(n))
	c.wide = max(c.wide, len(ns(n, 0)))
}

func (c *column) text(n sim.Time, sign string) string {
	wide := c.wide
	if c.digits > 0 {
		wide += 1 + c.digits
	}
	return fmt.Sprintf("%*s ns", wide+len(sign), sign+ns(n, c.digits))
}

func (p *printer) line(format string, args ...any) {
	s := visible.Line(fmt.Sprintf(format, args...))
	p.out.WriteString(strings.TrimRight(s, " ") + "\n")
}

// list writes a section if it has entries.
func (p *printer) list(title string, n int, entry func(i int)) {
	if n == 0 || p.Plain && title == "events" {
		return
	}
	p.line("%s", title)
	for i := range n {
		entry(i)
	}
	p.line("")
}

// width computes the width of times.
func (p *printer) width() {
	for _, h := range p.Handlers {
		p.run.digits = max(p.run.digits, digits(h.Start))
		p.own.see(h.Took)
		p.cost = max(p.cost, len(fmt.Sprint(h.Cycles)))
		for _, a := range h.Actions {
			p.own.see(a.At)
			p.cost = max(p.cost, len(fmt.Sprint(a.Cycles)))
		}
	}
	for _, e := range p.Events {
		p.run.see(e.At)
	}
}

// messages writes each message with its handlers.
func (p *printer) messages() {
	of := make(map[int][]*HandlerReport) // by message
	for _, h := range p.Handlers {
		of[h.Message] = append(of[h.Message], h)
	}
	own := of[0]
	for _, m := range p.Messages {
		p.line("message %d from node %d, %s", m.Number, m.Source, p.header(&m))
		if m.Refused != "" {
			p.line("  refused: %s", m.Refused)
		}
		for _, h := range of[m.Number] {
			p.handler(h)
		}
		p.line("")
	}
	for i, h := range own {
		if i == 0 || h.ID != own[i-1].ID {
			p.line("message from a handler to its own process")
		}
		p.handler(h)
		if i+1 == len(own) || h.ID != own[i+1].ID {
			p.line("")
		}
	}
}

func (p *printer) header(m *MessageReport) string {
	s := fmt.Sprintf("%d B", m.Bytes)
	if m.Offset != 0 {
		s += fmt.Sprintf(" for offset %d", int64(m.Offset))
	}
	if m.MatchBits != 0 {
		s += fmt.Sprintf(", match bits %#x", m.MatchBits)
	}
	if m.HdrData != 0 {
		s += fmt.Sprintf(", hdr_data %#x", m.HdrData)
	}
	return s
}

func (p *printer) handler(h *HandlerReport) {
	s := "  " + h.Kind
	switch {
	case h.Kind == Kinds[1]:
		s += fmt.Sprintf(", packet %d: %d B at offset %d", h.Packet, h.Bytes, h.Offset)
	case h.Kind == Kinds[0] && h.Bytes > 0:
		s += fmt.Sprintf(", user header of %d B", h.Bytes)
	}
	if !p.Plain {
		s += fmt.Sprintf("   (%s %d, at %s ns)", cmp.Or(h.Pool, hpus), h.HPU, ns(h.Start, p.run.digits))
	}
	p.line("%s", s)
	for i := range h.Actions {
		p.action(&h.Actions[i])
	}
	end := "returned " + h.Return
	if hpu.Code(h.Code).Name() != "" || h.Return == invalidCode {
		end += fmt.Sprintf(" (%d)", h.Code)
	}
	if h.Trap != "" {
		end = "ended: " + h.Trap
		if p.Plain {
			end = "trapped: " + h.Return
		}
	}
	if !h.Ended {
		end = "has not ended"
	}
	p.moment(h.Took, h.Cycles, end)
}

// moment writes one line of a handler.
func (p *printer) moment(at sim.Time, cycles int64, what string) {
	if p.Plain {
		p.line("    %s", what)
		return
	}
	p.line("    %s  %*d cycles  %s", p.own.text(at, "+"), p.cost, cycles, what)
}

func (p *printer) action(a *ActionReport) {
	s := a.Name
	if a.What != "" && !(p.Plain && a.vague()) {
		s += "  " + a.What
	}
	// the answer depends on which handler came first
	if a.Answer != "" && !(p.Plain && (a.Name == hpu.OpFAdd.String() || a.Name == hpu.OpAtomic32.String())) {
		s += ": " + a.Answer
	}
	if a.Failed != "" && a.Failed != a.Answer {
		s += ", ended with " + a.Failed
	}
	if !p.Plain {
		if a.Done != nil {
			s += fmt.Sprintf(" after %s ns", ns(*a.Done-a.At, -1))
		}
		if a.Landed != nil {
			s += fmt.Sprintf(", took effect after %s ns", ns(*a.Landed-a.At, -1))
		}
	}
	p.moment(a.At, a.Cycles, s)
	if a.Bytes != "" {
		p.line("        %s", a.Bytes)
	}
}

func (p *printer) event(i int) {
	e := &p.Events[i]
	where := "device"
	if e.Node != p.Node {
		where = fmt.Sprintf("node %d", e.Node)
	}
	s := fmt.Sprintf("%-8s %-12s ", where, e.Type)
	if e.Type == "PT_DISABLED" {
		s += fmt.Sprintf("pt %d", e.PT)
	} else {
		s += fmt.Sprintf("%d B", e.Length)
		if e.Requested != e.Length {
			s += fmt.Sprintf(" of %d B", e.Requested)
		}
		s += fmt.Sprintf(" at offset %d", int64(e.Offset))
	}
	switch e.Type {
	case "ACK", "REPLY", "PT_DISABLED":
	default:
		s += fmt.Sprintf(" of pt %d from node %d", e.PT, e.Source)
	}
	if e.Fail != "OK" && e.Fail != e.Type {
		s += ", fail type " + e.Fail
	}
	p.line("  %s  %s", p.run.text(e.At, ""), s)
}

// numberText formats the bits of a number of a type.
func numberText(t portals.Datatype, bits uint64) string {
	switch t {
	case portals.Int8:
		return fmt.Sprint(int8(bits))
	case portals.Int16:
		return fmt.Sprint(int16(bits))
	case portals.Int32:
		return fmt.Sprint(int32(bits))
	case portals.Int64:
		return fmt.Sprint(int64(bits))
	case portals.Float:
		return fmt.Sprint(math.Float32frombits(uint32(bits)))
	case portals.Double:
		return fmt.Sprint(math.Float64frombits(bits))
	}
	return fmt.Sprint(bits & (1<<(8*min(t.Size(), 8)) - 1))
}
