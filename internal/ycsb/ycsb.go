// Package ycsb draws the operations of the Yahoo! Cloud Serving Benchmark
// (Cooper et al., SoCC'10), core workloads A to F. It follows the reference
// implementation (github.com/brianfrankcooper/YCSB, core/generator): scrambled
// zipfian keys with theta 0.99, the latest records, keys made of "user" and a
// hash. It differs for several clients, see [Generator].
package ycsb

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
)

// Kind is the kind of an operation.
type Kind int

// Kinds of operations.
const (
	Read Kind = iota
	Update
	Insert
	Scan
	ReadModifyWrite
)

// Op is an operation.
type Op struct {
	Kind   Kind
	Record uint64
	Length int // Scan: records, from 1 to MaxScan
}

// MaxScan is the longest scan (maxscanlength of workload E).
const MaxScan = 100

// Workload is the shares of kinds of operations, and the choice of records.
type Workload struct {
	Name   string
	Shares [ReadModifyWrite + 1]float64
	Latest bool // newer records are likelier; else zipfian over all records
}

// Workloads are YCSB's core workloads (its files workloads/workloada to workloadf).
var Workloads = []Workload{
	{Name: "A", Shares: [...]float64{Read: 0.5, Update: 0.5, ReadModifyWrite: 0}},
	{Name: "B", Shares: [...]float64{Read: 0.95, Update: 0.05, ReadModifyWrite: 0}},
	{Name: "C", Shares: [...]float64{Read: 1, ReadModifyWrite: 0}},
	{Name: "D", Shares: [...]float64{Read: 0.95, Insert: 0.05, ReadModifyWrite: 0}, Latest: true},
	{Name: "E", Shares: [...]float64{Scan: 0.95, Insert: 0.05, ReadModifyWrite: 0}},
	{Name: "F", Shares: [...]float64{Read: 0.5, ReadModifyWrite: 0.5}},
}

// Find returns the workload with a name.
func Find(name string) (*Workload, error) {
	for i := range Workloads {
		if Workloads[i].Name == name {
			return &Workloads[i], nil
		}
	}
	return nil, fmt.Errorf("workload %q, expected A, B, C, D, E or F", name)
}

// Generator draws the operations of one of several clients. Each client inserts
// its own records, with numbers records + client + k·clients, and knows nothing
// of the inserts of others. So its latest records are its own and the initial
// ones.
type Generator struct {
	w       *Workload
	rng     *rand.Rand
	records uint64
	client  uint64
	clients uint64
	own     uint64  // records inserted
	zipf    zipfian // scrambled: over all places; latest: over the existing records
}

// New begins a client's sequence. records is the initial number of records, at
// least 1. The sequence depends on seed and client alone.
func New(w *Workload, records, client, clients int, seed uint64) *Generator {
	g := &Generator{w: w, rng: rand.New(rand.NewPCG(seed, uint64(client)+1)), records: uint64(records), client: uint64(client), clients: uint64(clients)}
	if w.Latest {
		g.zipf = newZipfian(uint64(records), zeta(uint64(records), 0, 0))
	} else {
		g.zipf = newZipfian(scrambledItems, scrambledZeta)
	}
	return g
}

// Next draws an operation.
func (g *Generator) Next() Op {
	at := g.rng.Float64()
	op := Op{Kind: ReadModifyWrite}
	for kind, share := range g.w.Shares {
		if at < share {
			op.Kind = Kind(kind)
			break
		}
		at -= share
	}
	if op.Kind == Insert {
		op.Record = g.record(g.records + g.own)
		g.own++
		return op
	}
	if op.Kind == Scan {
		op.Length = 1 + g.rng.IntN(MaxScan)
	}
	all := g.records + g.own
	if g.w.Latest {
		g.zipf.extend(all)
		op.Record = g.record(all - 1 - min(g.zipf.next(g.rng.Float64()), all-1))
		return op
	}
	op.Record = g.record(Hash(g.zipf.next(g.rng.Float64())) % all)
	return op
}

// record returns the number of the i-th record that the client knows.
func (g *Generator) record(i uint64) uint64 {
	if i < g.records {
		return i
	}
	return g.records + g.client + (i-g.records)*g.clients
}

// After returns the record that follows another in a scan. The order of record
// numbers stands for the order of keys, which a hash table does not have.
func (g *Generator) After(record uint64) uint64 {
	if record+1 >= g.records {
		return 0
	}
	return record + 1
}

// Key returns the key of a record.
func Key(record uint64) []byte { return strconv.AppendUint([]byte("user"), Hash(record), 10) }

// Hash is YCSB's hash: FNV-1a of 64 bits over the 8 bytes of a number, without
// its sign.
func Hash(v uint64) uint64 {
	h := uint64(0xCBF29CE484222325)
	for range 8 {
		h = (h ^ v&0xff) * 1099511628211
		v >>= 8
	}
	if int64(h) < 0 {
		return -h
	}
	return h
}

const (
	theta = 0.99
	// from ScrambledZipfianGenerator; hashed onto the existing records
	scrambledItems = 10_000_000_000
	scrambledZeta  = 26.46902820178302 // zeta(scrambledItems), from there as well
)

// zipfian draws ranks, with 0 as the likeliest: Gray et al., "Quickly
// Generating Billion-Record Synthetic Databases", SIGMOD'94. Products are
// converted, so that no machine fuses them with a sum.
type zipfian struct {
	items            uint64
	zeta, eta, alpha float64
}

// zeta returns sum, which runs up to from, plus the sum of 1/i^theta from i =
// from + 1 to n.
func zeta(n, from uint64, sum float64) float64 {
	for i := from + 1; i <= n; i++ {
		sum += 1 / math.Pow(float64(i), theta)
	}
	return sum
}

func newZipfian(items uint64, sum float64) zipfian {
	two := zeta(2, 0, 0)
	return zipfian{
		items: items, zeta: sum, alpha: 1 / (1 - theta),
		eta: (1 - math.Pow(2/float64(items), 1-theta)) / (1 - two/sum),
	}
}

// extend lets z draw from more items.
func (z *zipfian) extend(items uint64) {
	if items > z.items {
		*z = newZipfian(items, zeta(items, z.items, z.zeta))
	}
}

// next returns the rank for a random number from 0 to 1.
func (z *zipfian) next(u float64) uint64 {
	at := u * z.zeta
	switch {
	case at < 1:
		return 0
	case at < 1+math.Pow(0.5, theta):
		return 1
	}
	return uint64(float64(z.items) * math.Pow(float64(z.eta*u)-z.eta+1, z.alpha))
}
