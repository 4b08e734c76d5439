package runtime

import (
	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/portals"
)

// txPipe is the transmit side of a NIC: operations become messages, their data is read from host memory, and packets enter
// the wire one at a time, at least the gap g apart (sPIN'17 §4, LogGP).
type txPipe struct {
	reads  ring[*message]                 // messages whose data is to be read, one after the other (LogGP: a NIC sends one message at a time)
	behind map[int32]int                  // messages to each node whose data is not all there: later ones must not overtake them
	egress [fabric.Classes]ring[txPacket] // packets that the fabric does not take yet
	device int                            // packets from HPU memory that are not on the wire yet
}

type txPacket struct {
	m *message
	i int
}

// drain takes the operations that the interfaces of the node want sent.
func (n *Node) drain() {
	n.queued = false
	for _, p := range n.procs {
		for _, ni := range p.nis {
			for op := ni.port.NextOp(); op != nil; op = ni.port.NextOp() {
				n.transmit(ni, op)
			}
		}
	}
}

// transmit starts an operation of an interface; one for a node that does not exist ends here.
func (n *Node) transmit(ni *NI, op *portals.Op) {
	if !n.cluster.has(op.Header.Target.NID) {
		n.reportSent(ni, op, portals.NIUndeliverable)
		return
	}
	n.send(n.prepare(ni, op))
}

// reportSent writes the record of an operation's end at the sender to host memory.
func (n *Node) reportSent(ni *NI, op *portals.Op, fail portals.FailType) {
	n.cluster.engine.Post(n.dma.write(n.now(), n.profile.DMA.EventBytes), n.id, n.id, kindSent, uint64(ni.index), uint64(fail), op)
}

// prepare makes the message of an operation.
func (n *Node) prepare(ni *NI, op *portals.Op) *message {
	length, mtu := int(op.Length()), int(n.profile.Fabric.MTU)
	if atomic(op.Header.Kind) {
		mtu -= mtu % op.Header.Type.Size() // no element lies in two packets
	}
	m := n.pool().get(length, mtu)
	m.hdr = op.Header
	m.op, m.ni = op, ni
	m.target = int32(op.Header.Target.NID)
	m.flow = n.cluster.nextFlow()
	return m
}

// send starts a message: without data in host memory its packets are ready at once, otherwise they follow the DMA. A request
// of the host keeps its place behind earlier ones to the same node (Portals 4.x §2.4).
func (n *Node) send(m *message) {
	if !m.op.Issued && m.hdr.Kind <= portals.OpSwap && n.tx.behind[m.target] > 0 {
		n.read(m)
		return
	}
	if len(m.data) == 0 {
		n.dataRead(m)
		n.enqueue(m, 0)
		return
	}
	if inline := m.op.Inline(); inline != nil {
		copy(m.data, inline)
		n.dataRead(m)
		for i := range m.packets {
			n.enqueue(m, i)
		}
		return
	}
	n.read(m)
}

// read puts a message behind those whose data is to be read.
func (n *Node) read(m *message) {
	n.tx.behind[m.target]++
	n.tx.reads.push(m)
	n.post(n.dma.request(n.now()), kindReadRequest, 0, m)
}

// readRequest is the request for a message's data at host memory; the data follows when that of earlier messages has.
func (n *Node) readRequest(m *message) {
	m.requested = true
	if n.tx.reads.front() == m {
		n.readSlot(m, 0)
	}
}

// readNext goes on to the next message, if its request has reached memory.
func (n *Node) readNext() {
	n.tx.reads.pop()
	if n.tx.reads.len() > 0 && n.tx.reads.front().requested {
		n.readSlot(n.tx.reads.front(), 0)
	}
}

// readSlot gives packet i of a message its turn on the bus; the next turn comes when it has passed.
func (n *Node) readSlot(m *message, i int) {
	from, to := m.span(i)
	sent, done := n.dma.fetch(n.now(), to-from)
	n.trace.transfer(&n.dma, false, m.flow, sent, to-from)
	n.post(done, kindReadDone, uint64(i), m)
	switch {
	case i+1 < m.packets:
		n.post(sent, kindReadSlot, uint64(i+1), m)
	case n.tx.reads.len() > 1:
		n.post(sent, kindReadNext, 0, nil)
	default:
		n.tx.reads.pop()
	}
}

// readDone has the data of packet i at the NIC.
func (n *Node) readDone(m *message, i int) {
	from, to := m.span(i)
	if !m.ni.port.Read(m.op, uint64(from), m.data[from:to]) {
		clear(m.data[from:to])
		m.fail = portals.NISegv
	}
	last := i+1 == m.packets
	n.enqueue(m, i)
	if last {
		n.tx.behind[m.target]--
		n.dataRead(m)
	}
}

// dataRead ends the sender's use of the operation: the initiator's buffer may be reused.
func (n *Node) dataRead(m *message) {
	op, ni := m.op, m.ni
	m.op, m.ni = nil, nil
	if m.command {
		n.hpus.commands--
	}
	if m.completes != nil {
		m.completes.operationEnded(op.Length(), m.fail)
	}
	if op.Header.Kind == portals.OpAck {
		n.sent(ni, op, portals.NIOK)
		return
	}
	n.reportSent(ni, op, m.fail)
}

// sent delivers the SEND event, or GET at the target of one, once its record has landed in host memory.
func (n *Node) sent(ni *NI, op *portals.Op, fail portals.FailType) {
	ni.port.Sent(op, fail)
	ni.port.Release(op)
}

// classOf is the class of a message's packets. Without bounded buffers all are in one, which keeps them in the order of sending.
func (n *Node) classOf(m *message) fabric.Class {
	if len(n.profile.Fabric.Buffer) > 0 && (m.hdr.Kind == portals.OpAck || m.hdr.Kind == portals.OpReply) {
		return fabric.Answers
	}
	return fabric.Requests
}

// enqueue sends a packet whose data is at the NIC, behind those that the fabric does not take yet.
func (n *Node) enqueue(m *message, i int) {
	if m.device {
		n.tx.device++
	}
	c := n.classOf(m)
	if n.tx.egress[c].len() == 0 && (m.target == n.rank || n.port.Ready(c)) {
		n.launch(m, i)
		return
	}
	n.tx.egress[c].push(txPacket{m, i})
}

// inject sends the packets of a class that wait, as far as the fabric takes them; it tells when to come back.
func (n *Node) inject(c fabric.Class) {
	for n.tx.egress[c].len() > 0 {
		if p := n.tx.egress[c].front(); p.m.target != n.rank && !n.port.Ready(c) {
			return
		}
		p := n.tx.egress[c].pop()
		n.launch(p.m, p.i)
	}
}

// launch puts a packet on the wire, where it follows the one before at the gap g, or turns it round if it is for this node.
func (n *Node) launch(m *message, i int) {
	n.stats.PacketsSent++
	if m.target == n.rank {
		n.post(n.now()+n.profile.NIC.Loopback, kindLoopback, uint64(i), m)
		if m.device {
			n.tx.device--
			n.post(n.now(), kindEgressSpace, 0, nil)
		}
		return
	}
	from, to := m.span(i)
	// A packet that takes no place which another might wait for needs no event when it has left.
	notify := m.device && n.profile.NIC.EgressPackets < maxEgress
	n.port.Send(fabric.Packet{
		Src: n.rank, Dst: m.target, Bytes: int32(to - from), Seq: uint32(i), Class: n.classOf(m), Notify: notify, Ref: m,
	})
	if m.device && !notify {
		n.tx.device--
	}
}

// onWire frees the place in the egress of a packet from HPU memory whose turn on the wire has come.
func (n *Node) onWire() {
	n.tx.device--
	n.egressSpace()
}

// maxEgress packets in the egress are no limit.
const maxEgress = 1 << 20

// egressRoom reports whether a handler may put a packet from the device: packets that have not left, and those promised, count.
func (n *Node) egressRoom() bool {
	return n.profile.NIC.EgressPackets == maxEgress || n.tx.device+n.hpus.promised < n.profile.NIC.EgressPackets
}
