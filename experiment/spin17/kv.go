package spin17

import (
	"fmt"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/handlers/kv"
	"github.com/spinsim/spinsim/report"
)

var keyValue = &experiment.Experiment{
	Name:  "kv",
	Short: "a key-value store under YCSB, served by handlers, by the host, or read by RDMA",
	Long: `Node 0 is a server whose table has a number of records; each client, on its own node, does a number of operations of a YCSB workload, one after the other. The
latency is the mean time of an operation, from the client's call to its return.
  spin  handlers look up, insert, replace and swap (sPIN'17 §5.4); they pass requests that take longer to the host
  host  one core of the server takes every request and answers it
  rdma  clients get by reading the server's memory, without a core (like Pilaf, ATC'13, and FaRM, NSDI'14); writes go to the host
Workloads are YCSB's A (half updates), B (5% updates), C (reads), D (reads of the latest, 5% inserts), E (short scans, 5% inserts) and F (half read-modify-write), with scrambled
zipfian keys of theta 0.99 except in D. A value is read and written as a whole. A hash table has no order, so a scan of n records is n gets, one after the other, by a client that knows the keys.
The write of a read-modify-write is a swap of the version that was read; it starts again if another client was first.`,
	Source: "sPIN'17 §5.4",
	Smoke:  []experiment.Values{{"clients": 3, "ops": 6, "records": 50}},
	Axes: []experiment.Axis{
		{Name: "mode", Kind: report.Text, Of: []string{experiment.ModeSpin, experiment.ModeHost, experiment.ModeRDMA}, Help: "who serves; the command's help describes each"},
		{Name: "workload", Kind: report.Text, Of: []string{"A", "B", "C", "D", "E", "F"}, Help: "YCSB's core workloads; the command's help describes each"},
		{Name: "ops", Kind: report.Count, Least: "1", Most: "1000000", Default: "100", Help: "operations of each client"},
		{Name: "records", Kind: report.Count, Least: "1", Most: "10000000", Default: "10000", Help: "records at the beginning"},
		{Name: "steps", Kind: report.Count, Least: "1", Most: "65536", Default: "8", Help: "items of a bucket that a handler examines before it passes the request to the host"},
		{Name: "load", Kind: report.Count, Least: "1", Most: "65536", Default: "1", Help: "items for each bucket; beyond that the table grows"},
		{Name: "clients", Kind: report.Count, Least: "1", Most: "1024", Default: "16", Each: "clients", Help: "clients, each on its own node"},
		{Name: "size", Column: "bytes", Kind: report.Size, Most: "512KiB", Default: "1000B", Help: "size of a value; YCSB's are 10 fields of 100 B"},
	},
	Points: func(p *experiment.Point) (bool, error) { return true, experiment.LongPackets(p, 2*kv.UserHeader) },
	Run:    runKeyValue,
	Memory: func(p *experiment.Point) int64 {
		clients := int64(p.Int("clients"))
		return p.Footprint(1+int(clients)) + int64(kvOptions(p).Memory) + (16+8*clients)*(int64(p.Int("size"))+1024)
	},
	Columns: append([]report.Column{
		{Name: experiment.LatencyColumn, Unit: "us", Kind: report.Duration, Scale: "latency", Help: "mean time of an operation, over all clients"},
		{Name: "p99", Unit: "us", Kind: report.Duration, Scale: "latency", Help: "time that 99% of the operations did not take longer than"},
		{Name: "throughput", Unit: "Mops", Kind: report.Number, Help: "operations of all clients in a microsecond, until the last of them is done"},
		{Name: "server_cpu", Unit: "ns", Kind: report.Duration, Help: "time that cores of the server were busy, for each operation"},
		{Name: "server_memory", Unit: "bytes", Kind: report.Number, Help: "bytes through the server's host memory, for each operation"},
		{Name: "handed", Kind: report.Share, Help: "share of the requests that handlers handed over to the host; empty without handlers"},
		{Name: "again", Kind: report.Count, Help: "requests that were sent back to come again, reads by RDMA that met a change, and swaps that came too late"},
		{Name: "requests", Kind: report.Count, Help: "gets and writes of the operations, those that came again not counted"},
	}, append(experiment.LineColumns(), experiment.ClusterColumns()...)...),
	Followed: experiment.LatencyColumn,
	Relative: experiment.AgainstHost(),
	Ledger:   ledgerKeyValue(),
	Slots:    experiment.SlotIn(kv.ServerSlot, experiment.ModeSpin),
	View: experiment.View{
		Value: experiment.LatencyColumn, Series: []string{"mode"}, Base: experiment.ModeHost, X: "clients",
		Summary: []string{experiment.ProfileColumn, "workload", "clients", "bytes", "mode", experiment.LatencyColumn, "p99", "throughput", "server_cpu", "server_memory", "handed", "again", "hpus_needed", "littles_law_share"},
		Quiet:   []string{"ops", "records", "steps", "load"},
	},
	Presets: []experiment.Preset{
		{
			Name: "clients", Short: "a key-value store: throughput and latency against the number of clients", Source: "ours",
			Values: map[string]string{"workload": "B", "clients": "1,2,4,8,16,32,64"},
			View: &experiment.View{
				Value: "throughput", Series: []string{"mode"}, X: "clients", Quiet: []string{"ops", "records", "steps", "load", "size"},
			},
		},
		{
			Name: "values", Short: "a key-value store: gets of values of any size", Source: "ours",
			Values: map[string]string{"workload": "C", "clients": "8", "size": "16,256,1KiB,4KiB,16KiB,64KiB", "records": "1000"},
			View: &experiment.View{
				Value: experiment.LatencyColumn, Series: []string{"mode"}, Base: experiment.ModeHost, X: "bytes", Quiet: []string{"ops", "records", "steps", "load"},
			},
		},
		{
			Name: "chains", Short: "a key-value store: what handlers may walk, against what they hand over", Source: "ours",
			Values: map[string]string{"mode": "spin", "workload": "C", "load": "16", "steps": "1,2,4,8,16,32", "size": "100B"},
			View: &experiment.View{
				Value: experiment.LatencyColumn, Series: []string{"mode"}, X: "steps",
				Summary: []string{experiment.ProfileColumn, "steps", experiment.LatencyColumn, "p99", "throughput", "server_cpu", "handed", "hpus_needed", "littles_law_share"},
				Quiet:   []string{"mode", "ops", "records", "load", "workload", "clients", "size"},
			},
		},
	},
	Caveats: both(experiment.KeepingUp, mostlyRetries("requests", func(r *experiment.Result) float64 {
		again, _ := experiment.Magnitude(r.Values["again"])
		once, _ := experiment.Magnitude(r.Values["requests"])
		return again / max(1, again+once)
	})),
	Notes: []string{
		"Every value that was read was compared with what its key can have. Nothing was published of a store's speed; all figures are predicted.",
	},
}

// kvModes are the modes of the store.
var kvModes = map[string]kv.Mode{experiment.ModeSpin: kv.Handlers, experiment.ModeHost: kv.Host, experiment.ModeRDMA: kv.OneSided}

// ledgerKeyValue are the rows of sPIN'17 §5.4 that kv answers.
func ledgerKeyValue() []experiment.LedgerRow {
	return []experiment.LedgerRow{{
		ID: "spin17-5.4-01", Of: bothNICs + "mode=spin workload=D load=16 steps=1,2,4,8,16 clients=16",
		How: "workload D, 16 items for each bucket: the share of requests that handlers hand over to the host falls with each doubling of the steps, 1 to 16",
		Holds: func(m *experiment.Measured) bool {
			held := true
			for _, r := range m.Results {
				if steps := r.Point.Int("steps"); steps > 1 {
					held = held && m.Of(r, "handed") < m.Beside(r, "handed", fmt.Sprintf("steps=%d", steps/2))
				}
			}
			return held
		},
	}}
}
