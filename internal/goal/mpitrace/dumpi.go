package mpitrace

import (
	"slices"
	"strings"

	"github.com/spinsim/spinsim/goal"
)

// dumpi reads the text that SST's dumpi2ascii makes of a rank's trace.
type dumpi struct {
	block
	at      int // the line
	calls   []call
	notes   *notes
	types   types
	made    map[uint64]bool // handles of requests; true: a persistent one
	open    map[uint64]int  // receives under way, by their requests
	seen    map[string]int
	threads map[string]bool // but the first
	wrong   int             // line of err
	err     error
}

func newDumpi(n *notes) *dumpi {
	return &dumpi{
		notes: n, types: newTypes(), made: make(map[uint64]bool), open: make(map[uint64]int),
		seen: make(map[string]int), threads: make(map[string]bool),
	}
}

// Handles that dumpi gives to MPI's own objects, by their kinds.
const (
	nullHandle  = 1
	worldHandle = 2 // of communicators
	selfHandle  = 3
	emptyHandle = 2 // of groups
)

// call reads the arguments of a call that has returned.
func (d *dumpi) call() {
	d.seen[d.name]++
	read, known := dumpiCalls[d.name]
	if !known {
		d.notes.other(d.name)
		for i := range d.args {
			if a := &d.args[i]; a.kind == "MPI_Request" && a.value != ignored {
				for _, request := range d.list(a.name) {
					d.made[uint64(request)] = false
				}
			}
		}
		return
	}
	c := call{line: d.line, from: d.from, to: d.to, part: &part{name: d.name}}
	if read(d, &c); d.err != nil {
		return
	}
	if c.verb == 0 || c.verb == inquire || c.verb == group {
		d.notes.other(d.name)
	}
	if c.verb == 0 {
		return
	}
	switch c.verb {
	case collect, create, inquire, group:
	default:
		c.part = nil
	}
	d.calls = append(d.calls, c)
}

// footer compares how often a function was called with the calls in the file.
func (d *dumpi) footer(name string, called, left int) {
	const whole = "MPI_ALL_FUNCTIONS"
	if name == whole {
		return
	}
	if d.seen[name] != called-left {
		d.fail(d.at, "%d calls of %s, of which %d are not in the trace, and %d are", called, name, left, d.seen[name])
	}
	if _, known := dumpiCalls[name]; known {
		d.notes.ignored += left
	}
}

// finish looks at the whole file.
func (d *dumpi) finish() {
	d.sizes()
	d.notes.threads += len(d.threads)
}

// comm reads a communicator.
func (d *dumpi) comm(c *call, name string) {
	c.handle = handle{value: d.natural(name), size: explicit}
}

// message reads a peer and a tag. MPI_PROC_NULL is as the library of the trace has
// it: -2, or -1, which of a receive is MPI_ANY_SOURCE, unless its status differs.
func (d *dumpi) message(peer, tag string, receives bool) message {
	m := message{peer: d.int(peer), tag: d.int(tag)}
	switch {
	case m.peer == -1 && receives:
		m.peer = wildcard
		d.notes.anyone++
	case m.peer == -1 || m.peer == -2:
		return message{peer: nobody}
	case m.peer < 0:
		d.fail(d.find(peer).line, "%s: %s=%d, expected a rank", d.name, peer, m.peer)
	}
	switch {
	case m.tag == -1 && receives:
		m.tag = wildcard
	case m.tag < 0:
		d.fail(d.find(tag).line, "%s: %s=%d, expected a tag", d.name, tag, m.tag)
	}
	return m
}

// request reads the handle of a new request.
func (d *dumpi) request(c *call, persistent bool) {
	c.request = d.single()
	d.made[c.request] = persistent
	delete(d.open, c.request)
}

// single reads the handle of one request.
func (d *dumpi) single() uint64 {
	const name = "request"
	list := d.list(name)
	if len(list) != 1 || list[0] < 0 {
		d.fail(d.find(name).line, "%s: %s=%.40q, expected a handle such as [2]", d.name, name, d.find(name).value)
		return 0
	}
	return uint64(list[0])
}

func sendsOf(v verb, blocks bool) func(d *dumpi, c *call) {
	return func(d *dumpi, c *call) {
		c.verb, c.blocks = v, blocks
		d.comm(c, "comm")
		c.out = d.message("dest", "tag", false)
		c.out.bytes = d.natural("count")
		d.scale(c, "datatype", outBytes)
		if !blocks {
			d.request(c, v == sendInit)
		}
	}
}

func receivesOf(v verb, blocks bool) func(d *dumpi, c *call) {
	return func(d *dumpi, c *call) {
		c.verb, c.blocks = v, blocks
		d.comm(c, "comm")
		c.in = d.message("source", "tag", true)
		c.in.bytes = d.natural("count")
		d.scale(c, "datatype", inBytes)
		switch {
		case blocks:
			d.settle(len(d.calls), c, d.statuses("status"), 0)
		case v == recv:
			d.request(c, false)
			d.open[c.request] = len(d.calls)
		default:
			d.request(c, true)
		}
	}
}

// both is a call that sends and receives.
func both(sendCount, sendType, recvCount, recvType string) func(d *dumpi, c *call) {
	return func(d *dumpi, c *call) {
		c.verb, c.blocks = sendrecv, true
		d.comm(c, "comm")
		c.out, c.in = d.message("dest", "sendtag", false), d.message("source", "recvtag", true)
		c.out.bytes, c.in.bytes = d.natural(sendCount), d.natural(recvCount)
		d.scale(c, sendType, outBytes)
		d.scale(c, recvType, inBytes)
		d.settle(len(d.calls), c, d.statuses("status"), 0)
	}
}

// starts starts persistent requests.
func (d *dumpi) starts(c *call, requests []int) {
	c.verb, c.requests = start, []uint64{}
	for _, r := range requests {
		if !d.made[uint64(r)] {
			d.fail(d.line, "%s: request %d is no persistent one: expected a call before that makes it, such as MPI_Send_init", d.name, r)
			return
		}
		c.requests = append(c.requests, uint64(r))
	}
}

// waits waits for requests that are done, with their statuses.
func (d *dumpi) waits(c *call, requests []int, statuses []status) {
	c.verb, c.requests = wait, []uint64{}
	for i, r := range requests {
		if r == nullHandle {
			continue
		}
		request := uint64(r)
		if _, made := d.made[request]; !made {
			d.fail(d.line, "%s: no call before makes request %d", d.name, r)
			return
		}
		if at, is := d.open[request]; is {
			d.settle(at, &d.calls[at], statuses, i)
			delete(d.open, request)
		}
		c.requests = append(c.requests, request)
	}
}

// chosen are the requests of an array that are done.
func (d *dumpi) chosen(indices []int) (list []int) {
	requests := d.list("requests")
	for _, i := range indices {
		if i < 0 || i >= len(requests) {
			d.fail(d.line, "%s: index %d, expected that of one of %d requests", d.name, i, len(requests))
			return nil
		}
		list = append(list, requests[i])
	}
	return list
}

// one waits for the request of an array that is done.
func (d *dumpi) one(c *call) {
	if i := d.int("index"); i >= 0 {
		d.waits(c, d.chosen([]int{i}), d.statuses("status"))
	} else { // MPI_UNDEFINED: none was under way
		d.waits(c, nil, nil)
	}
}

// some waits for the requests of an array that are done.
func (d *dumpi) some(c *call) {
	if d.int("outcount") > 0 {
		d.waits(c, d.chosen(d.list("indices")), d.statuses("statuses"))
	} else {
		d.waits(c, nil, nil)
	}
}

// status is what the library said of a receive.
type status struct{ bytes, cancelled, source int }

// statuses reads an array of statuses; nil: the trace does not have it.
func (d *dumpi) statuses(name string) (list []status) {
	a := d.find(name)
	inner, open := strings.CutPrefix(a.value, "[{")
	inner, closed := strings.CutSuffix(inner, "}]")
	switch {
	case a.value == ignored:
		return nil
	case !open || !closed:
		d.fail(a.line, "%s: %s=%.40q, expected an array of statuses, [{bytes=...}]", d.name, name, a.value)
		return nil
	}
	for text := range strings.SplitSeq(inner, "}, {") {
		s := status{}
		for field := range strings.SplitSeq(text, ", ") {
			key, value, _ := strings.Cut(field, "=")
			switch n := d.number(a, value); key {
			case "bytes":
				s.bytes = n
			case "cancelled":
				s.cancelled = n
			case "source":
				s.source = n
			}
		}
		list = append(list, s)
	}
	return list
}

// settle says of a receive what its status does: it may be of fewer bytes than
// its buffer has, of nobody, or cancelled. A status that has more bytes has
// them by chance, as dumpi writes it for a send.
func (d *dumpi) settle(at int, c *call, list []status, i int) {
	if i >= len(list) || c.in.peer == nobody {
		return
	}
	s, anyone := list[i], c.in.peer == wildcard
	if anyone {
		d.notes.anyone--
	}
	switch {
	case s.cancelled != 0 && !c.blocks:
		d.notes.cancelled++
		c.in.peer = nobody
	case anyone && s.source < 0 && s.bytes == 0:
		c.in.peer = nobody
	case s.bytes >= 0 && uint64(s.bytes) < c.in.bytes && !d.types.isLate(at):
		c.in.bytes = uint64(s.bytes)
	}
}

// answers are calls that end with a flag: whether requests are done. Without, they
// are computations.
func answers(of func(d *dumpi, c *call)) func(d *dumpi, c *call) {
	return func(d *dumpi, c *call) {
		if d.int("flag") != 0 {
			of(d, c)
		}
	}
}

var dumpiCalls = dumpiLayouts()

func dumpiLayouts() map[string]func(d *dumpi, c *call) {
	waitOne := func(d *dumpi, c *call) { d.waits(c, []int{int(d.single())}, d.statuses("status")) }
	waitAll := func(d *dumpi, c *call) { d.waits(c, d.list("requests"), d.statuses("statuses")) }
	list := map[string]func(d *dumpi, c *call){
		"MPI_Init":        func(_ *dumpi, c *call) { c.verb, c.from = begin, c.to },
		"MPI_Init_thread": func(_ *dumpi, c *call) { c.verb, c.from = begin, c.to },
		"MPI_Finalize":    func(_ *dumpi, c *call) { c.verb, c.to = end, c.from },
		"MPI_Wait":        waitOne, "MPI_Test": answers(waitOne),
		"MPI_Waitall": waitAll, "MPI_Testall": answers(waitAll),
		"MPI_Waitany": (*dumpi).one, "MPI_Testany": answers((*dumpi).one),
		"MPI_Waitsome": (*dumpi).some, "MPI_Testsome": func(d *dumpi, c *call) {
			if d.int("outcount") > 0 {
				d.some(c)
			}
		},
		"MPI_Request_free": func(d *dumpi, c *call) {
			d.waits(c, []int{int(d.single())}, nil)
			c.verb = forget
		},
		"MPI_Start":    func(d *dumpi, c *call) { d.starts(c, []int{int(d.single())}) },
		"MPI_Startall": func(d *dumpi, c *call) { d.starts(c, d.list("requests")) },
		"MPI_Recv":     receivesOf(recv, true), "MPI_Irecv": receivesOf(recv, false),
		"MPI_Recv_init":        receivesOf(recvInit, false),
		"MPI_Sendrecv":         both("sendcount", "sendtype", "recvcount", "recvtype"),
		"MPI_Sendrecv_replace": both("count", "datatype", "count", "datatype"),
	}
	for _, name := range []string{"Send", "Ssend", "Bsend", "Rsend"} {
		list["MPI_"+name] = sendsOf(send, true)
		list["MPI_I"+strings.ToLower(name)] = sendsOf(send, false)
		list["MPI_"+name+"_init"] = sendsOf(sendInit, false)
	}
	for _, more := range []map[string]func(d *dumpi, c *call){typeCalls, commCalls} {
		for name, read := range more {
			list["MPI_"+name] = read
		}
	}
	for name, of := range dumpiCollectives {
		list["MPI_"+name] = func(d *dumpi, c *call) {
			c.verb, c.blocks, c.part.kind = collect, true, of.kind
			d.comm(c, "comm")
			if of.kind.Rooted() {
				c.part.root = d.int("root")
			}
			of.read(d, c)
		}
	}
	return list
}

// same reads the bytes of a collective that all members have alike.
func same(count, datatype string) func(d *dumpi, c *call) {
	return func(d *dumpi, c *call) {
		c.part.bytes = d.natural(count)
		d.scale(c, datatype, partBytes)
	}
}

// rooted reads what the root has, or else what other members have.
func rooted(root, other func(d *dumpi, c *call)) func(d *dumpi, c *call) {
	return func(d *dumpi, c *call) {
		if d.int("commrank") == c.part.root {
			root(d, c)
		} else {
			other(d, c)
		}
	}
}

// sendBlocks and recvBlocks read counts for each member.
func sendBlocks(d *dumpi, c *call) {
	c.part.counts = d.naturals("sendcounts")
	d.scale(c, "sendtype", counts)
}

func recvBlocks(d *dumpi, c *call) {
	c.part.back = d.naturals("recvcounts")
	d.scale(c, "recvtype", back)
}

// dumpiCollectives are the collectives by their names without MPI_.
var dumpiCollectives = map[string]struct {
	kind goal.CollectiveKind
	read func(d *dumpi, c *call)
}{
	"Barrier":   {goal.Barrier, func(*dumpi, *call) {}},
	"Bcast":     {goal.Broadcast, same("count", "datatype")},
	"Reduce":    {goal.Reduce, same("count", "datatype")},
	"Allreduce": {goal.AllReduce, same("count", "datatype")},
	// In place only the receive counts.
	"Allgather": {goal.AllGather, same("recvcount", "recvtype")},
	"Alltoall": {goal.AllToAll, func(d *dumpi, c *call) {
		c.part.each = true
		same("recvcount", "recvtype")(d, c)
	}},
	"Reduce_scatter": {goal.ReduceScatter, func(d *dumpi, c *call) {
		if list := d.naturals("recvcounts"); len(list) > 0 && slices.Min(list) != slices.Max(list) {
			d.notes.uneven++
		}
		c.part.bytes = d.sum("recvcounts")
		d.scale(c, "datatype", partBytes)
	}},
	"Gather":     {goal.Gather, rooted(same("recvcount", "recvtype"), same("sendcount", "sendtype"))},
	"Scatter":    {goal.Scatter, rooted(same("sendcount", "sendtype"), same("recvcount", "recvtype"))},
	"Gatherv":    {goal.Gather, rooted(recvBlocks, same("sendcount", "sendtype"))},
	"Scatterv":   {goal.Scatter, rooted(sendBlocks, same("recvcount", "recvtype"))},
	"Allgatherv": {goal.AllGather, recvBlocks},
	"Alltoallv": {goal.AllToAll, func(d *dumpi, c *call) {
		sendBlocks(d, c)
		recvBlocks(d, c)
	}},
}
