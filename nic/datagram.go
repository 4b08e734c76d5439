package nic

import "github.com/spinsim/spinsim/portals"

// A put with DATAGRAMS (docs/abi.md) is cut into packets that are separate
// messages. It is for libraries whose handlers repeat lost packets. The
// receiver keeps no state that could wait for ever for a packet, and no packet
// needs another.

// datagrams makes each packet of the message a separate message, if is.
func (o *outgoing) datagrams(is bool) {
	if is {
		o.frame.Datagram, o.frame.Whole = true, o.frame.Length
		o.single = o.frame.Packets > 1
	}
}

// pieceAlone sends packet i, whose data is at the NIC, as a separate message. A
// packet without memory is not sent.
func (t *transmit) pieceAlone(o *outgoing, i, from, to int) {
	f := o.frame
	last := i+1 == f.Packets
	g := t.number(t.core.frameFor(to-from, f.MTU))
	g.Header.PartOf(&f.Header, uint64(from), uint64(to-from))
	g.Target, g.Datagram, g.At, g.Whole, g.cause = f.Target, true, from, f.Whole, f.cause
	g.tenant = f.tenant
	t.trace.part(g, o.op)
	var ok bool
	if len(f.pages) > 0 {
		ok = t.load(o, i, from, to)
		g.pages, f.pages[i] = append(g.pages, f.pages[i]), nil
	} else {
		g.Data = t.core.buffer(to - from)
		ok = o.iface.Port.Read(o.op, uint64(from), g.Data)
	}
	if ok {
		t.next.send(packet{f: g})
	} else {
		t.missing(o, i, loss{cause: noMemory})
		t.unsent(unreadable, to-from)
		t.core.releaseFrame(g)
	}
	if last {
		t.fetchedAll(o)
	}
}

// discard drops a damaged datagram whose entry cannot report damage.
func (in *inbound) discard() {
	in.discards(damaged)
	in.dropped = in.d.MLength
	in.failed(portals.NIDropped)
}
