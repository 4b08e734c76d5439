package spin17

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/handlers/kv"
	"github.com/spinsim/spinsim/internal/ycsb"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// longestKey is the length of a record's key, in bytes: "user" and 19 digits.
const longestKey = 4 + 19

// kvOptions are the options of the store at a point. It has memory for twice
// the items that there may be, and the buckets that the load needs.
func kvOptions(p *experiment.Point) kv.Options {
	records, written := p.Int("records"), p.Int("clients")*p.Int("ops")
	o := kv.Options{
		Mode: kvModes[p.Text("mode")], MaxKey: longestKey, MaxValue: max(p.Int("size"), 1), Clients: p.Int("clients"), Stripes: 256, Buckets: 1,
		Steps: p.Int("steps"), Load: p.Int("load"),
	}
	for o.Buckets < 1<<17 && o.Buckets*o.Stripes*o.Load < records {
		o.Buckets *= 2
	}
	block := 64 << kv.ClassOf(uint64(kv.RequestSize+longestKey+p.Int("size")))
	o.Memory = min(2*block*(records+min(written, records)+1024)+64*o.Stripes*o.Buckets+8<<20, 1<<32)
	return o
}

// kvRun is a running measurement.
type kvRun struct {
	*experiment.Point
	c        *runtime.Cluster
	o        kv.Options
	workload *ycsb.Workload
	server   *kv.Server
	clients  []kvClient
}

// kvClient has the results of a client.
type kvClient struct {
	times           []sim.Time
	end             sim.Time
	requests, again uint64
}

func runKeyValue(ctx context.Context, p *experiment.Point) (experiment.Values, error) {
	workload, err := ycsb.Find(p.Text("workload"))
	if err != nil {
		return nil, err
	}
	k := &kvRun{Point: p, o: kvOptions(p), workload: workload, clients: make([]kvClient, p.Int("clients"))}
	var values experiment.Values
	stats, err := experiment.Simulate(ctx, p.Config(ctx, 1+len(k.clients)), k.spawn, func() error {
		values = k.values()
		return nil
	})
	if err != nil {
		return nil, err
	}
	maps.Copy(values, experiment.ClusterValues(&stats))
	return values, nil
}

func (k *kvRun) spawn(c *runtime.Cluster) error {
	k.c = c
	library, err := kv.Load(c)
	if err != nil {
		return err
	}
	if err := c.SpawnService(0, "server", func(p *runtime.Proc) (err error) {
		if k.server, err = library.Open(p, k.o); err != nil {
			return err
		}
		for r := range uint64(k.Int("records")) {
			if err := k.server.Preload(ycsb.Key(r), kvValue(r, 0, k.Int("size"))); err != nil {
				return err
			}
		}
		return k.server.Serve()
	}); err != nil {
		return err
	}
	for i := range k.clients {
		if err := c.Spawn(1+i, fmt.Sprintf("client %d", i), func(p *runtime.Proc) error { return k.client(p, i) }); err != nil {
			return err
		}
	}
	return nil
}

// kvValue is a value of a record. It begins with the record and a number of the
// value.
func kvValue(record, nonce uint64, n int) []byte {
	b := make([]byte, max(n, 16))
	binary.LittleEndian.PutUint64(b, record)
	binary.LittleEndian.PutUint64(b[8:], nonce)
	for i := 16; i < len(b); i++ {
		b[i] = byte(uint64(i)*7 + record*31 + nonce*17)
	}
	return b[:n]
}

func (k *kvRun) client(p *runtime.Proc, i int) error {
	c, err := kv.Dial(p, []kv.Address{{}}, k.o)
	if err != nil {
		return err
	}
	me := &k.clients[i]
	w := &kvWork{kvRun: k, c: c, g: ycsb.New(k.workload, k.Int("records"), i, len(k.clients), k.Seed), me: me, nonce: uint64(i) << 32}
	for range k.Int("ops") {
		begin := p.Now()
		op := w.g.Next()
		if err := w.do(op); err != nil {
			return fmt.Errorf("record %d: %w", op.Record, err)
		}
		me.times = append(me.times, p.Now()-begin)
		k.Operation(p, begin)
	}
	me.end, me.again = p.Now(), me.again+c.Again()
	return nil
}

// kvWork is the work of a client.
type kvWork struct {
	*kvRun
	c     *kv.Client
	g     *ycsb.Generator
	me    *kvClient
	nonce uint64 // of the value that it wrote last
}

func (w *kvWork) do(op ycsb.Op) error {
	switch op.Kind {
	case ycsb.Read:
		_, err := w.get(op.Record)
		return err
	case ycsb.Scan:
		for r := op.Record; op.Length > 0; op.Length-- {
			if _, err := w.get(r); err != nil {
				return err
			}
			r = w.g.After(r)
		}
		return nil
	case ycsb.ReadModifyWrite:
		for {
			version, err := w.get(op.Record)
			if err != nil {
				return err
			}
			_, err = w.c.Swap(ycsb.Key(op.Record), version, w.next(op.Record))
			if changed := (*kv.ChangedError)(nil); !errors.As(err, &changed) {
				return err
			}
			w.me.again++
		}
	}
	_, err := w.c.Put(ycsb.Key(op.Record), w.next(op.Record))
	return err
}

// next makes a new value of a record.
func (w *kvWork) next(record uint64) []byte {
	w.me.requests++
	w.nonce++
	return kvValue(record, w.nonce, w.Int("size"))
}

// get reads a record and checks its value.
func (w *kvWork) get(record uint64) (version uint64, err error) {
	w.me.requests++
	value, version, err := w.c.Get(ycsb.Key(record))
	if err != nil {
		return 0, err
	}
	nonce := uint64(0)
	if len(value) >= 16 {
		nonce = binary.LittleEndian.Uint64(value[8:])
	}
	if want := kvValue(record, nonce, w.Int("size")); w.Int("size") >= 16 && !bytes.Equal(value, want) || len(value) != len(want) {
		return 0, fmt.Errorf("%d B came that are none of its values", len(value))
	}
	return version, nil
}

func (k *kvRun) values() experiment.Values {
	var times []sim.Time
	var end, sum sim.Time
	var requests, again uint64
	for i := range k.clients {
		c := &k.clients[i]
		times = append(times, c.times...)
		end = max(end, c.end)
		requests += c.requests
		again += c.again
	}
	slices.Sort(times)
	for _, t := range times {
		sum += t
	}
	n := len(times)
	server := k.c.Node(0).Stats()
	v := experiment.Values{
		experiment.LatencyColumn: sum / sim.Time(n), "p99": times[(n*99-1)/100], "throughput": float64(n) * float64(sim.Microsecond) / float64(end),
		"server_cpu": server.CPUBusy / sim.Time(n), "server_memory": float64(server.HostMemoryBytes) / float64(n), "handed": nil,
		"again": int(again), "requests": int(requests),
	}
	k.AtLineRate(k.c, v, nil)
	if k.o.Mode == kv.Handlers {
		counts := k.server.Counts()
		v["handed"] = float64(counts.Handed) / float64(max(counts.Served+counts.Handed, 1))
	}
	return v
}
