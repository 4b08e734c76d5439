package inetscript

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spinsim/spinsim/inet"
	"github.com/spinsim/spinsim/sim"
)

// line is a line of a script.
type line struct {
	number int
	after  sim.Time // the line before
	verb   string   // "": a comment
	rest   string
}

// mistake returns an error about a line of a script.
func mistake(n int, format string, args ...any) error {
	return fmt.Errorf("line %d: "+format, append([]any{n}, args...)...)
}

// happens reports whether a line is an outcome.
func (l *line) happens() bool { return l.verb == ">" || l.verb == "=" || l.verb == "!" }

// parse splits a script into lines. Comments and empty lines have no verb and
// are copied as they are.
func parse(text string) (lines []line, err error) {
	for i, t := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		l := line{number: i + 1, rest: t}
		words := strings.Fields(t)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			lines = append(lines, l)
			continue
		}
		if at, timed := strings.CutPrefix(words[0], "+"); timed {
			if at == "0" {
				at = "0s"
			}
			if l.after, err = sim.ParseTime(at); err != nil || l.after < 0 {
				return nil, mistake(l.number, "time %q, expected such as +0 or +1.5ms", words[0])
			}
			if words = words[1:]; len(words) == 0 {
				return nil, mistake(l.number, "nothing behind the time")
			}
		} else if words[0] != "set" && words[0] != "=" && words[0] != "!" {
			return nil, mistake(l.number, "%q, expected a time such as +0", words[0])
		}
		l.verb, l.rest = words[0], strings.Join(words[1:], " ")
		lines = append(lines, l)
	}
	return lines, nil
}

// flagLetters are in the order of printing.
var flagLetters = []struct {
	letter string
	flag   uint8
}{{"S", inet.SYN}, {"F", inet.FIN}, {"R", inet.RST}, {"P", inet.PSH}, {".", inet.ACK}}

// segment parses a segment and makes its numbers absolute, for example "P.
// 1:501(500) ack 1 win 100 <mss 1000,sack 3:4 6:7>".
func (w *world) segment(n int, text string) (s inet.Segment, err error) {
	text, options, ok := strings.Cut(text, "<")
	words := strings.Fields(text)
	if len(words) < 2 {
		return s, mistake(n, "segment %q, expected flags and numbers", text)
	}
	for _, c := range words[0] {
		known := false
		for _, f := range flagLetters {
			if f.letter == string(c) {
				s.Flags, known = s.Flags|f.flag, true
			}
		}
		if !known {
			return s, mistake(n, "flag %q, expected S, F, R, P or .", c)
		}
	}
	var from, to, length uint32
	if got, err := fmt.Sscanf(words[1], "%d:%d(%d)", &from, &to, &length); got != 3 || err != nil || to-from != length || length > inet.MaxPacket {
		return s, mistake(n, "numbers %q, expected from:to(bytes)", words[1])
	}
	s.Seq, s.Data = theirs+from, make([]byte, length)
	for words = words[2:]; len(words) > 0; words = words[2:] {
		if len(words) < 2 {
			return s, mistake(n, "%q without a number", words[0])
		}
		v, err := strconv.ParseUint(words[1], 10, 32)
		switch {
		case err == nil && words[0] == "ack":
			s.Ack = ours + uint32(v)
		case err == nil && words[0] == "win" && v <= 0xffff:
			s.Window = uint16(v)
		default:
			return s, mistake(n, "%q, expected ack or win with a number", words[0]+" "+words[1])
		}
	}
	if ok {
		err = w.options(n, &s, strings.TrimSuffix(strings.TrimSpace(options), ">"))
	}
	return s, err
}

// options parses the options of a segment.
func (w *world) options(n int, s *inet.Segment, text string) error {
	for option := range strings.SplitSeq(text, ",") {
		words := strings.Fields(option)
		name, args := "", []string(nil)
		if len(words) > 0 {
			name, args = words[0], words[1:]
		}
		switch v, err := strconv.Atoi(strings.Join(args, "")); {
		case name == "mss" && err == nil && v > 0 && v <= 0xffff:
			s.MSS = uint16(v)
		case name == "wscale" && err == nil && v >= 0 && v < 15:
			s.Scale = v + 1
		case name == "sackOK" && len(args) == 0:
			s.Selective = true
		case name == "sack" && len(args) > 0 && len(args) <= len(s.Blocks):
			for _, a := range args {
				var k inet.Block
				if got, err := fmt.Sscanf(a, "%d:%d", &k.From, &k.To); got != 2 || err != nil {
					return mistake(n, "block %q, expected from:to", a)
				}
				s.Blocks[s.Told] = inet.Block{From: k.From + ours, To: k.To + ours}
				s.Told++
			}
		default:
			return mistake(n, "option %q, expected mss, wscale, sackOK or sack", option)
		}
	}
	return nil
}

// show prints a segment as the end sends it.
func show(s *inet.Segment) string {
	var b strings.Builder
	for _, f := range flagLetters {
		if s.Flags&f.flag != 0 {
			b.WriteString(f.letter)
		}
	}
	from := s.Seq - ours
	fmt.Fprintf(&b, " %d:%d(%d)", from, from+uint32(len(s.Data)), len(s.Data))
	if s.Flags&inet.ACK != 0 {
		fmt.Fprintf(&b, " ack %d", s.Ack-theirs)
	}
	if s.Flags&inet.RST == 0 {
		fmt.Fprintf(&b, " win %d", s.Window)
	}
	var options []string
	if s.MSS != 0 {
		options = append(options, fmt.Sprintf("mss %d", s.MSS))
	}
	if s.Selective {
		options = append(options, "sackOK")
	}
	if s.Scale != 0 {
		options = append(options, fmt.Sprintf("wscale %d", s.Scale-1))
	}
	if s.Told > 0 {
		told := "sack"
		for _, k := range s.Blocks[:s.Told] {
			told += fmt.Sprintf(" %d:%d", k.From-theirs, k.To-theirs)
		}
		options = append(options, told)
	}
	if len(options) > 0 {
		fmt.Fprintf(&b, " <%s>", strings.Join(options, ","))
	}
	return b.String()
}
