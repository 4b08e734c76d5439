package spin17

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/handlers/txlog"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

var transactions = &experiment.Experiment{
	Name:  "txlog",
	Short: "memory that others read and write, every access logged",
	Long: `Rank 0 has a region of memory that the other ranks read and change.
  read, write  each client gets or puts size bytes, one access after the other without waiting; the rate is the total
  transaction  each client reads some items, one after the other, and changes some of them when it commits; if an item that it has read was changed meanwhile it starts again.
               Size is the size of an item
  rdma  plain accesses: nobody logs them, and there are no transactions
  host  the host of rank 0 answers reads and logs them
  spin  handlers log accesses in host memory (library txlog), and the host reads the log when a transaction commits`,
	Source: "sPIN'17, Distributed Transactions",
	Smoke:  []experiment.Values{{"op": opTransaction, "mode": experiment.ModeSpin, "ranks": 3, "count": 4, "size": 64}},
	Axes: []experiment.Axis{
		{Name: "mode", Kind: report.Text, Of: []string{experiment.ModeRDMA, experiment.ModeHost, experiment.ModeSpin}, Help: "who logs; the command's help describes each"},
		{Name: "op", Kind: report.Text, Of: []string{opRead, opWrite, opTransaction}, Help: "what clients do"},
		experiment.RanksAxis("4096", "2,17"),
		experiment.SizeAxis("8,512,4KiB,64KiB"),
		{Name: "count", Kind: report.Count, Least: "1", Most: "1000000", Default: "100", Help: "accesses of each client, or transactions that it commits"},
		{Name: "items", Kind: report.Count, Least: "1", Most: "1000000", Default: "100", Help: "of the region (transaction)"},
		{Name: "reads", Kind: report.Count, Least: "1", Most: "1000", Default: "4", Help: "items that a transaction reads"},
		{Name: "writes", Kind: report.Count, Most: "1000", Default: "2", Help: "of these, items that it changes"},
	},
	Points: hasTransactions,
	Run:    runTransactions,
	Memory: func(p *experiment.Point) int64 {
		o := transactionOptions(p)
		clients := p.Int("ranks") - 1
		return p.Footprint(p.Int("ranks")) + int64(o.Region)*int64(clients+1) + 4*int64(o.Commit)*int64(clients)
	},
	Columns: append([]report.Column{
		{Name: "rate", Unit: "M_per_s", Kind: report.Number, Help: "millions of accesses, or of transactions that were committed, in a second, of all clients"},
		{Name: "throughput", Unit: "GiBps", Kind: report.Number, Help: "bytes of these accesses likewise (read, write)"},
		{Name: experiment.LatencyColumn, Unit: "us", Kind: report.Duration, Help: "mean time of a transaction from its first beginning to its commit"},
		{Name: "aborted", Kind: report.Share, Help: "of the transactions: those that had to begin anew"},
		{Name: "logged", Kind: report.Count, Help: "records that the host has read"},
	}, append(experiment.LineColumns(), experiment.ClusterColumns()...)...),
	Relative: []experiment.Relative{
		{Column: report.Column{Name: "of_rdma", Kind: report.Change, Help: "rate / rate of rdma - 1: what logging costs; empty if rdma was not measured"}, Of: "rate", Axis: "mode", Base: experiment.ModeRDMA},
	},
	Ledger:    ledgerTransactions(),
	Slots:     experiment.SlotIn(txlog.LogSlot, experiment.ModeSpin),
	Operation: "the mean of accesses of a client: the time from its first call until it has seen the last answer, for each of them; of transactions, from the first beginning to the commit",
	View: experiment.View{
		Value: "rate", Series: []string{"mode"}, X: "bytes", Quiet: []string{"count", "items", "reads", "writes"},
		Summary: []string{"profile", "op", "ranks", "bytes", "mode", "rate", "throughput", "of_rdma", experiment.LatencyColumn, "aborted", "host_cpu", "host_memory", "hpus_needed", "littles_law_share"},
		Answer:  answerTransactions,
	},
	Caveats: both(experiment.KeepingUp, mostlyRetries("transactions", func(r *experiment.Result) float64 {
		aborted, _ := experiment.Magnitude(r.Values["aborted"])
		return aborted
	})),
	Notes: []string{"Transactions that commit are compared with their running one after the other: each adds to what it has read, and nothing that was added is lost."},
}

// Values of the axes mode and op, besides rdma and spin.
const (
	opRead        = "read"
	opWrite       = "write"
	opTransaction = "transaction"
)

// hasTransactions leaves out operations that a mode does not have.
func hasTransactions(p *experiment.Point) (bool, error) {
	mode, op := p.Text("mode"), p.Text("op")
	if p.Int("size") == 0 {
		return false, errors.New("--size: 0 B, expected accesses of a byte at least")
	}
	if op != opTransaction {
		return mode != experiment.ModeHost, nil
	}
	if p.Int("size") < 8 || p.Int("reads") > p.Int("items") || p.Int("writes") > p.Int("reads") {
		return false, fmt.Errorf("transactions on %d of %d items of %d B that change %d of them, expected items of 8 B at least, no more writes than reads, and no more reads than items",
			p.Int("reads"), p.Int("items"), p.Int("size"), p.Int("writes"))
	}
	return mode != experiment.ModeRDMA, nil
}

func transactionOptions(p *experiment.Point) txlog.Options {
	size := (p.Int("size") + 7) &^ 7
	o := txlog.Options{PT: experiment.RequestPT, Region: size, ByHost: p.Text("mode") == experiment.ModeHost, Open: p.Text("op") == opWrite}
	if p.Text("op") == opTransaction {
		o.Region = size * p.Int("items")
		o.Commit = max(size*p.Int("writes"), 8)
	}
	return o
}

// transacting is a running measurement.
type transacting struct {
	*experiment.Point
	o       txlog.Options
	size    int
	count   int
	first   sim.Time // when the first client began
	last    sim.Time // when the last client was done
	took    sim.Time // sum over transactions
	aborts  uint64
	commits uint64
	server  *txlog.Server
	c       *runtime.Cluster
	values  experiment.Values
}

func runTransactions(ctx context.Context, p *experiment.Point) (experiment.Values, error) {
	w := &transacting{Point: p, o: transactionOptions(p), size: p.Int("size"), count: p.Int("count"), values: experiment.Values{}}
	clients := p.Int("ranks") - 1
	stats, err := experiment.Simulate(ctx, p.Config(ctx, clients+1), func(c *runtime.Cluster) error {
		w.c = c
		home := w.home
		if p.Text("mode") == experiment.ModeRDMA {
			home = w.plain
		}
		var library *txlog.Loaded
		if p.Text("mode") == experiment.ModeSpin {
			var err error
			if library, err = txlog.Load(c); err != nil {
				return err
			}
		}
		if err := c.SpawnService(0, "home", func(p *runtime.Proc) error { return home(p, library) }); err != nil {
			return err
		}
		client := map[string]func(*runtime.Proc) error{opRead: w.stream, opWrite: w.stream, opTransaction: w.transact}[p.Text("op")]
		for i := range clients {
			if err := c.Spawn(i+1, "client", client); err != nil {
				return err
			}
		}
		return nil
	}, w.finish)
	if err != nil {
		return nil, err
	}
	values := w.values
	maps.Copy(values, experiment.ClusterValues(&stats))
	all := clients * w.count
	span := w.last - w.first
	values["rate"] = float64(all) / span.Seconds() / 1e6
	values["throughput"], values[experiment.LatencyColumn], values["aborted"], values["logged"] = nil, nil, nil, nil
	if p.Text("op") == opTransaction {
		values[experiment.LatencyColumn] = w.took / sim.Time(all)
		values["aborted"] = float64(w.aborts) / float64(w.aborts+w.commits)
	} else {
		values["throughput"] = float64(all) * float64(w.size) / span.Seconds() / (1 << 30)
	}
	if w.server != nil && p.Text("op") == opTransaction {
		values["logged"] = int(w.server.Stats().Records)
	}
	return values, nil
}

// home is rank 0 with a log of accesses.
func (w *transacting) home(p *runtime.Proc, library *txlog.Loaded) (err error) {
	if w.server, err = library.Open(p, w.o); err != nil {
		return err
	}
	return w.server.Serve()
}

// plain is rank 0 without a log.
func (w *transacting) plain(p *runtime.Proc, _ *txlog.Loaded) error {
	memory := p.Alloc(w.o.Region)
	for i, does := range []portals.EntryOptions{portals.OptMEOpGet, portals.OptMEOpPut} {
		if _, err := p.NI().Objects().PTAlloc(0, portals.EQNone, w.o.PT+uint32(i)); err != nil {
			return err
		}
		if _, err := p.NI().MEAppend(w.o.PT+uint32(i), &portals.ME{
			Start: memory.Addr(), Length: uint64(w.o.Region), UID: portals.UIDAny, MatchID: portals.AnyID, MatchBits: txlog.Bits, IgnoreBits: txlog.TagBits, Options: does,
		}, portals.PriorityList, 0); err != nil {
			return err
		}
	}
	return nil
}

// stream posts accesses and waits for all of them: for the data of gets, and
// for the acknowledgements of puts.
func (w *transacting) stream(p *runtime.Proc) error {
	ni := p.NI()
	ct, err := ni.Objects().CTAlloc()
	if err != nil {
		return err
	}
	memory := p.Alloc(w.size)
	md, err := ni.Objects().MDBind(&portals.MD{Start: memory.Addr(), Length: uint64(w.size), CT: ct, Options: portals.OptMDEventCTReply | portals.OptMDEventCTAck})
	if err != nil {
		return err
	}
	p.Compute(sim.Nanosecond) // the home opens its region
	begin := p.Now()
	for range w.count {
		if w.Text("op") == opRead {
			err = ni.Get(portals.Get{MD: md, Length: uint64(w.size), Target: experiment.Peer(0), PT: w.o.PT, MatchBits: txlog.Bits})
		} else {
			err = ni.Put(portals.Put{MD: md, Length: uint64(w.size), Ack: portals.CTAck, Target: experiment.Peer(0), PT: w.o.PT + 1, MatchBits: txlog.Bits})
		}
		if err != nil {
			return err
		}
	}
	v, err := ni.CTWait(ct, uint64(w.count))
	if err == nil && v.Failure > 0 {
		err = fmt.Errorf("%d accesses failed", v.Failure)
	}
	w.over(begin, p.Now())
	w.OperationOf(w.count)
	w.Operation(p, begin)
	return err
}

func (w *transacting) over(begin, end sim.Time) {
	if w.first == 0 || begin < w.first {
		w.first = begin
	}
	w.last = max(w.last, end)
}

// transact adds one to the first word of items, and writes the lowest byte of
// the sum into their other bytes.
func (w *transacting) transact(p *runtime.Proc) error {
	c, err := txlog.Join(p, experiment.Peer(0), w.o)
	if err != nil {
		return err
	}
	p.Compute(sim.Nanosecond)
	begin := p.Now()
	rng := rand.New(rand.NewPCG(w.Seed, uint64(p.Rank())))
	item := make([]byte, w.size)
	stride := (w.size + 7) &^ 7
	for range w.count {
		items := rng.Perm(w.Int("items"))[:w.Int("reads")]
		began := p.Now()
		for committed := false; !committed; {
			tx := c.Begin()
			for i, n := range items {
				if err := tx.Read(n*stride, item); err != nil {
					return err
				}
				if i < w.Int("writes") {
					addOne(item)
					if err := tx.Write(n*stride, item); err != nil {
						return err
					}
				}
			}
			if committed, err = tx.Commit(); err != nil {
				return err
			}
		}
		w.took += p.Now() - began
		w.Operation(p, began)
	}
	w.over(begin, p.Now())
	w.aborts, w.commits = w.aborts+c.Stats().Aborts, w.commits+c.Stats().Commits
	return nil
}

// addOne increments the first word of an item. The other bytes all repeat its
// lowest byte.
func addOne(item []byte) {
	n := binary.LittleEndian.Uint64(item) + 1
	binary.LittleEndian.PutUint64(item, n)
	for i := 8; i < len(item); i++ {
		item[i] = byte(n)
	}
}

// finish checks that the sum of all counts equals the number of writes, and
// that every item is consistent.
func (w *transacting) finish() error {
	w.AtLineRate(w.c, w.values, nil)
	if w.Text("mode") == experiment.ModeSpin {
		if err := w.logged(); err != nil {
			return err
		}
	}
	if w.Text("op") != opTransaction {
		return nil
	}
	memory, stride, sum := w.server.Memory().Snapshot(), (w.size+7)&^7, uint64(0)
	for i := range w.Int("items") {
		item := memory[i*stride : i*stride+w.size]
		n := binary.LittleEndian.Uint64(item)
		sum += n
		for _, b := range item[8:] {
			if b != byte(n) {
				return fmt.Errorf("item %d is %d, and its bytes are of %d", i, n, b)
			}
		}
	}
	if want := w.commits * uint64(w.Int("writes")); sum != want {
		return fmt.Errorf("items were added %d to, by transactions that have added %d", sum, want)
	}
	return nil
}

// logged is an error unless every record in the log is one of the accesses that
// there were, and none is missing from the end of the log.
func (w *transacting) logged() error {
	list, err := w.server.Records()
	if err != nil {
		return err
	}
	op, stride := w.Text("op"), uint64(w.size+7)&^7
	for _, r := range list {
		client := r.PID == 0 && r.NID > 0 && int(r.NID) < w.Int("ranks")
		right := client && r.Tag == txlog.Bits && r.Offset == 0
		if op == opTransaction {
			right = (r.Kind == txlog.Read && client || r.Kind == txlog.Write && r.NID == 0) && r.Offset%stride == 0 && r.Offset < uint64(w.o.Region)
		} else if right {
			right = (r.Kind == txlog.Read) == (op == opRead)
		}
		if !right || r.Length != uint64(w.size) {
			return fmt.Errorf("the log has the record %+v, and there was no such access (%s of %d B)", r, op, w.size)
		}
	}
	if all := (w.Int("ranks") - 1) * w.count; op != opTransaction && (len(list) == 0 || int(list[len(list)-1].Number) != all) {
		return fmt.Errorf("the log has %d records at its end, of %d accesses", len(list), all)
	}
	return nil
}

// answerTransactions writes, for each profile, the largest cost of logging, and
// how many more transactions it gives than the host.
func answerTransactions(results []*experiment.Result) (lines []string) {
	at := func(r *experiment.Result, mode string) *experiment.Result {
		return experiment.Beside(results, r, "mode", mode)
	}
	worst, best := map[string]*experiment.Result{}, map[string]*experiment.Result{}
	var profiles []string
	ratio := func(r *experiment.Result, mode string) float64 { return r.Float("rate") / at(r, mode).Float("rate") }
	for _, r := range results {
		name := r.Point.Profile.Name
		if !slices.Contains(profiles, name) {
			profiles = append(profiles, name)
		}
		if r.Point.Text("mode") != experiment.ModeSpin {
			continue
		}
		if at(r, experiment.ModeRDMA) != nil && (worst[name] == nil || ratio(r, experiment.ModeRDMA) < ratio(worst[name], experiment.ModeRDMA)) {
			worst[name] = r
		}
		if at(r, experiment.ModeHost) != nil && (best[name] == nil || ratio(r, experiment.ModeHost) > ratio(best[name], experiment.ModeHost)) {
			best[name] = r
		}
	}
	say := func(r *experiment.Result) string {
		return fmt.Sprintf("(%s, %d ranks, %v)", r.Point.Text("op"), r.Point.Int("ranks"), sim.Size(r.Point.Int("size")))
	}
	for _, name := range profiles {
		if r := worst[name]; r != nil {
			lines = append(lines, fmt.Sprintf("%s: handlers that log every access cost %.1f%% of the rate at most %s.", name, 100*(1-ratio(r, experiment.ModeRDMA)), say(r)))
		}
		if r := best[name]; r != nil {
			lines = append(lines, fmt.Sprintf("%s: up to %.2f times as many transactions commit as with a host that answers reads %s.", name, ratio(r, experiment.ModeHost), say(r)))
		}
	}
	return lines
}

// ledgerTransactions are the rows of sPIN'17 §5.4 that txlog answers.
func ledgerTransactions() []experiment.LedgerRow {
	return []experiment.LedgerRow{{
		ID: "spin17-5.4-03", Of: bothNICs + "mode=rdma,spin op=read,write ranks=2,17 size=8,512,4KiB,64KiB count=100",
		How: "the rate of logged reads and writes is at least 95% of that of plain ones, and the HPUs suffice for line rate by Little's law, 8 B to 64 KiB, 1 and 16 clients",
		Holds: func(m *experiment.Measured) bool {
			held := true
			for _, r := range m.Results {
				if r.Point.Text("mode") == experiment.ModeSpin {
					held = held && m.Of(r, "of_rdma") >= experiment.LineRate-1 && m.Of(r, "littles_law_share") >= experiment.LineRate
				}
			}
			return held
		},
	}}
}
