package handlerlab

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/spinsim/spinsim/sim"
)

// Message is a put to the device. A message longer than the MTU is several
// packets.
type Message struct {
	Line int    // in its file; 0: none
	Data []byte // user header included
	// the sending node, 0 to MaxNode, but not the device; AnySource: the first
	// of the other nodes
	Source    int
	Offset    uint64   // in the entry, bytes
	MatchBits uint64   // the entry accepts all
	HdrData   uint64   // 64 bits that travel with the header
	At        sim.Time // when the sender posts it, unless it is busy with an earlier one
}

// Limits of the messages.
const (
	AnySource  = -1      // the message gives no sender
	MaxNode    = 63      // highest node that sends or receives
	maxMessage = 1 << 26 // bytes
	maxTotal   = 1 << 28 // bytes of all messages
	maxCount   = 1 << 16 // messages
	maxTime    = sim.Second
)

// PacketSyntax describes what ParsePackets reads.
const PacketSyntax = `One message per line: fields, then the bytes in hexadecimal, with any spaces.
  source=2 hdr_data=0x10 01000000 00*60
Fields, all optional: source (node; default: the first that is not the device), offset (in the entry, bytes), match_bits, hdr_data (64 bits), at (time of posting: 1.5us).
ab*60 repeats the bytes; "text" in quotes stands for its bytes; a line with a field but without bytes is a message without
payload. A line that begins with + continues the previous message. # begins a comment. A message longer than the MTU travels in several packets.`

// ParsePackets reads messages from text. Errors give name and line.
func ParsePackets(name string, text []byte) ([]Message, error) {
	var messages []Message
	total := 0
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, maxMessage*3)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		more, goesOn := strings.CutPrefix(line, "+")
		tokens, err := split(more)
		had, before := len(tokens) > 0, 0
		switch {
		case err != nil:
		case goesOn && len(messages) == 0:
			err = fmt.Errorf("there is no message to go on with")
		case goesOn:
			last := &messages[len(messages)-1]
			before = len(last.Data)
			err = last.append(tokens)
		case len(tokens) > 0:
			m := Message{Line: n, Source: AnySource}
			if tokens, err = m.fields(tokens); err == nil {
				err = m.append(tokens)
			}
			messages = append(messages, m)
		}
		if err == nil && (goesOn || had) {
			total += len(messages[len(messages)-1].Data) - before
			err = bounded(len(messages), total)
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(messages) == 0 {
		return nil, fmt.Errorf("%s: no message, expected lines of bytes in hexadecimal", name)
	}
	return messages, nil
}

// bounded returns an error if there are too many messages or bytes.
func bounded(messages, bytes int) error {
	if messages > maxCount || bytes > maxTotal {
		return fmt.Errorf("more than %d messages or %d bytes in all", maxCount, maxTotal)
	}
	return nil
}

// CheckMessages returns an error if there are too many messages or too many
// bytes.
func CheckMessages(messages []Message) error {
	total := 0
	for i := range messages {
		n := len(messages[i].Data)
		if n > maxMessage {
			return fmt.Errorf("message %d has %d bytes, expected at most %d", i+1, n, maxMessage)
		}
		if total += n; total > maxTotal {
			break
		}
	}
	return bounded(len(messages), total)
}

// split splits a line at blanks outside quotes and drops the comment.
func split(line string) (tokens []string, err error) {
	for {
		line = strings.TrimLeft(line, " \t")
		if line == "" || line[0] == '#' {
			return tokens, nil
		}
		end := strings.IndexAny(line, " \t#")
		if line[0] == '"' {
			quoted, err := strconv.QuotedPrefix(line)
			if err != nil {
				return nil, fmt.Errorf("text without closing quote: %s", line)
			}
			end = len(quoted)
		}
		if end < 0 {
			end = len(line)
		}
		tokens = append(tokens, line[:end])
		line = line[end:]
	}
}

// fields reads the leading tokens of the form name=value.
func (m *Message) fields(tokens []string) (rest []string, err error) {
	given := make(map[string]bool)
	for i, t := range tokens {
		name, value, is := strings.Cut(t, "=")
		if !is || strings.HasPrefix(t, `"`) {
			return tokens[i:], nil
		}
		if given[name] {
			return nil, fmt.Errorf("%s is given twice", name)
		}
		given[name] = true
		switch name {
		case "source":
			var v uint64
			v, err = number(value)
			m.Source = int(min(v, MaxNode+1))
			if err == nil && v > MaxNode {
				err = fmt.Errorf("%s, expected 0 to %d", value, MaxNode)
			}
		case "offset":
			m.Offset, err = number(value)
		case "match_bits":
			m.MatchBits, err = number(value)
		case "hdr_data":
			m.HdrData, err = number(value)
		case "at":
			m.At, err = sim.ParseTime(value)
			if err == nil && (m.At < 0 || m.At > maxTime) {
				err = fmt.Errorf("%s, expected 0 to %v", value, maxTime)
			}
		default:
			return nil, fmt.Errorf("no field %s, expected source, offset, match_bits, hdr_data or at", name)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil, nil
}

func number(s string) (uint64, error) {
	v, err := strconv.ParseUint(s, 0, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is no number of 64 bits", s)
	}
	return v, nil
}

// append adds the bytes that tokens describe.
func (m *Message) append(tokens []string) error {
	for _, t := range tokens {
		b, times, err := decode(t)
		if err != nil {
			return err
		}
		if len(m.Data)+len(b)*times > maxMessage {
			return fmt.Errorf("more than %d bytes in a message", maxMessage)
		}
		m.Data = append(m.Data, bytes.Repeat(b, times)...)
	}
	return nil
}

// decode reads one token: bytes, and how often they repeat.
func decode(t string) (b []byte, times int, err error) {
	if strings.HasPrefix(t, `"`) {
		text, err := strconv.Unquote(t)
		return []byte(text), 1, err
	}
	digits, count, repeated := strings.Cut(t, "*")
	times = 1
	if repeated {
		n, err := strconv.ParseUint(count, 10, 32)
		if err != nil || n > maxMessage {
			return nil, 0, fmt.Errorf("%q: expected a number up to %d behind *", t, maxMessage)
		}
		times = int(n)
	}
	if b, err = hex.DecodeString(digits); err != nil {
		return nil, 0, fmt.Errorf("%q: expected pairs of hexadecimal digits, such as 01ff", t)
	}
	return b, times, nil
}

// ParseHex reads the bytes of one message: hexadecimal digits, blanks,
// repetitions and quoted text.
func ParseHex(text string) ([]byte, error) {
	tokens, err := split(text)
	if err != nil {
		return nil, err
	}
	var m Message
	err = m.append(tokens)
	return m.Data, err
}
