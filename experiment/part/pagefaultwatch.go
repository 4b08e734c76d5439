package part

import (
	"strings"

	"github.com/spinsim/spinsim/handlers/part"
	"github.com/spinsim/spinsim/handlers/rdma"
	"github.com/spinsim/spinsim/internal/breakdown"
	"github.com/spinsim/spinsim/sim"
)

// pagefaultWatch accounts for the time while a transfer meets absent pages, in
// the categories pagefaultParts. It reads the timeline: the work of cores by
// its name, and messages by their match bits.
type pagefaultWatch struct {
	*breakdown.Account
	engine bool              // match bits belong to the RDMA engine
	labels map[uint64]uint64 // match bits by flow
	// the begin of flows whose match bits are not known yet: a block that is
	// read, a descriptor
	early   map[uint64]sim.Time
	last    map[uint64]sim.Time  // when each was last seen
	waiting map[waitKey]sim.Time // since when each waits
	moved   sim.Time             // when anything of the engine was last seen
	// the end of the last run of firmware that may have begun to send a block
	// again; 0: its cells have begun
	again   sim.Time
	resends []sim.Time // when firmware began to send a block again
}

// waitKey is what waits for a page: a block, a message that looks again, or, at
// the source of a block, all messages.
type waitKey struct {
	slot, flow uint64
	source     bool
}

func newPagefaultWatch(engine bool) *pagefaultWatch {
	return &pagefaultWatch{
		Account: breakdown.New(partCount), engine: engine,
		labels: map[uint64]uint64{}, early: map[uint64]sim.Time{}, last: map[uint64]sim.Time{}, waiting: map[waitKey]sim.Time{},
	}
}

// Kinds of timeline tracks.
const (
	lineOther = iota
	lineCPU
	lineProcessor
	lineLink
	lineDevice
)

// Track implements breakdown.Observer.
func (w *pagefaultWatch) Track(t *breakdown.Track) int {
	switch name := t.Name; {
	case strings.HasPrefix(name, "CPU "):
		return lineCPU
	case name == "link":
		return lineLink
	case name == "NIC match", name == "SMMU", strings.HasPrefix(name, "DMA "):
		return lineDevice
	case strings.Contains(name, " "):
		return lineProcessor
	}
	return lineOther
}

// coreWork returns the part that a core's work belongs to. partCount: none.
func coreWork(what string) int {
	switch what {
	case "SMMU fault", "interrupt":
		return partInterrupt
	case "get_user_pages", "put_page":
		return partGetUserPages
	case "netlink":
		return partNetlink
	case "context switch":
		return partContextSwitch
	case "netlink message":
		return partRequest
	case "page fault", "touch", "mlock":
		return partTouch
	case "softirq", "fault FIFO", "SMMU bank", "invalidate", "tasklet":
		return partTasklet
	}
	switch {
	case strings.HasPrefix(what, "interrupt "):
		return partInterrupt
	case strings.HasPrefix(what, "tasklet "):
		return partTasklet
	}
	return partCount
}

// Span implements breakdown.Observer.
func (w *pagefaultWatch) Span(t *breakdown.Track, name string, from, to sim.Time, flow uint64, args []sim.Arg) {
	if t.Kind == lineCPU {
		part := coreWork(name)
		// by the library's thread (package driver)
		if name == "put" && len(args) > 0 && strings.HasSuffix(args[0].Text, " page faults") {
			part = partRequest
		}
		if part < partCount {
			w.Account.Span(part, from, to)
		}
		return
	}
	if t.Kind == lineOther || flow == 0 {
		return
	}
	if n, known := breakdown.Number(args, "match bits"); known {
		w.label(flow, uint64(n))
	}
	bits, known := w.labels[flow]
	if !known {
		if _, began := w.early[flow]; !began {
			w.early[flow] = from
		}
		w.last[flow] = max(w.last[flow], to)
		w.resumed(waitKey{flow: flow}, from)
		return
	}
	if !w.engine {
		w.resumed(waitKey{flow: flow}, from)
		w.Chain(flow, partWire, from, to, nil)
		return
	}
	// whatever was silent until now has waited for the time-out
	if h := rdma.HeaderOf(bits); h.Kind == rdma.KindTimeout {
		w.Account.Span(partIdle, w.moved, from)
	}
	w.moved = max(w.moved, to)
	w.message(t.Kind, rdma.HeaderOf(bits), from, to, flow)
}

// label notes the match bits of a flow, and accounts for its time before they
// were known.
func (w *pagefaultWatch) label(flow, bits uint64) {
	if _, known := w.labels[flow]; known {
		return
	}
	w.labels[flow] = bits
	if from, began := w.early[flow]; began {
		part := partWire
		if w.engine {
			part = w.part(rdma.HeaderOf(bits))
		}
		w.Chain(flow, part, from, w.last[flow], nil)
		delete(w.early, flow)
		delete(w.last, flow)
	}
}

// part returns the part that the time of an engine's message belongs to.
func (w *pagefaultWatch) part(h rdma.Header) int {
	switch h.Kind {
	case part.KindAskAgain, rdma.KindResume:
		return partRequest
	case rdma.KindTimeout:
		return partRetransmission
	case rdma.KindData, rdma.KindNotify:
		if h.Attempt > 0 {
			return partRetransmission
		}
	}
	return partWire
}

// message accounts for a step of an engine's message.
func (w *pagefaultWatch) message(line int, h rdma.Header, from, to sim.Time, flow uint64) {
	part := w.part(h)
	switch {
	// the firmware sends a block again
	case line == lineProcessor && (h.Kind == rdma.KindTimeout || h.Kind == rdma.KindResume):
		w.resumed(waitKey{slot: uint64(h.Slot)}, from)
		w.resumed(waitKey{source: true}, from)
		w.Chain(flow, part, from, from, nil) // until it reads the request
		w.Account.Span(partRetransmission, from, to)
		w.again = to
		w.resends = append(w.resends, from)
		return
	case line == lineLink && part == partRetransmission && w.again > 0: // the data was read meanwhile
		w.Account.Span(partRetransmission, w.again, from)
		w.again = 0
	}
	w.Chain(flow, part, from, to, nil)
}

// resumed ends a wait.
func (w *pagefaultWatch) resumed(k waitKey, at sim.Time) {
	if since, waits := w.waiting[k]; waits {
		w.Account.Span(partIdle, since, at)
		delete(w.waiting, k)
	}
}

// Instant implements breakdown.Observer. A message begins to wait at a fault of
// the SMMU.
func (w *pagefaultWatch) Instant(t *breakdown.Track, name string, at sim.Time, flow uint64, _ []sim.Arg) {
	if t.Name != "SMMU" || !strings.HasPrefix(name, "fault") {
		return
	}
	k := waitKey{flow: flow}
	if bits, known := w.labels[flow]; w.engine {
		k = waitKey{source: true}
		if h := rdma.HeaderOf(bits); known {
			k = waitKey{slot: uint64(h.Slot)}
		}
	}
	w.Break(flow)
	if from, began := w.early[flow]; began {
		w.Account.Span(partWire, from, w.last[flow])
		delete(w.early, flow)
		delete(w.last, flow)
	}
	if _, waits := w.waiting[k]; !waits {
		w.waiting[k] = at
	}
}

// finish accounts for messages whose match bits never appeared: blocks that
// were read for firmware.
func (w *pagefaultWatch) finish() {
	for flow, from := range w.early { //lint:maporder spans may come in any order
		w.Account.Span(partWire, from, w.last[flow])
	}
}

// firstAgain returns when, in the latency of an exchange, a block was first sent
// again; nil: none was.
func (w *pagefaultWatch) firstAgain(x *exchange) any {
	for _, at := range w.resends {
		if at >= x.begun && at < x.seen {
			return x.prepared[1] - x.prepared[0] + at - x.begun
		}
	}
	return nil
}

// attribute adds the parts of an interval to times.
func (w *pagefaultWatch) attribute(times *[partCount]sim.Time, from, to sim.Time) {
	var all [partCount + 1]sim.Time
	w.Attribute(all[:], from, to)
	all[partWire] += all[partCount]
	for i := range times {
		times[i] += all[i]
	}
}
