package mpitrace

import (
	"fmt"
	"maps"
	"slices"

	"github.com/spinsim/spinsim/goal"
)

// Error is an error in a trace.
type Error struct {
	File string
	Line int
	Err  error
}

func (e *Error) Error() string { return fmt.Sprintf("%s: line %d: %v", e.File, e.Line, e.Err) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// verb is what a call does to a schedule.
type verb uint8

const (
	send verb = iota + 1
	recv
	sendrecv
	sendInit
	recvInit
	start
	wait      // for all of its requests
	waitFirst // for one of them
	collect   // a collective
	create    // a communicator
	begin     // MPI_Init: the clock starts
	end       // MPI_Finalize
	forget    // a request
	inquire   // who a rank is, or how many there are
	group     // makes a group
)

// call is a line of a trace.
type call struct {
	verb     verb
	blocks   bool // until it is done
	line     int
	from, to int64 // its times, ns
	handle   handle
	comm     *comm // of the handle
	out, in  message
	request  uint64 // or the first of an array
	count    int    // of the array
	requests []uint64
	part     *part // of collect and create, and what tells of communicators
}

// message is what a call sends or receives.
type message struct {
	peer  int // in the communicator, wildcard or nobody
	tag   int // or wildcard
	bytes uint64
}

const (
	wildcard = -1
	nobody   = -2 // MPI_PROC_NULL
)

// handle is a communicator as a rank names it. A size of 0 is of no communicator.
type handle struct {
	value      uint64
	rank, size int
}

// explicit is the size of handles whose communicator the trace tells.
const explicit = -1

// part is what a rank says of a collective, or of a new communicator.
type part struct {
	name   string // of the call
	kind   goal.CollectiveKind
	bytes  uint64 // of a member, as in goal.Collective
	root   int
	counts []uint64 // bytes to each member; nil: all have as many
	back   []uint64 // bytes from each member
	split  bool
	color  int
	key    int
	told   *told
	each   bool // bytes are for each member
}

// MPI is whose constants a trace has.
type MPI struct{ AnySource, ProcNull, AnyTag int }

// Libraries are the constants of MPI libraries.
func Libraries() map[string]MPI {
	return map[string]MPI{"openmpi": {-1, -2, -1}, "mpich": {-2, -1, -1}}
}

// LibraryNames lists the libraries.
func LibraryNames() []string { return slices.Sorted(maps.Keys(Libraries())) }

// undefined is a color of nobody (MPI_UNDEFINED), of both.
const undefined = -32766
