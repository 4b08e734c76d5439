package trace

import (
	"math"
	"sort"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
)

// The reader below follows the public definitions, not the encoder. It uses
// numbers instead of the encoder's constants, so that it finds a wrong
// constant.

// message holds the fields of a protobuf message by number.
type message map[protowire.Number][]any

func parse(t require.TestingT, b []byte) message {
	m := message{}
	for len(b) > 0 {
		num, kind, n := protowire.ConsumeTag(b)
		require.GreaterOrEqual(t, n, 0, "tag")
		b = b[n:]
		var v any
		switch kind {
		case protowire.VarintType:
			v, n = protowire.ConsumeVarint(b)
		case protowire.Fixed64Type:
			v, n = protowire.ConsumeFixed64(b)
		case protowire.BytesType:
			v, n = protowire.ConsumeBytes(b)
		default:
			require.FailNow(t, "unexpected wire type")
		}
		require.GreaterOrEqual(t, n, 0, "value")
		b = b[n:]
		m[num] = append(m[num], v)
	}
	return m
}

func (m message) number(n protowire.Number) uint64 {
	if len(m[n]) == 0 {
		return 0
	}
	return m[n][0].(uint64)
}

func (m message) text(n protowire.Number) string {
	if len(m[n]) == 0 {
		return ""
	}
	return string(m[n][0].([]byte))
}

func (m message) child(t require.TestingT, n protowire.Number) message {
	require.Len(t, m[n], 1)
	return parse(t, m[n][0].([]byte))
}

// line is a decoded TrackDescriptor.
type line struct {
	uuid, parent   uint64
	name           string
	rank           uint64
	process        bool
	counter        bool
	childrenRanked bool
}

// slice is a slice, instant or counter value as trace processor would store it.
type slice struct {
	line   *line
	name   string
	ts     uint64
	dur    uint64
	depth  int
	flow   uint64
	args   map[string]any
	kind   uint64
	value  float64
	parent *slice
}

// decoded is the content of a trace.
type decoded struct {
	lines  map[uint64]*line
	slices []*slice
}

func (d *decoded) path(l *line) string {
	if l.process {
		return l.name
	}
	parent := d.lines[l.parent]
	if parent == nil {
		return "?/" + l.name
	}
	return d.path(parent) + "/" + l.name
}

type rawEvent struct {
	ts uint64
	message
	name string
	args map[string]any
}

// decode reads a trace like Perfetto's trace processor: interned names in file
// order, events in a stable order of time, then a stack for each line.
func decode(t require.TestingT, b []byte) *decoded {
	d := &decoded{lines: map[uint64]*line{}}
	names, keys := map[uint64]string{}, map[uint64]string{}
	var events []rawEvent
	for i, raw := range parse(t, b)[1] {
		p := parse(t, raw.([]byte))
		if len(p[900]) > 0 { // the seal, which no viewer shows
			require.Len(t, p, 1)
			continue
		}
		require.EqualValues(t, 1, p.number(10), "packet sequence")
		require.Equal(t, map[bool]uint64{true: 1, false: 2}[i == 0], p.number(13), "sequence flags")
		if len(p[12]) > 0 {
			in := p.child(t, 12)
			readInterned(t, in[2], names)
			readInterned(t, in[3], keys)
		}
		if len(p[60]) > 0 {
			readDescriptor(t, p.child(t, 60), d)
		}
		if len(p[11]) > 0 {
			e := rawEvent{ts: p.number(8), message: p.child(t, 11)}
			e.name = nameOf(t, e.message, 10, 23, names)
			e.args = readArgs(t, e.message[4], keys)
			events = append(events, e)
		}
	}
	sort.SliceStable(events, func(i, j int) bool { return events[i].ts < events[j].ts })
	d.replay(t, events)
	return d
}

func readInterned(t require.TestingT, entries []any, into map[uint64]string) {
	for _, raw := range entries {
		e := parse(t, raw.([]byte))
		_, taken := into[e.number(1)]
		require.False(t, taken, "an interned id is given twice")
		into[e.number(1)] = e.text(2)
	}
}

func nameOf(t require.TestingT, m message, byID, byText protowire.Number, index map[uint64]string) string {
	if len(m[byID]) == 0 {
		return m.text(byText)
	}
	name, known := index[m.number(byID)]
	require.True(t, known, "name %d is used before it is interned", m.number(byID))
	return name
}

func readArgs(t require.TestingT, raw []any, keys map[uint64]string) map[string]any {
	args := map[string]any{}
	for _, r := range raw {
		a := parse(t, r.([]byte))
		if len(a[6]) > 0 {
			args[nameOf(t, a, 1, 10, keys)] = a.text(6)
		} else {
			args[nameOf(t, a, 1, 10, keys)] = int64(a.number(4))
		}
	}
	return args
}

func readDescriptor(t require.TestingT, m message, d *decoded) {
	l := &line{
		uuid: m.number(1), name: m.text(2), parent: m.number(5), rank: m.number(12),
		process: len(m[3]) > 0, counter: len(m[8]) > 0, childrenRanked: m.number(11) == 3,
	}
	require.NotContains(t, d.lines, l.uuid, "a line is described twice")
	if l.uuid == 0 {
		require.EqualValues(t, 1, m.number(19), "process_ordering of the root")
	} else if !l.process {
		require.Contains(t, d.lines, l.parent, "a line is described before its parent")
	} else {
		require.Equal(t, l.name, m.child(t, 3).text(6), "process name")
	}
	d.lines[l.uuid] = l
}

func (d *decoded) replay(t require.TestingT, events []rawEvent) {
	open := map[uint64][]*slice{}
	for _, e := range events {
		uuid := e.number(11)
		l := d.lines[uuid]
		require.NotNil(t, l, "event on an undescribed line %d", uuid)
		stack := open[uuid]
		s := &slice{line: l, name: e.name, ts: e.ts, args: e.args, kind: e.number(9), flow: e.number(47), depth: len(stack)}
		if len(stack) > 0 {
			s.parent = stack[len(stack)-1]
		}
		require.Equal(t, s.kind == 4, l.counter, "counter values belong on counter lines")
		switch s.kind {
		case 1:
			open[uuid] = append(stack, s)
			d.slices = append(d.slices, s)
		case 2:
			require.NotEmpty(t, stack, "end without begin on %s", l.name)
			s.parent.dur = e.ts - s.parent.ts
			open[uuid] = stack[:len(stack)-1]
		case 3:
			d.slices = append(d.slices, s)
		case 4:
			s.value = math.Float64frombits(e.number(44))
			d.slices = append(d.slices, s)
		default:
			require.FailNow(t, "unknown event type")
		}
	}
	for uuid, stack := range open {
		require.Empty(t, stack, "slices never end on %s", d.lines[uuid].name)
	}
}

func encode(t require.TestingT, format Format, opts Options, record func(*Writer)) []byte {
	var out writeBuffer
	w := New(&out, format, opts)
	record(w)
	require.NoError(t, w.Close())
	return out
}

type writeBuffer []byte

func (b *writeBuffer) Write(p []byte) (int, error) {
	*b = append(*b, p...)
	return len(p), nil
}

func find(t *testing.T, d *decoded, name string) *slice {
	t.Helper()
	for _, s := range d.slices {
		if s.name == name {
			return s
		}
	}
	require.FailNow(t, "no slice "+name)
	return nil
}
