// Command ip runs programs with sockets over ExaNet. One asks another node for
// the time, again and again. That node is unplugged from the management
// Ethernet for some milliseconds. Its heartbeats stop, so it counts as dead,
// and later it comes back.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spinsim/spinsim/exanet/ip"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

const (
	client = 0
	server = 5 // F2 of the next board
	port   = 37
	every  = 2 * sim.Millisecond
	rounds = 12
)

func main() {
	for _, idle := range ip.Idles() {
		if err := run(context.Background(), os.Stdout, idle); err != nil {
			fmt.Fprintln(os.Stderr, "ip:", err)
			os.Exit(1)
		}
	}
}

func run(ctx context.Context, out io.Writer, idle ip.Idle) (err error) {
	device, err := profile.Load("exanest")
	if err != nil {
		return err
	}
	cluster, err := runtime.NewCluster(runtime.Config{Profile: device, Nodes: server + 1, Seed: 1})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.Close()) }()
	network, err := ip.New(cluster, ip.Options{Idle: idle, Nodes: []int{client, server}})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "services: %s\n", idle)
	done := false
	if err := cluster.Spawn(server, "time server", func(p *runtime.Proc) error {
		sockets, err := network.Open(p)
		if err != nil {
			return err
		}
		u, err := sockets.UDP(port)
		if err != nil {
			return err
		}
		for !done {
			if err := sockets.Wait(p.Now() + every); err != nil {
				return err
			}
			for q, found := u.Receive(); found; q, found = u.Receive() {
				if err := u.Send(q.From, q.Port, fmt.Appendf(nil, "%.3f ms", p.Now().Seconds()*1e3)); err != nil {
					return err
				}
			}
		}
		network.Stop(server)
		return nil
	}); err != nil {
		return err
	}
	if err := cluster.Spawn(client, "client", func(p *runtime.Proc) error {
		defer func() { done = true }()
		return ask(p, network, out)
	}); err != nil {
		return err
	}
	if err := cluster.Run(ctx); err != nil {
		return err
	}
	c := network.Counts(client)
	fmt.Fprintf(out, "  %d packets sent in %d transfers, %d dropped; the peer died %d times and was there %d times\n", c.Sent, c.Batches, c.Unreachable+c.Lost, c.Deaths, c.Ups)
	return nil
}

func ask(p *runtime.Proc, network *ip.Network, out io.Writer) error {
	defer network.Stop(client)
	sockets, err := network.Open(p)
	if err != nil {
		return err
	}
	u, err := sockets.UDP(port)
	if err != nil {
		return err
	}
	for i := range rounds {
		p.SleepUntil(sim.Time(i+1) * every)
		network.Unplug(server, i >= 3 && i < 7)
		begin := p.Now()
		if err := u.Send(ip.AddrOf(server), port, []byte("?")); err != nil {
			return err
		}
		answer := "no answer"
		for answer == "no answer" && p.Now() < begin+every/2 {
			if err := sockets.Wait(begin + every/2); err != nil {
				return err
			}
			if d, found := u.Receive(); found {
				answer = fmt.Sprintf("%s, after %.1f µs", d.Data, (p.Now()-begin).Seconds()*1e6)
			}
		}
		fmt.Fprintf(out, "  asked at %6.3f ms: %s\n", begin.Seconds()*1e3, answer)
	}
	return nil
}
