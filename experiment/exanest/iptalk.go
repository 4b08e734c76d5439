package exanest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	network "github.com/spinsim/spinsim/exanet/ip"
	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// The programs of experiment ip.

// ipPort is the port of the second program. Datagrams of stream i go to ipPort
// + i.
const ipPort = 5201 // iperf3's

var errNotMet = errors.New("the services of the two nodes do not hear each other")

// meet waits until the services of both sides have shaken hands.
func (w *talk) meet(p *runtime.Proc) error {
	path := ipPath(w.Point)
	for range 1000 {
		if w.net.Up(path[0], path[1]) && w.net.Up(path[1], path[0]) {
			return nil
		}
		p.Sleep(w.spec.Heartbeat)
	}
	return errNotMet
}

// started notes the beginning of the measurement.
func (w *talk) started(now sim.Time) {
	if w.begun == 0 {
		w.begun = now
	}
}

// send is the first side of tcp.
func (w *talk) send(p *runtime.Proc, s *network.Sockets) error {
	p.Sleep(w.spec.Heartbeat) // the other side listens
	conns, sent := make([]*network.Conn, w.streams), make([]int, w.streams)
	for i := range conns {
		var err error
		if conns[i], err = s.Dial(w.to, ipPort); err != nil {
			return err
		}
	}
	for slices.ContainsFunc(conns, func(c *network.Conn) bool { return !c.Established() }) {
		if err := s.Wait(runtime.Forever); err != nil {
			return err
		}
	}
	w.started(p.Now())
	for {
		done := true
		for i, c := range conns {
			for c.Room() > 0 && sent[i] < w.bytes {
				if sent[i] += c.Write(w.data[sent[i]:min(w.bytes, sent[i]+ipWrite)]); sent[i] == w.bytes {
					c.Close()
				}
			}
			done = done && c.Done()
		}
		if done {
			break
		}
		if err := s.Wait(runtime.Forever); err != nil {
			return err
		}
	}
	for _, c := range conns {
		stats, _ := c.Stats()
		w.resent += stats.Retransmitted
	}
	return nil
}

// ipWrite is how many bytes a program writes and reads at once (iperf3: 128
// KiB).
const ipWrite = 128 << 10

// receive is the second side of tcp.
func (w *talk) receive(p *runtime.Proc, s *network.Sockets) error {
	if err := s.Listen(ipPort); err != nil {
		return err
	}
	var conns []*network.Conn
	var got []int
	buffer := make([]byte, ipWrite)
	for ended := 0; ended < w.streams; {
		if err := s.Wait(runtime.Forever); err != nil {
			return err
		}
		for c := s.Accept(); c != nil; c = s.Accept() {
			conns, got = append(conns, c), append(got, 0)
		}
		for i, c := range conns {
			for c != nil {
				n, over := c.Readable()
				if n == 0 && !over {
					break
				}
				n, over = c.Read(buffer)
				if err := experiment.SameBytes("stream", buffer[:n], w.data[got[i]:min(got[i]+n, w.bytes)]); err != nil {
					return err
				}
				got[i] += n
				w.got += n
				w.ended = p.Now()
				if over {
					c.Close()
					conns[i], c = nil, nil
					ended++
				}
			}
		}
	}
	if w.got != w.streams*w.bytes {
		return fmt.Errorf("%d bytes came, expected %d", w.got, w.streams*w.bytes)
	}
	return nil
}

// ipMark is the length of the number at the beginning of a datagram: its place
// in the stream.
const ipMark = 8

// datagrams is a side of udp. The second side ends when the first has sent
// everything and no datagram has come for the time after which a silent peer
// counts as dead.
func (w *talk) datagrams(p *runtime.Proc, s *network.Sockets, side int) error {
	sockets := make([]*network.UDP, w.streams)
	for i := range sockets {
		var err error
		if sockets[i], err = s.UDP(ipPort + uint16(i)); err != nil {
			return err
		}
	}
	if side == 1 {
		return w.collect(p, s, sockets)
	}
	p.Sleep(w.spec.Heartbeat) // the other side has opened its sockets
	w.started(p.Now())
	most := s.MaxDatagram(w.to) - ipMark
	for at := 0; at < w.bytes; at += most {
		for i, u := range sockets {
			b := binary.LittleEndian.AppendUint64(make([]byte, 0, most+ipMark), uint64(at))
			b = append(b, w.data[at:min(at+most, w.bytes)]...)
			if err := u.Send(w.to, ipPort+uint16(i), b); err != nil {
				return err
			}
			w.sent += len(b) - ipMark
		}
	}
	w.all = true
	return nil
}

func (w *talk) collect(p *runtime.Proc, s *network.Sockets, sockets []*network.UDP) error {
	w.ended = p.Now()
	for !w.all || p.Now() < w.ended+w.spec.DeadAfter {
		if err := s.Wait(p.Now() + w.spec.DeadAfter); err != nil {
			return err
		}
		for _, u := range sockets {
			for d, found := u.Receive(); found; d, found = u.Receive() {
				at, n := int(binary.LittleEndian.Uint64(d.Data)), len(d.Data)-ipMark
				if err := experiment.SameBytes("datagram", d.Data[ipMark:], w.data[at:at+n]); err != nil {
					return err
				}
				w.got += n
				w.ended = p.Now()
			}
		}
	}
	return nil
}

// echo is a side of rtt.
func (w *talk) echo(p *runtime.Proc, s *network.Sockets, side int) error {
	u, err := s.UDP(ipPort)
	if err != nil {
		return err
	}
	next := func() (d network.Datagram, err error) {
		for {
			if d, found := u.Receive(); found {
				return d, nil
			}
			if err := s.Wait(runtime.Forever); err != nil {
				return d, err
			}
		}
	}
	rounds := w.Int("rounds")
	message := w.data[:min(ipEcho, w.bytes)]
	if side == 0 {
		p.Sleep(w.spec.Heartbeat) // the other side listens
		w.started(p.Now())
	}
	for range rounds {
		if side == 1 {
			d, err := next()
			if err != nil {
				return err
			}
			if err := u.Send(d.From, d.Port, d.Data); err != nil {
				return err
			}
			continue
		}
		p.Sleep(w.Time("pause"))
		begin := p.Now()
		if err := u.Send(w.to, ipPort, message); err != nil {
			return err
		}
		d, err := next()
		if err != nil {
			return err
		}
		if err := experiment.SameBytes("datagram", d.Data, message); err != nil {
			return err
		}
		w.roundTrip += p.Now() - begin
		w.Operation(p, begin)
		w.ended = p.Now()
	}
	if side == 0 {
		w.roundTrip /= sim.Time(rounds)
	}
	return nil
}

// ipEcho is how many bytes a round trip carries (ping: 64 B).
const ipEcho = 64
