package target

import (
	"encoding/binary"
	"fmt"

	"github.com/spinsim/spinsim/handlers/rnr"
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/internal/pinning"
	"github.com/spinsim/spinsim/runtime"
)

// A request is 32 bytes: place, length, address of the initiator's memory,
// number. An answer is 16 bytes: number, status.
const (
	requestBytes = 32
	answerBytes  = 16

	statusGood    = 0
	statusRefused = 1
)

// request is a request of an initiator, with its buffer.
type request struct {
	at, length   int
	to           uint64
	number       uint64
	buffer       int
	lease        *pinning.Lease
	write, reply *rnr.Work
}

// session is a process of the target that serves an initiator. It serves
// requests in the order of arrival. Waiting requests already have their
// buffers.
type session struct {
	target   *Target
	p        *runtime.Proc
	conn     *rnr.Conn
	strategy pinning.Strategy
	pool     runtime.View
	free     []int    // free buffers, the most recently used last: it is the next
	dirty    [][]bool // by buffer and page: it contains bytes other than zeros
	incoming runtime.View
	outgoing runtime.View
	receives []*rnr.Work
	arrived  int
	queue    []request
	ending   []request // their bytes and answers are under way
	scratch  []byte
	whole    *pinning.Lease

	requests, bytes, refused int64
	broken                   bool
}

func (s *session) main(p *runtime.Proc, name string) (err error) {
	o := &s.target.o
	if s.conn, err = s.target.lib.Connect(p, name); err != nil {
		return err
	}
	if err := s.memory(p); err != nil {
		return err
	}
	for i := range o.Depth {
		if err := s.receive(i); err != nil {
			return err
		}
	}
	for s.target.held {
		p.Thread().Wait("the target to begin")
	}
	err = s.loop()
	if s.conn.Err() == nil {
		return err
	}
	// for example, an initiator gave an invalid address: only its session ends
	s.broken = true
	return s.close()
}

// close unpins the buffers of the session, whose connection is broken.
func (s *session) close() error {
	for _, r := range s.ending {
		if r.lease != nil {
			if err := s.strategy.Release(s.p.Thread(), r.lease); err != nil {
				return err
			}
		}
	}
	if s.whole != nil {
		if err := s.strategy.Release(s.p.Thread(), s.whole); err != nil {
			return err
		}
	}
	s.ending, s.whole = nil, nil
	return s.strategy.Close(s.p.Thread())
}

// loop serves requests until the connection is broken.
func (s *session) loop() (err error) {
	o := &s.target.o
	for {
		if err := s.reap(false); err != nil {
			return err
		}
		if err := s.take(); err != nil {
			return err
		}
		switch {
		case len(s.queue) > 0:
			r := s.queue[0]
			s.queue = append(s.queue[:0], s.queue[1:]...)
			err = s.serve(r)
		case len(s.ending) > 0:
			err = s.reap(true)
		default:
			_, err = s.receives[s.arrived%o.Depth].Wait()
		}
		if err != nil {
			return err
		}
	}
}

// memory allocates the memory of the session, before anything takes time.
func (s *session) memory(p *runtime.Proc) (err error) {
	o := &s.target.o
	n := o.Pool / o.Sessions / o.Buffer
	s.p = p
	s.pool = p.Alloc(n * o.Buffer)
	s.incoming, s.outgoing = p.Alloc(o.Depth*requestBytes), p.Alloc(2*MaxDepth*answerBytes)
	s.incoming.Lock()
	s.outgoing.Lock()
	s.receives = make([]*rnr.Work, o.Depth)
	s.scratch = make([]byte, o.Buffer)
	for i := range n {
		s.free = append(s.free, n-1-i)
		s.dirty = append(s.dirty, make([]bool, o.Buffer/host.PageBytes))
	}
	pin := o.Pinning
	pin.Copy = s.copy
	if s.strategy, err = pinning.New(nil, p.OS(), pin); err != nil {
		return err
	}
	if pin.Kind == pinning.StaticKind {
		s.whole, err = s.strategy.Acquire(nil, pinning.Region{Addr: s.pool.Addr(), Length: uint64(s.pool.Len())}, pinning.Both)
	}
	if err != nil {
		return fmt.Errorf("target: communication buffers cannot be pinned: %w", err)
	}
	return nil
}

// copy copies in the session's own process, for bounce buffers.
func (s *session) copy(_ *host.Thread, to, from, n uint64) error {
	return s.p.CopyAt(to, from, n)
}

// receive posts the receive buffer of place i for a request.
func (s *session) receive(i int) (err error) {
	s.receives[i], err = s.conn.PostReceive(s.incoming.Slice(i*requestBytes, (i+1)*requestBytes))
	return err
}

// take gives a buffer to every request that has arrived, as long as there are
// any.
func (s *session) take() error {
	for len(s.free) > 0 {
		i := s.arrived % s.target.o.Depth
		if !s.receives[i].Done() {
			return s.conn.Err()
		}
		n, err := s.receives[i].Wait()
		if err != nil {
			return err
		}
		b := s.incoming.Slice(i*requestBytes, (i+1)*requestBytes).Read()
		u := binary.LittleEndian.Uint64
		r := request{at: int(u(b)), length: int(u(b[8:])), to: u(b[16:]), number: u(b[24:])}
		if n != requestBytes {
			r.length = 0 // not a valid length
		}
		s.arrived++
		r.buffer = s.free[len(s.free)-1]
		s.free = s.free[:len(s.free)-1]
		s.queue = append(s.queue, r)
		if err := s.receive(i); err != nil {
			return err
		}
	}
	return nil
}

// valid reports whether the disk has the requested bytes.
func (s *session) valid(r *request) bool {
	o := &s.target.o
	if r.length <= 0 || r.to > rnr.Addresses-uint64(r.length) {
		return false
	}
	return r.at >= 0 && r.at%host.PageBytes == 0 && r.length%host.PageBytes == 0 && r.length <= o.Buffer && r.at <= o.Disk-r.length
}

// serve reads the bytes of a request, sends them, and answers.
func (s *session) serve(r request) (err error) {
	status := uint64(statusGood)
	if s.valid(&r) {
		s.requests++
		s.bytes += int64(r.length)
		if err := s.data(&r); err != nil {
			s.ending = append(s.ending, r)
			return err
		}
	} else {
		s.refused++
		status = statusRefused
	}
	at := int(r.number%(2*MaxDepth)) * answerBytes
	answer := s.outgoing.Slice(at, at+answerBytes)
	b := answer.Write()
	binary.LittleEndian.PutUint64(b, r.number)
	binary.LittleEndian.PutUint64(b[8:], status)
	r.reply, err = s.conn.PostSend(answer)
	s.ending = append(s.ending, r)
	return err
}

// data sends the bytes of a request.
func (s *session) data(r *request) error {
	o := &s.target.o
	filled := make([]bool, r.length/host.PageBytes)
	err := s.target.disk.Read(s.p.Thread(), s.p.OS(), r.at, r.length, func(at int, page []byte) error {
		if page != nil {
			copy(s.scratch[at-r.at:], page)
			filled[(at-r.at)/host.PageBytes] = true
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.p.Compute(o.Work)
	buffer := s.pool.Slice(r.buffer*o.Buffer, r.buffer*o.Buffer+r.length)
	s.p.Stream(int64(r.length), int64(r.length))
	b := buffer.Write()
	// copy zeros only over other bytes: pages that are only touched take no
	// memory of the simulating computer
	for i, is := range filled {
		page := b[i*host.PageBytes : (i+1)*host.PageBytes]
		if is {
			copy(page, s.scratch[i*host.PageBytes:])
		} else if s.dirty[r.buffer][i] {
			clear(page)
		}
		s.dirty[r.buffer][i] = is
	}
	if r.lease, err = s.strategy.Acquire(s.p.Thread(), pinning.Region{Addr: buffer.Addr(), Length: uint64(buffer.Len())}, pinning.ToDevice); err != nil {
		return err
	}
	from, err := s.p.View(r.lease.Addr, r.length)
	if err != nil {
		return err
	}
	r.write, err = s.conn.PostWrite(r.to, from)
	return err
}

// reap frees the buffers of finished requests. It waits for one if must is set,
// or if the connection has the most allowed work requests.
func (s *session) reap(must bool) error {
	for len(s.ending) > 0 && (must || len(s.ending) == MaxDepth || s.ending[0].reply.Done()) {
		r := s.ending[0]
		if _, err := r.reply.Wait(); err != nil {
			return err
		}
		if r.write != nil {
			if _, err := r.write.Wait(); err != nil {
				return err
			}
			s.ending[0].lease = nil
			if err := s.strategy.Release(s.p.Thread(), r.lease); err != nil {
				return err
			}
		}
		s.ending = append(s.ending[:0], s.ending[1:]...)
		s.free = append(s.free, r.buffer)
		must = false
	}
	return nil
}
