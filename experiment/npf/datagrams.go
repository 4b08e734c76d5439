package npf

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/spinsim/spinsim/inet"
	"github.com/spinsim/spinsim/internal/npf/stack"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// The messages of npf-synthetic as datagrams. Each has a number and a piece of
// a message.

const (
	datagramHead = 8          // bytes of the number
	datagramRest = sim.Second // without a datagram: those still missing are then lost
)

func (w *syntheticRun) udp() bool { return w.Text("transport") == syntheticUDP }

// room are overrides for the server's stack. When a page has come for the first
// datagram, many arrive at once and wait for the program.
func (w *syntheticRun) room() []string {
	if !w.udp() {
		return nil
	}
	return []string{fmt.Sprintf("receive_buffer=%dB", w.Int("ring")*int(w.Profile.Fabric.MTU))}
}

// piece is how many bytes of a message a datagram carries.
func (w *syntheticRun) piece() int {
	return int(w.Profile.Fabric.MTU) - inet.HeaderBytes - inet.UDPHeaderBytes - datagramHead
}

// parts is how many datagrams a message has.
func (w *syntheticRun) parts() int { return (len(w.data) + w.piece() - 1) / w.piece() }

// datagram writes the datagram with a number to b, and returns it.
func (w *syntheticRun) datagram(b []byte, number int) []byte {
	at := number % w.parts() * w.piece()
	b = binary.LittleEndian.AppendUint64(b[:0], uint64(number))
	return append(b, w.data[at:min(at+w.piece(), len(w.data))]...)
}

// takesDatagrams is the server. Datagrams arrive in order because there is one
// path.
func (w *syntheticRun) takesDatagrams(p *runtime.Proc, s *stack.Stack) error {
	u, err := s.UDP(syntheticPort)
	if err != nil {
		return err
	}
	var want []byte
	for next := 0; ; {
		if err := s.Wait(runtime.Forever); err != nil {
			return err
		}
		for d, is := u.Receive(); is; d, is = u.Receive() {
			if len(d.Data) < datagramHead {
				return fmt.Errorf("a datagram of %d bytes, expected at least %d", len(d.Data), datagramHead)
			}
			number := int(binary.LittleEndian.Uint64(d.Data))
			if number < next {
				return fmt.Errorf("datagram %d comes behind datagram %d", number, next-1)
			}
			if want = w.datagram(want, number); string(want) != string(d.Data) {
				return fmt.Errorf("datagram %d has other bytes than were sent", number)
			}
			next, w.ended = number+1, p.Now()
			w.datagrams++
			w.got += len(d.Data) - datagramHead
		}
		if u.Dropped() > 0 {
			return fmt.Errorf("the queue of the server had no room for %d datagrams", u.Dropped())
		}
	}
}

// sendsDatagrams is the sender. It ends when all datagrams have arrived, or
// when none has arrived for a time.
func (w *syntheticRun) sendsDatagrams(p *runtime.Proc, s *stack.Stack) error {
	u, err := s.UDP(syntheticPort)
	if err != nil {
		return err
	}
	if err := s.Sleep(cacheBegin); err != nil {
		return err
	}
	w.begun = p.Now()
	var b []byte
	all := w.Int("messages") * w.parts()
	for number := range all {
		b = w.datagram(b, number)
		for err = u.Send(cacheServer, syntheticPort, b); errors.Is(err, inet.ErrNoRoom); err = u.Send(cacheServer, syntheticPort, b) {
			if err := s.Wait(p.Now() + w.Time("interval")); err != nil {
				return err
			}
		}
		if err := errors.Join(err, s.Flush()); err != nil {
			return err
		}
		if err := s.Sleep(w.begun + sim.Time(number+1)*w.Time("interval") - p.Now()); err != nil {
			return err
		}
	}
	for last := p.Now(); w.datagrams < all && p.Now()-max(last, w.ended) < datagramRest; {
		if err := s.Sleep(datagramRest / 100); err != nil {
			return err
		}
	}
	return nil
}
