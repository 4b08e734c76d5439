// Command two-nodes builds a cluster of two nodes through the library, installs
// a handler on one, sends from the other and prints what happens, with times.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/handlers/count"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

const (
	sender   = 0 // ranks
	receiver = 1

	index  = 0      // of the portal table
	bits   = 0xc0de // to match
	length = 10_000 // of the message: three packets of at most 4096
)

func main() {
	if err := run(context.Background(), os.Stdout, nil); err != nil {
		fmt.Fprintln(os.Stderr, "two-nodes:", err)
		os.Exit(1)
	}
}

// example is a run: its programs print while virtual time passes.
type example struct {
	out     io.Writer
	cluster *runtime.Cluster
}

// run simulates one message. watch, if not nil, is called for each step of a
// handler.
func run(ctx context.Context, out io.Writer, watch func(*nic.HandlerStep)) (err error) {
	// A profile holds every latency, width and count; here it is the discrete
	// NIC of sPIN'17, with one value changed.
	device, err := profile.Load("spin-dis", "hpu.cores=2")
	if err != nil {
		return err
	}
	cluster, err := runtime.NewCluster(runtime.Config{Profile: device, Nodes: 2, Seed: 1, Watch: watch})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.Close()) }()

	// Host programs are Go functions that run in virtual time.
	x := &example{out, cluster}
	if err := cluster.Spawn(receiver, "receiver", x.receive); err != nil {
		return err
	}
	if err := cluster.Spawn(sender, "sender", x.send); err != nil {
		return err
	}
	if err := cluster.Run(ctx); err != nil {
		return err
	}
	if failures, n := cluster.Failures(); n > 0 {
		return failures[0]
	}
	stats := cluster.Stats()
	x.say("end", cluster.Engine().Now(), "%d packets, %d handlers of %d cycles", stats.PacketsReceived, stats.HandlerCalls, stats.HandlerCycles)
	return nil
}

// receive installs the handlers of package count, waits for the event of a
// message and reads the handlers' counts.
func (x *example) receive(p *runtime.Proc) error {
	module, err := count.Library.Load(x.cluster)
	if err != nil {
		return err
	}
	installed, err := module.Install(p, handlers.Options{}) // the library's default handlers and state
	if err != nil {
		return err
	}
	ni := p.NI()
	inbox := p.Alloc(length)
	queue, err := ni.Objects().EQAlloc(16)
	if err != nil {
		return err
	}
	if _, err := ni.Objects().PTAlloc(0, queue, index); err != nil {
		return err
	}
	entry := portals.ME{
		Start: inbox.Addr(), Length: length, UID: portals.UIDAny, MatchID: portals.AnyID, MatchBits: bits,
		Options: portals.OptMEOpPut | portals.OptMEEventLinkDisable,
	}
	installed.Attach(&entry)
	if _, err := ni.MEAppend(index, &entry, portals.PriorityList, 0); err != nil {
		return err
	}
	event, err := ni.EQWait(queue)
	if err != nil {
		return err
	}
	x.say("receiver", p.Now(), "saw %v of %d bytes from node %d", event.Type, event.MLength, event.Initiator.NID)
	var state count.State
	if err := installed.Read(&state); err != nil {
		return err
	}
	x.say("receiver", p.Now(), "HPU memory: %d message, %d packets, %d bytes", state.Messages, state.Packets, state.Bytes)
	return nil
}

// send puts a message and waits for its acknowledgement.
func (x *example) send(p *runtime.Proc) error {
	ni := p.NI()
	data := p.Alloc(length)
	for i, bytes := 0, data.Write(); i < length; i++ {
		bytes[i] = byte(i)
	}
	queue, err := ni.Objects().EQAlloc(16)
	if err != nil {
		return err
	}
	md, err := ni.Objects().MDBind(&portals.MD{Start: data.Addr(), Length: length, EQ: queue})
	if err != nil {
		return err
	}
	if err := ni.Put(portals.Put{MD: md, Length: length, Ack: portals.Ack, Target: portals.PhysID(receiver, 0), PT: index, MatchBits: bits}); err != nil {
		return err
	}
	x.say("sender", p.Now(), "posted a put of %d bytes", length)
	for range 2 {
		event, err := ni.EQWait(queue)
		if err != nil {
			return err
		}
		x.say("sender", p.Now(), "saw %v of %d bytes: %v", event.Type, event.MLength, event.Fail)
	}
	return nil
}

// say prints a line with the time.
func (x *example) say(who string, at sim.Time, format string, args ...any) {
	fmt.Fprintf(x.out, "%10.3f ns  %-8s  %s\n", at.Nanoseconds(), who, fmt.Sprintf(format, args...))
}
