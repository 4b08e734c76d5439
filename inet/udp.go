package inet

import (
	"errors"
	"fmt"
	"slices"
)

// Errors of a Socket's Send.
var (
	// ErrNoRoom: Spec.SendBuffer bytes wait for Output already.
	ErrNoRoom = errors.New("inet: no room for the datagram")
	// ErrClosed: the socket is closed.
	ErrClosed = errors.New("inet: the socket is closed")
)

// Socket is a UDP socket (RFC 768): a port with a queue of received datagrams.
type Socket struct {
	Port    uint16
	Dropped int64 // datagrams for which the queue had no room
	h       *Host
	queue   []Received
	bytes   int
}

// Received is a received datagram.
type Received struct {
	From Addr
	Port uint16
	Data []byte
}

// UDP opens a socket on a port. Its queue has Spec.ReceiveBuffer bytes. A
// datagram takes its own bytes and eight for its header.
func (h *Host) UDP(port uint16) (*Socket, error) {
	if h.sockets[port] != nil {
		return nil, fmt.Errorf("%w: %d", ErrInUse, port)
	}
	u := &Socket{Port: port, h: h}
	h.sockets[port] = u
	return u, nil
}

// Close frees the port. Datagrams that have come can still be received.
func (u *Socket) Close() {
	if u.h.sockets[u.Port] == u {
		delete(u.h.sockets, u.Port)
	}
}

// MaxDatagram is the most bytes of a datagram.
func (h *Host) MaxDatagram() int { return h.c.MTU - HeaderBytes - UDPHeaderBytes }

// Send sends a datagram at the next Output of the host. The datagram may get
// lost. Datagrams that wait for Output may take Spec.SendBuffer bytes of the
// host; one datagram may always wait.
func (u *Socket) Send(to Addr, port uint16, data []byte) error {
	if most := u.h.MaxDatagram(); len(data) > most {
		return fmt.Errorf("%w: %d bytes to %v, expected at most %d", ErrTooLong, len(data), to, most)
	}
	switch n := UDPHeaderBytes + len(data); {
	case u.h.sockets[u.Port] != u:
		return fmt.Errorf("%w: port %d", ErrClosed, u.Port)
	case u.h.waiting > 0 && u.h.waiting+n > u.h.c.SendBuffer:
		return fmt.Errorf("%w: %d bytes to %v behind %d, expected at most %d", ErrNoRoom, len(data), to, u.h.waiting, u.h.c.SendBuffer)
	default:
		u.h.waiting += n
	}
	u.h.outgoing = append(u.h.outgoing, outgoing{to, Datagram{SrcPort: u.Port, DstPort: port, Data: slices.Clone(data)}})
	return nil
}

// Receive takes a datagram; false: there is none now.
func (u *Socket) Receive() (r Received, is bool) {
	if len(u.queue) == 0 {
		return r, false
	}
	r = u.queue[0]
	u.queue = u.queue[:copy(u.queue, u.queue[1:])]
	u.bytes -= UDPHeaderBytes + len(r.Data)
	return r, true
}

func (h *Host) inputDatagram(p *Packet) error {
	d, err := ParseUDP(p)
	if err != nil {
		return err
	}
	u := h.sockets[d.DstPort]
	if u == nil {
		h.Stats.Unreachable++
		return nil
	}
	if u.bytes+UDPHeaderBytes+len(d.Data) > h.c.ReceiveBuffer {
		u.Dropped++
		return nil
	}
	u.bytes += UDPHeaderBytes + len(d.Data)
	u.queue = append(u.queue, Received{p.Src, d.SrcPort, slices.Clone(d.Data)})
	return nil
}
