package mpi

import (
	"fmt"

	"github.com/spinsim/spinsim/handlers/rnr"
	"github.com/spinsim/spinsim/internal/pinning"
	"github.com/spinsim/spinsim/runtime"
)

type ibPeer struct {
	t        *overInfiniBand
	rank     int
	conn     *rnr.Conn
	seen     uint64 // value of the connection's counter at the last look
	in, out  runtime.View
	receives []*rnr.Work // one for each buffer
	first    int         // index of the receive that completes next
	slots    uint64      // buffers of out used so far
	freed    uint64      // how many of them are free again
	sending  []ibSending // work requests that are not complete, in order
	queue    []ibOutgoing
	bye      bool // the other program has ended
}

// ibOutgoing is a frame that waits for room in a connection's queue.
type ibOutgoing struct {
	frame frame
	// RTS, eager: the send; an eager send that is not synchronous is complete
	// when its bytes are in a buffer
	q     *Request
	piece *ibSent // FIN: the piece to write before it
}

// ibSending is a work request: a frame, or the write of a piece.
type ibSending struct {
	work  *rnr.Work
	piece *ibSent // nil: a frame
}

func (t *overInfiniBand) connect(lib *rnr.Loaded, rank int) (*ibPeer, error) {
	p := &ibPeer{t: t, rank: rank, receives: make([]*rnr.Work, t.o.Buffers)}
	var err error
	if p.conn, err = lib.Connect(t.r.p, fmt.Sprintf("MPI ranks %d and %d", min(rank, t.r.rank), max(rank, t.r.rank))); err != nil {
		return nil, err
	}
	p.in, p.out = t.r.p.Alloc(len(p.receives)*t.slot()), t.r.p.Alloc(len(p.receives)*t.slot())
	p.in.Lock()
	p.out.Lock()
	return p, nil
}

func (t *overInfiniBand) slot() int { return frameBytes + t.o.Eager }

func (p *ibPeer) post(i int) (err error) {
	n := p.t.slot()
	p.receives[i], err = p.conn.PostReceive(p.in.Slice(i*n, (i+1)*n))
	return err
}

func (p *ibPeer) count() uint64 {
	v, err := p.conn.NI().Objects().CTGet(p.conn.Signal())
	if err != nil {
		panic(err) //lint:panic the connection has allocated it
	}
	return v.Success
}

// say sends a frame, behind the frames that wait.
func (p *ibPeer) say(o ibOutgoing) error {
	p.queue = append(p.queue, o)
	return p.launch()
}

// launch sends waiting frames while there is room.
func (p *ibPeer) launch() error {
	for len(p.queue) > 0 && len(p.sending)+2 <= rnr.MaxWork && p.slots-p.freed < uint64(len(p.receives)) {
		o := p.queue[0]
		p.queue = p.queue[:copy(p.queue, p.queue[1:])]
		if err := p.send(&o); err != nil {
			return err
		}
	}
	return nil
}

func (p *ibPeer) send(o *ibOutgoing) error {
	t := p.t
	if s := o.piece; s != nil {
		from, err := t.r.p.View(s.lease.Addr, int(s.lease.Length))
		if err != nil {
			return err
		}
		work, err := p.conn.PostWrite(s.to, from)
		if err != nil {
			return err
		}
		p.sending = append(p.sending, ibSending{work, s})
	}
	n := t.slot()
	slot := p.out.Slice(int(p.slots%uint64(len(p.receives)))*n, int(p.slots%uint64(len(p.receives))+1)*n)
	p.slots++
	used := frameBytes
	o.frame.encode(slot.Write())
	if eager := o.frame.kind == frameEager; eager && o.q.length > 0 {
		from, err := t.r.p.View(o.q.addr, o.q.length)
		if err != nil {
			return err
		}
		used += o.q.length
		t.r.p.Copy(slot.Slice(frameBytes, used), from)
	}
	work, err := p.conn.PostSend(slot.Slice(0, used))
	if err != nil {
		return err
	}
	p.sending = append(p.sending, ibSending{work, nil})
	if o.frame.kind == frameEager && !o.frame.wanted {
		t.r.complete(o.q)
	}
	return nil
}

// sent handles completed work requests: buffers become free, and the memory of
// messages belongs to the program again.
func (p *ibPeer) sent() error {
	for len(p.sending) > 0 && p.sending[0].work.Done() {
		s := p.sending[0]
		p.sending = p.sending[:copy(p.sending, p.sending[1:])]
		if _, err := s.work.Wait(); err != nil {
			return err
		}
		if s.piece == nil {
			p.freed++
		} else if err := p.t.written(s.piece); err != nil {
			return err
		}
	}
	return p.launch()
}

// arrived handles frames that have arrived, and posts their buffers again.
func (p *ibPeer) arrived() error {
	for p.receives[p.first].Done() {
		if _, err := p.receives[p.first].Wait(); err != nil {
			return err
		}
		n := p.t.slot()
		slot := p.in.Slice(p.first*n, (p.first+1)*n)
		var f frame
		f.decode(slot.Read())
		payload := slot.Slice(frameBytes, frameBytes)
		if f.kind == frameEager {
			payload = slot.Slice(frameBytes, frameBytes+f.length)
		}
		if err := p.take(f, payload); err != nil {
			return err
		}
		if err := p.post(p.first); err != nil {
			return err
		}
		p.first = (p.first + 1) % len(p.receives)
	}
	return nil
}

func (p *ibPeer) take(f frame, payload runtime.View) error {
	t := p.t
	switch f.kind {
	case frameCTS:
		t.clear = append(t.clear, f)
	case frameFIN:
		return t.landed(f.ticket)
	case frameDone:
		q := t.sends[f.id].q
		delete(t.sends, f.id)
		t.r.complete(q)
	case frameBye:
		p.bye = true
	default:
		return t.arrives(f, payload)
	}
	return nil
}

// lease makes memory of the rank ready for the interface.
func (t *overInfiniBand) lease(addr uint64, n int, d pinning.Direction) (*pinning.Lease, error) {
	l, err := t.strategy.Acquire(t.r.p.Thread(), pinning.Region{Addr: addr, Length: uint64(n)}, d)
	if err != nil {
		return nil, fmt.Errorf("mpi: rank %d: %w", t.r.rank, err)
	}
	return l, nil
}
