package spin17

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/handlers/raid5"
	"github.com/spinsim/spinsim/internal/memory"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

var raid5Experiment = &experiment.Experiment{
	Name:  "raid5",
	Short: "an access to memory that servers keep with parity, by their cores or by their NICs",
	Long: `Rank 0 writes or reads memory that is striped over data servers, ranks 2 and up. Rank 1 has the parity, the exclusive or of their data. The latency is the
time from the call until rank 0 knows that all is done; for a write, that every data server has the answer to its parity update.
  write           new data to the data servers; each sends the difference of old and new data to the parity server, which applies it and tells the data server, which tells rank 0
  read            from the data servers, which take no part in it: a get in each mode
  degraded-read   the same when the first data server has failed: its data is the exclusive or of the others' data
  degraded-write  the same; for the data of the failed server only parity changes
  rebuild         all data of the failed server, size bytes (of each), is recomputed into a replacement
--parity 2 and more sets the number of parity servers. Those after the first come after the data servers. They have a Reed-Solomon code over GF(256): data
servers multiply the difference for each of them. As many servers may fail, and do: degraded-read, degraded-write and rebuild run without that many data servers.
Modes select who does the work:
  rdma            cores of the servers, --cores of each; the client's for a degraded read, those of the rebuilt server for a rebuild. They multiply at the speed of memory
  p4              as rdma, but the NIC of a data server tells rank 0, by an operation that the parity server's answer triggers
  spin            handlers, packet by packet; a chain of the servers' NICs collects sums over all servers
With --durable each server has a storage device; a write ends when the devices of all changed servers have it.`,
	Source: "sPIN'17 §5.3",
	Smoke:  []experiment.Values{{"size": 20000}},
	Axes: []experiment.Axis{
		{Name: "mode", Kind: report.Text, Of: []string{experiment.ModeRDMA, experiment.ModeP4, experiment.ModeSpin}, Default: "rdma,p4,spin", Help: "who serves; the command's help describes each"},
		{Name: "op", Kind: report.Text, Of: raid5Ops(), Default: raid5Write, Help: "what rank 0 does"},
		{Name: "servers", Kind: report.Count, Least: "1", Most: fmt.Sprint(raid5.MaxData), Default: "4", Help: "data servers, besides those for parity"},
		{Name: "parity", Kind: report.Count, Least: "1", Most: fmt.Sprint(raid5.MaxParity), Default: "1", Help: "parity servers: 1 has the exclusive or, more have a Reed-Solomon code; as many servers may fail"},
		{Name: "cores", Kind: report.Count, Least: "1", Most: "1024", Default: "1", Help: "cores of each server that serve, without handlers"},
		{Name: "unit", Kind: report.Size, Least: fmt.Sprint(raid5.LeastUnit), Most: "64MiB", Multiple: "8", Default: "4KiB", Help: "stripe unit: consecutive bytes of a server"},
		{Name: "size", Column: "bytes", Kind: report.Size, Least: "1", Most: experiment.MaxBytes, Default: "64,512,4KiB,16KiB,64KiB,256KiB,1MiB,4MiB", Help: "bytes of the access"},
		durableAxis(),
	},
	Points: hasRaid5,
	Run:    runRaid5,
	Columns: append([]report.Column{
		{Name: experiment.LatencyColumn, Unit: "ns", Kind: report.Duration, Help: "from the call to its return"},
		{Name: "throughput", Unit: "GiBps", Kind: report.Number, Help: "size of the access by latency"},
	}, append(experiment.LineColumns(), experiment.ClusterColumns()...)...),
	Relative: experiment.AgainstModes(experiment.ModeRDMA),
	Ledger:   ledgerRaid5(),
	Slots:    experiment.SlotIn(raid5.ServerSlot, experiment.ModeSpin),
	Memory: func(p *experiment.Point) int64 {
		all := p.Int("servers") + p.Int("parity")
		return p.Footprint(all+1) + int64(all)<<22 + int64((2*all+8)*p.Int("size"))
	},
	Followed: experiment.LatencyColumn,
	View:     experiment.View{Value: "throughput", Series: []string{"mode"}, X: "bytes", Quiet: []string{"op", "servers", "parity", "cores", "unit", "durable"}},
	Presets: []experiment.Preset{
		{
			Name: "cost", Short: "what a write costs whom: cores of all hosts, bytes through their memories, HPUs", Values: map[string]string{"mode": "rdma,spin", "size": "4KiB,64KiB,4MiB", "cores": "1,4"},
			View: &experiment.View{
				Value: "throughput", Series: []string{"mode"}, X: "bytes", Quiet: []string{"op", "servers", "parity", "unit", "durable"},
				Summary: []string{experiment.ProfileColumn, "mode", "cores", "bytes", experiment.LatencyColumn, "throughput", "hpus_needed", "littles_law_share", "host_cpu", "host_memory"},
			},
		},
		{
			Name: "codes", Short: "what each further parity server costs a write: a Reed-Solomon code in place of the exclusive or", Values: map[string]string{"mode": "rdma,spin", "parity": "1,2,3,4", "size": "64KiB,1MiB"},
			View: &experiment.View{
				Value: "throughput", Series: []string{"mode"}, X: "parity", Quiet: []string{"op", "servers", "cores", "unit", "durable"},
				Summary: []string{experiment.ProfileColumn, "bytes", "parity", "mode", experiment.LatencyColumn, "throughput", "hpus_needed", "littles_law_share", "host_cpu", "host_memory"},
			},
		},
		{
			Name: "failed", Short: "data servers have failed, as many as there are for parity: reads, writes and their rebuilding", Values: map[string]string{
				"mode": "rdma,spin", "op": strings.Join(raid5Ops()[2:], ","), "size": "64,4KiB,64KiB,1MiB,4MiB",
			},
		},
	},
	Caveats: experiment.KeepingUp,
	Notes: []string{
		"Every byte that servers have afterwards, and every one that was read, was compared with what was written; parity with the code of the data.",
		"The publication gives a picture of writes (figure 7c) and no numbers for it. Its stripe unit and the cores of its servers are not said: --unit and --cores. It has one parity server; of several SC'22 (Building Blocks for Network-Accelerated Distributed File Systems) says that handlers take up to half the time, and numbers of single points are not at hand.",
	},
}

// Values of the axis op.
const (
	raid5Write         = "write"
	raid5Read          = "read"
	raid5DegradedRead  = "degraded-read"
	raid5DegradedWrite = "degraded-write"
	raid5Rebuild       = "rebuild"
)

func raid5Ops() []string {
	return []string{raid5Write, raid5Read, raid5DegradedRead, raid5DegradedWrite, raid5Rebuild}
}

// Ranks.
const (
	raid5Client = 0
	raid5Parity = 1
	raid5Data   = 2 // the first
)

var raid5Modes = map[string]raid5.Mode{experiment.ModeRDMA: raid5.Hosts, experiment.ModeP4: raid5.Triggered, experiment.ModeSpin: raid5.Handlers}

// hasRaid5 leaves out points that equal another one.
func hasRaid5(p *experiment.Point) (bool, error) {
	if p.Int("cores") > p.Profile.Host.Cores {
		return false, fmt.Errorf("profile %s: host.cores: %d, fewer than the %d of --cores", p.Profile.Origin.Name, p.Profile.Host.Cores, p.Int("cores"))
	}
	op := p.Text("op")
	if n := p.Int("servers") + p.Int("parity"); n > raid5.MaxServers {
		return false, &experiment.NoPoint{Why: fmt.Errorf("--servers, --parity: %d servers in all, expected at most %d", n, raid5.MaxServers)}
	}
	if p.Text("mode") == experiment.ModeP4 && p.Int("parity") > 1 {
		return false, nil // an operation waits for one counter
	}
	if p.Flag("durable") {
		if !p.Profile.Storage.On() {
			return false, noDevice(p)
		}
		if op == raid5Read || op == raid5DegradedRead {
			return false, &experiment.NoPoint{Why: fmt.Errorf("--durable: a %s leaves nothing to keep", op)}
		}
	}
	return p.Text("mode") != experiment.ModeP4 || op == raid5Write || op == raid5DegradedWrite, nil
}

// durableAxis selects whether writes end when devices have them.
func durableAxis() experiment.Axis {
	return experiment.Axis{Name: "durable", Kind: report.Flag, Of: []string{"false", "true"}, Default: "false", Help: "writes end when the storage devices of the servers have them, not only their memories; for profiles with storage.kind"}
}

// noDevice is the error for --durable without a device.
func noDevice(p *experiment.Point) error {
	return fmt.Errorf("profile %s: storage.kind: none, expected a device for --durable, such as that of docs/profiles/spin-int-nvme.yaml", p.Profile.Origin.Name)
}

// storing is a running measurement.
type storing struct {
	*experiment.Point
	o       raid5.Options
	c       *runtime.Cluster
	array   *raid5.Array
	op      string
	bytes   int64
	want    []byte // the array's contents at the end
	latency sim.Time
}

// raid5Options are the options of an array as large as the access, or as the
// server to rebuild.
func raid5Options(p *experiment.Point) raid5.Options {
	o := raid5.Options{Mode: raid5Modes[p.Text("mode")], Clients: 1, Cores: p.Int("cores"), Durable: p.Flag("durable")}
	o.Data, o.Unit = p.Int("servers"), int64(p.Int("unit"))
	rows := (int64(p.Int("size")) + o.Unit - 1) / o.Unit
	if p.Text("op") != raid5Rebuild {
		rows = (rows + int64(o.Data) - 1) / int64(o.Data)
	}
	o.Rows = rows
	for i := range o.Data {
		o.Servers = append(o.Servers, raid5Data+i)
	}
	o.Servers = append(o.Servers, raid5Parity)
	for i := range p.Int("parity") - 1 {
		o.Servers = append(o.Servers, raid5Data+o.Data+i)
	}
	return o
}

// lost lists the servers that have failed.
func (s *storing) lost() (list []int) {
	if s.op == raid5Write || s.op == raid5Read {
		return nil
	}
	for i := range min(s.Int("parity"), s.o.Data) {
		list = append(list, i)
	}
	return list
}

func runRaid5(ctx context.Context, p *experiment.Point) (experiment.Values, error) {
	s := &storing{Point: p, o: raid5Options(p), op: p.Text("op"), bytes: int64(p.Int("size"))}
	s.want = memory.Make[byte](s.o.Bytes())
	experiment.Pattern(s.want, s.Seed)
	s.o.Lost = s.lost()
	s.o.Fill = func(offset int64, b []byte) { copy(b, s.want[offset:]) }
	values := experiment.Values{}
	stats, err := experiment.Simulate(ctx, p.Config(ctx, len(s.o.Servers)+1), func(c *runtime.Cluster) (err error) {
		s.c = c
		if s.array, err = raid5.New(c, s.o); err != nil {
			return err
		}
		return c.Spawn(raid5Client, "client", s.client)
	}, func() error { return s.finish(values) })
	if err != nil {
		return nil, err
	}
	maps.Copy(values, experiment.ClusterValues(&stats))
	values[experiment.LatencyColumn] = s.latency
	if s.op == raid5Rebuild {
		s.bytes *= int64(len(s.o.Lost))
	}
	values["throughput"] = float64(s.bytes) / (1 << 30) * float64(sim.Second) / float64(s.latency)
	return values, nil
}

// client is rank 0.
func (s *storing) client(p *runtime.Proc) error {
	client, err := s.array.Open(p, 0)
	if err != nil {
		return err
	}
	memory := p.Alloc(int(s.bytes))
	if s.op == raid5Write || s.op == raid5DegradedWrite {
		experiment.Pattern(memory.Raw(), s.Seed+1)
	}
	for _, server := range s.o.Lost {
		if err := client.Fail(server); err != nil {
			return err
		}
	}
	start := p.Now()
	switch s.op {
	case raid5Write, raid5DegradedWrite:
		err = client.Write(0, memory)
	case raid5Rebuild:
		err = client.Rebuild()
	default:
		err = client.Read(0, memory)
	}
	s.latency = p.Now() - start
	s.Operation(p, start)
	if err != nil {
		return err
	}
	switch s.op {
	case raid5Write, raid5DegradedWrite:
		experiment.Pattern(s.want[:s.bytes], s.Seed+1)
	case raid5Read, raid5DegradedRead:
		return experiment.SameView("memory", memory, s.want[:s.bytes])
	}
	return nil
}

// stored compares the contents of devices and memories.
func stored(array *raid5.Array, o *raid5.Options) error {
	if !o.Durable {
		return nil
	}
	for i := range o.Servers {
		for at := int64(0); at < o.ServerBytes(); {
			memory := array.Peek(i, at)
			if err := experiment.SameBytes(fmt.Sprintf("storage device of server %d, from byte %d", i, at), array.Stored(i)[at:at+int64(len(memory))], memory); err != nil {
				return err
			}
			at += int64(len(memory))
		}
	}
	return nil
}

// finish checks the contents of the servers, and computes the values that need
// the end of the run.
func (s *storing) finish(values experiment.Values) error {
	if s.op != raid5DegradedRead && s.op != raid5DegradedWrite {
		if err := s.array.Check(); err != nil {
			return err
		}
		if err := errors.Join(experiment.SameBytes("array", s.array.Contents(0, s.o.Bytes()), s.want), stored(s.array, &s.o)); err != nil {
			return err
		}
	} else if err := s.others(); err != nil {
		return err
	}
	s.AtLineRate(s.c, values, nil)
	return nil
}

// others compares the contents of failed servers, as the other servers give
// them, with the expected contents.
func (s *storing) others() error {
	for _, server := range s.o.Lost {
		for at := int64(0); at < s.o.ServerBytes(); at += raid5.Chunk {
			for i, b := range s.array.Said(server, s.o.Lost, at) {
				if want := s.want[s.o.Byte(server, at+int64(i))]; b != want {
					return fmt.Errorf("byte %d of failed server %d: the others say %#02x, expected %#02x", at+int64(i), server, b, want)
				}
			}
		}
	}
	return nil
}

// ledgerRaid5 are the rows of sPIN'17 §5.3, and of SC'22, that raid5 answers.
func ledgerRaid5() []experiment.LedgerRow {
	const of = bothNICs + "op=write "
	return []experiment.LedgerRow{
		{
			ID: "spin17-5.3-05", Of: of + "mode=rdma,spin size=64KiB,256KiB,1MiB,4MiB", How: "the throughput with handlers is more than 1.25 times that of RDMA, 64 KiB to 4 MiB",
			Holds: func(m *experiment.Measured) bool {
				return below(m, "throughput", experiment.ModeRDMA, significant, experiment.ModeSpin)
			},
		},
		{
			ID: "spin17-C.3.5-02", Of: of + "mode=rdma,p4 size=64,512,4KiB,16KiB,64KiB,256KiB,1MiB,4MiB", How: "Portals 4 takes less time than RDMA, 64 B to 4 MiB",
			Holds: func(m *experiment.Measured) bool {
				return below(m, experiment.LatencyColumn, experiment.ModeP4, 1, experiment.ModeRDMA)
			},
		},
		{
			ID: "sc22-abstract-03", Of: "profile=spin-int op=write mode=rdma,spin parity=2 size=64,512,4KiB,16KiB,64KiB,256KiB,1MiB,4MiB",
			How:  "the largest throughput of handlers by that of cores, 4 data servers and 2 with a Reed-Solomon code, 64 B to 4 MiB",
			Ours: func(m *experiment.Measured) []float64 { return []float64{most(m, "throughput", experiment.ModeRDMA)} },
		},
	}
}
