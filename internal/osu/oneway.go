package osu

import (
	"encoding/binary"
	"fmt"

	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// OneWayBy is what osu_one_way_lat of TR-488 §6.1.4 may measure. Each rank
// executes a blocking send or a blocking receive; the report does not say more.
// Its 750 ns are less than half of its round trip, 1.17 us, so that no clock
// from a send to its receive gives them.
type OneWayBy string

// The ways.
const (
	// ByCalls is the time of a call, the mean of both ranks, where one sends
	// message after message, and the other receives them.
	ByCalls OneWayBy = "calls"
	// ByArrival is from the send to the end of the receive that waits for it, by
	// clocks that agree.
	ByArrival OneWayBy = "arrival"
	// ByRoundTrip is half of a round trip.
	ByRoundTrip OneWayBy = "half"
)

// OneWays lists the ways; the first is what TR-488's model is compared with
// here.
func OneWays() []OneWayBy { return []OneWayBy{ByCalls, ByArrival, ByRoundTrip} }

// OneWay returns at rank 0 the mean time of a message from rank 0 to rank 1.
// TR-488's model of broadcast uses such times.
func OneWay(c *mpi.Comm, o Options, by OneWayBy) (sim.Time, error) {
	o = o.filled(c.Size())
	t := &test{Options: o, c: c, r: c.Owner()}
	switch by {
	case ByCalls:
		return t.byCalls()
	case ByArrival:
		return t.byArrival()
	case ByRoundTrip:
		row, err := t.latency()
		return row.Latency, err
	}
	return 0, fmt.Errorf("osu: one way by %q, expected one of %v", by, OneWays())
}

// byCalls: rank 0 sends, rank 1 receives, and nobody answers.
func (t *test) byCalls() (sim.Time, error) {
	me := t.c.Rank()
	if err := t.prepare(1 - me); err != nil {
		return 0, err
	}
	took, err := t.rounds(nil, func() error {
		if me == 0 {
			return t.c.Send(t.send, 1, dataTag)
		}
		_, err := t.c.Recv(t.recv, 0, dataTag)
		return err
	})
	if err == nil && me == 1 {
		err = t.check(t.recv, 0, 1)
	}
	if err != nil {
		return 0, err
	}
	sum, err := t.reduced(divided(took, t.Iterations), mpi.Sum)
	return divided(sum, t.c.Size()), err
}

// byArrival: rank 1 notes when its receive has ended, and tells rank 0.
func (t *test) byArrival() (sim.Time, error) {
	c, o, me := t.c, t.Options, t.c.Rank()
	if err := t.prepare(1 - me); err != nil {
		return 0, err
	}
	note, err := t.r.Alloc(8) // its arrival time
	if err != nil {
		return 0, err
	}
	var total sim.Time
	for i := range o.Warmup + o.Iterations {
		if me == 1 {
			if err := t.receiveOne(note); err != nil {
				return 0, err
			}
			continue
		}
		if _, err := c.Recv(note.Slice(0, 0), 1, answerTag); err != nil { // the receive is posted
			return 0, err
		}
		begin := t.r.Now()
		if err := c.Send(t.send, 1, dataTag); err != nil {
			return 0, err
		}
		if _, err := c.Recv(note, 1, answerTag); err != nil {
			return 0, err
		}
		if i >= o.Warmup {
			total += sim.Time(binary.LittleEndian.Uint64(note.Read())) - begin
		}
	}
	return divided(total, o.Iterations), nil
}

// receiveOne is rank 1's part of an iteration of OneWay.
func (t *test) receiveOne(note runtime.View) error {
	q, err := t.c.Irecv(t.recv, 0, dataTag)
	if err != nil {
		return err
	}
	if err := t.c.Send(note.Slice(0, 0), 0, answerTag); err != nil {
		return err
	}
	if _, err := t.r.Wait(q); err != nil {
		return err
	}
	binary.LittleEndian.PutUint64(note.Write(), uint64(t.r.Now()))
	if err := t.check(t.recv, 0, 1); err != nil {
		return err
	}
	return t.c.Send(note, 0, answerTag)
}
