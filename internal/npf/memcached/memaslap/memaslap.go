// Package memaslap generates the load of memaslap, the load generator of
// libmemcached (its manual page, docs/bin/memaslap.rst). In a closed loop,
// connections read and store objects of a window: 90% reads and 10% stores,
// keys of 64 B and values of 1 KiB. A Client is one of memaslap's
// "concurrencies": a connection with its own window. It is pure: bytes in,
// bytes out.
//
// Objects of the window are drawn uniformly. A store replaces an object of the
// window by a new one, or overwrites one (Overwrite). There are three
// differences from memaslap. In memaslap, a connection has one operation under
// way, or one read of many keys; here the number is free (Outstanding). Values
// repeat one word and are not part of a table of random bytes, so that a server
// may keep only the word. Each value that arrives is compared with the stored
// one (memaslap's --verify=1).
package memaslap

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
)

// Config is the relevant options of memaslap; 0: its default.
type Config struct {
	Window      int     // objects (--win_size). Default 10,000
	KeyBytes    int     // 16 to 250. Default 64
	ValueBytes  int     // 8 B to 1 MiB (memaslap: from 1). Default 1,024
	Sets        float64 // share of operations that store. Default 0.1
	OnlyGets    bool    // none do
	Overwrite   float64 // share of stores that overwrite an object (--overwrite). Default 0
	Outstanding int     // most operations under way. Default 1
	// the window is stored before the first read; otherwise somebody else does
	// that, or reads miss
	Preset bool
	Seed   uint64
}

func (c Config) normal() (Config, error) {
	for _, d := range []struct {
		field *int
		n     int
	}{{&c.Window, 10_000}, {&c.KeyBytes, 64}, {&c.ValueBytes, 1024}, {&c.Outstanding, 1}} {
		if *d.field == 0 {
			*d.field = d.n
		}
	}
	if c.Sets == 0 && !c.OnlyGets {
		c.Sets = 0.1
	}
	var wrong []error
	for _, d := range []struct {
		what         string
		n, low, high int
	}{
		{"window of objects", c.Window, 1, maxWindow},
		{"bytes of a key", c.KeyBytes, 16, 250},
		{"bytes of a value", c.ValueBytes, wordBytes, 1 << 20},
		{"operations under way", c.Outstanding, 1, 1 << 16},
	} {
		if d.n < d.low || d.n > d.high {
			wrong = append(wrong, fmt.Errorf("memaslap: %s: %d, expected %d to %d", d.what, d.n, d.low, d.high))
		}
	}
	if !(c.Sets >= 0 && c.Sets <= 1) || !(c.Overwrite >= 0 && c.Overwrite <= 1) {
		wrong = append(wrong, fmt.Errorf("memaslap: parts of stores and of overwriting stores: %v and %v, expected 0 to 1", c.Sets, c.Overwrite))
	}
	return c, errors.Join(wrong...)
}

const (
	maxWindow  = 1 << 24
	wordBytes  = 8 // of a value
	digits     = 16
	clientBits = 40 // of a serial number, behind the bits of the client
)

// Stats counts finished operations.
type Stats struct {
	Gets, Hits, Misses, Sets int64
	NotStored                int64 // sets for which the server had no memory
	Wrong                    int64 // values that differ from the stored ones
}

// Add adds the counts of another client.
func (s *Stats) Add(o *Stats) {
	s.Gets += o.Gets
	s.Hits += o.Hits
	s.Misses += o.Misses
	s.Sets += o.Sets
	s.NotStored += o.NotStored
	s.Wrong += o.Wrong
}

// Ops returns the number of all operations.
func (s *Stats) Ops() int64 { return s.Gets + s.Sets }

// Client is a connection and its window.
type Client struct {
	Stats Stats

	c       Config
	rng     *rand.Rand
	objects []object
	serial  uint64 // of the next object
	preset  int    // objects of the window stored at the beginning
	stopped bool

	out   []byte
	sent  int
	in    []byte
	from  int
	under []operation // operations under way, the oldest first
	value []byte
	err   error
}

// object is an object of the window: its key, and the version of its value.
type object struct {
	serial  uint64
	version uint32 // 0: none was stored
}

type operation struct {
	object  object
	store   bool
	missing bool // possibly nothing was stored
}

// New returns the load of a connection. number is the connection's, from 0.
// Different numbers have different keys.
func New(c Config, number int) (*Client, error) {
	c, err := c.normal()
	if err != nil {
		return nil, err
	}
	x := &Client{c: c, rng: rand.New(rand.NewPCG(c.Seed, uint64(number)+1)), serial: uint64(number) << clientBits}
	x.Resize(c.Window)
	return x, nil
}

// Resize changes the size of the window. New objects are not stored yet.
// Removed objects are not used any more.
func (x *Client) Resize(n int) {
	for len(x.objects) < n {
		x.objects = append(x.objects, object{serial: x.serial})
		x.serial++
	}
	x.objects = x.objects[:n]
	x.preset = min(x.preset, n)
}

// Each calls f with key and value of each object of the window and marks them
// as stored. It sets up a server with them. Key and value are valid during the
// call.
func (x *Client) Each(f func(key, value []byte) error) error {
	var key []byte
	for i := range x.objects {
		o := &x.objects[i]
		o.version++
		key, x.value = appendKey(key[:0], *o, x.c.KeyBytes), appendValue(x.value[:0], *o, x.c.ValueBytes)
		if err := f(key, x.value); err != nil {
			return err
		}
	}
	return nil
}

// Stop makes the client begin no more operations.
func (x *Client) Stop() { x.stopped = true }

// Idle reports whether no operation is under way.
func (x *Client) Idle() bool { return len(x.under) == 0 }

// Err returns the error that ended the load: an answer that no server gives.
func (x *Client) Err() error { return x.err }

// Output returns the bytes to send, including operations that may begin now. It
// is valid until the next call.
func (x *Client) Output() []byte {
	for len(x.under) < x.c.Outstanding && !x.stopped && x.err == nil {
		x.begin()
	}
	return x.out[x.sent:]
}

// Sent removes n sent bytes from Output.
func (x *Client) Sent(n int) {
	if x.sent += n; x.sent == len(x.out) {
		x.out, x.sent = x.out[:0], 0
	}
}

// begin begins an operation.
func (x *Client) begin() {
	if x.c.Preset && x.preset < len(x.objects) {
		x.preset++
		x.store(&x.objects[x.preset-1])
		return
	}
	o := &x.objects[x.rng.IntN(len(x.objects))]
	if x.rng.Float64() < x.c.Sets {
		if x.c.Overwrite == 0 || x.rng.Float64() >= x.c.Overwrite {
			*o = object{serial: x.serial}
			x.serial++
		}
		x.store(o)
		return
	}
	x.under = append(x.under, operation{object: *o, missing: o.version == 0})
	x.out = append(x.out, "get "...)
	x.out = appendKey(x.out, *o, x.c.KeyBytes)
	x.out = append(x.out, "\r\n"...)
}

func (x *Client) store(o *object) {
	o.version++
	x.under = append(x.under, operation{object: *o, store: true})
	x.out = append(x.out, "set "...)
	x.out = appendKey(x.out, *o, x.c.KeyBytes)
	x.out = append(x.out, " 0 0 "...)
	x.out = strconv.AppendInt(x.out, int64(x.c.ValueBytes), 10)
	x.out = append(x.out, "\r\n"...)
	x.out = appendValue(x.out, *o, x.c.ValueBytes)
	x.out = append(x.out, "\r\n"...)
}

// appendKey appends the key of an object: its serial number, and letters.
func appendKey(b []byte, o object, n int) []byte {
	const hex = "0123456789abcdef"
	for i := digits - 1; i >= 0; i-- {
		b = append(b, hex[o.serial>>(4*i)&15])
	}
	for range n - digits {
		b = append(b, 'k')
	}
	return b
}

// word returns the word that the present value of an object repeats.
func (o object) word() uint64 {
	x := (o.serial<<20 ^ uint64(o.version)) * 0x9e3779b97f4a7c15 // splitmix64
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	return x ^ x>>27
}

func appendValue(b []byte, o object, n int) []byte {
	from := len(b)
	b = binary.LittleEndian.AppendUint64(b, o.word())
	for len(b)-from < n {
		b = append(b, b[from:]...)
	}
	return b[:from+n]
}

// Feed takes bytes that have arrived, and ends the operations whose answers are
// complete.
func (x *Client) Feed(b []byte) {
	if x.from > 0 && len(x.in)+len(b) > cap(x.in) {
		x.in = x.in[:copy(x.in, x.in[x.from:])]
		x.from = 0
	}
	x.in = append(x.in, b...)
	for x.err == nil && x.from < len(x.in) {
		n := x.answer(x.in[x.from:])
		if n == 0 {
			break
		}
		if x.from += n; x.from == len(x.in) {
			x.in, x.from = x.in[:0], 0
		}
	}
}

// answer takes the answer of the oldest operation and returns its length; 0: it
// is incomplete.
func (x *Client) answer(in []byte) int {
	if len(x.under) == 0 {
		x.err = fmt.Errorf("memaslap: %q came, and nothing was asked", in[:min(len(in), 32)])
		return 0
	}
	i := bytes.IndexByte(in, '\n')
	if i < 0 {
		return 0
	}
	line, op := in[:i+1], x.under[0]
	n := i + 1
	switch {
	case op.store && string(line) == "STORED\r\n":
	case op.store && bytes.HasPrefix(line, []byte("SERVER_ERROR out of memory")):
		x.Stats.NotStored++
	case !op.store && string(line) == "END\r\n":
		x.Stats.Misses++
	case !op.store && bytes.HasPrefix(line, []byte("VALUE ")):
		const tail = "\r\nEND\r\n"
		if n += x.c.ValueBytes + len(tail); len(in) < n {
			return 0
		}
		value := in[i+1 : i+1+x.c.ValueBytes]
		if string(in[n-len(tail):n]) != tail {
			x.err = fmt.Errorf("memaslap: %q is not the end of an object of %d bytes", in[n-len(tail):n], x.c.ValueBytes)
			return 0
		}
		if op.missing || binary.LittleEndian.Uint64(value) != op.object.word() || !bytes.Equal(value[wordBytes:], value[:len(value)-wordBytes]) {
			x.Stats.Wrong++
		}
		x.Stats.Hits++
	default:
		x.err = fmt.Errorf("memaslap: answer %q to an operation of key %s", line[:min(len(line), 64)], appendKey(nil, op.object, x.c.KeyBytes))
		return 0
	}
	if op.store {
		x.Stats.Sets++
	} else {
		x.Stats.Gets++
	}
	x.under = x.under[:copy(x.under, x.under[1:])]
	return n
}
