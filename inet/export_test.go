package inet

import "fmt"

// Check returns an error if an invariant of a connection does not hold. The
// invariants hold for any segments.
func (x *Conn) Check() error {
	switch {
	case after(x.snd.nxt, x.snd.una) < 0 || after(x.snd.top, x.snd.nxt) < 0:
		return fmt.Errorf("una %d, nxt %d, top %d", x.snd.una, x.snd.nxt, x.snd.top)
	case x.Established() && after(x.snd.top, x.snd.dataEnd()+1) > 0:
		return fmt.Errorf("top %d beyond the end %d", x.snd.top, x.snd.dataEnd())
	case x.snd.data.len() > max(x.c.SendBuffer, 0):
		return fmt.Errorf("%d bytes to be sent", x.snd.data.len())
	case x.rcv.came.len() > x.c.ReceiveBuffer:
		return fmt.Errorf("%d bytes to be read", x.rcv.came.len())
	case x.Established() && (x.snd.cwnd == 0 || x.snd.rtt.out <= 0 || x.snd.rtt.out > x.c.RTOMost):
		return fmt.Errorf("cwnd %d, rto %v", x.snd.cwnd, x.snd.rtt.out)
	case x.state == Closed && x.Deadline() != Never:
		return fmt.Errorf("closed, deadline %v", x.Deadline())
	case len(x.snd.sack.got) > 256 || len(x.rcv.early) > x.c.ReceiveBuffer+1:
		return fmt.Errorf("%d blocks were told, %d pieces kept", len(x.snd.sack.got), len(x.rcv.early))
	case x.failure != nil && x.state != Closed:
		return fmt.Errorf("failed in %v", x.state)
	case x.state == Established && x.snd.top != x.snd.una && x.snd.expires == Never:
		return fmt.Errorf("%d bytes under way without a timer", x.snd.top-x.snd.una)
	}
	if err := x.checkBlocks("told", x.snd.sack.got, x.snd.una, x.snd.top); err != nil {
		return err
	}
	at, held := x.rcv.next, 0
	for i, p := range x.rcv.early {
		held += len(p.data) + pieceBytes
		if after(p.seq, at) < 0 || i == 0 && after(p.seq, at) == 0 || int(after(p.end(), x.rcv.next)) > x.c.ReceiveBuffer {
			return fmt.Errorf("piece %d from %d to %d, rcv %d", i, p.seq, p.end(), x.rcv.next)
		}
		at = p.end()
	}
	if held != x.rcv.held || len(x.rcv.early)*pieceBytes > 2*max(x.c.ReceiveBuffer, pieceBytes) {
		return fmt.Errorf("%d pieces take %d bytes, counted as %d", len(x.rcv.early), held, x.rcv.held)
	}
	return nil
}

func (x *Conn) checkBlocks(what string, list []Block, from, to uint32) error {
	for _, k := range list {
		if after(k.From, from) < 0 || after(k.To, k.From) <= 0 || after(k.To, to) > 0 {
			return fmt.Errorf("%s %v of %d to %d", what, list, from, to)
		}
		from = k.To + 1
	}
	return nil
}

// Early returns how many pieces received before their turn are kept.
func (x *Conn) Early() int { return len(x.rcv.early) }
