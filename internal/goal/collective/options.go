package collective

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spinsim/spinsim/goal"
	"github.com/spinsim/spinsim/internal/fields"
	"github.com/spinsim/spinsim/sim"
)

// Options say how a collective is done.
type Options struct {
	// Algorithm is the name of one.
	Algorithm string
	// Protocol is what is sent around the bytes.
	Protocol Protocol
	// Channels is the number of threads, each with a part of the vector, 1 to
	// MaxChannels.
	Channels int
	// Chunk is the most bytes of a member that a channel passes on at a time; 0:
	// all.
	Chunk uint64
	// Slices is the number of messages of a chunk, 1 to MaxSlices.
	Slices int
	// Reduce and Copy are the times of a byte that is received and reduced, or
	// received and kept.
	Reduce, Copy goal.ByteTime
}

// Limits of options. NCCL 2.20 has up to 32 channels, and 8 steps in a buffer.
const (
	MaxChannels = 64
	MaxSlices   = 64
)

// Protocol is what is sent around the bytes of a message.
type Protocol string

// NCCL's protocols.
const (
	Simple Protocol = "simple"
	LL     Protocol = "ll"    // a flag of 4 bytes beside each 4 bytes of data, in lines of 16
	LL128  Protocol = "ll128" // a flag of 8 bytes in each line of 128
)

// lines are what a line holds, and how long it is.
var lines = map[Protocol]struct{ data, length uint64 }{Simple: {1, 1}, LL: {8, 16}, LL128: {120, 128}}

// Wire returns the bytes of a message with n bytes of data.
func (p Protocol) Wire(n uint64) uint64 {
	l := lines[p]
	return (n + l.data - 1) / l.data * l.length
}

// Parse reads ALGORITHM[:PROTOCOL][:channels=N][:chunk=SIZE][:slices=N]
// [:reduce=NS][:copy=NS], the last two per byte.
func Parse(text string) (o Options, err error) {
	words := strings.Split(text, ":")
	o = Options{Algorithm: words[0], Protocol: Simple, Channels: 1, Slices: 1}
	a := find(o.Algorithm)
	if a == nil {
		return o, fmt.Errorf("algorithm %q, expected one of %s%s", o.Algorithm, strings.Join(Names(), ", "), fields.DidYouMean(o.Algorithm, Names()))
	}
	seen := make(map[string]bool)
	for _, word := range words[1:] {
		name, value, given := strings.Cut(word, "=")
		if !given {
			name, value = "protocol", word
		}
		if seen[name] {
			return o, fmt.Errorf("%s: %s twice", text, name)
		}
		seen[name] = true
		if err := o.set(a, name, value); err != nil {
			return o, fmt.Errorf("%s: %w", text, err)
		}
	}
	return o, nil
}

// set sets an option.
func (o *Options) set(a *algorithm, name, value string) (err error) {
	count := func(most int) int {
		n, wrong := strconv.Atoi(value)
		if wrong != nil || n < 1 || n > most {
			err = fmt.Errorf("%s: %q, expected 1 to %d", name, value, most)
		}
		return n
	}
	if !a.threads && slices.Contains([]string{"channels", "chunk", "slices"}, name) {
		return fmt.Errorf("%s has no %s", a.name, name)
	}
	switch name {
	case "protocol":
		if o.Protocol = Protocol(value); lines[o.Protocol].length == 0 {
			return fmt.Errorf("%q, expected %s, %s, %s, or NAME=VALUE", value, Simple, LL, LL128)
		}
	case "channels":
		o.Channels = count(MaxChannels)
	case "slices":
		o.Slices = count(MaxSlices)
	case "chunk":
		n, wrong := sim.ParseSize(value)
		if wrong != nil || n < 1 {
			return fmt.Errorf("chunk: %q, expected a size from 1", value)
		}
		o.Chunk = uint64(n)
	case "reduce":
		o.Reduce, err = goal.ParseByteTime(value)
	case "copy":
		o.Copy, err = goal.ParseByteTime(value)
	default:
		err = fmt.Errorf("%q, expected channels, chunk, slices, reduce or copy", name)
	}
	return err
}
