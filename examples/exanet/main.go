// Command exanet sends messages on an ExaNeSt board from the packetizer of one
// MPSoC to the mailboxes of two others. One of these belongs to another
// protection domain. It runs on a network that works and on one that loses
// about every third cell, and prints what the processes saw, and when.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spinsim/spinsim/exanet"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

const (
	sender   = 0 // nodes
	receiver = 1
	stranger = 2
)

func main() {
	for _, faults := range []string{"{}", "{loss: 0.3}"} {
		if err := run(context.Background(), os.Stdout, faults); err != nil {
			fmt.Fprintln(os.Stderr, "exanet:", err)
			os.Exit(1)
		}
	}
}

// example is a run.
type example struct {
	out    io.Writer
	system *exanet.System
	boxes  [3]*exanet.Interface
}

func run(ctx context.Context, out io.Writer, faults string) (err error) {
	device, err := profile.Load("exanest-qfdb", "fabric.faults="+faults)
	if err != nil {
		return err
	}
	cluster, err := runtime.NewCluster(runtime.Config{Profile: device, Nodes: 3, Seed: 1})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.Close()) }()
	x := &example{out: out}
	if x.system, err = exanet.Load(cluster); err != nil {
		return err
	}
	fmt.Fprintf(out, "faults: %s\n", faults)
	for node, domain := range []exanet.PDID{sender: 7, receiver: 7, stranger: 8} {
		name := []string{"sender", "receiver", "stranger"}[node]
		if err := cluster.Spawn(node, name, func(p *runtime.Proc) (err error) {
			// as the kernel does when it starts the process
			if err := x.system.Admit(p, domain); err != nil {
				return err
			}
			if x.boxes[node], err = x.system.Open(p, exanet.Options{}); err != nil {
				return err
			}
			return []func(*runtime.Proc) error{x.send, x.receive, func(*runtime.Proc) error { return nil }}[node](p)
		}); err != nil {
			return err
		}
	}
	if err := cluster.Run(ctx); err != nil {
		return err
	}
	fmt.Fprintf(out, "  %d messages came, %d were sent again; the stranger has refused %d and has %d\n", x.boxes[receiver].Counts().Received.Messages,
		x.boxes[sender].Counts().Sent.Retransmitted, x.boxes[stranger].Counts().Received.Foreign, x.boxes[stranger].Counts().Received.Messages)
	return nil
}

var words = []string{"ExaNeSt", "sends", "words", "."}

func (x *example) send(p *runtime.Proc) error {
	p.Sleep(sim.Microsecond)
	mine := x.boxes[sender]
	for _, word := range words {
		if err := mine.Send(x.boxes[receiver].Address(), []byte(word)); err != nil {
			return err
		}
	}
	err := mine.Send(x.boxes[stranger].Address(), []byte("hello"))
	fmt.Fprintf(x.out, "  %10.3f µs  sender    %v\n", p.Now().Seconds()*1e6, err)
	return nil
}

func (x *example) receive(p *runtime.Proc) error {
	buffer := make([]byte, exanet.MaxPayload)
	for range words {
		m, err := x.boxes[receiver].Receive(buffer)
		if err != nil {
			return err
		}
		fmt.Fprintf(x.out, "  %10.3f µs  receiver  %q from node %d\n", p.Now().Seconds()*1e6, buffer[:m.Bytes], m.NID)
	}
	return nil
}
