package inet

import (
	"errors"
	"fmt"

	"github.com/spinsim/spinsim/sim"
)

// State is the state of a connection (RFC 9293 §3.3.2). LISTEN is no state of a
// Conn: a Host listens.
type State uint8

// States.
const (
	Closed State = iota
	SynSent
	SynReceived
	Established
	FinWait1
	FinWait2
	CloseWait
	Closing
	LastAck
	TimeWait
)

var stateNames = [...]string{
	"CLOSED", "SYN-SENT", "SYN-RECEIVED", "ESTABLISHED", "FIN-WAIT-1", "FIN-WAIT-2", "CLOSE-WAIT", "CLOSING", "LAST-ACK", "TIME-WAIT",
}

// String returns the state's name in RFC 9293.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("State(%d)", uint8(s))
}

// Reasons for the end of a connection before the end of its streams.
var (
	// ErrRefused: the peer answered the SYN with a reset, as ECONNREFUSED.
	ErrRefused = errors.New("connection refused")
	// ErrReset: the peer reset the connection, as ECONNRESET.
	ErrReset = errors.New("connection reset by peer")
	// ErrTimeout: the peer has not answered within the number or the time that the
	// Spec allows, as ETIMEDOUT.
	ErrTimeout = errors.New("connection timed out")
	// ErrAborted: this side has called Abort, or Release with unread bytes.
	ErrAborted = errors.New("connection aborted")
)

// Failure is the reason and the circumstances of a failed connection. It wraps
// one of the errors above.
type Failure struct {
	Err    error
	State  State    // at the failure
	At     sim.Time // of the failure
	Since  sim.Time // ErrTimeout: when the unanswered segment was first sent
	Tries  int      // ErrTimeout: number of retransmissions, or of window probes
	Waited string   // ErrTimeout: the answer that did not come
}

// Error names the missing answer, the time waited, and the number of
// retransmissions.
func (f *Failure) Error() string {
	if f.Waited == "" {
		return fmt.Sprintf("inet: %v in state %v at %v", f.Err, f.State, f.At)
	}
	return fmt.Sprintf("inet: %v in state %v at %v: no %s within %v, sent again %d times", f.Err, f.State, f.At, f.Waited, f.At-f.Since, f.Tries)
}

// Unwrap returns the kind of failure.
func (f *Failure) Unwrap() error { return f.Err }

// State returns the connection's state.
func (x *Conn) State() State { return x.state }

// Err returns the reason why the connection has failed, a *Failure, or nil.
func (x *Conn) Err() error {
	if x.failure == nil {
		return nil
	}
	return x.failure
}

// Established reports whether the handshake is done: the sequence numbers of
// both sides are known and acknowledged.
func (x *Conn) Established() bool { return x.state >= Established }

// Done reports whether everything written, and the FIN, is acknowledged.
func (x *Conn) Done() bool { return x.snd.closed && x.finAcked }

// fail ends the connection.
func (x *Conn) fail(now sim.Time, err error) {
	x.failure = &Failure{Err: err, State: x.state, At: now}
	x.end()
}

// gaveUp ends the connection because there is no answer.
func (x *Conn) gaveUp(now sim.Time) {
	f := &Failure{Err: ErrTimeout, State: x.state, At: now, Since: x.snd.since, Tries: x.snd.retries}
	switch {
	case x.state == SynSent:
		f.Waited = "answer to the SYN"
	case x.state == SynReceived:
		f.Waited = "acknowledgement of the SYN"
	case x.snd.persist > 0:
		f.Waited, f.Tries = "answer to probes of a closed window", x.snd.probes
	case x.snd.una == x.snd.dataEnd():
		f.Waited = "acknowledgement of the FIN"
	default:
		f.Waited = fmt.Sprintf("acknowledgement of byte %d of %d", x.snd.una-x.snd.iss, x.snd.dataEnd()-x.snd.iss-1)
	}
	x.failure = f
	x.end()
}

// end enters CLOSED.
func (x *Conn) end() {
	x.state, x.linger = Closed, Never
	x.snd.stop()
	x.rcv.stop()
}

// finAcknowledged handles the acknowledgement of this side's FIN.
func (x *Conn) finAcknowledged(now sim.Time) {
	x.finAcked = true
	switch x.state {
	case FinWait1:
		x.state = FinWait2
		if x.released && x.c.FinWait2 > 0 {
			x.linger = now.Later(x.c.FinWait2)
		}
	case Closing:
		x.timeWait(now)
	case LastAck:
		x.end()
	}
}

// take takes the data of a segment, and its FIN.
func (x *Conn) take(now sim.Time, s *Segment) {
	if !x.rcv.take(now, s) {
		return
	}
	switch x.state {
	case Established:
		x.state = CloseWait
	case FinWait1:
		x.state = Closing
	case FinWait2:
		x.timeWait(now)
	}
}

// timeWait enters TIME-WAIT, or restarts it (RFC 9293 §3.10.7.4, eighth).
func (x *Conn) timeWait(now sim.Time) {
	x.state, x.linger = TimeWait, Never
	if x.c.TimeWait > 0 {
		x.linger = now.Later(x.c.TimeWait)
	}
}
