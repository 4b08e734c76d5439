package handlerlab

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

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
)

// Need is what a message takes of a resource, and how much of it there is while a message comes at line rate.
type Need struct {
	Resource string
	Used     sim.Time // for each message: time of a processor, of the bus, of the link
	Load     float64  // Used by the time in which messages come, in units of what there is: above 1 the resource is the limit
	What     string   // the field of the profile that says how much there is
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
	Processors    int      // of it
	Contexts      int
	Needed        float64 // processors at line rate, by Little's law
	Needs         []Need  // processors, bus to memory, bus from memory, link
	Buffer        int64   // bytes of the packet buffer
	Stream        *Stream // the same simulated; nil: the packet buffer does not hold enough packets, or handlers fail
	Fails         string  // how handlers fail when messages come at line rate; "": they do not
	Advised       int     // processors with which simulated handlers hold line rate; 0: none do, or nothing was simulated
	AtAdvised     *Stream // simulated with that many
}

// Stream is messages at line rate, simulated.
type Stream struct {
	Processors int
	Messages   int
	Share      float64 // of the line rate that handlers reach
	Busy       float64 // share of the time in which processors computed
	Waiting    int64   // most bytes of packets that waited for a handler
	Computes   sim.Time
	Inside     sim.Time // for each message
}

// FailedError is that of handlers that fail, or do not take the messages: nothing can be said of them.
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

// Holds reports whether handlers hold line rate: as simulated, or where nothing was, by what they take.
func (a *Advice) Holds() bool {
	if a.Stream != nil {
		return a.Stream.Share >= LineRate
	}
	if a.Fails != "" {
		return false
	}
	return a.Limit().Load <= 1
}

// Advise measures what handlers take of a device for messages of a size, and whether they hold line rate. The configuration is that of Run, but for messages, host
// memory and tracer. The error is one of the configuration, or of a handler.
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
	processors := a.Processors
	a.Stream, err = own.stream(ctx, a, message, processors)
	if failed := (*FailedError)(nil); errors.As(err, &failed) {
		a.Fails = failed.What
		return a, nil
	}
	if err != nil || a.Stream == nil {
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
	a.Pool, a.Processors, a.Contexts = HPU, p.HPU.Cores, p.HPU.Contexts
	dispatch := p.HPU.Dispatch
	if first := p.HPU.Cores; t.processor >= first {
		for i, name := range p.Pools.Names() {
			of := p.Pools.Processors()[i]
			if t.processor >= first && t.processor < first+of.Number {
				a.Pool, a.Processors, a.Contexts, dispatch = name, of.Number, of.Contexts, 0
			}
			first += of.Number
		}
	}
	a.Computes = (t.computed + sim.Time(t.calls)*dispatch) / probes
	a.Inside = t.inside / probes
	a.Needed = a.needed(a.Computes, a.Inside)
	share := func(used sim.Time) float64 { return float64(used) / float64(a.Line) }
	in, out := p.DMA.Bandwidth.Time(t.bytesIn)/probes, p.DMA.Bandwidth.Time(t.bytesOut)/probes
	field := "hpu.cores"
	if a.Pool != HPU {
		field = "pools." + a.Pool
	}
	a.Needs = []Need{
		{a.Pool + "s", max(a.Computes, a.Inside/sim.Time(a.Contexts)), a.Needed / float64(a.Processors), field},
		{"DMA to memory", in, share(in), "dma.bandwidth"},
		{"DMA from memory", out, share(out), "dma.bandwidth"},
		{"egress", t.lineOut / probes, share(t.lineOut / probes), "fabric.rate"},
	}
	if t.others > 0 {
		in := a.Line + t.others/probes
		a.Needs = append(a.Needs, Need{"ingress, answers included", in, share(in), "fabric.rate"})
	}
}

// needed is Little's law: processors that are taken on average if a message comes in each a.Line. A handler takes one while it computes, and one of its contexts from
// its beginning to its end.
func (a *Advice) needed(computes, inside sim.Time) float64 {
	return max(float64(computes), float64(inside)/float64(a.Contexts)) / float64(a.Line)
}

// advised finds the fewest processors with which simulated handlers hold line rate, from what Little's law says: under load a handler may wait longer for the bus than alone,
// so it is asked again with what was measured then.
func (c *Config) advised(ctx context.Context, a *Advice, message []byte) error {
	if a.Pool != HPU || slices.ContainsFunc(a.Needs[1:], func(n Need) bool { return n.Load > 1 }) {
		return nil
	}
	fewest, most := 1, math.MaxInt
	n := max(1, int(math.Ceil(a.Needed*LineRate)))
	for range 8 {
		s, err := c.stream(ctx, a, message, n)
		if failed := (*FailedError)(nil); errors.As(err, &failed) {
			return nil // with these they do worse
		}
		if err != nil || s == nil {
			return err
		}
		if s.Share >= LineRate {
			a.Advised, a.AtAdvised, most = n, s, n
		} else {
			fewest = n + 1
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

// stream simulates messages at line rate on so many processors; nil: the packet buffer or the queue of handlers does not hold as many as it takes.
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
	// A host needs longer to post a message than the link for a short one, and some networks bring messages of several sources at once: they come in turn, as the link would
	// bring them.
	sources := 1 + int(2*(device.NIC.Overhead+device.DMA.Bandwidth.Time(int64(a.Size)))/a.Line)
	own.Messages = make([]Message, n)
	for i := range own.Messages {
		source := i % sources
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
	last := skip + (len(t.ends)-1-skip)/processors*processors // whole rounds: where handlers take the same time, processors end together
	took := t.ends[last] - t.ends[skip]
	messages := float64(last-skip) / a.Calls
	s := &Stream{Processors: processors, Messages: n, Computes: t.computed / sim.Time(n), Inside: t.inside / sim.Time(n), Waiting: t.mostBuffered}
	s.Share = min(1, messages*float64(a.Line)/float64(max(took, 1)))
	s.Busy = min(1, float64(t.computed)/float64(t.ends[len(t.ends)-1]-t.began)/float64(processors))
	return s, nil
}

// watched runs the messages and adds up what the device does.
func (c *Config) watched(ctx context.Context) (*tally, error) {
	t := &tally{node: int32(c.Node), occupied: c.Profile.Fabric.Occupied, packets: map[sim.Task]waits{}, running: map[sim.Task]sim.Time{}, last: map[sim.Task]sim.Time{}}
	own := *c
	own.Tracer = t
	report, err := Run(ctx, &own)
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
