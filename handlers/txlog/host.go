//go:build !tinygo

package txlog

import (
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/runtime"
)

//go:generate go run ../../internal/build/cmd -o txlog.wasm guest

//go:embed txlog.wasm
var wasm []byte

// Library is the handler library, compiled from the Go source in guest.
var Library = handlers.Register("txlog", wasm)

// LogSlot is the log of accesses to shared memory.
var LogSlot = Library.Slot(handlers.Slot{
	Name: "log", Short: "the log of accesses to shared memory",
	Handlers: []string{Header, Completion},
	Expects: []string{
		"A read is logged before its data is read, a write when its data is in memory.",
		"Gets and puts come to entries with both handlers: log_completion logs each message that it sees, so log_header returns PROCEED after logging a get and PROCESS_DATA for a put.",
		"A record is 48 B (Record in state.go); numbers count from 1, and record n lies at place (n - 1) & last of the handler host memory.",
	},
})

// Names of its handlers: of the same entry.
const (
	Header     = "log_header"
	Completion = "log_completion"
)

// Loaded is the library on the devices of a cluster.
type Loaded struct{ module *handlers.Module }

// Load makes the library ready for the processes of a cluster.
func Load(c *runtime.Cluster) (*Loaded, error) {
	m, err := LogSlot.Load(c)
	return &Loaded{m}, err
}

// Options are the options of a region, the same for its home and its clients.
type Options struct {
	PT     uint32 // the first of three portal table indexes, used by this region only
	Region int    // bytes
	// Log is the number of records in the log before it wraps, a power of two;
	// 0: 4096. A transaction that takes longer than that does not commit.
	Log int
	// Commit is how many bytes a transaction can write, plus 16 for each place;
	// 0: 64 KiB.
	Commit int
	// ByHost: the home's host answers and logs reads; no handlers run.
	ByHost bool
	// Open: puts of clients into the region are logged, too. They are not
	// transactions, and may overwrite the writes of transactions unnoticed.
	Open bool
}

const (
	defaultLog    = 4096
	defaultCommit = 64 << 10
	maxLog        = 1 << 24
	maxBytes      = 1 << 40
)

func (o *Options) check() error {
	if o.Log == 0 {
		o.Log = defaultLog
	}
	if o.Commit == 0 {
		o.Commit = defaultCommit
	}
	switch {
	case o.Region <= 0 || o.Region > maxBytes:
		return fmt.Errorf("txlog: a region of %d B, expected 1 to %d", o.Region, maxBytes)
	case o.Log < 1 || o.Log > maxLog || o.Log&(o.Log-1) != 0:
		return fmt.Errorf("txlog: a log of %d records, expected a power of two up to %d", o.Log, maxLog)
	case o.Commit < 0 || o.Commit > maxBytes:
		return fmt.Errorf("txlog: commits of %d B, expected 0 to %d", o.Commit, maxBytes)
	}
	o.Commit = (o.Commit + 7) &^ 7
	return nil
}

// Portal table entries of the home, added to Options.PT; clients have the first
// one, for answers.
const (
	readEntry    = iota // gets of clients
	writeEntry          // puts of the home's host to itself
	requestEntry        // requests to the host
)

// Match bits of accesses to a region. The bits below them name the client and
// its transaction.
const (
	Bits    = 0x74786c6f << 32 // "txlo"
	TagBits = 1<<32 - 1
)

const (
	countBits = 20 // of a client's transactions, in a tag; above is its node
	countMask = 1<<countBits - 1
)

// Requests. The first word has the tag, and the kind or the number of places
// that a commit writes. The second has the number of the transaction's reads,
// or the offset of a read. Places follow.
const (
	requestSize = 16
	placeSize   = 16
	askRead     = 1<<32 - 1
)

// ErrRange is the error for an access beyond the region.
var ErrRange = errors.New("txlog: an access beyond the region")

// within checks an access.
func (o *Options) within(offset, n int) error {
	if offset < 0 || n > o.Region || offset > o.Region-n {
		return fmt.Errorf("%w: %d B at %d of %d B", ErrRange, n, offset, o.Region)
	}
	return nil
}

// ErrTaken means that another process of the node is already the home's client.
var ErrTaken = errors.New("txlog: another process of the node is the home's client")

var le = binary.LittleEndian

// slot returns the largest size of a client's request, bytes.
func (o *Options) slot() int { return requestSize + o.Commit + placeSize*(o.Commit/8+1) }

// Answers of a home's host, in the header data: the number of the commit, or
// one of these.
const (
	aborted = 1 << 63
	served  = 1 << 62
	taken   = 1 << 61
)
