//go:build !tinygo

package scan

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/spin"
)

// Result is the result of a query.
type Result struct {
	Rows    []byte // the requested columns, row by row, in the order of the table
	Matched int    // rows that the predicate holds for
	// rows sent: as many as the limit allows. If it does not allow all, the
	// choice is open
	Sent int
}

// Client is a client of a table.
type Client struct {
	o       Options
	p       *runtime.Proc
	ni      *runtime.NI
	to      portals.ID
	schema  *Schema
	n       int // rows of the table
	out, in runtime.View
	md, eq  portals.Handle
	replies portals.Handle
	pt      uint32
	tag     uint32
}

// tries is how often a client asks before it reports that a table is busy.
const tries = 10_000

// Dial gives a process a client of a table of n rows. It takes no virtual time.
func Dial(p *runtime.Proc, to Address, schema *Schema, n int, o Options) (*Client, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	u := handlers.NewSetup("scan", p)
	c := &Client{o: o, p: p, ni: u.NI, to: portals.PhysID(to.NID, to.PID), schema: schema, n: n, out: u.Locked(longestQuery)}
	c.in = u.Locked(TotalSize + n*(schema.Size()+HeadSize)) // each row may come by itself
	c.eq, c.replies = u.Queue(n*schema.Size()/MaxRow+n/64+4096, "rows"), u.Queue(8, "")
	c.md, c.pt = u.Bind(c.out, portals.MD{}), u.Table(portals.PTAny, c.eq, 0)
	return c, u.Err
}

// Select returns columns of the rows for which a predicate holds, at most limit
// rows. Without columns it counts rows.
func (c *Client) Select(predicate string, columns []string, limit int) (*Result, error) {
	code, err := c.schema.Compile(predicate)
	if err != nil {
		return nil, err
	}
	q := Query{Rows: uint64(c.n), Limit: uint64(max(limit, 0)), Bits: tableBits, PT: c.pt, Program: uint32(len(code))}
	width := 0
	for i, name := range columns {
		f := c.schema.Field(name)
		if f == nil {
			return nil, fmt.Errorf("scan: no field %q in the table", name)
		}
		// an answer has room for rows of the table's size
		if slices.Contains(columns[:i], name) {
			return nil, fmt.Errorf("scan: column %q is named twice", name)
		}
		width += f.Length
		if last := int(q.Parts) - 1; last >= 0 && int(q.Part[last].Offset+q.Part[last].Length) == f.Offset() {
			q.Part[last].Length += uint32(f.Length)
			continue
		}
		if q.Parts == MaxParts {
			return nil, fmt.Errorf("scan: columns in more than %d parts of a row", MaxParts)
		}
		q.Part[q.Parts] = Part{Offset: uint32(f.Offset()), Length: uint32(f.Length)}
		q.Parts++
	}
	if width > MaxRow {
		return nil, fmt.Errorf("scan: columns of %d B, expected at most %d", width, MaxRow)
	}
	if width == 0 {
		q.Limit = 0
	}
	if c.o.Mode == All {
		return c.readAll(&q, code)
	}
	r, err := c.ask(&q, code)
	if err == nil && len(r.Rows) != r.Sent*width {
		err = fmt.Errorf("scan: an answer of %d rows has %d B, expected %d", r.Sent, len(r.Rows), r.Sent*width)
	}
	return r, err
}

// ask sends a query until it finds a slot.
func (c *Client) ask(q *Query, code []Instruction) (*Result, error) {
	for range tries {
		me, err := c.ni.MEAppend(c.pt, &portals.ME{
			Start: c.in.Addr(), Length: uint64(c.in.Len()), UID: portals.UIDAny, MatchID: portals.AnyID, MatchBits: tableBits,
			Options: portals.OptMEOpPut | portals.OptMEManageLocal | portals.OptMEEventLinkDisable,
		}, portals.PriorityList, 0)
		if err != nil {
			return nil, err
		}
		c.tag++
		q.Tag = c.tag
		b := spin.EncodeState(q)
		for i := range code {
			b = append(b, spin.EncodeState(&code[i])...)
		}
		c.out.CopyFrom(b)
		if err := c.ni.Put(portals.Put{MD: c.md, Length: uint64(len(b)), Target: c.to, PT: uint32(c.o.PT + queryEntry), MatchBits: tableBits}); err != nil {
			return nil, err
		}
		r, err := c.await()
		if err != nil {
			return nil, err
		}
		if err := c.ni.Objects().MEUnlink(me); err != nil || r != nil {
			return r, err
		}
	}
	return nil, ErrBusy
}

// packet is a packet of an answer.
type packet struct {
	Head
	rows []byte
}

// await returns an answer when it is complete; nil: the table was busy.
func (c *Client) await() (*Result, error) {
	var packets []packet
	var total *Total
	for total == nil || len(packets) < int(total.Packets) {
		ev, err := c.ni.EQWait(c.eq)
		if err != nil {
			return nil, err
		}
		if ev.Type != portals.EventPut || uint32(ev.HdrData>>32) != c.tag {
			continue
		}
		v, err := c.p.View(ev.Start, int(ev.MLength))
		if err != nil {
			return nil, err
		}
		b := v.Read()
		if uint32(ev.HdrData) == KindRows {
			var p packet
			if err := spin.DecodeState(b, &p.Head); err != nil {
				return nil, err
			}
			p.rows = bytes.Clone(b[HeadSize:])
			packets = append(packets, p)
			continue
		}
		total = &Total{}
		if err := spin.DecodeState(b, total); err != nil {
			return nil, err
		}
		switch total.Status {
		case OK:
		case Busy:
			return nil, nil
		case Failed:
			return nil, ErrFailed
		default:
			return nil, errors.New("scan: the table says that the message is no query of it")
		}
		if c.o.Mode == Host {
			packets = append(packets, packet{Head: Head{Batch: total.Packets}, rows: bytes.Clone(b[TotalSize:])})
		}
	}
	slices.SortFunc(packets, func(a, b packet) int { return cmp.Or(cmp.Compare(a.Batch, b.Batch), cmp.Compare(a.Part, b.Part)) })
	r := &Result{Matched: int(total.Matched), Sent: int(total.Sent)}
	for i := range packets {
		r.Rows = append(r.Rows, packets[i].rows...)
	}
	return r, nil
}

// readAll gets the table and filters it, each piece while the next ones are on
// their way.
func (c *Client) readAll(q *Query, code []Instruction) (*Result, error) {
	size := c.schema.Size()
	all := c.in.Slice(0, c.n*size)
	md, err := c.ni.Objects().MDBind(&portals.MD{Start: all.Addr(), Length: uint64(all.Len()), EQ: c.replies})
	if err != nil {
		return nil, err
	}
	step := max(piece/size, 1) * size
	r, asked := &Result{}, 0
	there := map[uint64]bool{} // received pieces, by their places
	for next := 0; next < all.Len(); {
		for ; asked < min(next+window*step, all.Len()); asked += step {
			n := min(step, all.Len()-asked)
			if err := c.ni.Get(portals.Get{MD: md, Offset: uint64(asked), Length: uint64(n), Target: c.to, PT: uint32(c.o.PT + memoryEntry), MatchBits: tableBits, RemoteOffset: uint64(asked), UserPtr: uint64(asked)}); err != nil {
				return nil, err
			}
		}
		ev, err := c.ni.EQWait(c.replies)
		if err != nil {
			return nil, err
		}
		if n := min(step, all.Len()-int(ev.UserPtr)); ev.Fail != portals.NIOK || ev.MLength != uint64(n) {
			return nil, fmt.Errorf("scan: a read of %d B ended with %v and %d B", n, ev.Fail, ev.MLength)
		}
		for there[ev.UserPtr] = true; there[uint64(next)]; next += step {
			r.filter(c.p, q, code, size, all.Slice(next, min(next+step, all.Len())))
		}
	}
	return r, c.ni.Objects().MDRelease(md)
}

// filter adds the rows that match. The core of a process reads them and writes
// the requested columns.
func (r *Result) filter(p *runtime.Proc, q *Query, code []Instruction, size int, part runtime.View) {
	before := len(r.Rows)
	for rows := part.Read(); len(rows) > 0; rows = rows[size:] {
		if row := rows[:size]; Eval(code, row) {
			if r.Matched++; uint64(r.Sent) < q.Limit {
				r.Sent++
				for _, p := range q.Part[:q.Parts] {
					r.Rows = append(r.Rows, row[p.Offset:p.Offset+p.Length]...)
				}
			}
		}
	}
	p.Stream(int64(part.Len()), int64(len(r.Rows)-before))
}
