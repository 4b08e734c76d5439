//go:build !tinygo

package kv

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/spin"
)

// job is a request for the host.
type job struct {
	Handoff
	Request
	key  []byte
	data int // bytes of key and value behind the request, if they came with it
	at   uint64
}

func encode[T any](v *T) []byte { return spin.EncodeState(v) }

func decode[T any](b []byte, v *T) error { return spin.DecodeState(b, v) }

// arrived handles a message.
func (s *Server) arrived(ev *portals.Event) error {
	v, err := s.p.View(ev.Start, int(ev.MLength))
	if err != nil {
		return err
	}
	b := v.Read()
	var j job
	if s.o.Mode == Handlers {
		if err := decode(b, &j.Handoff); err != nil {
			return err
		}
		switch b = b[HandoffSize:]; j.Kind {
		case Asking:
			return s.refill(uint32(j.Block))
		case Returning:
			return s.returned(b, int(j.Count))
		case Growing:
			return s.own(&j)
		}
	} else {
		j.Kind, j.NID, j.PID, j.at = Serve, ev.Initiator.NID, ev.Initiator.PID, ev.Start
	}
	if !s.request(b, &j) {
		return s.answer(&j, Illegal, 0, nil)
	}
	if s.o.Mode == Handlers {
		return s.own(&j)
	}
	j.Stripe = uint32(Hash(j.key)) & uint32(s.o.Stripes-1)
	return s.serve(&j)
}

// request parses a request. It returns false if the bytes are not one.
func (s *Server) request(b []byte, j *job) bool {
	if decode(b, &j.Request) != nil {
		return false
	}
	n := uint64(RequestSize) + uint64(j.Key) + uint64(j.Value)
	writes := j.Op == Put || j.Op == Swap
	if s.o.Mode != Handlers && (n != uint64(len(b)) || j.Op == 0 || j.Op > Swap || int(j.Key) > MaxKey || n > MaxItem || j.Value != 0 && !writes) {
		return false
	}
	if at := RequestSize; j.Block == 0 || at+int(j.Key) <= len(b) {
		j.key = bytes.Clone(b[at : at+int(j.Key)])
	} else {
		j.key = bytes.Clone(s.t.bytes(Place(j.Block)+RequestSize, uint64(j.Key)))
	}
	j.data = int(j.Key) + int(j.Value)
	return true
}

// own handles a handoff about a stripe, or keeps it until the stripe has come.
func (s *Server) own(j *job) error {
	p := &s.t.parts[j.Stripe]
	if j.Fresh == 0 && j.Era != p.era {
		p.waiting = append(p.waiting, *j)
		return nil
	}
	list := []job{*j}
	if j.Fresh != 0 {
		p.table, p.items, p.version, p.era = j.Table, j.Items, j.Update, j.Era
		list = append(list, p.waiting...)
		p.waiting = nil
	}
	for i := range list {
		if err := s.serve(&list[i]); err != nil {
			return err
		}
		if err := s.word(Word{
			Op: Done, Number: j.Stripe, Count: 1, Table: p.table, Items: p.items, Update: p.version, GrowAt: p.growAt,
		}, nil); err != nil {
			return err
		}
	}
	return nil
}

// serve carries out a request, and makes its stripe larger if it is too full.
func (s *Server) serve(j *job) error {
	p := &s.t.parts[j.Stripe]
	if j.Kind == Serve {
		s.stats.Requests++
		if err := s.carryOut(p, j); err != nil {
			return err
		}
	}
	if p.items > p.growAt {
		s.stats.Grown++
		s.t.grow(p)
	}
	return nil
}

func (s *Server) carryOut(p *part, j *job) error {
	hash := Hash(j.key)
	i := s.t.find(p, j.key, hash)
	s.t.charge(i.places, i.read, 0)
	status, version := uint32(OK), i.version
	switch {
	case j.Op == Get && i.link == 0:
		status = NotFound
	case j.Op == Get && (i.value > j.Room || int(i.value) > s.o.MaxValue):
		status = TooLong
		j.Value = uint32(i.value)
	case j.Op == Get:
		s.drop(j)
		j.Value = uint32(i.value)
		return s.answer(j, OK, i.version, &i)
	case (j.Op == Swap || j.Expect != 0 && i.link != 0) && j.Expect != i.version:
		status = Changed
	case j.Op == Delete && i.link == 0:
		status = NotFound
	case j.Op == Delete:
		s.t.unlink(p, &i)
		s.t.pool.give(Place(i.link), Class(i.link))
	default:
		if j.Block == 0 {
			if !s.store(j) {
				return s.answer(j, Full, 0, nil)
			}
		}
		s.t.link(p, &i, j.Block, hash, int(j.Key), int(j.Request.Value))
		j.Block = 0
		if i.link != 0 {
			s.t.pool.give(Place(i.link), Class(i.link))
		}
		version = p.version
	}
	s.drop(j)
	return s.answer(j, status, version, nil)
}

// store copies the key and value of a request into their own block.
func (s *Server) store(j *job) bool {
	class := ClassOf(uint64(RequestSize + j.data))
	place, ok := s.t.pool.take(class)
	if !ok {
		return false
	}
	from, err := s.p.View(j.at+RequestSize, j.data)
	if err != nil {
		return false
	}
	s.p.Copy(s.t.area.Slice(int(place)+RequestSize, int(place)+RequestSize+j.data), from)
	if s.t.shared {
		s.p.Stream(int64(j.data), 0) // its checksum
	}
	j.Block = Link(place, class, 0)
	return true
}

// drop frees the block of a request that does not become an item.
func (s *Server) drop(j *job) {
	if j.Block != 0 {
		s.t.pool.give(Place(j.Block), Class(j.Block))
		j.Block = 0
	}
}

// answer answers a request; with an item it sends the item's value.
func (s *Server) answer(j *job, status uint32, version uint64, i *item) error {
	slot, b, err := s.out.take()
	if err != nil {
		return err
	}
	b.CopyFrom(encode(&Answer{Status: status, Value: j.Request.Value, Version: version, Tag: j.Tag}))
	n := AnswerSize
	if i != nil {
		at := int(Place(i.link) + RequestSize + i.key)
		s.p.Copy(b.Slice(n, n+int(i.value)), s.t.area.Slice(at, at+int(i.value)))
		n += int(i.value)
	}
	return s.out.send(slot, n, portals.PhysID(j.NID, j.PID), j.PT, j.Bits, AnswerData(j.Tag, uint64(n)))
}

// word sends a word to the handlers.
func (s *Server) word(w Word, links []uint64) error {
	s.turn++
	w.Turn = s.turn
	slot, v, err := s.out.take()
	if err != nil {
		return err
	}
	b := encode(&w)
	for _, link := range links {
		b = binary.LittleEndian.AppendUint64(b, link)
	}
	v.CopyFrom(b)
	return s.out.send(slot, len(b), s.self, uint32(s.o.PT+requestEntry), requestBits, 0)
}

// refill gives blocks of a class to the handlers, if there are any.
func (s *Server) refill(class uint32) error {
	if class > MaxClass {
		return fmt.Errorf("kv: handlers ask for blocks of class %d", class)
	}
	s.stats.Refills++
	var links []uint64
	for len(links) < min(s.o.Depth/2, MostBlocks) {
		place, ok := s.t.pool.take(class)
		if !ok {
			break
		}
		links = append(links, Link(place, class, 0))
	}
	w := Word{Op: Refill, Number: class, Count: uint32(len(links)), Empty: OK}
	if s.dry[class] = len(links) == 0; s.dry[class] {
		w.Empty = Full
	}
	return s.word(w, links)
}

// returned takes blocks back, and gives them to handlers that were told that
// there are none.
func (s *Server) returned(b []byte, n int) error {
	for ; n > 0 && len(b) >= 8; n-- {
		link := binary.LittleEndian.Uint64(b)
		s.t.pool.give(Place(link), Class(link))
		b = b[8:]
	}
	for class := range s.dry {
		if s.dry[class] && s.t.pool.has(uint32(class)) {
			if err := s.refill(uint32(class)); err != nil {
				return err
			}
		}
	}
	return nil
}
