//go:build !tinygo

package rnr

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/handlers/internal/service"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/spin"
)

// Conn is one end of a connection.
type Conn struct {
	library *Loaded
	name    string
	proc    *runtime.Proc
	ni      *runtime.NI
	self    portals.ID
	pt      uint32
	in      *handlers.Installed
	host    runtime.View // handler host memory: report, lengths, faults
	work    runtime.View // work requests: first sends, writes and reads, then receives
	md      portals.Handle
	done    portals.Handle
	faults  portals.Handle
	peer    *Conn
	posted  [2]uint64 // work requests, receives
	sends   [MaxWork]WorkRequest
	recvs   [MaxWork]WorkRequest
	kernel  *kernel
	fault   faulting
}

// Errors of work requests. An error of Wait wraps one of them, with details.
var (
	ErrFull     = fmt.Errorf("rnr: a queue has no more than %d work requests", MaxWork)
	ErrLocal    = errors.New("memory of this process that it does not have, or not for this")
	ErrRemote   = errors.New("memory of the other process that it does not have, or not for this")
	ErrTooLong  = errors.New("a message is longer than its receive")
	ErrTimedOut = errors.New("nobody has answered")
	ErrInvalid  = errors.New("an end has got what no end of a connection sends")
	ErrNoSpace  = errors.New("nic.handler_commands of a node are used up")
)

var reasons = map[uint64]error{LocalAccess: ErrLocal, RemoteAccess: ErrRemote, TooLong: ErrTooLong, TimedOut: ErrTimedOut, Invalid: ErrInvalid, NoSpace: ErrNoSpace}

// PostSend sends the bytes of views, one behind the other, as a message. It
// takes nic.overhead. More than rnr.MaxRanges views, or a view of another
// process, is an error. The views belong to the connection until the work
// request has ended.
func (c *Conn) PostSend(from ...runtime.View) (*Work, error) { return c.post(KindSend, 0, from) }

// PostWrite writes to an address of the other process. That process's program
// is not told.
func (c *Conn) PostWrite(to uint64, from ...runtime.View) (*Work, error) {
	return c.post(KindWrite, to, from)
}

// PostRead reads from an address of the other process.
func (c *Conn) PostRead(from uint64, to ...runtime.View) (*Work, error) {
	return c.post(KindRead, from, to)
}

// PostReceive receives the next message without a receive into views.
func (c *Conn) PostReceive(to ...runtime.View) (*Work, error) { return c.post(0, 0, to) }

func (c *Conn) post(kind uint32, remote uint64, views []runtime.View) (*Work, error) {
	w := WorkRequest{Kind: kind, Remote: remote, Ranges: uint32(len(views))}
	if len(views) > MaxRanges {
		return nil, fmt.Errorf("rnr: %d ranges of a work request, expected at most %d", len(views), MaxRanges)
	}
	for i, v := range views {
		if v.Len() > 0 && v.Proc() != c.proc {
			return nil, fmt.Errorf("rnr: range %d of a work request is not of process %s", i, c.proc.Name())
		}
		w.List[i] = Range{Address: v.Addr(), Length: uint64(v.Len())}
		w.Length += uint64(v.Len())
	}
	if remote+w.Length > Addresses || remote+w.Length < remote {
		return nil, fmt.Errorf("rnr: %d bytes at %#x of the other process, expected addresses below 2^%d", w.Length, remote, bits.Len64(Addresses)-1)
	}
	for c.peer == nil {
		c.proc.Thread().Wait("the other end of connection " + c.name)
	}
	queue, told, list := 0, KindPostSend, &c.sends
	if kind == 0 {
		queue, told, list = 1, KindPostReceive, &c.recvs
	}
	number := c.posted[queue]
	if number-c.ended(queue) == MaxWork {
		return nil, ErrFull
	}
	place := int(number % MaxWork)
	list[place] = w
	at := (queue*MaxWork + place) * WorkSize
	c.work.Slice(at, at+WorkSize).CopyFrom(spin.EncodeState(&w))
	if err := c.ni.Put(portals.Put{MD: c.md, Offset: uint64(at), Length: WorkSize, Target: c.self, PT: c.pt, MatchBits: uint64(told)}); err != nil {
		return nil, err
	}
	c.posted[queue]++
	return &Work{conn: c, queue: queue, number: number, bytes: int(w.Length)}, nil
}

// word returns a word of the report.
func (c *Conn) word(i int) uint64 { return binary.LittleEndian.Uint64(c.host.Slice(8*i, 8*i+8).Read()) }

// ended returns how many work requests of a queue have ended.
func (c *Conn) ended(queue int) uint64 { return c.word(queue) }

// Err returns why the connection is broken, or nil.
func (c *Conn) Err() error {
	code := c.word(2)
	if code == 0 {
		return nil
	}
	return fmt.Errorf("rnr: connection %q of process %s: %w", c.name, c.proc.Name(), reasons[code])
}

// Signal returns a counter of NI that changes when work requests end, for
// programs that wait for several things.
func (c *Conn) Signal() portals.Handle { return c.done }

// NI returns the interface of Signal.
func (c *Conn) NI() *runtime.NI { return c.ni }

// Work is a work request.
type Work struct {
	conn   *Conn
	queue  int
	number uint64
	bytes  int
	ended  bool
	err    error
}

// Done reports whether the work request has ended. It takes no time. Call it,
// or Wait, before rnr.MaxWork more requests of its kind have ended.
func (w *Work) Done() bool {
	if w.ended {
		return true
	}
	switch c := w.conn; {
	case c.ended(w.queue) > w.number:
		if w.queue == 1 {
			at := LengthsAt + 8*int(w.number%MaxWork)
			w.bytes = int(binary.LittleEndian.Uint64(c.host.Slice(at, at+8).Read()))
		}
	default:
		if w.err = c.Err(); w.err == nil {
			return false
		}
		w.bytes = 0
	}
	w.ended = true
	return true
}

// Wait waits until the work request has ended, and returns how many bytes it
// has moved. When the connection breaks, all outstanding requests end with an
// error.
func (w *Work) Wait() (int, error) {
	if err := service.Await(w.conn.ni, w.conn.done, w.Done); err != nil {
		return 0, err
	}
	return w.bytes, w.err
}
