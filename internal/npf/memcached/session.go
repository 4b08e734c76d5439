package memcached

import (
	"bytes"

	"github.com/spinsim/spinsim/sim"
)

// Answers of memcached 1.6.
const (
	stored          = "STORED\r\n"
	notStored       = "NOT_STORED\r\n"
	exists          = "EXISTS\r\n"
	notFound        = "NOT_FOUND\r\n"
	deleted         = "DELETED\r\n"
	touched         = "TOUCHED\r\n"
	fine            = "OK\r\n"
	end             = "END\r\n"
	unknown         = "ERROR\r\n"
	badLine         = "CLIENT_ERROR bad command line format\r\n"
	badDelete       = "CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]\r\n"
	badData         = "CLIENT_ERROR bad data chunk\r\n"
	badDelta        = "CLIENT_ERROR invalid numeric delta argument\r\n"
	badTime         = "CLIENT_ERROR invalid exptime argument\r\n"
	notNumber       = "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"
	tooLarge        = "SERVER_ERROR object too large for cache\r\n"
	outOfMemory     = "SERVER_ERROR out of memory storing object\r\n"
	outOfMemoryGet  = "SERVER_ERROR out of memory writing get response\r\n"
	outOfMemoryIncr = "SERVER_ERROR out of memory in incr\r\n"
)

// Lengths of lines in bytes. If more has arrived without an end of line,
// memcached closes the connection, except for reads of many keys.
const (
	maxLine    = 2048
	maxGetLine = 64 << 10
)

// maxAnswer is the most bytes of the answer to a line. memcached sends values
// in place, but here they are copied. A line of 64 KiB could ask for 32 GiB.
const maxAnswer = 64 << 20

// Session is a connection to a server: bytes in, bytes out. It has no clock and
// never waits.
type Session struct {
	store *Store
	in    []byte // not processed yet
	from  int
	out   []byte
	sent  int

	pending  pending
	swallow  int // bytes of a value to ignore
	closed   bool
	commands int64
	tokens   [][]byte
}

// pending is a storage command whose value has not arrived yet.
type pending struct {
	wanted         bool
	verb           verb
	key            [MaxKey]byte
	nkey, length   int
	flags, expires uint32
	unique         uint64
	quiet          bool
}

// NewSession returns a session of a new connection.
func NewSession(s *Store) *Session { return &Session{store: s} }

// Commands returns how many commands the session has executed.
func (x *Session) Commands() int64 { return x.commands }

// Closed reports whether the connection must be closed when Output is sent: the
// client has said quit, or its bytes were not the protocol.
func (x *Session) Closed() bool { return x.closed }

// Output returns the bytes to send. It is valid until the next call.
func (x *Session) Output() []byte { return x.out[x.sent:] }

// Sent removes n sent bytes from Output.
func (x *Session) Sent(n int) {
	if x.sent += n; x.sent == len(x.out) {
		x.out, x.sent = x.out[:0], 0
	}
}

// Feed takes bytes that have arrived. Step processes them.
func (x *Session) Feed(b []byte) {
	if x.from > 0 && len(x.in)+len(b) > cap(x.in) {
		x.in = x.in[:copy(x.in, x.in[x.from:])]
		x.from = 0
	}
	x.in = append(x.in, b...)
}

// Step executes a command if it is complete, and reports whether it has done
// something.
func (x *Session) Step(now sim.Time) bool {
	x.store.Tick(now)
	in := x.in[x.from:]
	switch {
	case x.closed || len(in) == 0:
		return false
	case x.swallow > 0:
		n := min(x.swallow, len(in))
		x.swallow -= n
		x.took(n)
		return true
	case x.pending.wanted:
		return x.value(in)
	}
	i := bytes.IndexByte(in, '\n')
	if i < 0 {
		x.endless(in)
		return x.closed
	}
	line := in[:i]
	if i > 0 && line[i-1] == '\r' {
		line = line[:i-1]
	}
	x.took(i + 1)
	x.command(line)
	return true
}

// took drops processed bytes. They stay readable until Feed.
func (x *Session) took(n int) {
	if x.from += n; x.from == len(x.in) {
		x.in, x.from = x.in[:0], 0
	}
}

// endless closes a connection on which a line does not end.
func (x *Session) endless(in []byte) {
	most := maxLine
	if text := bytes.TrimLeft(in, " "); bytes.HasPrefix(text, []byte("get ")) || bytes.HasPrefix(text, []byte("gets ")) {
		most = maxGetLine
	}
	if len(in) > most {
		x.closed = true
	}
}

func (x *Session) say(answer string) { x.out = append(x.out, answer...) }

// answer sends an answer unless the client has asked for none.
func (x *Session) answer(quiet bool, answer string) {
	if !quiet {
		x.say(answer)
	}
}

// value takes the value of a storage command with its end of line, once it is
// complete.
func (x *Session) value(in []byte) bool {
	p := &x.pending
	if len(in) < p.length+2 {
		return false
	}
	value, tail := in[:p.length], in[p.length:p.length+2]
	x.took(p.length + 2)
	p.wanted = false
	x.commands++
	if string(tail) != "\r\n" { // the rest is read as a command (complete_nread_ascii)
		x.answer(p.quiet, badData)
		return true
	}
	x.answer(p.quiet, x.store.store(p.verb, p.key[:p.nkey], value, p.flags, p.expires, p.unique))
	return true
}
