package ip

import (
	"slices"

	"github.com/spinsim/spinsim/inet"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
)

// kernel is the operating system's part of a node's sockets: two interfaces
// (ExaNet by a device, and the management Ethernet) and the protocols above
// them. Its code runs on the core of its caller: a program that writes, the
// service that delivers a packet, or the Ethernet driver.
type kernel struct {
	net       *Network
	node      int
	tun       *TUN
	conns     map[connID]*Conn
	listeners map[uint16]*Sockets
	datagrams map[uint16]*UDP
	sockets   []*Sockets
	port      uint16 // last port that was assigned
	id        uint16 // ID of the last packet
	strange   uint64 // damaged packets, and packets for nobody
}

// connID identifies a connection of a node.
type connID struct {
	local, remote         inet.Addr
	localPort, remotePort uint16
}

// firstPort is the port before the first dynamic one (RFC 6335: 49152 to
// 65535).
const firstPort = 49151

// mtu returns the MTU of the interface that leads to an address.
func (k *kernel) mtu(to inet.Addr) int {
	if _, by := nodeOf(to); by == management {
		return k.net.spec.Management.MTU
	}
	return k.net.spec.MTU
}

// self returns the node's own address on the network of another address.
func (k *kernel) self(to inet.Addr) inet.Addr {
	if _, by := nodeOf(to); by == management {
		return ManagementAddrOf(k.node)
	}
	return AddrOf(k.node)
}

// packet makes an IP packet.
func (k *kernel) packet(to inet.Addr, protocol uint8, payload []byte) []byte {
	k.id++
	p := inet.Packet{Src: k.self(to), Dst: to, Protocol: protocol, ID: k.id, Payload: payload}
	return p.Append(make([]byte, 0, inet.HeaderBytes+len(payload)))
}

// send sends a packet through the interface of its address, on the core of p.
func (k *kernel) send(p *runtime.Proc, to inet.Addr, packet []byte) bool {
	p.Compute(k.net.spec.PacketOut)
	switch node, by := nodeOf(to); by {
	case overExaNet:
		return k.tun.send(packet)
	case management:
		return node < len(k.net.kernels) && node != k.node && k.net.ethernet.send(k.node, node, laneIP, packet)
	default: // no route
		return false
	}
}

// room reports whether the interface that leads to an address can take a
// packet.
func (k *kernel) room(to inet.Addr) bool {
	switch _, by := nodeOf(to); by {
	case overExaNet:
		return len(k.tun.queue) < k.tun.most
	case management:
		return k.net.ethernet.room(k.node)
	default:
		return true
	}
}

// resume wakes the connections that wait for room of an interface.
func (k *kernel) resume() {
	for _, s := range k.sockets {
		if slices.ContainsFunc(s.conns, func(c *Conn) bool { return c.blocked }) {
			s.wake()
		}
	}
}

// in takes a received packet, on the core of p.
func (k *kernel) in(p *runtime.Proc, b []byte) {
	p.Compute(k.net.spec.PacketIn)
	packet, err := inet.Parse(b)
	if err == nil && packet.Dst != AddrOf(k.node) && packet.Dst != ManagementAddrOf(k.node) {
		err = inet.ErrMalformed
	}
	if err == nil {
		switch packet.Protocol {
		case inet.ProtocolTCP:
			err = k.segment(p, &packet)
		case inet.ProtocolUDP:
			err = k.datagram(&packet)
		default:
			err = inet.ErrMalformed
		}
	}
	if err != nil {
		k.strange++
	}
}

func (k *kernel) segment(p *runtime.Proc, packet *inet.Packet) error {
	s, err := inet.ParseTCP(packet)
	if err != nil {
		return err
	}
	id := connID{packet.Dst, packet.Src, s.DstPort, s.SrcPort}
	c := k.conns[id]
	if c == nil {
		l := k.listeners[s.DstPort]
		if l == nil || s.Flags&(inet.SYN|inet.ACK|inet.RST) != inet.SYN {
			if answer, due := inet.Refuse(&s); due {
				k.send(p, packet.Src, k.packet(packet.Src, inet.ProtocolTCP, answer.Append(nil, packet.Dst, packet.Src)))
			}
			return inet.ErrMalformed
		}
		c = &Conn{s: l, to: packet.Src, x: inet.Accept(k.config(packet.Src), p.Now(), packet.Src, &s, k.iss())}
		k.conns[id] = c
		l.conns = append(l.conns, c)
	} else {
		c.x.Input(p.Now(), &s)
	}
	c.output(p)
	if c.x.Established() && !c.announced {
		c.announced = true
		if k.listeners[s.DstPort] == c.s {
			c.s.accepted = append(c.s.accepted, c)
		}
	}
	c.s.wake()
	return nil
}

// iss returns the initial sequence number of a connection.
func (k *kernel) iss() uint32 {
	k.id++
	return uint32(k.id) << 12
}

// config returns the configuration of a connection to an address.
func (k *kernel) config(to inet.Addr) inet.Config {
	s := k.net.spec
	return inet.Config{MSS: k.mtu(to) - inet.HeaderBytes - inet.TCPHeaderBytes, Spec: inet.Spec{
		SendBuffer: s.SendBuffer, ReceiveBuffer: s.ReceiveBuffer, RTOInitial: s.RTOInitial, RTOLeast: s.RTOLeast, RTOMost: s.RTOMost,
		DelayedAck: s.DelayedAck, AckPushed: true, WindowScale: true, Challenge: true,
	}}
}

func (k *kernel) datagram(packet *inet.Packet) error {
	d, err := inet.ParseUDP(packet)
	if err != nil {
		return err
	}
	u := k.datagrams[d.DstPort]
	if u == nil {
		return inet.ErrMalformed
	}
	if u.bytes+len(d.Data) > k.net.spec.ReceiveBuffer {
		u.Dropped++
		return nil
	}
	u.bytes += len(d.Data)
	u.queue = append(u.queue, Datagram{packet.Src, d.SrcPort, d.Data})
	u.s.wake()
	return nil
}

// driver is the Ethernet driver: it gives frames to the kernel.
func (k *kernel) driver(p *runtime.Proc) error {
	ct, err := p.NI().Objects().CTAlloc()
	if err != nil {
		return err
	}
	p.NI().Objects().Label(ct, "frames of the management Ethernet")
	l := &k.net.ethernet.nodes[k.node].lanes[laneIP]
	l.ni, l.ct = p.NI(), ct
	for {
		if len(l.frames) == 0 {
			if _, _, err := p.NI().CTPollAt([]portals.Handle{ct}, []uint64{l.came + 1}, runtime.Forever, 0); err != nil {
				return err
			}
			p.Compute(k.net.spec.Management.Interrupt) // then it polls while there are frames
		}
		if f := l.take(); f != nil {
			k.in(p, f.data)
		}
	}
}
