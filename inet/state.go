package inet

import (
	"errors"
	"fmt"

	"github.com/spinsim/spinsim/sim"
)

// State is that of a connection (RFC 9293 §3.3.2). LISTEN is no state of a Conn: a Host listens.
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

// String is the state's name in RFC 9293.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("State(%d)", uint8(s))
}

// Why a connection has ended before its streams had.
var (
	// ErrRefused: the other side answered the SYN with a reset, as ECONNREFUSED.
	ErrRefused = errors.New("connection refused")
	// ErrReset: the other side reset the connection, as ECONNRESET.
	ErrReset = errors.New("connection reset by peer")
	// ErrTimeout: the other side has not answered for as often, or as long, as
	// the Spec allows, as ETIMEDOUT.
	ErrTimeout = errors.New("connection timed out")
	// ErrAborted: the own program has called Abort, or Release with bytes that it had not read.
	ErrAborted = errors.New("connection aborted")
)

// Failure is how a connection has failed; it wraps one of the errors above.
type Failure struct {
	Err    error
	State  State    // it was in
	At     sim.Time // it failed
	Since  sim.Time // ErrTimeout: what was not answered was sent first
	Tries  int      // ErrTimeout: so often it was sent again, or the window was asked about
	Waited string   // ErrTimeout: for what it waited
}

// Error says what was waited for, for how long, and how often it was sent.
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

// Err returns why the connection has failed, a *Failure; nil: it has not.
func (x *Conn) Err() error {
	if x.failure == nil {
		return nil
	}
	return x.failure
}

// Established reports whether both sides have agreed.
func (x *Conn) Established() bool { return x.state >= Established }

// synchronized reports whether sequence numbers of both sides are known and acknowledged.
func (x *Conn) synchronized() bool { return x.state >= Established }

// Done reports whether all that was written, and the end of it, was acknowledged.
func (x *Conn) Done() bool { return x.closed && x.finAcked }

// fail ends the connection.
func (x *Conn) fail(now sim.Time, err error) {
	x.failure = &Failure{Err: err, State: x.state, At: now}
	x.end()
}

// gaveUp ends it because nobody answers.
func (x *Conn) gaveUp(now sim.Time) {
	f := &Failure{Err: ErrTimeout, State: x.state, At: now, Since: x.since, Tries: x.retries}
	switch {
	case x.state == SynSent:
		f.Waited = "answer to the SYN"
	case x.state == SynReceived:
		f.Waited = "acknowledgement of the SYN"
	case x.persist > 0:
		f.Waited, f.Tries = "answer to probes of a closed window", x.probes
	case x.una == x.dataEnd():
		f.Waited = "acknowledgement of the FIN"
	default:
		f.Waited = fmt.Sprintf("acknowledgement of byte %d of %d", x.una-x.iss, x.dataEnd()-x.iss-1)
	}
	x.failure = f
	x.end()
}

// end enters CLOSED.
func (x *Conn) end() {
	x.state = Closed
	x.expires, x.ackAt, x.linger, x.tail.at = Never, Never, Never, Never
	x.ackNow, x.again, x.probe, x.persist = false, false, false, 0
	x.early, x.held = nil, 0
}

// finSent is the event that a FIN goes out for the first time.
func (x *Conn) finSent() {
	switch x.state {
	case Established:
		x.state = FinWait1
	case CloseWait:
		x.state = LastAck
	}
}

// finAcknowledged is the event that the own FIN was acknowledged.
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

// finReceived is the event that the other side's FIN has come, in order.
func (x *Conn) finReceived(now sim.Time) {
	x.finished = true
	switch x.state {
	case Established:
		x.state = CloseWait
	case FinWait1:
		x.state = Closing
	case FinWait2:
		x.timeWait(now)
	}
}

// timeWait enters TIME-WAIT, or stays there once more (RFC 9293 §3.10.7.4, eighth).
func (x *Conn) timeWait(now sim.Time) {
	x.state, x.linger = TimeWait, Never
	if x.c.TimeWait > 0 {
		x.linger = now.Later(x.c.TimeWait)
	}
}
