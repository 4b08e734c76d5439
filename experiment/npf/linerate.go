package npf

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/handlers/backupring"
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

var npfLineRate = &experiment.Experiment{
	Name:  "npf-line-rate",
	Short: "receive rings that are loaded at line rate, with frames whose memory is absent: how many HPUs hold it",
	Long: `Eight nodes send frames of one size to node 0 as fast as they can. Their shared link has the rate, and is the bottleneck: it slows the senders by link flow control, as
in the profile. Frames that node 0 cannot handle in time wait in its packet buffer (nic.packet_buffer), and are lost when it is full. For each frame, handlers of node 0 decide whether its buffer is present, and otherwise put it into the backup ring (handlers/backupring). A frame belongs to one of 256 flows, and the flow selects its
ring, as in receive side scaling. Each ring has as many descriptors as there are frames, all posted before the first arrives, each with its own page. So the experiment measures the interface, for as long as a
ring lasts. The bus has the bandwidth of the link.`,
	Source:   "ours, of " + npfSource + " §5",
	Smoke:    []experiment.Values{{"frames": 400, "hpus": 4, "rate": 100.0, "rings": 2}},
	Profiles: []string{"eth-npf"},
	Axes: []experiment.Axis{
		{Name: "rate", Kind: report.Number, Unit: "Gbps", Least: "1", Most: "1600", Default: "100,400", Help: "of the links, Gb/s, and of the bus"},
		{Name: "rings", Kind: report.Count, Least: "1", Most: fmt.Sprint(backupring.MaxRings), Default: "1,4", Each: "rings", Help: "rings over which flows are spread"},
		{Name: "every", Kind: report.Count, Most: fmt.Sprint(backupring.MaxSize), Default: "100", Help: "one of this number of buffers of a ring is absent; 0: none is"},
		{Name: "size", Column: "bytes", Kind: report.Size, Least: fmt.Sprint(lineHead), Most: "64KiB", Default: "1500", Help: "of a frame, at most fabric.mtu"},
		{Name: "frames", Kind: report.Count, Least: "64", Most: fmt.Sprint(backupring.MaxSize), Default: fmt.Sprint(backupring.MaxSize), Help: "frames that are sent, and descriptors of each ring"},
		npfRingAxes(experiment.Axis{})[2], npfRingAxes(experiment.Axis{})[3],
		{Name: "hpus", Kind: report.Count, Least: "1", Most: "4096", Default: "4,8,12,16,20,24,28,32", Each: "HPUs", Field: "hpu.cores", Help: "handler processing units of the interface"},
	},
	Points: func(p *experiment.Point) (bool, error) {
		if mtu := int(p.Profile.Fabric.MTU); p.Int("size") > mtu {
			return false, &experiment.NoPoint{Why: fmt.Errorf("--size: %d B, profile %s has fabric.mtu %d", p.Int("size"), p.Profile.Origin.Name, mtu)}
		}
		return true, hasNPF(p)
	},
	Run: runLineRate,
	Columns: append([]report.Column{
		{Name: "line_share", Kind: report.Share, Help: "of the line rate: what the link takes for the frames that are stored or kept / time from the first of them to the last, or what the link takes for all that are sent, if that is longer"},
		{Name: "frame_time", Unit: "ns", Kind: report.Duration, Help: "that time for each frame"},
		{Name: "absent", Kind: report.Count, Help: "frames whose buffer was absent"},
		{Name: "kept", Kind: report.Count, Help: "frames that went into the backup ring"},
		{Name: "lost", Kind: report.Count, Help: "frames that were neither stored nor kept: the packet buffer of the interface was full (nic.packet_buffer), or the bitmap, or the backup ring"},
		{Name: "delivered", Unit: "us", Kind: report.Duration, Help: "from the first that is stored or kept until programs have had all frames that were, in order: pages that are absent are brought in one after the other"},
	}, append(experiment.LineColumns(), experiment.ClusterColumns()...)...),
	Ledger: []experiment.LedgerRow{{
		ID: "npf17-5-17", Of: "rate=100 rings=1 every=1 frames=320 hpus=32 backup-slots=4096 bitmap=16,64,256",
		How: "of 320 frames that all arrive before the first absent page has come, as many are kept as --bitmap says: 16, 64 and 256",
		Holds: func(m *experiment.Measured) bool {
			return !slices.ContainsFunc(m.Results, func(r *experiment.Result) bool { return r.Values["kept"] != r.Point.Int("bitmap") })
		},
	}},
	Slots:    experiment.Always(backupring.ProviderSlot),
	Followed: "delivered",
	Memory: func(p *experiment.Point) int64 {
		return p.Footprint(1+lineSenders) + int64(p.Int("rings")+1)*int64(p.Int("frames"))*host4K + 64<<20
	},
	View: experiment.View{
		Value: "line_share", Series: []string{"rate", "rings"}, X: "hpus", Quiet: []string{"every", "size", "frames", "bitmap", "backup-slots"},
		Summary: []string{"rate", "rings", "hpus", "line_share", "frame_time", "absent", "lost", "delivered", "hpus_needed"},
		Answer:  lineAnswer,
	},
	Notes: []string{
		"Every frame that programs had was compared with the one that was sent, and came behind those of its sender that were sent before.",
		"As long as a ring lasts: the kernel brings absent pages in one after the other, and frames behind them wait for that, so that no ring takes 1% of absent buffers at these rates for long (delivered).",
	},
}

const (
	lineSenders = 8   // so many that the time to send a frame (nic.overhead) is no bottleneck
	lineFlows   = 256 // of all senders
	lineHead    = 16  // bytes at the beginning of a frame that identify it
	lineIdle    = sim.Second
)

// lineRun is a running measurement.
type lineRun struct {
	*experiment.Point
	rings        []*backupring.Ring
	provider     *backupring.Provider
	got          int // frames that programs have received
	begun, ended sim.Time
	delivered    sim.Time
	last         string // the program that received the last frame
}

func runLineRate(ctx context.Context, p *experiment.Point) (experiment.Values, error) {
	one := *p
	rate := fmt.Sprintf("%vGb/s", p.Float("rate"))
	at := strings.Repeat(", {at: client}", lineSenders)
	var err error
	if one.Profile, err = experiment.WithFields(p.Profile, []string{
		"fabric.rate=" + rate, "dma.bandwidth=" + rate,
		fmt.Sprintf("fabric.topology={switches: [{name: server}, {name: client}], nodes: [{at: server}%s], links: [{from: client, to: server, rate: %s}]}", at, rate),
	}); err != nil {
		return nil, err
	}
	w := &lineRun{Point: &one}
	values := experiment.Values{}
	stats, err := experiment.SimulateLossy(ctx, w.Config(ctx, 1+lineSenders), w.spawn, func(c *runtime.Cluster) error {
		w.AtLineRate(c, values, nil)
		failures, full := c.Failures() // full: frames without room in the packet buffer
		return w.results(values, full, failures)
	})
	if err != nil {
		return nil, err
	}
	maps.Copy(values, experiment.ClusterValues(&stats))
	return values, nil
}

// results sets the counts of the rings at the end. Frames that never reached a
// ring are among the failures of the run.
func (w *lineRun) results(values experiment.Values, full int, failures []error) error {
	absent, kept, dropped := 0, 0, 0
	for _, r := range w.rings {
		s := r.Stats()
		absent, kept, dropped = absent+int(s.Absent), kept+int(s.Backed), dropped+int(s.Dropped)
	}
	frames := w.accepted()
	if frames+dropped+full != w.Int("frames") {
		return fmt.Errorf("%d frames were sent, %d stored or kept, %d dropped by a ring and %d before: %w", w.Int("frames"), frames, dropped, full, errors.Join(failures...))
	}
	if frames == 0 {
		return errors.Join(errors.New("no frame was stored or kept"), errors.Join(failures...))
	}
	if w.got != frames {
		return fmt.Errorf("programs have had %d frames, of %d that were stored or kept", w.got, frames)
	}
	f := &w.Profile.Fabric
	wire := max(f.Gap, f.Rate.Time(int64(w.Int("size"))+int64(f.Header)))
	w.NoteOperation(0, w.last, w.begun, w.delivered)
	values["frame_time"] = (w.ended - w.begun) / sim.Time(frames)
	values["line_share"] = lineShare(wire, w.Int("frames"), frames, w.ended-w.begun)
	values["absent"], values["kept"], values["lost"], values["delivered"] = absent, kept, w.Int("frames")-frames, w.delivered-w.begun
	return nil
}

// lineShare is the share of the line rate at which frames were taken: the
// frames that arrived within a time, of all that were sent. Lost frames need
// their time on the line, too. If the last frames are lost, that time is not
// between the first and the last taken frame.
func lineShare(wire sim.Time, sent, taken int, took sim.Time) float64 {
	return float64(wire) * float64(taken) / float64(max(took, wire*sim.Time(sent)))
}

func (w *lineRun) spawn(c *runtime.Cluster) error {
	lib, err := backupring.Load(c)
	if err != nil {
		return err
	}
	if w.provider, err = lib.Serve(0, backupring.Options{Slots: w.Int("backup-slots")}); err != nil {
		return err
	}
	for i := range w.Int("rings") {
		if err := c.SpawnService(0, fmt.Sprintf("IOuser %d", i), w.receive); err != nil {
			return err
		}
	}
	// not on a core of node 0, where it would have to wait
	if err := c.Spawn(1, "watch", w.watch); err != nil {
		return err
	}
	for i := range lineSenders {
		if err := c.Spawn(1+i, "sender", func(p *runtime.Proc) error { return w.send(p, lib, i) }); err != nil {
			return err
		}
	}
	return nil
}

// frame writes a sender's frame with a number.
func (w *lineRun) frame(b []byte, sender, number int) {
	binary.LittleEndian.PutUint64(b, uint64(sender))
	binary.LittleEndian.PutUint64(b[8:], uint64(number))
	for i := lineHead; i < len(b); i++ {
		b[i] = byte(sender*31 + number*7 + i)
	}
}

// receive is the program of a ring. It posts all descriptors at the beginning.
func (w *lineRun) receive(p *runtime.Proc) error {
	frames, every := w.Int("frames"), w.Int("every")
	r, err := w.provider.Open(p, backupring.RingOptions{Size: frames, BitmapSize: w.Int("bitmap"), Buffer: host.PageBytes})
	if err != nil {
		return err
	}
	w.rings = append(w.rings, r)
	for i := range frames {
		if every == 0 || i%every != every-1 {
			at, n := r.Buffer(uint64(i))
			r.Memory().Slice(at, at+n).Raw()
		}
	}
	if err := r.Post(frames); err != nil {
		return err
	}
	last, want := map[int]int{}, make([]byte, w.Int("size"))
	for {
		f, err := r.Receive()
		if err != nil {
			return err
		}
		if f.Err != nil {
			return f.Err
		}
		b := f.Memory.Read()
		sender, number := int(binary.LittleEndian.Uint64(b)), int(binary.LittleEndian.Uint64(b[8:]))
		if w.frame(want, sender, number); string(want) != string(b) {
			return fmt.Errorf("frame %d of sender %d has other bytes than were sent", number, sender)
		}
		if before, is := last[sender]; is && number <= before {
			return fmt.Errorf("frame %d of sender %d comes behind its frame %d", number, sender, before)
		}
		last[sender] = number
		w.got++
		w.delivered, w.last = p.Now(), p.Name()
	}
}

// send sends a sender's part of the frames without gaps.
func (w *lineRun) send(p *runtime.Proc, lib *backupring.Loaded, sender int) error {
	size, flows := w.Int("size"), lineFlows/lineSenders
	n := w.Int("frames") / lineSenders
	if sender < w.Int("frames")%lineSenders {
		n++
	}
	memory := p.Alloc(n * size)
	for i, b := 0, memory.Raw(); i < n; i++ {
		w.frame(b[i*size:][:size], sender, i)
	}
	port, err := lib.Connect(p, memory)
	if err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(w.Seed, uint64(sender)))
	p.Sleep(cacheBegin)
	for i := range n {
		flow := uint64(sender*flows + rng.IntN(flows))
		ring := int(rand.New(rand.NewPCG(flow, 0)).Uint64() % uint64(len(w.rings)))
		if err := port.Send(i*size, size, 0, ring); err != nil {
			return err
		}
	}
	return nil
}

// watch looks for stored or kept frames about as often as they arrive. It ends
// when programs have received all of them and no more arrive.
func (w *lineRun) watch(p *runtime.Proc) error {
	f := &w.Profile.Fabric
	look := max(1, f.Rate.Time(int64(w.Int("size"))))
	p.Sleep(cacheBegin)
	for seen := 0; ; p.Sleep(look) {
		now := w.accepted()
		switch {
		case now > seen && seen == 0:
			w.begun, w.ended = p.Now(), p.Now()
		case now > seen:
			w.ended = p.Now()
		}
		seen = now
		// lost frames never arrive
		if seen == w.Int("frames") || p.Now()-max(w.ended, cacheBegin) > cacheBegin {
			break
		}
	}
	for last := p.Now(); w.got < w.accepted() && p.Now()-max(last, w.delivered) < lineIdle; {
		p.Sleep(cacheBegin)
	}
	return nil
}

func (w *lineRun) accepted() (n int) {
	for _, r := range w.rings {
		s := r.Stats()
		n += int(s.Stored + s.Backed)
	}
	return n
}

// lineAnswer writes, for each load, the least measured number of HPUs that hold
// the line rate, and the busy HPUs in that row by Little's law (hpus_needed).
// Holding the line rate also means that no frame is lost.
func lineAnswer(results []*experiment.Result) (lines []string) {
	type load [7]any
	names := [...]string{"rate", "rings", "every", "size", "frames", "bitmap", "backup-slots"}
	var order []load
	var varies [len(names)]bool
	least, most := map[load]*experiment.Result{}, map[load]*experiment.Result{}
	for _, r := range results {
		var s load
		for i, name := range names {
			s[i] = r.Point.Value(name)
			varies[i] = varies[i] || len(order) > 0 && order[0][i] != s[i]
		}
		if most[s] == nil {
			order = append(order, s)
		}
		if hpus := r.Point.Int("hpus"); most[s] == nil || hpus > most[s].Point.Int("hpus") {
			most[s] = r
		}
		if r.Float("line_share") >= experiment.LineRate && r.Values["lost"] == 0 && (least[s] == nil || r.Point.Int("hpus") < least[s].Point.Int("hpus")) {
			least[s] = r
		}
	}
	for _, s := range order {
		m, line := most[s], fmt.Sprintf("%v Gb/s, %v rings", s[0], s[1])
		for i, name := range names[2:] {
			if varies[2+i] {
				line += fmt.Sprintf(", %s %v", name, s[2+i])
			}
		}
		if l := least[s]; l != nil {
			line += fmt.Sprintf(": %d HPUs are the least of those tried that hold line rate (%.1f%% of it)", l.Point.Int("hpus"), 100*l.Float("line_share"))
			m = l
		} else {
			line += fmt.Sprintf(": none of those tried hold line rate, %d reach %.1f%% of it", m.Point.Int("hpus"), 100*m.Float("line_share"))
			if lost := m.Values["lost"]; lost != 0 {
				line += fmt.Sprintf(" and lose %v frames", lost)
			}
		}
		lines = append(lines, line+fmt.Sprintf("; by Little's law frames keep %.1f of them busy there.", m.Float("hpus_needed")))
	}
	return lines
}
