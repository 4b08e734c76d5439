package npf

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/handlers/backupring"
	"github.com/spinsim/spinsim/inet"
	"github.com/spinsim/spinsim/internal/npf/memcached"
	"github.com/spinsim/spinsim/internal/npf/memcached/memaslap"
	"github.com/spinsim/spinsim/internal/npf/stack"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// A key-value server of NPF'17 on node 0, whose pages may be absent, and its
// load on node 1.

// npfLoadAxes are the axes of the load.
func npfLoadAxes() []experiment.Axis {
	return []experiment.Axis{
		{Name: "cold", Kind: report.Text, Of: []string{coldServer, coldBoth}, Default: coldServer, Help: "whose receive ring begins without its pages: the server's, or also the load's, which is like it; the paper names neither"},
		{Name: "connections", Kind: report.Count, Least: "1", Most: "1024", Default: "16", Help: "connections of the load, each with one operation in flight; the paper gives no number, memaslap's default is 16"},
		{Name: "spacing", Kind: report.Duration, Unit: "us", Most: "1s", Default: "0us", Help: "time between the starts of connections; the paper gives none"},
		{Name: "client", Kind: report.Text, Of: inet.Sets(), Default: "linux", Help: "time-outs and retries of the load's TCP: a set of package inet; the server has lwip"},
		{Name: "timeout", Kind: report.Duration, Unit: "ms", Most: "10s", Default: "0ms", Help: "first and shortest time-out of the load's TCP; 0: as in its set"},
	}
}

// Values of the axis cold.
const (
	coldServer = "server"
	coldBoth   = "both"
)

// loadRing is the receive ring of the load.
func (w *cacheRun) loadRing() backupring.RingOptions {
	if w.Text("cold") == coldBoth {
		return npfRing(w.Point)
	}
	return backupring.RingOptions{Size: clientTCP, Pinned: true}
}

// cacheRun is a run of the server and its load.
type cacheRun struct {
	*experiment.Point
	most               int      // the load ends after this number of operations; 0: it does not
	until              sim.Time // the latest end
	steady             bool     // it ends when the operations in each cacheSlice are steady
	each               bool     // note each operation
	result             cacheResult
	ends               []*memaslap.Client
	conns              []*stack.Conn
	ring               *backupring.Ring
	total              int64
	last               []sim.Time // the last operation of each connection
	since              []sim.Time // when the next operation of each connection began
	slices             int        // simulated since the load was last paused, or memory was absent
	absent             uint64     // frames whose memory was, until the last slice
	failed             []bool     // connections
	noted              int64      // operations that are in slices
	rate               float64    // operations in a second, when they were last constant
	paused             bool       // held connections begin no operation
	held               []bool
	wakes              bool     // a connection that is not held has got an answer
	lossy              bool     // the network loses frames
	judged             int      // number of slices at the last comparison
	stretch, stretches int      // slices in a stretch, and how many stretches are compared
	quiet              sim.Time // until then a fault may still begin or end
}

// The load is steady if cacheSteady slices of the time cacheSlice have the same
// number of operations, except for cacheAlike, and no frame whose memory is
// absent. If some connections then only wait for their time-outs, the load is
// paused until one of these has got an answer. The time between counts as if the
// load had gone on.
//
// This does not work on a network that loses frames. A time-out is much longer
// than a slice. So slices between two losses are alike, but none shows the
// time-outs that determine the throughput. There the load has lossyStretches,
// each as long as lossyTimeouts time-outs. It is steady if the standard error
// of their mean is below lossyError.
const (
	cacheSlice  = 5 * sim.Millisecond
	cacheSteady = 6
	cacheAlike  = 0.03

	lossyStretches = 8
	lossyTimeouts  = 4
	lossyError     = 0.1
)

// cacheResult is the result of a run.
type cacheResult struct {
	slices  []float64 // operations in each cacheSlice, from the beginning
	end     sim.Time  // of the run
	skipped sim.Time  // part of it while the load was paused
	looked  sim.Time  // part at its end in which it was found steady
	rate    float64   // operations in a second after the end; 0: all connections have failed
	gaveUp  int       // connections that have failed
	ring    backupring.Stats
}

// rateIn is the operations in a second between two times, at the edges of
// slices.
func (r *cacheResult) rateIn(from, to sim.Time) float64 {
	ops := 0.0
	for at := from; at < to; at += cacheSlice {
		if i := int(at / cacheSlice); i < len(r.slices) {
			ops += r.slices[i]
		} else {
			ops += r.rate * cacheSlice.Seconds()
		}
	}
	return ops / (to - from).Seconds()
}

// silence is the time of slices with less than 1% of the operations at the end.
func (r *cacheResult) silence() (d sim.Time) {
	for _, n := range r.slices {
		if n < 0.01*r.rate*cacheSlice.Seconds() || r.rate == 0 {
			d += cacheSlice
		}
	}
	return d
}

var (
	cacheServer = inet.Addr{10, 0, 0, 1}
	cacheClient = inet.Addr{10, 0, 0, 2}
)

const (
	cachePort      = 11211
	cacheServerTCP = "lwip"
	cacheWindow    = 1000                  // objects of each connection, stored before the load
	cacheMemory    = 2048                  // of each object: its chunk, and the unused part of slabs
	cacheBegin     = 100 * sim.Microsecond // the server listens by then
	clientTCP      = 4096                  // descriptors of the client's pinned ring: our choice
)

// run simulates.
func (w *cacheRun) run(ctx context.Context) (stats runtime.Stats, err error) {
	if err := w.looks(); err != nil {
		return stats, err
	}
	for i := range w.Int("connections") {
		end, err := memaslap.New(memaslap.Config{Window: cacheWindow, Seed: w.Seed}, i)
		if err != nil {
			return stats, err
		}
		w.ends = append(w.ends, end)
	}
	return experiment.SimulateTCP(ctx, w.Config(ctx, 2), w.spawn, func() error {
		w.result.ring = w.ring.Stats()
		return nil
	})
}

func (w *cacheRun) spawn(c *runtime.Cluster) error {
	network, providers, err := npfNetwork(c, w.Int("backup-slots"))
	if err != nil {
		return err
	}
	if err := c.SpawnService(0, "server", func(p *runtime.Proc) error {
		s, err := npfOpen(network, p, providers[0], cacheServerTCP, stack.Options{Addr: cacheServer, Ring: npfRing(w.Point), Secret: w.Seed})
		if err != nil {
			return err
		}
		w.ring = s.Ring()
		return w.serve(p, s)
	}); err != nil {
		return err
	}
	return c.Spawn(1, "load", func(p *runtime.Proc) error {
		s, err := npfOpen(network, p, providers[1], w.Text("client"), stack.Options{
			Addr: cacheClient, Ring: w.loadRing(), Secret: w.Seed, Send: 1024,
		}, w.timeouts()...)
		if err != nil {
			return err
		}
		return w.load(p, s)
	})
}

// timeouts are the overrides for the load's TCP.
func (w *cacheRun) timeouts() (overrides []string) {
	d := w.Time("timeout")
	if d == 0 {
		return nil
	}
	for _, name := range []string{"rto_initial", "rto_after_syn", "rto_least"} {
		overrides = append(overrides, fmt.Sprintf("%s=%dps", name, int64(d)))
	}
	return overrides
}

// serve is the program of the server.
func (w *cacheRun) serve(p *runtime.Proc, s *stack.Stack) error {
	server, err := memcached.NewServer(p, memcached.Config{Limit: int64(16<<20 + len(w.ends)*cacheWindow*cacheMemory)})
	if err != nil {
		return err
	}
	for _, end := range w.ends {
		if err := end.Each(func(key, value []byte) error {
			if !server.Store.Set(key, value) {
				return errors.New("the server has no room for what is there in the beginning")
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return npfServe(s, server, cachePort, len(w.ends))
}

// load is the program of the client.
func (w *cacheRun) load(p *runtime.Proc, s *stack.Stack) error {
	p.Sleep(cacheBegin)
	w.since = make([]sim.Time, len(w.ends))
	w.last, w.failed, w.held = make([]sim.Time, len(w.ends)), make([]bool, len(w.ends)), make([]bool, len(w.ends))
	buffer := make([]byte, 16<<10)
	for next, dial := cacheSlice, p.Now(); ; {
		for ; len(w.conns) < len(w.ends) && p.Now() >= dial; dial += w.Time("spacing") {
			c, err := s.Dial(cacheServer, cachePort)
			if err != nil {
				return err
			}
			c.Of = len(w.conns)
			w.since[len(w.conns)] = p.Now()
			w.conns = append(w.conns, c)
		}
		until := w.until
		if len(w.conns) < len(w.ends) {
			until = min(until, dial)
		}
		if err := s.Wait(until); err != nil {
			return err
		}
		for ; p.Now() >= next; next += cacheSlice {
			w.note()
		}
		for c := s.Next(); c != nil; c = s.Next() {
			if err := w.advance(c, buffer, p.Now()); err != nil {
				return err
			}
		}
		if w.paused && w.wakes {
			w.paused, w.slices, w.noted = false, 0, w.total
			for i, held := range w.held {
				if held {
					w.since[i] = p.Now()
				}
			}
			for _, c := range w.conns {
				if err := w.advance(c, buffer, p.Now()); err != nil {
					return err
				}
			}
		}
		if w.over(p.Now()) {
			w.result.end = p.Now()
			return nil
		}
	}
}

// losesByChance reports whether frames may be lost at any time, and not only
// while a part is down. A frame that is late by more than a slice counts as
// lost.
func losesByChance(p *experiment.Point) bool {
	f := &p.Profile.Fabric.Faults
	return f.Loss > 0 || f.Corrupt > 0 || f.Delay > 0 && f.MaxDelay >= cacheSlice
}

// looks chooses the slices to compare to find out whether the load is steady.
func (w *cacheRun) looks() error {
	faults := &w.Profile.Fabric.Faults
	w.stretch, w.stretches, w.lossy = 1, cacheSteady, losesByChance(w.Point)
	if w.lossy {
		longest, err := w.longestTimeout()
		if err != nil {
			return err
		}
		w.stretch, w.stretches = int((lossyTimeouts*longest+cacheSlice-1)/cacheSlice), lossyStretches
	}
	for _, d := range faults.Down {
		for _, at := range []sim.Time{d.From, d.To} {
			if at < w.until {
				w.quiet = max(w.quiet, at)
			}
		}
	}
	w.result.looked = sim.Time(w.stretch*w.stretches) * cacheSlice
	return nil
}

// longestTimeout is the longer one of both ends' first time-outs after a loss.
func (w *cacheRun) longestTimeout() (sim.Time, error) {
	client, err := inet.Load(w.Text("client"), w.timeouts()...)
	if err != nil {
		return 0, err
	}
	server, err := inet.Load(cacheServerTCP)
	if err != nil {
		return 0, err
	}
	return max(client.RTOLeast, server.RTOLeast), nil
}

// waits reports whether a connection got no answer while the others were
// steady.
func (w *cacheRun) waits(i int, now sim.Time) bool {
	return w.conns[i].Err() == nil && w.last[i] < now-min(now, w.result.looked)
}

// advance handles a connection of the load where something has happened.
func (w *cacheRun) advance(c *stack.Conn, buffer []byte, now sim.Time) error {
	end := w.ends[c.Of.(int)]
	before := end.Stats.Ops()
	if c.Err() != nil {
		if !w.failed[c.Of.(int)] {
			w.failed[c.Of.(int)] = true
			w.result.gaveUp++
		}
		return nil
	}
	for n := c.Read(buffer); n > 0; n = c.Read(buffer) {
		end.Feed(buffer[:n])
	}
	for out := end.Output(); (!w.paused || !w.held[c.Of.(int)]) && c.Established() && len(out) > 0; out = end.Output() {
		n := c.Write(out)
		if n == 0 {
			break
		}
		end.Sent(n)
	}
	if done := end.Stats.Ops() - before; done > 0 {
		w.total += done
		w.last[c.Of.(int)] = now
		if w.each {
			w.NoteOperation(1, "load", w.since[c.Of.(int)], now)
		}
		w.since[c.Of.(int)] = now
		w.wakes = w.wakes || !w.held[c.Of.(int)]
	}
	if end.Stats.Wrong > 0 {
		return fmt.Errorf("connection %d: %d values are not those that were stored", c.Of, end.Stats.Wrong)
	}
	return end.Err()
}

// note ends a slice.
func (w *cacheRun) note() {
	if w.paused {
		w.result.slices = append(w.result.slices, w.rate*cacheSlice.Seconds())
		w.result.skipped += cacheSlice
		return
	}
	w.result.slices = append(w.result.slices, float64(w.total-w.noted))
	w.noted = w.total
	w.slices++
	// while a large ring warms up, each operation takes a page, and slices are
	// alike
	if now := w.ring.Stats().Absent; now > w.absent {
		w.absent, w.slices = now, 0
	}
}

// over reports whether the load ends. It pauses the load if only time-outs are
// ahead.
func (w *cacheRun) over(now sim.Time) bool {
	switch {
	case w.result.gaveUp == len(w.ends), w.most > 0 && w.total >= int64(w.most), now >= w.until:
		return true
	case !w.steady || w.paused || w.slices < w.stretch*w.stretches || len(w.conns) < len(w.ends) || now < w.quiet:
		return false
	case w.lossy && w.judged == w.slices:
		return false
	}
	if w.judged = w.slices; !w.constant() {
		return false
	}
	w.wakes = false
	waiting := false
	for i := range w.held {
		w.held[i] = !w.waits(i, now)
		waiting = waiting || !w.held[i]
	}
	if waiting {
		w.paused = !w.lossy // frames lost in the pause would have been lost at another time
		return false
	}
	w.result.rate = w.rate
	return true
}

// constant reports whether the last stretches have about the same number of
// operations, and sets rate.
func (w *cacheRun) constant() bool {
	n := w.stretches
	last := make([]float64, n)
	for i, ops := range w.result.slices[len(w.result.slices)-n*w.stretch:] {
		last[i/w.stretch] += ops
	}
	mean, deviation := stat.MeanStdDev(last, nil)
	w.rate = mean / (sim.Time(w.stretch) * cacheSlice).Seconds()
	if w.lossy {
		return stat.StdErr(deviation, float64(n)) < lossyError*mean
	}
	return slices.Min(last) > (1-cacheAlike)*mean && slices.Max(last) < (1+cacheAlike)*mean
}
