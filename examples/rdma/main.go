// Command rdma lets two MPSoCs of an ExaNeSt board transfer a megabyte by RDMA,
// first on a network that works and then on one that loses cells. It prints
// what the hosts saw, and when.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spinsim/spinsim/handlers/rdma"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

const (
	writer = 0 // ranks
	target = 1

	length = 1 << 20
	domain = 7 // protection domain of both processes
)

func main() {
	for _, faults := range []string{"{}", "{loss: 0.001, corrupt: 0.001}"} {
		if err := run(context.Background(), os.Stdout, faults); err != nil {
			fmt.Fprintln(os.Stderr, "rdma:", err)
			os.Exit(1)
		}
	}
}

// example is a run, and what the two processes tell each other before it.
type example struct {
	out     io.Writer
	engine  *rdma.Engine
	buffer  runtime.View // of the target
	arrived runtime.View // its notification
}

func run(ctx context.Context, out io.Writer, faults string) (err error) {
	// all memory is present
	device, err := profile.Load("exanest-qfdb", "fabric.faults="+faults, "os.kind=none", "smmu.kind=none")
	if err != nil {
		return err
	}
	cluster, err := runtime.NewCluster(runtime.Config{Profile: device, Nodes: 2, Seed: 1})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.Close()) }()
	engine, err := rdma.Load(cluster)
	if err != nil {
		return err
	}
	x := &example{out: out, engine: engine}
	fmt.Fprintf(out, "faults: %s\n", faults)
	if err := cluster.Spawn(target, "target", x.receive); err != nil {
		return err
	}
	if err := cluster.Spawn(writer, "writer", x.write); err != nil {
		return err
	}
	if err := cluster.Run(ctx); err != nil {
		return err
	}
	if failures, n := cluster.Failures(); n > 0 {
		return failures[0]
	}
	return nil
}

// write sends a megabyte to addresses of the other process, and waits until
// that process has acknowledged all of it.
func (x *example) write(p *runtime.Proc) error {
	data := p.Alloc(length)
	copy(data.Raw(), bytes.Repeat([]byte("ExaNeSt "), length/8))
	page, err := x.engine.Open(p, rdma.Options{PDID: domain})
	if err != nil {
		return err
	}
	p.Sleep(sim.Microsecond) // meanwhile the target has told us its addresses
	w, err := page.Write(rdma.Transfer{
		NID: target, Source: data.Addr(), Destination: x.buffer.Addr(), Length: length, Notify: x.arrived.Addr(), Value: 1,
	})
	if err != nil {
		return err
	}
	if err := w.Wait(); err != nil {
		return err
	}
	c := page.Counts().Sent
	fmt.Fprintf(x.out, "%11.3f µs  writer  all is acknowledged: %d blocks, %d sent again\n", p.Now().Seconds()*1e6, c.Blocks, c.Retransmitted)
	return nil
}

// receive waits for the notification: then all data has arrived.
func (x *example) receive(p *runtime.Proc) error {
	x.buffer, x.arrived = p.Alloc(length), p.Alloc(8)
	page, err := x.engine.Open(p, rdma.Options{PDID: domain})
	if err != nil {
		return err
	}
	if err := page.AwaitNotification(x.arrived, 1); err != nil {
		return err
	}
	c := page.Counts().Received
	last := x.buffer.Slice(length-8, length).Read()
	fmt.Fprintf(x.out, "%11.3f µs  target  %q is there: %d cells, %d damaged\n", p.Now().Seconds()*1e6, last, c.Cells, c.Damaged)
	return nil
}
