package mpi

import (
	"cmp"
	"errors"
	"fmt"
	"maps"

	"github.com/spinsim/spinsim/exanet"
	"github.com/spinsim/spinsim/handlers/mailbox"
	"github.com/spinsim/spinsim/handlers/rdma"
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/internal/lazy"
	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// ExaNet-MPI (TR-488 §5.2.1). A message of up to 32 B is one message of the
// packetizer, with its envelope. A larger one is announced (RTS). When it has a
// receive, the receiver sends a CTS to the sender's RDMA unit or to the sender.
// The unit or the sender writes the data and then a notification. The receiver
// polls for the notification and acknowledges to the sender. The process
// matches, in all calls that wait or test.
//
// Messages between two ranks may overtake each other: four channels send them,
// and one message may be refused. So messages have numbers, and the receiver
// takes them in order. An eager send is complete when it is stored into a
// channel. If the packetizer itself cannot deliver it (the mailbox is full),
// the library has it sent again.

type exanetCarrier struct {
	world  *World
	o      Options
	system *exanet.System
	pages  PageOpener
}

// rankPrepared is what a rank takes of Go's heap at least, with its part of a
// node, in bytes.
const rankPrepared = 128 << 10

func newExaNetCarrier(w *World) (carrier, error) {
	lazy.Prepare(w.Size() * rankPrepared)
	c := &exanetCarrier{world: w, o: w.o}
	var err error
	if c.system, err = exanet.Load(w.c); err != nil {
		return nil, fmt.Errorf("mpi: %w", err)
	}
	load := w.o.ExaNet.Load
	if load == nil {
		load = loadRDMA
	}
	c.pages, err = load(w.c)
	return c, err
}

// defaultPeers is the default for the most interfaces that a mailbox knows.
const defaultPeers = 1024

// attach implements carrier.
func (c *exanetCarrier) attach(r *Rank) (transport, error) {
	x := &c.o.ExaNet
	t := &overExaNet{r: r, o: &c.o, memory: extents{r: r}, sends: map[uint32]*Request{}, peers: map[int]*exaPeer{}}
	pdid := cmp.Or(x.PDID, exanet.DefaultPDID)
	if err := c.system.Admit(r.p, pdid); err != nil {
		return nil, err
	}
	mail := exanet.Options{Depth: x.Depth, State: map[string]any{}}
	maps.Copy(mail.State, x.State)
	if _, given := mail.State["peers"]; r.Size() > defaultPeers && !given {
		mail.State["peers"] = r.Size()
		mail.Memory = int64(r.Size()+defaultPeers) * mailbox.PeerSize
	}
	var err error
	if t.page, err = c.system.Open(r.p, mail); err != nil {
		return nil, err
	}
	o := x.RDMA
	o.PDID = uint16(pdid)
	if t.rdma, err = c.pages.Open(r.p, o); err != nil {
		return nil, err
	}
	t.flags = r.p.Alloc(8 * maxTransfers)
	t.flags.Lock()
	t.arrived, t.answered = t.page.Signals()
	t.completed, t.notified = t.rdma.Signals()
	return t, nil
}

// maxTransfers is the most large messages that a rank receives at a time. Each
// has a channel for reads.
const maxTransfers = rdma.Reads

type overExaNet struct {
	// For every look at what has happened, side by side:
	r                                      *Rank
	page                                   *exanet.Interface
	arrived, answered, completed, notified portals.Handle
	// as of the program's last look
	seen    struct{ answered, completed, notified uint64 }
	tests   [5]uint64
	handles [5]portals.Handle
	queue   []outgoing // messages that wait for a channel, in order

	// For every message:
	lists   matcher[packet]
	peers   map[int]*exaPeer
	early   []packet               // messages that wait for earlier ones of their source
	observe func(envelope, Status) // for tests: sees each message in its turn; may be nil
	o       *Options
	// waiting for the receiver's acknowledgement, by number
	sends    map[uint32]*Request
	channels [exanet.Channels]exaChannel

	rdma      *rdma.Page
	memory    extents
	writes    []*rdma.Pending // of a sender that starts transfers itself
	clear     []packet        // CTSs that wait for a channel for writes
	gone      int             // messages refused for good
	flags     runtime.View    // notifications, one for each transfer
	moving    int             // transfers in use
	matched   []exaMatch
	transfers [maxTransfers]exaTransfer
}

// exaPeer is another rank.
type exaPeer struct {
	sent uint32 // number of messages to it so far
	next uint32 // number of its next message
}

// exaChannel is a channel of the packetizer.
type exaChannel struct {
	to      int      // rank to which its message goes
	q       *Request // an eager send that its acknowledgement completes; nil: none
	refused int      // how often the message was refused
	again   sim.Time // earliest time to send it again
}

// outgoing is a packet that waits for a channel.
type outgoing struct {
	to int
	q  *Request // an eager send, complete when p is in a channel; nil: no send
	p  packet
}

func (t *overExaNet) usable() memory { return &t.memory }

func (t *overExaNet) limit() int { return maxMessage }

func (t *overExaNet) peer(rank int) *exaPeer {
	p := t.peers[rank]
	if p == nil {
		p = new(exaPeer)
		t.peers[rank] = p
	}
	return p
}

// send starts to send a message. If the message goes into a channel at once,
// the code of the message and the store are one piece of work.
func (t *overExaNet) send(q *Request) error {
	if _, free := t.page.Free(); free && len(t.queue) == 0 {
		t.r.p.Owe(t.r.p.Reads(used.Message).Host.Message)
	} else {
		t.r.p.Compute(t.r.p.Reads(used.Message).Host.Message)
	}
	peer := t.peer(q.peer)
	p := packet{kind: packetEager, env: q.env, length: q.length, sequence: peer.sent, id: q.id}
	peer.sent++
	v, err := t.r.p.View(q.addr, q.length)
	if err != nil {
		return err
	}
	if q.length <= t.o.Eager {
		if codeOf(t.r, used.Eager).EagerCopy == host.CopyTwice {
			t.copied(q.length)
		}
		v.CopyTo(p.data[:])
		if p.wanted = q.synchronous; p.wanted {
			t.sends[q.id] = q
		}
		return t.post(outgoing{q.peer, q, p})
	}
	p.kind, p.address = packetRTS, q.addr
	t.touch(v, false)
	t.sends[q.id] = q
	return t.post(outgoing{q.peer, nil, p})
}

// touch touches the pages of a buffer if ExaNetOptions.Touch is set.
func (t *overExaNet) touch(v runtime.View, write bool) {
	if !t.o.ExaNet.Touch || v.Len() == 0 {
		return
	}
	if write {
		v.Write()
	} else {
		v.Read()
	}
	const page = 4096
	pages := (v.Addr()+uint64(v.Len())+page-1)/page - v.Addr()/page
	t.r.p.Compute(sim.Time(pages) * t.r.p.Reads(used.MemoryLatency).Host.MemoryLatency)
}

// post gives a packet to the packetizer, behind the packets that wait.
func (t *overExaNet) post(o outgoing) error {
	if c, free := t.page.Free(); free && len(t.queue) == 0 {
		return t.launch(c, &o)
	}
	t.queue = append(t.queue, o)
	return nil
}

func (t *overExaNet) launch(c int, o *outgoing) error {
	var b [packetBytes]byte
	place := t.r.world.places[o.to]
	if err := t.page.Launch(c, exanet.First(place.NID, place.PID), o.p.encode(&b)); err != nil {
		return err
	}
	t.channels[c] = exaChannel{to: o.to}
	switch {
	case o.q == nil || o.p.wanted:
	case codeOf(t.r, used.EagerSend).EagerSend == host.SendAcknowledged:
		t.channels[c].q = o.q
	default:
		t.r.complete(o.q)
	}
	return nil
}

func (t *overExaNet) step() error {
	for {
		if acted, err := t.act(); acted || err != nil {
			return err
		}
		if err := t.await(); err != nil || t.r.also.ni != nil {
			return err
		}
	}
}

// act handles one thing that has happened; false: nothing has.
func (t *overExaNet) act() (bool, error) {
	switch {
	case t.count(t.arrived) > uint64(t.page.Taken()):
		return true, t.take()
	case t.count(t.notified) > t.seen.notified:
		t.seen.notified = t.count(t.notified)
		return true, t.notifications()
	case t.count(t.completed) > t.seen.completed:
		t.seen.completed = t.count(t.completed)
		return true, t.finished()
	case t.ongoing() && t.count(t.answered) > t.seen.answered:
		t.seen.answered = t.count(t.answered)
		return true, t.look()
	case t.r.modules.computed():
		return true, t.r.collect()
	}
	if c := t.due(); c >= 0 {
		t.r.stats.Resent++
		return true, t.page.Again(c)
	}
	if c, free := t.page.Free(); free && len(t.queue) > 0 {
		o := t.queue[0]
		t.queue = t.queue[:copy(t.queue, t.queue[1:])]
		return true, t.launch(c, &o)
	}
	return false, nil
}

func (t *overExaNet) ready() bool {
	if t.count(t.arrived) > uint64(t.page.Taken()) || t.count(t.notified) > t.seen.notified || t.count(t.completed) > t.seen.completed ||
		t.ongoing() && t.count(t.answered) > t.seen.answered || t.due() >= 0 || t.r.modules.computed() {
		return true
	}
	_, free := t.page.Free()
	return free && len(t.queue) > 0
}

func (t *overExaNet) count(ct portals.Handle) uint64 {
	v, err := t.page.NI().Objects().CTGet(ct)
	if err != nil {
		panic(err) //lint:panic the transport has allocated it
	}
	return v.Success
}

// ongoing reports whether the program has seen no answer yet to a channel's
// message.
func (t *overExaNet) ongoing() bool {
	for c := range t.channels {
		if t.page.State(c) == exanet.Ongoing {
			return true
		}
	}
	return false
}

// due returns a channel whose message was refused and is due again; -1: none.
func (t *overExaNet) due() int {
	for c := range t.channels {
		if t.page.State(c) == exanet.Refused && t.r.Now() >= t.channels[c].again {
			return c
		}
	}
	return -1
}

// await waits until there is something to handle. act charges the look at it.
func (t *overExaNet) await() error {
	t.handles = [5]portals.Handle{t.arrived, t.notified, t.completed}
	t.tests = [5]uint64{uint64(t.page.Taken()) + 1, t.seen.notified + 1, t.seen.completed + 1}
	n := 3
	if t.ongoing() {
		t.handles[n], t.tests[n] = t.answered, t.seen.answered+1
		n++
	}
	var list [2]runtime.Counter
	others := list[:0]
	if also := &t.r.also; also.ni != nil {
		others = append(others, runtime.Counter{NI: also.ni, CT: also.ct, Test: 1})
	}
	if set := &t.r.modules; len(set.active) > 0 {
		switch unit := set.any.unit; unit.NI() {
		case t.page.NI():
			t.handles[n], t.tests[n] = unit.Signal(), set.seen+1
			n++
		default: // a tree's interface matches, the mailbox's does not
			others = append(others, runtime.Counter{NI: unit.NI(), CT: unit.Signal(), Test: set.seen + 1})
		}
	}
	timeout := runtime.Forever
	for c := range t.channels {
		if t.page.State(c) == exanet.Refused {
			left := t.channels[c].again - t.r.Now()
			if timeout == runtime.Forever || left < timeout {
				timeout = left
			}
		}
	}
	var err error
	if len(others) > 0 {
		err = t.page.NI().CTPollOrOther(t.handles[:n], t.tests[:n], timeout, others...)
	} else {
		_, _, err = t.page.NI().CTPollAt(t.handles[:n], t.tests[:n], timeout, 0)
	}
	if errors.Is(err, portals.ErrCTNoneReached) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("mpi: rank %d: %w", t.r.Rank(), err)
	}
	return nil
}

// look loads the states of the channels and handles refused messages.
func (t *overExaNet) look() error {
	var before [exanet.Channels]exanet.State
	for c := range before {
		before[c] = t.page.State(c)
	}
	t.page.Look()
	for c := range before {
		if before[c] != exanet.Ongoing {
			continue
		}
		switch err := t.page.Reason(c); {
		case err == nil:
			if t.page.State(c) == exanet.Acknowledged {
				t.answer(c)
			}
		case errors.Is(err, exanet.ErrFull):
			ch := &t.channels[c]
			ch.refused++
			ch.again = t.r.Now() + t.page.Pause(ch.refused)
		case errors.Is(err, exanet.ErrLeft):
			t.gone++
			t.page.Forget(c)
			t.answer(c)
		default:
			return fmt.Errorf("mpi: rank %d: a message to rank %d: %w", t.r.Rank(), t.channels[c].to, err)
		}
	}
	return nil
}

// answer completes the eager send that has waited for an answer to a channel's
// message.
func (t *overExaNet) answer(c int) {
	if q := t.channels[c].q; q != nil {
		t.channels[c].q = nil
		t.r.complete(q)
	}
}

func (t *overExaNet) quiet() bool {
	if len(t.queue) > 0 || len(t.sends) > 0 || t.moving > 0 || len(t.writes) > 0 || len(t.clear) > 0 {
		return false
	}
	for c := range t.channels {
		if s := t.page.State(c); s == exanet.Ongoing || s == exanet.Refused {
			return false
		}
	}
	return true
}

// ended does nothing: the rank takes messages of others until leave.
func (t *overExaNet) ended() error { return nil }

// leave closes the mailbox: from now on nobody takes messages from it.
func (t *overExaNet) leave() error {
	t.page.Leave()
	return nil
}

func (t *overExaNet) lost() error {
	if t.gone == 0 {
		return nil
	}
	return fmt.Errorf("mpi: rank %d: %d messages were refused for good: the programs of their receivers have ended, and their mailboxes are full of messages that they have not received",
		t.r.Rank(), t.gone)
}
