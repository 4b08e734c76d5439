package npf

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/handlers/backupring"
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/internal/npf/stack"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

var syntheticEthernet = &experiment.Experiment{
	Name:  "npf-synthetic",
	Short: "a stream of TCP, or datagrams, into a receive ring of which a page is taken away every so many frames",
	Long: `A program on node 1 (with Linux' time-outs) sends messages over one connection to one on node 0 (with lwIP's), whose whole ring is present at the beginning. After a fixed number of frames a thread on another core removes the page of a
returned buffer (madvise, MADV_DONTNEED), so that a later frame finds it absent. Each buffer has its own page. A page
that already contains a frame stays. In rings of one or two descriptors a frame may arrive while its page is being removed. It is lost with the page, although no interface has dropped it (then lost exceeds dropped).
With --transport udp messages are sent as datagrams, one every --interval, and lost ones are not sent again.
` + npfModesHelp + `
A major fault takes storage.read_latency more than a minor one.`,
	Source:   npfSource + " §6",
	Smoke:    []experiment.Values{{"messages": 4, "size": 30000, "every": 20, "mode": npfDrop}},
	Profiles: []string{"eth-npf"},
	Axes: slices.Concat([]experiment.Axis{
		{Name: "transport", Kind: report.Text, Of: []string{syntheticTCP, syntheticUDP}, Default: syntheticTCP, Help: "how messages are sent"},
		{Name: "mode", Kind: report.Text, Of: []string{npfDrop, npfBackup}, Help: "treatment of frames with absent memory; the command's help describes each"},
		{Name: "fault", Kind: report.Text, Of: []string{faultMinor, faultMajor}, Help: "whether a page has to be read from storage"},
		{Name: "messages", Kind: report.Count, Least: "1", Most: "1000000", Default: "200", Help: "that are sent"},
		{Name: "size", Column: "bytes", Kind: report.Size, Least: "1", Most: "16MiB", Default: "64KiB", Help: "of each"},
		{Name: "interval", Kind: report.Duration, Unit: "us", Least: "100ns", Most: "1s", Default: "4us", Help: "udp: time between two datagrams, which have at most fabric.mtu with headers"},
	}, npfRingAxes(experiment.Axis{Default: "1024"})[:1], npfRingAxes(experiment.Axis{})[2:], []experiment.Axis{
		{Name: "every", Kind: report.Count, Most: "100000000", Default: "0," + syntheticEvery, Help: "frames after which a page is removed; 0: none is"},
	}),
	Points: func(p *experiment.Point) (bool, error) { return true, hasStack(p) },
	Run:    runSynthetic,
	Columns: append([]report.Column{
		{Name: "throughput", Unit: "Gbps", Kind: report.Number, Help: "bytes of messages that have come by the time from the first write to the last byte that is read"},
		{Name: "absent", Kind: report.Count, Help: "frames whose memory was absent"},
		{Name: "dropped", Kind: report.Count, Help: "frames that the interface has dropped"},
		{Name: "timeouts", Kind: report.Count, Help: "of tcp: time-outs of the sender"},
		{Name: "datagrams", Kind: report.Count, Help: "of udp: datagrams that were sent"},
		{Name: "lost", Kind: report.Count, Help: "of them, those that never came"},
	}, append(experiment.LineColumns(), experiment.ClusterColumns()...)...),
	Relative: []experiment.Relative{{
		Column: report.Column{Name: "vs_optimum", Kind: report.Ratio, Help: "how many times as fast as without faults, the optimum: throughput / throughput with every 0"},
		Of:     "throughput", Axis: "every", Base: "0", Rate: true,
	}},
	Ledger:    ledgerSynthetic(),
	Slots:     experiment.Always(backupring.ProviderSlot),
	Operation: "the time from the first write to the last byte that is read, for each message",
	View: experiment.View{
		Value: "throughput", Series: []string{"mode"}, X: "every", Quiet: []string{"transport", "messages", "size", "interval", "ring", "bitmap", "backup-slots"},
		Summary: []string{"fault", "every", "mode", "throughput", "vs_optimum", "absent", "dropped", "timeouts"},
	},
	Presets: []experiment.Preset{{
		Name: "udp", Short: "datagrams, which nobody sends again, in the place of TCP: how many are lost", Source: "ours",
		Values: map[string]string{"transport": syntheticUDP, "every": "0,5000,1000,500,100"},
		View: &experiment.View{
			Value: "lost", Series: []string{"mode"}, X: "every", Quiet: []string{"transport", "messages", "size", "interval", "ring", "bitmap", "backup-slots"},
			Summary: []string{"fault", "every", "mode", "datagrams", "lost", "throughput", "absent", "dropped"},
		},
	}},
	Caveats: experiment.KeepingUp,
	Notes: []string{
		"Every byte that came was compared with what was sent.",
		"Little's law takes frames for independent. Those of one ring are not: npf-line-rate measures how many HPUs hold line rate.",
	},
}

// Values of the axis transport.
const (
	syntheticTCP = "tcp"
	syntheticUDP = "udp"
)

const (
	faultMinor = "minor"
	faultMajor = "major"
)

const syntheticEvery = "5000,2000,1000,500,200,100,50"

// ledgerSynthetic are the rows of NPF'17 that npf-synthetic answers.
func ledgerSynthetic() []experiment.LedgerRow {
	return []experiment.LedgerRow{
		{
			ID: "npf17-3-07", Of: "transport=udp mode=drop fault=minor every=1000", How: "all of the ring is there at the beginning, more than pre-faulting can do, and datagrams are still lost for a page that goes later",
			Holds: func(m *experiment.Measured) bool { return m.At("lost", "mode=drop") > 0 },
		},
		{
			ID: "npf17-6.4-04", Of: "mode=drop,backup fault=minor,major every=" + syntheticEvery, How: "backup has at least 1.5 times the throughput of drop, one page in 5,000, 2,000 .. 50 frames, for minor and major faults",
			Holds: func(m *experiment.Measured) bool { return significantlyBetter(m, npfBackup) },
		},
	}
}

// significantlyBetter reports whether a mode has at least 1.5 times the
// throughput of drop wherever drop has faults.
func significantlyBetter(m *experiment.Measured, mode string) bool {
	faults := 0
	for _, r := range m.Results {
		o := experiment.Beside(m.Results, r, "mode", mode)
		if r.Point.Text("mode") != npfDrop || r.Values["absent"] == 0 || r.Values["faults"] == 0 {
			continue
		}
		if faults++; o.Float("throughput") < 1.5*r.Float("throughput") {
			return false
		}
	}
	return faults > 0
}

// syntheticRun is a running measurement.
type syntheticRun struct {
	*experiment.Point
	data         []byte
	ring         *backupring.Ring
	thief        *thief
	begun, ended sim.Time
	timeouts     int64
	got          int // bytes that have arrived
	datagrams    int // that have arrived
}

const syntheticPort = 5001

func runSynthetic(ctx context.Context, p *experiment.Point) (experiment.Values, error) {
	one := *p
	var err error
	if one.Profile, err = majorFaults(p); err != nil {
		return nil, err
	}
	w := &syntheticRun{Point: &one, data: make([]byte, p.Int("size"))}
	experiment.Pattern(w.data, p.Seed)
	values := experiment.Values{}
	var cluster *runtime.Cluster
	stats, err := experiment.SimulateTCP(ctx, w.Config(ctx, 2), func(c *runtime.Cluster) error {
		cluster = c
		return w.spawn(c)
	}, func() error {
		w.AtLineRate(cluster, values, nil)
		s := w.ring.Stats()
		values["absent"], values["dropped"] = int(s.Absent), int(s.Dropped)
		return w.thief.err
	})
	if err != nil {
		return nil, err
	}
	maps.Copy(values, experiment.ClusterValues(&stats))
	values["throughput"], values["timeouts"], values["datagrams"], values["lost"] = 0.0, nil, nil, nil
	if w.got > 0 {
		w.OperationOf(p.Int("messages"))
		w.NoteOperation(0, "server", w.begun, w.ended)
		values["throughput"] = 8e-9 * float64(w.got) / (w.ended - w.begun).Seconds()
	}
	if w.udp() {
		sent := w.Int("messages") * w.parts()
		values["datagrams"], values["lost"] = sent, sent-w.datagrams
	} else {
		values["timeouts"] = int(w.timeouts)
	}
	return values, nil
}

// majorFaults is the profile of the point. With major faults, a page takes
// longer by the time of a read from storage.
func majorFaults(p *experiment.Point) (*profile.Profile, error) {
	if p.Text("fault") != faultMajor {
		return p.Profile, nil
	}
	p.Reads("storage.read_latency")
	return experiment.WithFields(p.Profile, []string{fmt.Sprintf("os.gup_fault=%dps", int64(p.Profile.OS.GupFault+p.Profile.Storage.ReadLatency))})
}

func (w *syntheticRun) total() int { return w.Int("messages") * len(w.data) }

func (w *syntheticRun) spawn(c *runtime.Cluster) error {
	network, providers, err := npfNetwork(c, w.Int("backup-slots"))
	if err != nil {
		return err
	}
	if err := c.SpawnService(0, "server", func(p *runtime.Proc) error {
		o := backupring.RingOptions{Size: w.Int("ring"), Buffer: host.PageBytes}
		if w.Text("mode") == npfBackup {
			o.BitmapSize = w.Int("bitmap")
		}
		thief := &thief{every: w.Int("every"), p: p, device: providers[0].State}
		w.thief = thief
		s, err := npfOpen(network, p, providers[0], "lwip", stack.Options{Addr: cacheServer, Ring: o, Secret: w.Seed, Posts: thief.posts}, w.room()...)
		if err != nil {
			return err
		}
		w.ring, thief.ring = s.Ring(), s.Ring()
		s.Ring().Memory().Raw() // all of it is present, and so is the memory to send from
		s.Memory().Raw()
		thief.thread = p.Node().CPU().Kthread(w.Profile.Host.Cores-1, "reclaim", thief.takes)
		if w.udp() {
			return w.takesDatagrams(p, s)
		}
		return w.serve(p, s)
	}); err != nil {
		return err
	}
	return c.Spawn(1, "sender", func(p *runtime.Proc) error {
		s, err := npfOpen(network, p, providers[1], "linux", stack.Options{Addr: cacheClient, Ring: backupring.RingOptions{Size: clientTCP, Pinned: true}, Secret: w.Seed, Send: 1024})
		if err != nil {
			return err
		}
		if w.udp() {
			return w.sendsDatagrams(p, s)
		}
		return w.send(p, s)
	})
}

// thief takes pages of buffers away.
type thief struct {
	every  int
	p      *runtime.Proc
	device func() backupring.State
	ring   *backupring.Ring
	thread *host.Thread
	frames int
	queue  []uint64 // descriptors whose pages will be taken
	err    error
}

// posts is called for descriptors that are given back.
func (x *thief) posts(first uint64, n int) {
	if x.every == 0 || x.ring == nil {
		return
	}
	for i := range n {
		if x.frames++; x.frames%x.every == 0 {
			x.queue = append(x.queue, first+uint64(i))
			x.thread.Wake()
		}
	}
}

// takes is the program of the thread.
func (x *thief) takes(t *host.Thread) {
	for {
		for len(x.queue) > 0 && x.err == nil {
			descriptor := x.queue[0]
			x.queue = x.queue[:copy(x.queue, x.queue[1:])]
			if x.stored(descriptor) {
				continue
			}
			at, _ := x.ring.Buffer(descriptor)
			x.err = x.p.OS().Discard(t, x.ring.Memory().Addr()+uint64(at), host.PageBytes)
		}
		t.Wait("buffers that are given back")
	}
}

// stored reports whether the frame of a descriptor is in its buffer already. It
// would be lost with the page, but reclaim loses no data.
func (x *thief) stored(descriptor uint64) bool {
	device := x.device()
	r := &device.Rings[x.ring.ID()%backupring.MaxRings]
	place := descriptor % uint64(r.Size)
	return descriptor < r.Head || r.Done[place/64]>>(place%64)&1 != 0
}

func (w *syntheticRun) serve(p *runtime.Proc, s *stack.Stack) error {
	l, err := s.Listen(syntheticPort, 1)
	if err != nil {
		return err
	}
	buffer := make([]byte, 64<<10)
	for {
		if err := s.Wait(runtime.Forever); err != nil {
			return err
		}
		l.Accept()
		for c := s.Next(); c != nil; c = s.Next() {
			for n := c.Read(buffer); n > 0; n = c.Read(buffer) {
				for at := 0; at < n; {
					k := min(n-at, len(w.data)-w.got%len(w.data))
					if string(buffer[at:at+k]) != string(w.data[w.got%len(w.data):][:k]) {
						return fmt.Errorf("byte %d: other bytes than were sent", w.got)
					}
					at, w.got = at+k, w.got+k
				}
				w.ended = p.Now()
			}
			if _, ended := c.Readable(); ended {
				if w.got != w.total() {
					return errors.Join(c.Err(), fmt.Errorf("%d bytes have come, expected %d", w.got, w.total()))
				}
				c.Close()
			}
		}
	}
}

func (w *syntheticRun) send(p *runtime.Proc, s *stack.Stack) error {
	p.Sleep(cacheBegin)
	c, err := s.Dial(cacheServer, syntheticPort)
	if err != nil {
		return err
	}
	for sent, closed := 0, false; !c.Done(); {
		if err := s.Wait(runtime.Forever); err != nil {
			return err
		}
		if c.Err() != nil {
			return c.Err()
		}
		if c.Established() && w.begun == 0 {
			w.begun = p.Now()
		}
		for n := 1; n > 0 && sent < w.total() && c.Established(); sent += n {
			n = c.Write(w.data[sent%len(w.data):])
		}
		if sent == w.total() && !closed {
			closed = true
			c.Close()
		}
	}
	w.timeouts = c.TCP().Stats.Timeouts
	return nil
}
