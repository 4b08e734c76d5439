package osu

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// Tags of OSU's messages.
const (
	pingTag   = 1
	backTag   = 10 // bibw, from rank 1
	dataTag   = 100
	answerTag = 101
)

const answerBytes = 4

// test is a benchmark under way at a rank.
type test struct {
	Options
	c    *mpi.Comm
	r    *mpi.Rank
	send runtime.View
	recv runtime.View
}

// buffers allocates the send and receive buffers, and writes to all of them
// once, as OSU does.
func (t *test) buffers(send, recv int) (err error) {
	if t.send, err = t.r.Alloc(send); err == nil {
		t.recv, err = t.r.Alloc(recv)
	}
	if err == nil {
		t.send.Write()
		t.recv.Write()
	}
	return err
}

// rounds calls f for every iteration and returns the time from the first timed
// iteration to the end of the last.
func (t *test) rounds(begin, f func() error) (sim.Time, error) {
	var start sim.Time
	for i := range t.Warmup + t.Iterations {
		if i == t.Warmup {
			if begin != nil {
				if err := begin(); err != nil {
					return 0, err
				}
			}
			start = t.r.Now()
		}
		from := t.r.Now()
		if err := f(); err != nil {
			return 0, err
		}
		if i >= t.Warmup {
			t.timed(from)
		}
	}
	return t.r.Now() - start, nil
}

// timed reports the end of an iteration.
func (t *test) timed(from sim.Time) {
	if t.Timed != nil {
		t.Timed(t.r, from)
	}
}

// fill writes the message of a rank to another.
func (t *test) fill(v runtime.View, from, to int) {
	b := v.Write()
	for at := 0; at < len(b); at += lineBytes {
		copy(b[at:], line(t.value(from, to, at), lineBytes))
	}
}

// A message consists of lines of 256 bytes, each of which counts up, modulo
// 256. rising has all of them.
const lineBytes = 256

var rising = func() (b [2 * lineBytes]byte) {
	for i := range b {
		b[i] = byte(i)
	}
	return b
}()

// line returns n bytes of a message, at most a line, that begin with first.
func line(first byte, n int) []byte { return rising[first:][:n] }

// value returns byte i of a message.
func (t *test) value(from, to, i int) byte {
	return byte(i + 3*(i>>8) + 7*(i>>16) + 31*from + 17*to + int(t.Seed))
}

// check compares received data with the data that was sent.
func (t *test) check(v runtime.View, from, to int) error {
	for got, at := v.Read(), 0; at < len(got); at += lineBytes {
		part := got[at:min(at+lineBytes, len(got))]
		want := line(t.value(from, to, at), len(part))
		if bytes.Equal(part, want) {
			continue
		}
		for i := range part {
			if part[i] != want[i] {
				return fmt.Errorf("osu: rank %d: byte %d of %d from rank %d is %#02x, %#02x was sent", t.c.Rank(), at+i, v.Len(), from, part[i], want[i])
			}
		}
	}
	return nil
}

// prepare allocates the buffers of one side and waits for the other ranks.
func (t *test) prepare(peer int) error {
	if err := t.buffers(t.Bytes, t.Bytes); err != nil {
		return err
	}
	t.fill(t.send, t.c.Rank(), peer)
	return t.c.Barrier()
}

// pingPong returns one iteration of latency and multi_lat.
func (t *test) pingPong(peer int, first bool) func() error {
	send := func() error { return t.c.Send(t.send, peer, pingTag) }
	receive := func() error {
		_, err := t.c.Recv(t.recv, peer, pingTag)
		return err
	}
	if !first {
		send, receive = receive, send
	}
	return func() error {
		if err := send(); err != nil {
			return err
		}
		return receive()
	}
}

// latency: rank 0 sends and receives, rank 1 receives and sends. The result is
// half of the mean round trip.
func (t *test) latency() (Row, error) {
	peer := 1 - t.c.Rank()
	if err := t.prepare(peer); err != nil {
		return Row{}, err
	}
	took, err := t.rounds(nil, t.pingPong(peer, t.c.Rank() == 0))
	if err != nil {
		return Row{}, err
	}
	return Row{Latency: divided(took, 2*t.Iterations)}, t.check(t.recv, peer, t.c.Rank())
}

// multiLatency is latency for several pairs at the same time. The result is the
// mean over all ranks.
func (t *test) multiLatency() (Row, error) {
	peer, first := t.partner()
	if err := t.prepare(peer); err != nil {
		return Row{}, err
	}
	took, err := t.rounds(t.c.Barrier, t.pingPong(peer, first))
	if err != nil {
		return Row{}, err
	}
	if err := t.check(t.recv, peer, t.c.Rank()); err != nil {
		return Row{}, err
	}
	mean, err := t.reduced(divided(took, 2*t.Iterations), mpi.Sum)
	return Row{Latency: divided(mean, t.c.Size())}, err
}

// partner returns the other rank of a pair, and whether this rank is in the
// first half.
func (t *test) partner() (peer int, first bool) {
	pairs := t.c.Size() / 2
	if t.c.Rank() < pairs {
		return t.c.Rank() + pairs, true
	}
	return t.c.Rank() - pairs, false
}

// window returns one iteration of bw and mbw_mr: several messages at the same
// time, all from one buffer into one, and an answer after them.
func (t *test) window(peer int, sends bool, answer runtime.View) func() error {
	requests := make([]*mpi.Request, t.Window)
	return func() (err error) {
		for i := range requests {
			if sends {
				requests[i], err = t.c.Isend(t.send, peer, dataTag)
			} else {
				requests[i], err = t.c.Irecv(t.recv, peer, dataTag)
			}
			if err != nil {
				return err
			}
		}
		if err := t.r.WaitAll(requests, nil); err != nil {
			return err
		}
		if sends {
			_, err = t.c.Recv(answer, peer, answerTag)
			return err
		}
		return t.c.Send(answer, peer, answerTag)
	}
}

// stream runs windows between a pair.
func (t *test) stream(peer int, sends bool, begin func() error) (sim.Time, error) {
	if err := t.prepare(peer); err != nil {
		return 0, err
	}
	answer, err := t.r.Alloc(answerBytes)
	if err != nil {
		return 0, err
	}
	took, err := t.rounds(begin, t.window(peer, sends, answer))
	if err == nil && !sends {
		err = t.check(t.recv, peer, t.c.Rank())
	}
	return took, err
}

// bw: rank 0 sends windows to rank 1.
func (t *test) bw() (Row, error) {
	took, err := t.stream(1-t.c.Rank(), t.c.Rank() == 0, nil)
	return Row{Bandwidth: t.megabytes(1, took)}, err
}

// rate is bw for several pairs at the same time. The result uses the mean of
// their times.
func (t *test) rate() (Row, error) {
	peer, first := t.partner()
	took, err := t.stream(peer, first, t.c.Barrier)
	if err != nil {
		return Row{}, err
	}
	if !first {
		took = 0
	}
	sum, err := t.reduced(took, mpi.Sum)
	pairs := t.c.Size() / 2
	row := Row{Bandwidth: t.megabytes(pairs, divided(sum, pairs))}
	if t.Bytes > 0 {
		row.MessageRate = row.Bandwidth / float64(t.Bytes) * 1e6
	}
	return row, err
}

// bibw: both ranks post a window of receives, then send one, then wait for the
// sends and for the receives.
func (t *test) bibw() (Row, error) {
	me := t.c.Rank()
	if err := t.prepare(1 - me); err != nil {
		return Row{}, err
	}
	tags := [2]uint32{dataTag, backTag} // of the messages of ranks 0 and 1
	receives, sends := make([]*mpi.Request, t.Window), make([]*mpi.Request, t.Window)
	took, err := t.rounds(nil, func() (err error) {
		for i := range receives {
			if receives[i], err = t.c.Irecv(t.recv, 1-me, tags[1-me]); err != nil {
				return err
			}
		}
		for i := range sends {
			if sends[i], err = t.c.Isend(t.send, 1-me, tags[me]); err != nil {
				return err
			}
		}
		if err := t.r.WaitAll(sends, nil); err != nil {
			return err
		}
		return t.r.WaitAll(receives, nil)
	})
	if err != nil {
		return Row{}, err
	}
	return Row{Bandwidth: t.megabytes(2, took)}, t.check(t.recv, 1-me, me)
}

// megabytes returns the bandwidth of this many ranks that have sent windows in
// a time, 10^6 B/s.
func (t *test) megabytes(senders int, took sim.Time) float64 {
	if took <= 0 {
		return 0
	}
	return float64(t.Bytes) * float64(senders*t.Iterations*t.Window) / took.Seconds() / 1e6
}

// divided returns a mean, rounded to the nearest picosecond.
func divided(total sim.Time, n int) sim.Time { return (total + sim.Time(n)/2) / sim.Time(n) }

// reduced reduces a number of all ranks to rank 0.
func (t *test) reduced(own sim.Time, op *mpi.Op) (sim.Time, error) {
	in, err := t.r.Alloc(8)
	if err != nil {
		return 0, err
	}
	out, err := t.r.Alloc(8)
	if err != nil {
		return 0, err
	}
	binary.LittleEndian.PutUint64(in.Write(), uint64(own))
	if err := t.c.Reduce(in, out, mpi.Int64, op, 0); err != nil {
		return 0, err
	}
	return sim.Time(binary.LittleEndian.Uint64(out.Read())), nil
}
