package inet

import "fmt"

// Check returns an error if an invariant of a connection does not hold. The
// invariants hold for any segments.
func (x *Conn) Check() error {
	switch {
	case after(x.nxt, x.una) < 0 || after(x.top, x.nxt) < 0:
		return fmt.Errorf("una %d, nxt %d, top %d", x.una, x.nxt, x.top)
	case x.synchronized() && after(x.top, x.dataEnd()+1) > 0:
		return fmt.Errorf("top %d beyond the end %d", x.top, x.dataEnd())
	case x.data.len() > max(x.c.SendBuffer, 0):
		return fmt.Errorf("%d bytes to be sent", x.data.len())
	case x.came.len() > x.c.ReceiveBuffer:
		return fmt.Errorf("%d bytes to be read", x.came.len())
	case x.synchronized() && (x.cwnd == 0 || x.rto <= 0 || x.rto > x.c.RTOMost):
		return fmt.Errorf("cwnd %d, rto %v", x.cwnd, x.rto)
	case x.state == Closed && x.Deadline() != Never:
		return fmt.Errorf("closed, deadline %v", x.Deadline())
	case len(x.sack.got) > 256 || len(x.early) > x.c.ReceiveBuffer+1:
		return fmt.Errorf("%d blocks were told, %d pieces kept", len(x.sack.got), len(x.early))
	case x.failure != nil && x.state != Closed:
		return fmt.Errorf("failed in %v", x.state)
	case x.state == Established && x.top != x.una && x.expires == Never:
		return fmt.Errorf("%d bytes under way without a timer", x.top-x.una)
	}
	if err := x.checkBlocks("told", x.sack.got, x.una, x.top); err != nil {
		return err
	}
	at, held := x.rcv, 0
	for i, p := range x.early {
		held += len(p.data) + pieceBytes
		if after(p.seq, at) < 0 || i == 0 && after(p.seq, at) == 0 || int(after(p.end(), x.rcv)) > x.c.ReceiveBuffer {
			return fmt.Errorf("piece %d from %d to %d, rcv %d", i, p.seq, p.end(), x.rcv)
		}
		at = p.end()
	}
	if held != x.held || len(x.early)*pieceBytes > 2*max(x.c.ReceiveBuffer, pieceBytes) {
		return fmt.Errorf("%d pieces take %d bytes, counted as %d", len(x.early), held, x.held)
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
func (x *Conn) Early() int { return len(x.early) }
