//go:build !tinygo

package scan

import (
	_ "embed"
	"errors"
	"fmt"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/handlers/internal/service"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/spin"
)

//go:generate go run ../../internal/build/cmd -o scan.wasm guest

//go:embed scan.wasm
var wasm []byte

// Library is the handler library, compiled from the Go source in guest.
var Library = handlers.Register("scan", wasm)

// TableSlot is a table that answers queries with the rows that match.
var TableSlot = Library.Slot(handlers.Slot{
	Name: "table", Short: "a table that answers queries with the rows that match",
	Handlers: []string{Worker, Request},
	Expects: []string{
		"A query is one packet and is answered by packets of rows and a total, or by busy.",
		"Every row that matches is sent once.",
	},
})

// Names of its handlers.
const (
	Worker  = "worker"  // header
	Request = "request" // payload
)

// MaxBuffers is the largest number of buffers, and so of handlers that run at a time.
const MaxBuffers = 64

// Mode selects who evaluates predicates.
type Mode int

// Modes.
const (
	Handlers Mode = iota
	Host          // the table's host
	All           // the client, which reads all rows
)

// Options are the options of a table and its clients.
type Options struct {
	Mode  Mode
	Slots int // scans that may be under way; default 8
	PT    int // first of the two portal table entries that a table uses; default 44
}

// Address is the process of a table.
type Address struct{ NID, PID uint32 }

// ErrBusy means that a table had no slot for a query after many attempts.
var ErrBusy = errors.New("scan: the table has had no slot for the query")

// ErrFailed means that handlers could not read all rows, or could not send all
// that matched.
var ErrFailed = errors.New("scan: rows could not be read or sent")

const (
	tableBits    = 0x7363616e // "scan"
	queryEntry   = 0          // + Options.PT: queries
	memoryEntry  = 1          // + Options.PT: the rows, to be read
	longestQuery = QuerySize + 16*MaxProgram
	queryBuffers = 64 // queries that a host may have waiting
	// size in bytes of the parts of rows that a core processes, and of the
	// smallest part that it sends, while others are on their way
	piece  = 64 << 10
	window = 4 // pieces that a client has asked for
)

func (o Options) withDefaults() (Options, error) {
	if o.Slots == 0 {
		o.Slots = 8
	}
	if o.PT == 0 {
		o.PT = 44
	}
	if o.Slots < 1 || o.Slots > 1024 || o.PT < 0 || o.PT > 254 || o.Mode < Handlers || o.Mode > All {
		return o, fmt.Errorf("scan: Slots %d, PT %d, Mode %d: expected 1 to 1024, 0 to 254, 0 to 2", o.Slots, o.PT, o.Mode)
	}
	return o, nil
}

// Table is the server of a table.
type Table struct {
	o      Options
	p      *runtime.Proc
	ni     *runtime.NI
	schema *Schema
	rows   runtime.View
	n      int
	in     *handlers.Installed // nil: none
	eq     portals.Handle
	// for queries, and for answers
	buffers, out runtime.View
	md           portals.Handle
	sent         portals.Handle // counts answers that have left
	puts         uint64
}

// Open gives a process a table with rows. It takes no virtual time.
func Open(p *runtime.Proc, schema *Schema, rows []byte, o Options) (*Table, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	if len(rows)%schema.Size() != 0 {
		return nil, fmt.Errorf("scan: a table of %d B, expected a multiple of %d, the size of a row", len(rows), schema.Size())
	}
	u := handlers.NewSetup("scan", p)
	t := &Table{o: o, p: p, ni: u.NI, schema: schema, rows: u.Locked(len(rows)), n: len(rows) / schema.Size()}
	t.rows.CopyFrom(rows)
	switch o.Mode {
	case Handlers:
		return t, t.install(u)
	case Host:
		return t, t.listen(u)
	}
	return t, t.append(u, memoryEntry, portals.EQNone, t.rows, portals.ME{
		Options: portals.OptMEOpGet | portals.OptMEEventLinkDisable | portals.OptMEEventCommDisable,
	})
}

// append makes a portal table entry with an entry for everybody.
func (t *Table) append(u *handlers.Setup, entry int, eq portals.Handle, v runtime.View, me portals.ME) error {
	me.MatchBits = tableBits
	u.Table(uint32(t.o.PT+entry), eq, 0)
	u.Append(uint32(t.o.PT+entry), portals.AnyID, v, me)
	return u.Err
}

// install gives the interface its handlers.
func (t *Table) install(u *handlers.Setup) error {
	device := t.p.Cluster().Profile()
	if device.Fabric.MTU < HeadSize+MaxRow {
		return fmt.Errorf("scan: packets of %d B (fabric.mtu), expected at least %d", device.Fabric.MTU, HeadSize+MaxRow)
	}
	workers := min(device.HPU.Cores*device.HPU.Contexts, MaxBuffers)
	state := State{
		Rows: uint64(t.n), RowBytes: uint32(t.schema.Size()), Chunk: uint32(device.Fabric.MTU), Slots: uint32(t.o.Slots), Workers: uint32(workers),
		Buffers: uint32(workers), Free: 1<<workers - 1, SelfPT: uint32(t.o.PT + queryEntry), SelfBits: tableBits, Budget: uint64(device.HPU.MaxCycles / 2),
	}
	b := spin.EncodeState(&state)
	b = append(b, make([]byte, state.Lay())...)
	copy(b, spin.EncodeState(&state)) // now with the places
	m, err := TableSlot.Load(t.p.Cluster())
	if err != nil {
		return err
	}
	if t.in, err = m.Install(t.p, handlers.Options{Header: Worker, Payload: Request, State: b, Memory: int64(len(b)), Shared: true}); err != nil {
		return err
	}
	rows := t.rows
	if rows.Len() < longestQuery { // a message that is longer than the entry would be cut
		rows = u.Locked(longestQuery)
		rows.CopyFrom(t.rows.Read())
	}
	me := portals.ME{Options: portals.OptMEOpPut | portals.OptMEEventLinkDisable | portals.OptMEEventCommDisable}
	t.in.Attach(&me)
	return t.append(u, queryEntry, portals.EQNone, rows, me)
}

// Counts returns the handlers' counts so far.
func (t *Table) Counts() Counts { return handlers.Peek[State](t.in).Counts }

// listen makes the buffers of a host that serves by itself.
func (t *Table) listen(u *handlers.Setup) error {
	t.eq, t.sent = u.Queue(4*queryBuffers, "queries"), u.Counter("")
	t.out = u.Locked(TotalSize + t.rows.Len() + (t.rows.Len()/piece+1)*HeadSize)
	t.md = u.Bind(t.out, portals.MD{CT: t.sent, Options: portals.OptMDEventCTSend})
	// room for all that come in a run: queries do not wait for buffers
	t.buffers = u.Locked(queryBuffers * longestQuery)
	return t.append(u, queryEntry, t.eq, t.buffers, queries)
}

// queries is the entry for queries to a host.
var queries = portals.ME{
	MinFree: longestQuery, MatchBits: tableBits, Options: portals.OptMEOpPut | portals.OptMEManageLocal | portals.OptMEEventLinkDisable,
}

// Serve handles queries until the process is aborted. With handlers, or if
// clients read the rows, it does nothing.
func (t *Table) Serve() error {
	if t.o.Mode != Host {
		return nil
	}
	return service.Serve(t.ni, t.eq, func(e *portals.Event) error {
		v, err := t.p.View(e.Start, int(e.MLength))
		if err != nil {
			return err
		}
		return t.answer(e.Initiator, v.Read())
	}, func(e *portals.Event) error {
		u := handlers.NewSetup("scan", t.p)
		u.Append(e.PTIndex, portals.AnyID, t.buffers, queries)
		return u.Err
	})
}

// answer filters on the host's core. It reads rows, writes those that match,
// and sends a part of them while it processes the next. The last part follows
// the total.
func (t *Table) answer(to portals.ID, b []byte) error {
	var q Query
	code, ok := decode(b, &q, t.schema.Size())
	if !ok || q.First > uint64(t.n) || q.Rows > uint64(t.n)-q.First {
		return t.send(to, &q, KindTotal, 0, spin.EncodeState(&Total{Status: Illegal}), nil)
	}
	if _, err := t.ni.CTWait(t.sent, t.puts); err != nil { // the buffer is used again
		return err
	}
	var r Result
	packets, size, at, sent := uint64(1), t.schema.Size(), 0, 0
	all := t.rows.Slice(int(q.First)*size, int(q.First+q.Rows)*size)
	for step := max(piece/size, 1) * size; ; {
		part := all.Slice(0, min(step, all.Len()))
		all = all.Slice(part.Len(), all.Len())
		r.filter(t.p, &q, code, size, part)
		if all.Len() == 0 {
			total := Total{Matched: uint64(r.Matched), Sent: uint64(r.Sent), Packets: packets}
			return t.send(to, &q, KindTotal, at, spin.EncodeState(&total), r.Rows)
		}
		if len(r.Rows) < piece {
			continue
		}
		head := spin.EncodeState(&Head{Batch: packets, Rows: uint32(r.Sent - sent)})
		if err := t.send(to, &q, KindRows, at, head, r.Rows); err != nil {
			return err
		}
		at += len(head) + len(r.Rows)
		packets++
		r.Rows, sent = r.Rows[:0], r.Sent
	}
}

// send sends a part of an answer, from a place in the buffer of answers.
func (t *Table) send(to portals.ID, q *Query, kind uint32, at int, head, rows []byte) error {
	t.puts++
	n := t.out.Slice(at, t.out.Len()).CopyFrom(head)
	n += t.out.Slice(at+n, t.out.Len()).CopyFrom(rows)
	return t.ni.Put(portals.Put{MD: t.md, Offset: uint64(at), Length: uint64(n), Target: to, PT: q.PT, MatchBits: q.Bits, HdrData: Data(q.Tag, kind)})
}

// decode decodes a query and its program.
func decode(b []byte, q *Query, rowBytes int) (code []Instruction, ok bool) {
	if spin.DecodeState(b, q) != nil || uint64(len(b)) != QuerySize+16*uint64(q.Program) || q.Parts > MaxParts {
		return nil, false
	}
	for at := QuerySize; at < len(b); at += 16 {
		var i Instruction
		_ = spin.DecodeState(b[at:], &i) // the length is right
		code = append(code, i)
	}
	room := uint64(rowBytes) // of a row in the buffer of answers
	for _, p := range q.Part[:q.Parts] {
		if uint64(p.Offset)+uint64(p.Length) > uint64(rowBytes) || uint64(p.Length) > room {
			return nil, false
		}
		room -= uint64(p.Length)
	}
	_, ok = Verify(code, uint32(rowBytes))
	return code, ok
}

// Lay sets the places of everything behind the state in HPU memory, and returns
// its size in bytes.
func (s *State) Lay() (behind int) {
	s.SlotsAt = 0
	s.BuffAt = s.Slots * SlotSize
	return int(s.BuffAt) + int(s.Buffers)*2*((int(s.Chunk)+7)&^7)
}
