//go:build !tinygo

package replicate

import (
	"math/bits"

	"github.com/spinsim/spinsim/handlers/raid5"
	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
)

// Without handlers, messages of up to chunk bytes go into the server's memory.
// Its program puts each complete message on from there, and the last servers
// answer the client. When writes overlap, the program passes on the present
// content of its memory after each of them, so that all servers end with the
// same content.

// chunk is the largest message to hosts, hostChunks how many messages of a
// flight are under way.
const (
	chunk      = 64 << 10
	hostChunks = 4
)

// host is a server's program.
func (g *Group) host(p *runtime.Proc, s *server, eq portals.Handle) error {
	ni := p.NI()
	md, err := ni.Objects().MDBind(&portals.MD{Start: s.memory.Addr(), Length: uint64(s.memory.Len())})
	if err != nil {
		return err
	}
	match := g.c.Reads(used.Match).Host.Match
	for {
		e, err := ni.EQWait(eq)
		if err != nil {
			return err
		}
		t := Ticket(e.HdrData)
		if e.Fail != portals.NIOK {
			continue // a message whose rest will not come
		}
		p.Compute(match)
		if e.MLength != e.RLength {
			if err := g.tell(ni, md, t, Refused); err != nil {
				return err
			}
			continue
		}
		live := uint32(e.MatchBits >> LiveShift & (1<<MaxServers - 1))
		rank, n := Next(Rank(live, uint32(s.index)), uint32(bits.OnesCount32(live)), g.o.Tree)
		for i := range n {
			to := g.id(Of(live, rank+i))
			pass := e.MatchBits&^KindMask | PassBits
			if err := ni.Put(portals.Put{MD: md, Offset: e.RemoteOffset, Length: e.MLength, Target: to, PT: g.o.PT, MatchBits: pass, RemoteOffset: e.RemoteOffset, HdrData: e.HdrData}); err != nil {
				return err
			}
		}
		if n == 0 {
			if err := g.tell(ni, md, t, OK); err != nil {
				return err
			}
		}
	}
}

// tell answers a client.
func (g *Group) tell(ni *runtime.NI, md portals.Handle, t raid5.Ticket, status uint64) error {
	return ni.Put(portals.Put{MD: md, Target: portals.PhysID(t.NID(), t.PID()), PT: g.replyPT(), MatchBits: ReplyBits | uint64(t.Slot()), HdrData: status})
}
