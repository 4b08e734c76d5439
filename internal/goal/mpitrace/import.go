package mpitrace

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spinsim/spinsim/goal"
	"github.com/spinsim/spinsim/internal/goal/collective"
)

// Algorithms are what the importer does collectives by, if the algorithm is not to
// send blocks directly: Schedgen's, where package collective has them.
func Algorithms() map[goal.CollectiveKind]string {
	return map[goal.CollectiveKind]string{
		goal.AllReduce: "doubling", goal.Broadcast: "binomial", goal.Reduce: "binomial", goal.Barrier: "dissemination",
		goal.AllGather: "ring", goal.ReduceScatter: "ring", goal.AllToAll: "linear",
	}
}

// Files sorts the names of the files of a trace by the rank: the last number in
// the name, before its extension. It refuses names of two traces, and a missing
// rank.
func Files(names []string) ([]string, error) {
	prefix, sorted := "", make([]string, len(names))
	for i, name := range names {
		stem := strings.TrimSuffix(name, filepath.Ext(name))
		base := strings.TrimRight(stem, "0123456789")
		rank, err := strconv.Atoi(stem[len(base):])
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s: expected a name like trace-0.txt, with the rank", name)
		case i > 0 && base != prefix:
			return nil, fmt.Errorf("%s and %s are files of two traces, expected one", names[0], name)
		case rank >= len(names):
			return nil, fmt.Errorf("%s: with %d files, the ranks are expected to be 0 to %d; a file is missing", name, len(names), len(names)-1)
		case sorted[rank] != "":
			return nil, fmt.Errorf("%s and %s are both of rank %d", sorted[rank], name, rank)
		}
		prefix, sorted[rank] = base, name
	}
	return sorted, nil
}

// trace is the file of a rank.
type trace struct {
	file  string
	calls []call
}

func (t *trace) at(c *call, err error) error { return &Error{t.file, c.line, err} }

// Format is of a trace.
type Format string

// The formats: the text of liballprof, and what dumpi2ascii makes of dumpi's.
const (
	Liballprof Format = "liballprof"
	Dumpi      Format = "dumpi"
)

// Importer makes the schedule of a trace, rank by rank.
type Importer struct {
	format Format
	mpi    MPI
	ranks  int
	traces []trace
	calls  int
	ops    int
	notes  notes
	comms  *comms
	number contexts
	boxes  map[place]*inbox
	shared bool // several communicators have messages
	colls  map[occasion]*joint
	listed []*joint
	b      *goal.Builder
}

// place is where messages of a communicator to a rank go.
type place struct{ context, rank int }

// inbox is what the messages and receives of a place have in common.
type inbox struct {
	tag     int // of the first message
	any     bool
	several bool // tags of messages
	exact   bool // a receive asks for a tag
}

// one returns the tag that a receive with any tag takes; false: it is not known.
func (b *inbox) one() (tag int, known bool) {
	switch {
	case b.any && !b.several:
		return b.tag, true
	case !b.exact: // nobody looks at tags
		return 0, true
	}
	return 0, false
}

// occasion is the nth collective of a communicator.
type occasion struct {
	comm *comm
	n    int
}

// joint is a collective.
type joint struct {
	def    goal.Collective
	name   string // of its call
	number int    // of all
	direct bool
	comm   *comm
	calls  int    // of members
	file   string // of the first of them
	line   int
}

// complete returns an error if not all members have called.
func (j *joint) complete() error {
	if j.calls == len(j.comm.members) {
		return nil
	}
	return &Error{j.file, j.line, fmt.Errorf("%s by %d of the %d members of the communicator, expected all: does the file of another one end too early?", j.name, j.calls, len(j.comm.members))}
}

// New returns an importer of liballprof's traces, for a number of ranks.
func New(ranks int, mpi MPI) *Importer {
	return &Importer{
		format: Liballprof, mpi: mpi, ranks: ranks, comms: newComms(ranks), number: contexts{make([]int, ranks)}, boxes: make(map[place]*inbox),
		colls: make(map[occasion]*joint), b: goal.NewBuilder(), notes: notes{others: make(map[string]int)},
	}
}

// NewDumpi returns an importer of dumpi's traces, for a number of ranks.
func NewDumpi(ranks int) *Importer {
	im := New(ranks, MPI{})
	im.format = Dumpi
	for r := range im.comms.ranks {
		im.comms.ranks[r].known[worldHandle] = named{comm: im.comms.all[0]}
		im.comms.ranks[r].groups = map[uint64][]int{emptyHandle: nil}
	}
	return im
}

// Rank reads the file of the next rank.
func (im *Importer) Rank(file string, in io.Reader) (err error) {
	t := trace{file: file}
	var line int
	if im.format == Dumpi {
		d := newDumpi(&im.notes)
		line, err = d.read(in)
		t.calls = d.calls
	} else {
		line, err = read(in, im.mpi, im.ranks, func(c call) { t.calls = append(t.calls, c) }, im.notes.other)
	}
	if err != nil {
		return &Error{file, line, err}
	}
	if im.calls += len(t.calls); im.calls > goal.MaxOps/2 {
		return &Error{file, line, fmt.Errorf("the trace has more than %d calls", goal.MaxOps/2)}
	}
	im.traces = append(im.traces, t)
	return nil
}

// Schedule returns the schedule.
func (im *Importer) Schedule() (*goal.Schedule, error) {
	if err := im.comms.find(im.traces); err != nil {
		return nil, err
	}
	im.notes.assumed = len(im.comms.assumed)
	for r := range im.number.next {
		im.number.next[r] = 1 // 0: the world
	}
	for r := range im.traces {
		if err := im.survey(r); err != nil {
			return nil, err
		}
	}
	for _, j := range im.listed {
		if err := j.complete(); err != nil {
			return nil, err
		}
	}
	for r := range im.traces {
		p := player{im: im, t: &im.traces[r], rank: r, pending: make(map[uint64][]int), persistent: make(map[uint64]*call), nth: make(map[*comm]int)}
		im.b.Rank(r)
		if err := p.play(); err != nil {
			return nil, err
		}
	}
	s, err := im.b.Schedule()
	if err != nil {
		return nil, err
	}
	by := make([]string, len(s.Collectives()))
	named := make(map[string]*joint, len(im.listed))
	for _, j := range im.listed {
		named[j.def.Name] = j
	}
	for i, c := range s.Collectives() {
		if !named[c.Name].direct {
			by[i] = Algorithms()[c.Kind]
		}
	}
	if !slices.ContainsFunc(by, func(a string) bool { return a != "" }) {
		return s, nil
	}
	return collective.Swap(s, by)
}

// Notes are sentences about what the schedule does not say as the trace does.
func (im *Importer) Notes() []string { return im.notes.lines() }

// survey finds what the messages and collectives of all ranks have in common.
func (im *Importer) survey(r int) error {
	t := &im.traces[r]
	counted := make(map[*comm]int)
	for i := range t.calls {
		c := &t.calls[i]
		switch c.verb {
		case send, sendInit, sendrecv, recv, recvInit:
			if err := im.message(r, c); err != nil {
				return t.at(c, err)
			}
		case collect:
			n := counted[c.comm]
			counted[c.comm]++
			if len(c.comm.members) == 1 {
				im.notes.alone++
				continue
			}
			if err := im.join(occasion{c.comm, n}, t, c); err != nil {
				return t.at(c, err)
			}
		default:
		}
	}
	return nil
}

// message notes the tag of a message.
func (im *Importer) message(r int, c *call) error {
	context := im.number.of(c.comm)
	im.shared = im.shared || context > 0
	for _, m := range []*message{&c.out, &c.in} {
		if m.peer >= len(c.comm.members) {
			return fmt.Errorf("rank %d of a communicator of %d", m.peer, len(c.comm.members))
		}
	}
	if c.verb != recv && c.verb != recvInit && c.out.peer >= 0 {
		b := im.box(context, c.comm.members[c.out.peer])
		if !b.any {
			b.tag, b.any = c.out.tag, true
		}
		b.several = b.several || b.tag != c.out.tag
	}
	if c.verb != send && c.verb != sendInit && c.in.peer != nobody {
		b := im.box(context, r)
		b.exact = b.exact || c.in.tag != wildcard
	}
	return nil
}

func (im *Importer) box(context, rank int) *inbox {
	at := place{context, rank}
	if im.boxes[at] == nil {
		im.boxes[at] = new(inbox)
	}
	return im.boxes[at]
}

// join compares what a rank says of a collective with what others said.
func (im *Importer) join(o occasion, t *trace, c *call) error {
	p, j := c.part, im.colls[o]
	if j == nil {
		j = &joint{
			name: p.name, number: len(im.listed), comm: o.comm, calls: 1, file: t.file, line: c.line, direct: p.kind == goal.Gather || p.kind == goal.Scatter || p.counts != nil || p.back != nil,
			def: goal.Collective{Name: fmt.Sprintf("c%d_%d", o.comm.id, o.n), Kind: p.kind, Bytes: p.all()},
		}
		if p.kind.Rooted() {
			j.def.Root = o.comm.members[p.root]
		}
		im.colls[o] = j
		im.listed = append(im.listed, j)
		return nil
	}
	j.calls++
	switch {
	case p.name != j.name:
		return fmt.Errorf("%s, where another member of the communicator has %s", p.name, j.name)
	case p.kind.Rooted() && o.comm.members[p.root] != j.def.Root:
		return fmt.Errorf("%s: root %d, which is rank %d, and another member has rank %d", p.name, p.root, o.comm.members[p.root], j.def.Root)
	case !j.direct && p.bytes != j.def.Bytes:
		return fmt.Errorf("%s of %d bytes, and another member has %d", p.name, p.bytes, j.def.Bytes)
	case j.direct:
		j.def.Bytes = max(j.def.Bytes, p.all())
	}
	return nil
}

// all returns the bytes of a member.
func (p *part) all() (n uint64) {
	n = p.bytes
	for _, bytes := range p.counts {
		n += bytes
	}
	return n
}

// to returns the bytes that a member sends to another one directly.
func (p *part) to(me, m int) uint64 {
	switch {
	case p.counts != nil:
		return p.counts[m]
	case p.kind == goal.Gather && m != p.root, p.kind == goal.Scatter && me != p.root:
		return 0
	}
	return p.bytes
}

// by returns the bytes that a member gets from another one directly.
func (p *part) by(me, m int) uint64 {
	switch {
	case p.back != nil:
		return p.back[m]
	case p.kind == goal.Gather && me != p.root, p.kind == goal.Scatter && m != p.root:
		return 0
	}
	return p.bytes
}

// contextBits is where the number of the communicator is in a tag.
const contextBits = 24

// directTag is where tags of collectives begin that send blocks directly.
const directTag = 1 << 31

// tag returns the tag of a message to a rank of the world.
func (im *Importer) tag(c *call, m *message, rank int) (uint64, error) {
	context, tag := im.number.of(c.comm), m.tag
	switch box := im.box(context, rank); {
	case !box.exact:
		tag, _ = box.one()
	case tag == wildcard:
		only, known := box.one()
		if !known && (im.shared || len(im.listed) > 0) {
			return 0, errors.New("MPI_ANY_TAG, while other receives of the rank ask for one of several tags: it could take a message of another communicator or collective")
		}
		if tag = only; !known {
			return goal.AnyTag, nil
		}
	}
	if im.shared && tag >= 1<<contextBits || context >= directTag>>contextBits {
		return 0, fmt.Errorf("tag %d of communicator %d: expected tags below 2^%d, in at most %d communicators", tag, c.comm.id, contextBits, directTag>>contextBits)
	}
	return uint64(context)<<contextBits | uint64(tag), nil
}
