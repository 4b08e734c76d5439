// Package memaslap is the load of memaslap, the load generator of libmemcached
// (its manual page, docs/bin/memaslap.rst): connections that read and store
// objects of a window, 90% and 10%, keys of 64 B and values of 1 KiB, in a
// closed loop. A Client is one of its "concurrencies": a connection with a
// window of its own. It is pure: bytes in, bytes out.
//
// Objects of the window are drawn uniformly. A store takes a new object into
// the window in the place of one that it kicks out, or overwrites one
// (Overwrite). What is here and not there: memaslap has one operation under way
// on a connection, or one read of many keys; here it is as many as one likes
// (Outstanding). Values are a word again and again rather than a piece of a
// table of random bytes, so that a server may keep them as the word; each value
// that comes is compared with the one that was stored, memaslap's --verify=1.
package memaslap

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
)

// Config is the options of memaslap that matter; 0: its default.
type Config struct {
	Window      int     // objects (--win_size). Default 10,000
	KeyBytes    int     // 16 to 250. Default 64
	ValueBytes  int     // 8 B to 1 MiB (memaslap: from 1). Default 1,024
	Sets        float64 // part of operations that store. Default 0.1
	OnlyGets    bool    // none do
	Overwrite   float64 // part of stores that overwrite an object (--overwrite). Default 0
	Outstanding int     // operations that are under way at a time. Default 1
	// the window is stored before anything is read; else somebody else does
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
	clientBits = 40 // of a serial number, behind the client's
)

// Stats counts operations that have ended.
type Stats struct {
	Gets, Hits, Misses, Sets int64
	NotStored                int64 // of the sets: the server had no memory
	Wrong                    int64 // values that are not what was stored
}

// Add adds those of another client.
func (s *Stats) Add(o *Stats) {
	s.Gets += o.Gets
	s.Hits += o.Hits
	s.Misses += o.Misses
	s.Sets += o.Sets
	s.NotStored += o.NotStored
	s.Wrong += o.Wrong
}

// Ops is all of them.
func (s *Stats) Ops() int64 { return s.Gets + s.Sets }

// Client is a connection and its window.
type Client struct {
	Stats Stats

	c       Config
	rng     *rand.Rand
	objects []object
	serial  uint64 // of the next object
	preset  int    // objects of the window that were stored in the beginning
	stopped bool

	out   []byte
	sent  int
	in    []byte
	from  int
	under []operation // that are under way, the oldest first
	value []byte
	err   error
}

// object is one of the window: its key, and which of its values is there.
type object struct {
	serial  uint64
	version uint32 // 0: none was stored
}

type operation struct {
	object  object
	store   bool
	missing bool // it may be that nothing was stored
}

// New returns a connection's load; number says which one it is, from 0.
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

// Resize gives the window another size: new objects were not stored yet, and
// those that are kicked out are not used any more.
func (x *Client) Resize(n int) {
	for len(x.objects) < n {
		x.objects = append(x.objects, object{serial: x.serial})
		x.serial++
	}
	x.objects = x.objects[:n]
	x.preset = min(x.preset, n)
}

// Each calls f with key and value of each object of the window, as if they had
// been stored: for a server that is set up with them. They are valid during the
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

// Stop has it begin no more operations.
func (x *Client) Stop() { x.stopped = true }

// Idle reports whether nothing is under way.
func (x *Client) Idle() bool { return len(x.under) == 0 }

// Err is why the load has ended: an answer that no server gives.
func (x *Client) Err() error { return x.err }

// Output is what is to be sent, with the operations that may begin now. It is
// valid until the next call.
func (x *Client) Output() []byte {
	for len(x.under) < x.c.Outstanding && !x.stopped && x.err == nil {
		x.begin()
	}
	return x.out[x.sent:]
}

// Sent says that so many bytes of Output are.
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

// word is what the present value of an object is made of.
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

// Feed takes bytes that have come, and ends the operations whose answers are there.
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

// answer takes the answer of the oldest operation and returns its length; 0:
// not all of it has come.
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
