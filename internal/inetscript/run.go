package inetscript

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spinsim/spinsim/inet"
	"github.com/spinsim/spinsim/sim"
)

// The first sequence numbers of the two ends: they wrap soon.
const (
	ours   = math.MaxUint32 - 2000
	theirs = math.MaxUint32 - 700
)

// Bounds of a script, so that a hostile one ends.
const (
	mostSegments = 100_000
	mostWrite    = 1 << 20
)

// world is an end of a connection, and what it has printed.
type world struct {
	config    inet.Config
	set       bool
	listening bool
	dial      func(inet.Config, uint32) End
	x         End
	now       sim.Time
	printed   sim.Time // when the previous line was printed
	out       []string
	failed    bool
	refuse    *inet.Segment // answers a segment without a connection
	sent      int
	written   int
}

// note is a comment and the number of outcomes before it.
type note struct {
	behind int
	text   string
}

// End is an end of a connection, with the methods that scripts use. *inet.Conn
// is one; there are other implementations.
type End interface {
	Input(now sim.Time, s *inet.Segment)
	Output(now sim.Time, most int, emit func(*inet.Segment)) (more bool)
	Deadline() sim.Time
	Expire(now sim.Time)
	Write(b []byte) int
	Read(b []byte) int
	Close()
	Release(now sim.Time)
	Abort(now sim.Time)
	Err() error
}

// Run runs a script and returns it with its outcomes. Its error names a wrong
// line.
func Run(text string) (string, error) {
	return RunOn(text, func(c inet.Config, iss uint32) End { return inet.Dial(c, 1, inet.Addr{10, 0, 0, 2}, 2, iss) })
}

// RunOn runs a script on another implementation. dial gets the parameters and
// the first sequence number of the script. Scripts for it cannot print facts
// and cannot listen.
func RunOn(text string, dial func(c inet.Config, iss uint32) End) (string, error) {
	lines, err := parse(text)
	if err != nil {
		return "", err
	}
	w := &world{dial: dial}
	given := 0 // lines printed up to the last given line
	var notes []note
	stood, at := 0, sim.Time(0)
	for i := range lines {
		l := &lines[i]
		at = at.Later(l.after)
		switch {
		case l.verb == "":
			notes = append(notes, note{stood, l.rest})
			continue
		case l.happens():
			stood++
			continue
		case at > sim.Horizon:
			return "", mistake(l.number, "the time is beyond %v", sim.Horizon)
		}
		if err := w.until(at, l.number); err != nil {
			return "", err
		}
		w.comment(given, notes)
		notes, stood = nil, 0
		err := w.line(l, func() { given = len(w.out) })
		if err == nil {
			err = w.output(l.number)
		}
		if err != nil {
			return "", err
		}
	}
	w.comment(given, notes)
	return strings.TrimRight(strings.Join(w.out, "\n"), "\n") + "\n", nil
}

// comment puts comments back into their places among the outcomes since the
// last given line.
func (w *world) comment(given int, notes []note) {
	tail := append([]string(nil), w.out[given:]...)
	w.out = w.out[:given]
	for i := 0; i <= len(tail); i++ {
		for _, n := range notes {
			if n.behind == i || i == len(tail) && n.behind > i {
				w.out = append(w.out, n.text)
			}
		}
		if i < len(tail) {
			w.out = append(w.out, tail[i])
		}
	}
}

// print prints a line at the present time.
func (w *world) print(format string, args ...any) {
	after := "+" + strings.ReplaceAll((w.now-w.printed).String(), " ", "")
	if w.now == w.printed {
		after = "+0"
	}
	w.printed = w.now
	w.out = append(w.out, fmt.Sprintf("%-6s ", after)+fmt.Sprintf(format, args...))
}

// until lets time pass up to at. A segment at that time comes before timers
// that end then.
func (w *world) until(at sim.Time, line int) error {
	for w.x != nil && w.x.Deadline() < at {
		w.now = max(w.now, w.x.Deadline())
		w.x.Expire(w.now)
		if err := w.output(line); err != nil {
			return err
		}
	}
	w.now = at
	return nil
}

// output prints the segments that the end sends.
func (w *world) output(line int) error {
	if w.refuse != nil {
		w.print("> %s", show(w.refuse))
		w.refuse = nil
	}
	if w.x == nil {
		return nil
	}
	for more := true; more; {
		more = w.x.Output(w.now, 64, func(s *inet.Segment) {
			w.sent++
			w.print("> %s", show(s))
		})
		if w.sent > mostSegments {
			return mistake(line, "more than %d segments", mostSegments)
		}
	}
	if err := w.x.Err(); err != nil && !w.failed {
		w.failed = true
		w.out = append(w.out, "! "+err.Error())
	}
	return nil
}

// line carries out a given line, and calls printed once it is printed.
func (w *world) line(l *line, printed func()) error {
	if l.verb == "set" {
		defer printed()
		return w.begin(l)
	}
	if !w.set {
		return mistake(l.number, "%q before set", l.verb)
	}
	w.print("%s", strings.TrimSpace(l.verb+" "+l.rest))
	printed()
	switch l.verb {
	case "wait":
		return nil
	case "dial", "listen":
		if w.x != nil || w.listening {
			return mistake(l.number, "%s: there is a connection", l.verb)
		}
		if w.listening = l.verb == "listen"; !w.listening {
			w.x = w.dial(w.config, ours)
		}
		return nil
	case "<":
		return w.input(l)
	}
	if w.x == nil {
		return mistake(l.number, "%s without a connection", l.verb)
	}
	switch l.verb {
	case "write", "read":
		return w.stream(l)
	case "close":
		w.x.Close()
	case "release":
		w.x.Release(w.now)
	case "abort":
		w.x.Abort(w.now)
	case "?":
		return w.facts(l)
	default:
		return mistake(l.number, "%q, expected <, dial, listen, write, read, close, release, abort, wait or ?", l.verb)
	}
	return nil
}

// begin parses the parameters.
func (w *world) begin(l *line) error {
	words := strings.Fields(l.rest)
	if len(words) == 0 || w.set {
		return mistake(l.number, "set, expected once, with one of %s", strings.Join(inet.Sets(), ", "))
	}
	w.config.MSS = 1000
	var overrides []string
	for _, o := range words[1:] {
		if v, ok := strings.CutPrefix(o, "mss="); ok {
			n, err := strconv.Atoi(v)
			if err != nil || n < 1 || n > inet.MaxPacket-inet.HeaderBytes-inet.TCPHeaderBytes {
				return mistake(l.number, "mss %q", v)
			}
			w.config.MSS = n
			continue
		}
		overrides = append(overrides, o)
	}
	spec, err := inet.Load(words[0], overrides...)
	if err != nil {
		return mistake(l.number, "%v", err)
	}
	w.config.Spec, w.set = *spec, true
	w.out = append(w.out, "set "+l.rest)
	return nil
}

// input delivers a segment to the end.
func (w *world) input(l *line) error {
	s, err := w.segment(l.number, l.rest)
	if err != nil {
		return err
	}
	if w.x != nil {
		w.x.Input(w.now, &s)
		return nil
	}
	if w.listening && s.Flags&(inet.SYN|inet.ACK|inet.RST) == inet.SYN {
		w.x = inet.Accept(w.config, w.now, inet.Addr{10, 0, 0, 2}, &s, ours)
	} else if answer, due := inet.Refuse(&s); due && (!w.listening || s.Flags&inet.ACK != 0) {
		// a listener drops other segments (RFC 9293 §3.10.7.2, fourth)
		w.refuse = &answer
	}
	return nil
}

// stream writes or reads bytes.
func (w *world) stream(l *line) error {
	n, err := strconv.Atoi(l.rest)
	if err != nil || n < 0 || n > mostWrite {
		return mistake(l.number, "%s %q, expected a number up to %d", l.verb, l.rest, mostWrite)
	}
	b := make([]byte, n)
	if l.verb == "read" {
		w.x.Read(b)
		return nil
	}
	for i := range b {
		b[i] = byte(w.written + i)
	}
	w.written += w.x.Write(b)
	return nil
}

// facts prints the state of the end.
func (w *world) facts(l *line) error {
	x, ok := w.x.(*inet.Conn)
	if !ok {
		return nil
	}
	var all []string
	rto, rtt := x.RTO()
	cwnd, threshold, _ := x.Window()
	n := &x.Stats
	readable, _ := x.Readable()
	for name := range strings.FieldsSeq(l.rest) {
		var v any
		switch name {
		case "state":
			v = x.State()
		case "cwnd":
			v = cwnd
		case "ssthresh":
			v = threshold
		case "rto":
			v = rto
		case "srtt":
			v = rtt
		case "retransmitted":
			v = n.Retransmitted
		case "timeouts":
			v = n.Timeouts
		case "fast":
			v = n.Fast
		case "probes":
			v = n.Probes
		case "tail":
			v = n.TailProbes
		case "challenges":
			v = n.Challenges
		case "dropped":
			v = n.Dropped
		case "received":
			v = n.Received
		case "readable":
			v = readable
		case "room":
			v = x.Room()
		case "mss":
			v = x.MSS()
		case "error":
			v = x.Err()
		default:
			return mistake(l.number, "no fact %q", name)
		}
		all = append(all, fmt.Sprintf("%s %v", name, v))
	}
	w.out = append(w.out, "= "+strings.Join(all, ", "))
	return nil
}
