// Command gsas counts primes with processes of an ExaNeSt board that share
// memory. Each process takes the next task from a counter by fetch-and-add,
// wherever the counter is, and writes its result into a table. It runs on a
// network that works and on one that loses and doubles about every tenth cell;
// the counts are the same.
package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spinsim/spinsim/exanet/gsas"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

const (
	nodes     = 3
	processes = 5 // an odd number, which a barrier can handle
	tasks     = 20
	chunk     = 1000 // numbers in a task
)

func main() {
	for _, faults := range []string{"{}", "{loss: 0.1, duplicate: 0.1, max_delay: 1us}"} {
		if err := run(context.Background(), os.Stdout, faults); err != nil {
			fmt.Fprintln(os.Stderr, "gsas:", err)
			os.Exit(1)
		}
	}
}

// shared has the addresses of shared objects. Pointers are plain numbers that
// all processes know.
type shared struct {
	next    gsas.Pointer // the first task that is not taken, on node 0
	results gsas.Pointer // number of primes in each task, on node 2
	met     gsas.Pointer // barrier
}

func run(ctx context.Context, out io.Writer, faults string) (err error) {
	device, err := profile.Load("exanest-qfdb", "fabric.faults="+faults)
	if err != nil {
		return err
	}
	cluster, err := runtime.NewCluster(runtime.Config{Profile: device, Nodes: nodes, Seed: 1})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.Close()) }()
	space, err := gsas.New(cluster, gsas.Options{PDID: 7, Heap: 64 << 10})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "faults: %s\n", faults)
	var at shared
	for i := range processes {
		if err := cluster.Spawn(i%nodes, fmt.Sprintf("process %d", i), func(p *runtime.Proc) error {
			m, err := space.Open(p)
			if err != nil {
				return err
			}
			return work(m, i, &at, out)
		}); err != nil {
			return err
		}
	}
	if err := cluster.Run(ctx); err != nil {
		return err
	}
	for node := range nodes {
		c := space.Counts(node)
		fmt.Fprintf(out, "  home of node %d: %d requests, %d of them by RDMA\n", node, c.Requests, c.Large)
	}
	return nil
}

func work(m *gsas.Member, me int, at *shared, out io.Writer) (err error) {
	p := m.Proc()
	if me == 0 {
		if at.next, err = m.Alloc(0, 8); err != nil {
			return err
		}
		if at.results, err = m.Alloc(2, 8*tasks); err != nil {
			return err
		}
		if at.met, err = m.NewBarrier(1, processes); err != nil {
			return err
		}
	}
	p.SleepUntil(10 * sim.Millisecond) // a real program would send the pointers
	mine := 0
	for {
		task, err := m.FetchAdd(at.next, 1)
		if err != nil {
			return err
		}
		if task >= tasks {
			break
		}
		mine++
		n := primes(task*chunk, (task+1)*chunk)
		p.Compute(sim.Time(n) * 20 * sim.Nanosecond)
		if err := m.Store(at.results.Plus(int64(8*task)), n); err != nil {
			return err
		}
	}
	if err := m.Barrier(at.met); err != nil {
		return err
	}
	if me > 0 {
		return nil
	}
	table := p.Alloc(8 * tasks)
	if err := m.Read(at.results, table); err != nil { // 160 bytes: RDMA
		return err
	}
	sum := uint64(0)
	for b := table.Read(); len(b) > 0; b = b[8:] {
		sum += binary.LittleEndian.Uint64(b)
	}
	fmt.Fprintf(out, "  %10.3f µs  %d primes below %d\n", (p.Now()-10*sim.Millisecond).Seconds()*1e6, sum, tasks*chunk)
	err = m.Free(at.results)
	if err == nil {
		_, err = m.Load(at.results)
		fmt.Fprintf(out, "  afterwards     %v\n", err)
		err = nil
	}
	return err
}

func primes(from, to uint64) (n uint64) {
	for x := max(from, 2); x < to; x++ {
		is := uint64(1)
		for d := uint64(2); d*d <= x; d++ {
			if x%d == 0 {
				is = 0
				break
			}
		}
		n += is
	}
	return n
}
