package handlerlab

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// LineRate is the lowest share of the line rate that counts as line rate.
const LineRate = 0.95

// HPU is the name of the pool of HPUs in an Advice.
const HPU = "HPU"

const (
	probes      = 4               // messages sent alone
	apart       = sim.Millisecond // between two of them
	leastRounds = 12              // fewest messages per processor in a stream
	mostStream  = 16384           // most messages of a stream
	mostSources = 64              // most senders
	loops       = 48              // more calls than this per packet sent: the handlers loop
	pace        = 0.98            // handlers keep up if they reach this share of the incoming rate
	// more processors help only if the rate grows at least by this factor
	helps = 1.05
)

// Need is the part of a resource that one message takes.
type Need struct {
	Resource string
	Used     sim.Time // per message: time of a processor, of the bus, of the link
	// Used divided by the time between two messages and by the number of units;
	// above 1 the resource is the limit
	Load float64
	What string // the profile field that sets the capacity
}

// Advice is the result of Advise: whether handlers hold line rate, and why.
type Advice struct {
	Size, Packets int      // of a message
	Line          sim.Time // between two messages at line rate
	Cycles        int64    // all handlers of a message
	Computes      sim.Time // compute time of a message, dispatch included
	Inside        sim.Time // sum of the times from beginning to end
	Calls         float64  // handlers per message
	Pool          string   // the processors that run them
	Field         string   // the profile field that sets the number of processors
	Processors    int      // of it
	Contexts      int
	Needed        float64 // processors at line rate, by Little's law
	Needs         []Need  // processors, bus to memory, bus from memory, link
	Buffer        int64   // bytes of the packet buffer
	// the simulated stream; nil if the packet buffer does not hold enough
	// packets, or if handlers fail
	Stream *Stream
	Fails  string // how handlers fail at line rate; "": they do not
	// the number of processors at which simulated handlers hold line rate; 0:
	// no number is enough, or nothing was simulated
	Advised   int
	AtAdvised *Stream // simulated with that number
	// the largest number of processors that was simulated without success; 0:
	// nothing was tried
	Tried int

	sources int // senders of the stream
}

// Stream is the result of a simulation with messages at line rate.
type Stream struct {
	Processors int
	Messages   int
	Share      float64 // share of the line rate that handlers reach
	// share of the line rate at which packets arrived. It is below LineRate if
	// the senders or the network are the limit, or if packets wait in the
	// network for handlers.
	Brought  float64
	Busy     float64 // share of the time that processors computed
	Waiting  int64   // most bytes of packets that waited for a handler
	Computes sim.Time
	Inside   sim.Time // per message
}

// FailedError is returned if handlers fail or do not take the messages, so that
// there is no advice.
type FailedError struct{ What string }

func (e *FailedError) Error() string { return e.What }

// Limit returns the resource with the highest load.
func (a *Advice) Limit() *Need {
	best := &a.Needs[0]
	for i := range a.Needs {
		if a.Needs[i].Load > best.Load {
			best = &a.Needs[i]
		}
	}
	return best
}

// Holds reports whether handlers hold line rate. It uses the simulation if
// there is one, and the needs otherwise.
func (a *Advice) Holds() bool {
	switch s := a.Stream; {
	case a.Fails != "":
		return false
	case s != nil && (s.Share >= LineRate || !s.paced()):
		return s.Share >= LineRate
	}
	return a.Limit().Load <= 1
}

// paced reports whether handlers keep up with everything that arrived, although
// it arrived below line rate.
func (s *Stream) paced() bool { return s.Brought < LineRate && s.Share >= pace*s.Brought }

// Advise measures what handlers need for messages of one size, and whether they
// hold line rate. It reads the configuration as Run does, but ignores messages,
// host memory and tracer. It returns an error if the configuration is wrong or
// a handler fails.
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

// holding returns the configuration with an entry that takes a message.
func (c *Config) holding(message []byte) Config {
	own := *c
	if len(own.Host) < len(message) {
		own.Host = append(slices.Clone(own.Host), make([]byte, len(message)-len(own.Host))...)
	}
	return own
}

// measured fills in the needs of a message that arrives alone.
func (a *Advice) measured(cfg *Config, t *tally) {
	p := cfg.Profile
	a.Packets = max(t.packetsIn/probes, 1)
	a.Line, a.Cycles, a.Calls = t.lineIn/probes, t.cycles/probes, float64(t.calls)/probes
	a.Pool, a.Field, a.Processors, a.Contexts = HPU, "hpu.cores", p.HPU.Cores, p.HPU.Contexts
	dispatch := p.HPU.Dispatch.Time(p.HPU.Clock)
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

// needed returns the average number of busy processors by Little's law, with
// one message every a.Line. A handler occupies a processor while it computes,
// and one of its contexts from beginning to end.
func (a *Advice) needed(computes, inside sim.Time) float64 {
	return max(float64(computes), float64(inside)/float64(a.Contexts)) / float64(a.Line)
}

// advised finds the smallest number of processors at which simulated handlers
// hold line rate. It starts from Little's law. Under load a handler may wait
// longer for the bus than alone, so each simulation gives a new estimate.
func (c *Config) advised(ctx context.Context, a *Advice, message []byte) error {
	if a.Pool != HPU || slices.ContainsFunc(a.Needs[1:], func(n Need) bool { return n.Load > 1 }) {
		return nil
	}
	fewest, most, share := 1, math.MaxInt, 0.0
	n := max(1, int(math.Ceil(a.Needed*LineRate)))
	if !a.Holds() && n <= a.Processors { // this number did not suffice
		fewest, share, n = a.Processors+1, a.Stream.Share, 2*a.Processors
	}
	for range 8 {
		s, err := c.stream(ctx, a, message, n)
		if failed := (*FailedError)(nil); errors.As(err, &failed) {
			a.Tried = max(a.Tried, n)
			return nil // this number is worse
		}
		if err != nil || s == nil {
			return err
		}
		if s.paced() { // no more packets arrive: there is no answer
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

// brought returns a stream from as many sources as line rate needs, or as many
// as the network has. A host may need longer to post a short message than the
// link to carry it. Some networks deliver messages of several sources at once.
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

// stream simulates messages at line rate on the given number of processors. It
// returns nil if the packet buffer or the queue of handlers is too small.
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
		source := i % a.sources // in turn, as the link would deliver them
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
	// count whole rounds: handlers that take the same time end together
	last := skip + (len(t.ends)-1-skip)/processors*processors
	took := t.ends[last] - t.ends[skip]
	messages := float64(last-skip) / a.Calls
	s := &Stream{Processors: processors, Messages: n, Computes: t.computed / sim.Time(n), Inside: t.inside / sim.Time(n), Waiting: t.mostBuffered}
	s.Share = min(1, messages*float64(a.Line)/float64(max(took, 1)))
	s.Brought = min(1, float64(t.packetsIn-1)*float64(a.Line)/float64(a.Packets)/float64(max(t.arrived[1]-t.arrived[0], 1)))
	s.Busy = min(1, float64(t.computed)/float64(t.ends[len(t.ends)-1]-t.began)/float64(processors))
	return s, nil
}

// watched runs the messages and adds up the work of the device.
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
	own.Watched = runtime.Config{Tracer: t, Seed: 1, Used: c.Watched.Used}
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
