package handlerlab

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/sim"
)

// LineRate is from which share of it on throughput is said to be the line rate.
const LineRate = 0.95

// HPU is the name of the pool of HPUs in an Advice.
const HPU = "HPU"

const (
	probes      = 4               // messages that come alone
	apart       = sim.Millisecond // between them
	leastRounds = 12              // messages that each processor handles in a stream at least
	mostStream  = 16384           // messages of a stream
	mostSources = 64              // that send them
	loops       = 48              // calls for each packet that was sent are no answers any more
	pace        = 0.98            // from which share of what comes on handlers keep up with it
	// by which more processors that help raise what handlers reach at least
	helps = 1.05
)

// Need is what a message takes of a resource, and how much of it there is while
// a message comes at line rate.
type Need struct {
	Resource string
	Used     sim.Time // for each message: time of a processor, of the bus, of the link
	// Used by the time in which messages come, in units of what there is: above
	// 1 the resource is the limit
	Load float64
	What string // the field of the profile that says how much there is
}

// Advice says whether handlers hold line rate.
type Advice struct {
	Size, Packets int      // of a message
	Line          sim.Time // between two messages at line rate
	Cycles        int64    // of the handlers of a message
	Computes      sim.Time // what they take, dispatch included
	Inside        sim.Time // from their beginnings to their ends, a sum
	Calls         float64  // handlers of a message
	Pool          string   // whose processors run them
	Field         string   // of the profile, that says how many there are
	Processors    int      // of it
	Contexts      int
	Needed        float64 // processors at line rate, by Little's law
	Needs         []Need  // processors, bus to memory, bus from memory, link
	Buffer        int64   // bytes of the packet buffer
	// the same simulated; nil: the packet buffer does not hold enough packets,
	// or handlers fail
	Stream *Stream
	Fails  string // how handlers fail when messages come at line rate; "": they do not
	// processors with which simulated handlers hold line rate; 0: none do, or
	// nothing was simulated
	Advised   int
	AtAdvised *Stream // simulated with that many
	// most processors that were simulated and did not hold it, if none did; 0:
	// nothing was tried
	Tried int

	sources int // that send the messages of a stream
}

// Stream is messages at line rate, simulated.
type Stream struct {
	Processors int
	Messages   int
	Share      float64 // of the line rate that handlers reach
	// share of it at which packets came; less than LineRate where senders or
	// network are the limit, or packets wait in the network for handlers
	Brought  float64
	Busy     float64 // share of the time in which processors computed
	Waiting  int64   // most bytes of packets that waited for a handler
	Computes sim.Time
	Inside   sim.Time // for each message
}

// FailedError is that of handlers that fail, or do not take the messages:
// nothing can be said of them.
type FailedError struct{ What string }

// Error says what failed.
func (e *FailedError) Error() string { return e.What }

// Limit is the resource that has the most to do.
func (a *Advice) Limit() *Need {
	best := &a.Needs[0]
	for i := range a.Needs {
		if a.Needs[i].Load > best.Load {
			best = &a.Needs[i]
		}
	}
	return best
}

// Holds reports whether handlers hold line rate: as simulated, or where nothing
// was, by what they take.
func (a *Advice) Holds() bool {
	switch s := a.Stream; {
	case a.Fails != "":
		return false
	case s != nil && (s.Share >= LineRate || !s.paced()):
		return s.Share >= LineRate
	}
	return a.Limit().Load <= 1
}

// paced reports whether handlers keep up with less than the line rate, which is all that came.
func (s *Stream) paced() bool { return s.Brought < LineRate && s.Share >= pace*s.Brought }

// Advise measures what handlers take of a device for messages of a size, and
// whether they hold line rate. The configuration is that of Run, but for
// messages, host memory and tracer. The error is one of the configuration, or
// of a handler.
func Advise(ctx context.Context, cfg *Config, message []byte) (*Advice, error) {
	own := cfg.holding(message)
	a := &Advice{Size: len(message), Buffer: int64(cfg.Profile.NIC.PacketBuffer)}
	alone := make([]Message, probes)
	for i := range alone {
		alone[i] = Message{Source: AnySource, Data: message, At: sim.Time(i) * apart}
	}
	own.Messages = alone
	t, err := own.watched(ctx)
	if err != nil {
		return nil, err
	}
	if t.calls == 0 {
		return nil, &FailedError{"no handler has run: nothing could be measured"}
	}
	a.measured(&own, t)
	a.Stream, err = own.brought(ctx, a, message)
	if failed := (*FailedError)(nil); errors.As(err, &failed) {
		a.Fails = failed.What
		return a, nil
	}
	if err != nil || a.Stream == nil || a.Stream.paced() {
		return a, err
	}
	return a, own.advised(ctx, a, message)
}

// holding is the configuration with an entry that takes a message.
func (c *Config) holding(message []byte) Config {
	own := *c
	if len(own.Host) < len(message) {
		own.Host = append(slices.Clone(own.Host), make([]byte, len(message)-len(own.Host))...)
	}
	return own
}

// measured fills in what a message takes that comes alone.
func (a *Advice) measured(cfg *Config, t *tally) {
	p := cfg.Profile
	a.Packets = max(t.packetsIn/probes, 1)
	a.Line, a.Cycles, a.Calls = t.lineIn/probes, t.cycles/probes, float64(t.calls)/probes
	a.Pool, a.Field, a.Processors, a.Contexts = HPU, "hpu.cores", p.HPU.Cores, p.HPU.Contexts
	dispatch := p.HPU.Dispatch
	if first := p.HPU.Cores; t.processor >= first {
		for i, name := range p.Pools.Names() {
			of := p.Pools.Processors()[i]
			if t.processor >= first && t.processor < first+of.Number {
				a.Pool, a.Processors, a.Contexts, dispatch = name, of.Number, of.Contexts, 0
				if a.Field = "pools." + name + ".cores"; p.Pools[name].Kind == nic.Hardware {
					a.Field = "pools." + name + ".depth"
				}
			}
			first += of.Number
		}
	}
	a.Computes = (t.computed + sim.Time(t.calls)*dispatch) / probes
	a.Inside = t.inside / probes
	a.Needed = a.needed(a.Computes, a.Inside)
	share := func(used sim.Time) float64 { return float64(used) / float64(a.Line) }
	in, out := p.DMA.Bandwidth.Time(t.bytesIn)/probes, p.DMA.Bandwidth.Time(t.bytesOut)/probes
	processors := "HPUs"
	if a.Pool != HPU {
		processors = "pool " + a.Pool
	}
	a.Needs = []Need{
		{processors, max(a.Computes, a.Inside/sim.Time(a.Contexts)), a.Needed / float64(a.Processors), a.Field},
		{"DMA to memory", in, share(in), "dma.bandwidth"},
		{"DMA from memory", out, share(out), "dma.bandwidth"},
		{"egress", t.lineOut / probes, share(t.lineOut / probes), "fabric.rate"},
	}
	if t.others > 0 {
		in := a.Line + t.others/probes
		a.Needs = append(a.Needs, Need{"ingress, answers included", in, share(in), "fabric.rate"})
	}
}

// needed is Little's law: processors that are taken on average if a message
// comes in each a.Line. A handler takes one while it computes, and one of its
// contexts from its beginning to its end.
func (a *Advice) needed(computes, inside sim.Time) float64 {
	return max(float64(computes), float64(inside)/float64(a.Contexts)) / float64(a.Line)
}

// advised finds the fewest processors with which simulated handlers hold line
// rate, from what Little's law says: under load a handler may wait longer for
// the bus than alone, so it is asked again with what was measured then.
func (c *Config) advised(ctx context.Context, a *Advice, message []byte) error {
	if a.Pool != HPU || slices.ContainsFunc(a.Needs[1:], func(n Need) bool { return n.Load > 1 }) {
		return nil
	}
	fewest, most, share := 1, math.MaxInt, 0.0
	n := max(1, int(math.Ceil(a.Needed*LineRate)))
	if !a.Holds() && n <= a.Processors { // with which they do not
		fewest, share, n = a.Processors+1, a.Stream.Share, 2*a.Processors
	}
	for range 8 {
		s, err := c.stream(ctx, a, message, n)
		if failed := (*FailedError)(nil); errors.As(err, &failed) {
			a.Tried = max(a.Tried, n)
			return nil // with these they do worse
		}
		if err != nil || s == nil {
			return err
		}
		if s.paced() { // no more comes: nobody can tell
			a.Tried = 0
			return nil
		}
		if s.Share >= LineRate {
			a.Advised, a.AtAdvised, most = n, s, n
		} else {
			fewest = n + 1
			a.Tried = max(a.Tried, n)
			if most == math.MaxInt && s.Share < helps*share { // they wait for each other
				return nil
			}
			share = s.Share
		}
		if fewest >= most {
			return nil
		}
		if most == math.MaxInt {
			n = max(fewest, int(math.Ceil(LineRate*a.needed(s.Computes, s.Inside))))
		} else {
			n = max(fewest, most-1)
		}
	}
	return nil
}

// brought is a stream from as many sources as it takes for the line rate, or as
// the network has. A host needs longer to post a message than the link for a
// short one, and some networks bring messages of several sources at once.
func (c *Config) brought(ctx context.Context, a *Advice, message []byte) (best *Stream, err error) {
	p := c.Profile
	most := min(mostSources, p.Fabric.Most()-1)
	a.sources = min(most, 1+int(2*(p.NIC.Overhead+p.DMA.Bandwidth.Time(int64(a.Size)))/a.Line))
	for n := a.sources; ; n = min(most, 2*n) {
		before := a.sources
		a.sources = n
		s, err := c.stream(ctx, a, message, a.Processors)
		if err != nil || s == nil {
			return s, err
		}
		if best != nil && s.Brought <= best.Brought {
			a.sources = before
			return best, nil
		}
		if best = s; s.Brought >= LineRate || n == most {
			return best, nil
		}
	}
}

// stream simulates messages at line rate on so many processors; nil: the packet
// buffer or the queue of handlers does not hold as many as it takes.
func (c *Config) stream(ctx context.Context, a *Advice, message []byte, processors int) (*Stream, error) {
	own, device := c.holding(message), *c.Profile
	if own.Profile = &device; a.Pool == HPU {
		device.HPU.Cores = processors
	}
	n := min(mostStream/a.Packets, max(5*leastRounds*processors, 200))
	if held := int(device.NIC.PacketBuffer) / max(a.Size, 1); n > held {
		n = held
	}
	n = min(n, device.HPU.WaitingHandlers/a.Packets)
	if n*a.Packets < leastRounds*processors || n < leastRounds || device.HPU.Cores*device.HPU.Contexts > 65536 {
		return nil, nil //nolint:nilnil // it says so
	}
	own.Messages = make([]Message, n)
	for i := range own.Messages {
		source := i % a.sources // in turn, as the link would bring them
		if source >= own.Node {
			source++
		}
		own.Messages[i] = Message{Source: source, Data: message, At: sim.Time(i) * a.Line}
	}
	t, err := own.watched(ctx)
	if err != nil {
		return nil, fmt.Errorf("%d messages at line rate on %d %ss: %w", n, processors, a.Pool, err)
	}
	skip := min(processors*max(int(math.Ceil(a.Calls)), 1), len(t.ends)/4)
	// whole rounds: where handlers take the same time, processors end together
	last := skip + (len(t.ends)-1-skip)/processors*processors
	took := t.ends[last] - t.ends[skip]
	messages := float64(last-skip) / a.Calls
	s := &Stream{Processors: processors, Messages: n, Computes: t.computed / sim.Time(n), Inside: t.inside / sim.Time(n), Waiting: t.mostBuffered}
	s.Share = min(1, messages*float64(a.Line)/float64(max(took, 1)))
	s.Brought = min(1, float64(t.packetsIn-1)*float64(a.Line)/float64(a.Packets)/float64(max(t.arrived[1]-t.arrived[0], 1)))
	s.Busy = min(1, float64(t.computed)/float64(t.ends[len(t.ends)-1]-t.began)/float64(processors))
	return s, nil
}

// watched runs the messages and adds up what the device does.
func (c *Config) watched(ctx context.Context) (*tally, error) {
	t := &tally{node: int32(c.Node), occupied: c.Profile.Fabric.Occupied, packets: map[sim.Task]waits{}, running: map[sim.Task]sim.Time{}, last: map[sim.Task]sim.Time{}}
	sent, mtu := 0, int(c.Profile.Fabric.MTU)
	for _, m := range c.Messages {
		sent += max(1, (len(m.Data)+mtu-1)/mtu)
	}
	ctx, t.stop = context.WithCancel(ctx)
	defer t.stop()
	t.most = loops * sent
	own := *c
	own.Tracer = t
	report, err := Run(ctx, &own)
	if len(t.running) > t.most {
		return nil, &FailedError{fmt.Sprintf("handlers send so much to their own node that %d packets have become more than %d calls: the state says whom they send to", sent, t.most)}
	}
	if err != nil {
		return nil, err
	}
	if err := report.Err(); err != nil {
		first, more, several := strings.Cut(err.Error(), "\n")
		if several {
			first += fmt.Sprintf(" (and %d more)", 1+strings.Count(more, "\n"))
		}
		return nil, &FailedError{first}
	}
	for _, m := range report.Messages {
		if m.Refused != "" {
			return nil, &FailedError{fmt.Sprintf("message %d was refused: %s", m.Number, m.Refused)}
		}
	}
	t.finish()
	t.cycles = report.Cycles
	return t, nil
}
