//go:build !tinygo

package txlog

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/spin"
)

// Server is the home of a region.
type Server struct {
	o       Options
	p       *runtime.Proc
	ni      *runtime.NI
	region  runtime.View
	log     runtime.View
	inbox   runtime.View // a slot for each node
	eq      portals.Handle
	out     portals.Handle // memory descriptors of the inbox and the region
	reply   portals.Handle
	landed  portals.Handle // counts writes of the host to itself
	written uint64
	self    portals.ID

	next     uint64 // records that have been read
	owed     int    // records of the host's own writes that have landed and were not read
	since    uint64 // overruns when owed was last 0
	running  map[uint32]*running
	clients  map[uint32]uint32 // the first process of each node that has asked
	writes   []span
	overruns uint64
	commits  uint64
	stats    ServerStats
	broken   error // a record that no handler of the library can have written
}

// ServerStats counts the work of a home's host.
type ServerStats struct {
	Commits, Aborts uint64
	Records         uint64 // read
	Overruns        uint64 // how often records were overwritten before it had read them
}

// leastLook is the shortest time between two looks at the log, ps.
const leastLook = 1000

// span is an access, and its place in the log.
type span struct{ number, offset, length uint64 }

func (a *span) overlaps(b *span) bool {
	return a.offset < b.offset+b.length && b.offset < a.offset+a.length
}

// running is the transaction of a client.
type running struct {
	tag      uint64
	reads    []span
	overruns uint64 // at its first record
}

// Open makes a process the home of a region that is all zeros. It takes no
// virtual time.
func (l *Loaded) Open(p *runtime.Proc, o Options) (*Server, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	u, nodes := handlers.NewSetup("txlog", p), p.Cluster().Nodes()
	s := &Server{
		o: o, p: p, ni: u.NI, self: u.Self, running: map[uint32]*running{}, clients: map[uint32]uint32{},
		region: p.Alloc(o.Region), inbox: p.Alloc(nodes * o.slot()), eq: u.Queue(4*nodes+16, ""), landed: u.Counter("writes of commits"),
	}
	s.out, s.reply = u.Bind(s.inbox, portals.MD{}), u.Bind(s.region, portals.MD{})
	u.Table(o.PT+requestEntry, s.eq, 0)
	u.Append(o.PT+requestEntry, portals.AnyID, s.inbox, portals.ME{MatchBits: Bits, Options: portals.OptMEOpPut | portals.OptMEEventLinkDisable})
	if !o.ByHost && u.Err == nil {
		s.install(u, l)
	}
	return s, u.Err
}

// install appends the entries of the region, with handlers.
func (s *Server) install(u *handlers.Setup, l *Loaded) {
	s.log = s.p.Alloc(s.o.Log * RecordSize)
	state := spin.EncodeState(&State{Last: uint64(s.o.Log - 1)})
	in, err := l.module.Install(s.p, handlers.Options{
		Header: Header, Completion: Completion, State: state, Shared: true,
		HostMemory: portals.Region{Start: s.log.Addr(), Length: uint64(s.log.Len())},
	})
	if err != nil {
		u.Err = fmt.Errorf("txlog: %w", err)
		return
	}
	writer := s.self
	if s.o.Open {
		writer = portals.AnyID
	}
	entry := func(pt uint32, from portals.ID, me portals.ME) {
		me.MatchBits, me.IgnoreBits = Bits, TagBits
		in.Attach(&me)
		u.Table(pt, portals.EQNone, in.PTOptions)
		u.Append(pt, from, s.region, me)
	}
	entry(s.o.PT+readEntry, portals.AnyID, portals.ME{Options: portals.OptMEOpGet})
	entry(s.o.PT+writeEntry, writer, portals.ME{Options: portals.OptMEOpPut | portals.OptMEEventCTComm, CT: s.landed})
}

// Memory returns the region, for setting its initial content.
func (s *Server) Memory() runtime.View { return s.region }

// Stats returns the host's counts.
func (s *Server) Stats() ServerStats { return s.stats }

// Serve handles requests of clients. It returns only with an error: run it as a
// service.
func (s *Server) Serve() error {
	for {
		ev, err := s.ni.EQWait(s.eq)
		if err != nil {
			return err
		}
		s.p.Compute(s.p.Reads(used.Match).Host.Match)
		if err := s.request(&ev); err != nil {
			return err
		}
	}
}

// request handles a request. The answer to an invalid request is that the
// transaction has failed.
func (s *Server) request(ev *portals.Event) error {
	at := int(ev.Start - s.inbox.Addr())
	end := at + int(ev.MLength)
	if ev.MLength < requestSize || at != int(ev.Initiator.NID)*s.o.slot() || ev.MLength > uint64(s.o.slot()) {
		return s.answer(ev.Initiator, aborted)
	}
	if client, ok := s.clients[ev.Initiator.NID]; !ok {
		s.clients[ev.Initiator.NID] = ev.Initiator.PID
	} else if client != ev.Initiator.PID {
		return s.answer(ev.Initiator, taken)
	}
	head := s.inbox.Slice(at, at+requestSize).Read()
	first, second := le.Uint64(head), le.Uint64(head[8:])
	tag, kind := first>>32, first&TagBits
	if kind == askRead {
		return s.read(ev.Initiator, tag, second, at, end)
	}
	places, legal := s.places(at+requestSize, end, kind)
	legal = legal && s.valid(ev.Initiator.NID, tag, second)
	if s.broken != nil {
		return s.broken
	}
	if !legal {
		delete(s.running, ev.Initiator.NID)
		s.stats.Aborts++
		return s.answer(ev.Initiator, aborted)
	}
	delete(s.running, ev.Initiator.NID)
	if err := s.apply(tag, places); err != nil {
		return err
	}
	s.commits++
	s.stats.Commits++
	return s.answer(ev.Initiator, s.commits)
}

// target is a write of a commit: bytes of the inbox that go to an offset of the
// region.
type target struct{ from, offset, length int }

// places parses the writes of a commit.
func (s *Server) places(at, end int, n uint64) (list []target, legal bool) {
	for range n {
		if end-at < placeSize {
			return nil, false
		}
		b := s.inbox.Slice(at, at+placeSize).Read()
		offset, length := le.Uint64(b), le.Uint64(b[8:])
		at += placeSize
		if length > uint64(end-at) || offset > uint64(s.o.Region) || length > uint64(s.o.Region)-offset {
			return nil, false
		}
		list = append(list, target{at, int(offset), int(length)})
		at += (int(length) + 7) &^ 7
	}
	return list, true
}

// valid reads the log up to the reads of a transaction, and reports whether
// nothing has been written since to the places that it has read.
func (s *Server) valid(client uint32, tag, reads uint64) bool {
	if reads == 0 {
		return true
	}
	before := s.overruns
	for s.advance(); ; s.advance() {
		if r := s.running[client]; r != nil && r.tag == tag && uint64(len(r.reads)) >= reads && s.caughtUp() {
			break
		}
		if s.overruns != before || s.o.ByHost || !s.ahead() {
			return false // its records were overwritten, or there are no such reads
		}
		s.p.Compute(max(s.p.Reads(used.Look).Host.Poll, leastLook)) // an earlier record is under way
	}
	r := s.running[client]
	if r.overruns != s.overruns || r.reads[0].number+uint64(s.o.Log) <= s.next {
		return false // writes after its reads may have been forgotten
	}
	for i := range r.reads {
		read := &r.reads[i]
		// they are in the order of the log: the later ones are at the end
		for j := len(s.writes) - 1; j >= 0 && s.writes[j].number > read.number; j-- {
			if s.writes[j].overlaps(read) {
				return false
			}
		}
	}
	return true
}

// apply writes the changes of a transaction by puts of the home to itself.
// Handlers log these when they have landed, so that earlier reads by others are
// found.
func (s *Server) apply(tag uint64, list []target) error {
	for _, w := range list {
		if s.o.ByHost {
			s.p.Copy(s.region.Slice(w.offset, w.offset+w.length), s.inbox.Slice(w.from, w.from+w.length))
			s.wrote(s.record(uint64(w.offset), uint64(w.length)))
			continue
		}
		if err := s.ni.Put(portals.Put{MD: s.out, Offset: uint64(w.from), Length: uint64(w.length), Target: s.self, PT: s.o.PT + writeEntry, MatchBits: Bits | tag, RemoteOffset: uint64(w.offset)}); err != nil {
			return err
		}
		s.written++
	}
	if s.o.ByHost || len(list) == 0 {
		return nil
	}
	if s.owed == 0 {
		s.since = s.overruns
	}
	s.owed += len(list)
	v, err := s.ni.CTWait(s.landed, s.written)
	if err == nil && v.Failure > 0 {
		err = fmt.Errorf("txlog: the writes of a commit failed")
	}
	return err
}

// read answers a read on the host.
func (s *Server) read(client portals.ID, tag, offset uint64, at, end int) error {
	if end-at < requestSize+8 || !s.o.ByHost {
		return s.answer(client, aborted)
	}
	length := le.Uint64(s.inbox.Slice(at+requestSize, at+requestSize+8).Read())
	if offset > uint64(s.o.Region) || length > uint64(s.o.Region)-offset {
		return s.answer(client, aborted)
	}
	s.readBy(client.NID, tag, s.record(offset, length))
	return s.ni.Put(portals.Put{MD: s.reply, Offset: offset, Length: length, Target: client, PT: s.o.PT + readEntry, MatchBits: Bits, RemoteOffset: offset, HdrData: served})
}

func (s *Server) answer(client portals.ID, what uint64) error {
	return s.ni.Put(portals.Put{MD: s.reply, Target: client, PT: s.o.PT + readEntry, MatchBits: Bits, HdrData: what})
}

// record makes the host's own record of an access.
func (s *Server) record(offset, length uint64) span {
	s.next++
	s.stats.Records++
	s.p.Stream(0, RecordSize)
	return span{s.next, offset, length}
}

// advance reads the present records.
func (s *Server) advance() {
	if s.o.ByHost {
		return
	}
	began := s.stats.Records
	for {
		at := int(s.next&uint64(s.o.Log-1)) * RecordSize
		var r Record
		if spin.DecodeState(s.log.Slice(at, at+RecordSize).Read(), &r) != nil || r.Number <= s.next {
			break
		}
		if r.Number != s.next+1 { // it was overwritten
			s.overruns++
			s.stats.Overruns++
			s.writes = s.writes[:0]
		}
		s.next = r.Number
		s.stats.Records++
		if size := uint64(s.o.Region); r.Kind != Read && r.Kind != Write || r.Spare != 0 || r.Length > 0 && (r.Offset > size || r.Length > size-r.Offset) {
			s.broken = fmt.Errorf("txlog: record %d of the log is %+v, expected an access to a region of %d bytes", r.Number, r, size)
			return
		}
		one := span{r.Number, r.Offset, r.Length}
		switch {
		case r.Kind == Write:
			s.wrote(one)
			if r.NID == s.self.NID && r.PID == s.self.PID && s.owed > 0 {
				s.owed--
			}
		case r.Tag>>32 == Bits>>32:
			s.readBy(r.NID, r.Tag&TagBits, one)
		}
	}
	s.p.Stream(int64(s.stats.Records-began+1)*RecordSize, 0)
}

// Records returns what the log has at the end of a run, in the order of numbers:
// of many records the last ones. It is an error if one is in another's place, or
// missing between others.
func (s *Server) Records() (list []Record, err error) {
	log := s.log.Snapshot()
	for at := 0; at < len(log); at += RecordSize {
		var r Record
		if err := spin.DecodeState(log[at:at+RecordSize], &r); err != nil {
			return nil, err
		}
		if r.Number == 0 {
			continue
		}
		if int((r.Number-1)&uint64(s.o.Log-1))*RecordSize != at {
			return nil, fmt.Errorf("txlog: record %d is in place %d of %d", r.Number, at/RecordSize, s.o.Log)
		}
		list = append(list, r)
	}
	slices.SortFunc(list, func(a, b Record) int { return cmp.Compare(a.Number, b.Number) })
	if n := len(list); n > 0 && list[n-1].Number-list[0].Number != uint64(n-1) {
		return nil, fmt.Errorf("txlog: %d records, from %d to %d", n, list[0].Number, list[n-1].Number)
	}
	return list, nil
}

// caughtUp reports whether the host has read the records of all its own writes.
// They have landed, but an earlier record may still be under way. Without this
// check, writes after the reads of a transaction could be missed.
func (s *Server) caughtUp() bool {
	if s.owed > 0 && s.overruns != s.since && !s.ahead() {
		s.owed = 0 // some of its records were overwritten
	}
	return s.owed == 0
}

// ahead reports whether there are records behind one that is under way. It
// touches a page once, not for each record: a home that waits asks all the time.
func (s *Server) ahead() bool {
	const page = 4096 // the least that a touch can miss; a number lies in one
	log := uint64(s.o.Log)
	for i := uint64(0); i < log; {
		at := int((s.next+i)&(log-1)) * RecordSize
		records := s.log.Slice(at, min(s.log.Len(), at-at%page+page)).Read()
		for off := 0; off < len(records) && i < log; off += RecordSize {
			if le.Uint64(records[off:]) > s.next {
				return true
			}
			i++
		}
	}
	return false
}

// wrote keeps a write for as long as the log does.
func (s *Server) wrote(one span) {
	s.writes = append(s.writes, one)
	if old := len(s.writes) - 2*s.o.Log; old > 0 {
		s.writes = append(s.writes[:0], s.writes[old+s.o.Log:]...)
	}
}

// readBy keeps a read of a client's transaction. If the client has begun
// another transaction it has given up the old one.
func (s *Server) readBy(client uint32, tag uint64, one span) {
	r := s.running[client]
	if r == nil || r.tag != tag {
		r = &running{tag: tag, overruns: s.overruns}
		s.running[client] = r
	}
	r.reads = append(r.reads, one)
}
