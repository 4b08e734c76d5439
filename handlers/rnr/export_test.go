package rnr

import (
	"encoding/binary"

	"github.com/spinsim/spinsim/spin"
)

// Begin has both ends of a connection that nobody has used yet count from other
// numbers than 0: those of packets, and those of work requests and receives, of
// which this one is the next.
func (c *Conn) Begin(packet, work uint64) {
	s := c.State()
	q, e := &s.Requester, &s.Responder
	q.Landing.Next, q.Landing.Una, q.Mark, q.End, q.Sent = packet, packet, packet, packet, packet
	e.Landing.Next, e.Landing.Una, e.AckAt, e.Acked = packet, packet, packet, packet
	q.Posted, q.Sends, q.Current, e.Posted = work, work, work, work
	s.Report.Sent, s.Report.Received = work, work
	copy(c.in.HPU.Bytes(), spin.EncodeState(&s))
	for i := range 2 {
		binary.LittleEndian.PutUint64(c.host.Slice(8*i, 8*i+8).Write(), work)
	}
	c.posted = [2]uint64{work, work}
}
