package trace

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/spinsim/spinsim/sim"
)

// maxFlows limits the flows that are remembered as begun. A flow that is
// dropped and continues later is drawn as a new one.
const maxFlows = 1 << 16

// chrome encodes the Trace Event Format: one JSON object, with one event per
// line.
type chrome struct {
	scale Scale
	lines int
	begun map[uint64]struct{}
	ring  []uint64
	next  int
}

func newChrome(scale Scale) *chrome {
	return &chrome{scale: scale, begun: map[uint64]struct{}{}}
}

func (c *chrome) header(dst []byte) []byte {
	return append(dst, `{"displayTimeUnit":"ns","traceEvents":[`...)
}

func (c *chrome) footer(dst []byte, mark string) []byte {
	dst = append(dst, "\n]"...)
	if mark != "" {
		dst = append(appendQuoted(append(dst, `,"otherData":{"seal":`...), mark), '}')
	}
	return append(dst, "}\n"...)
}

// open starts an event with its phase, process and line.
func (c *chrome) open(dst []byte, phase byte, p *process, line uint64) []byte {
	if c.lines > 0 {
		dst = append(dst, ',')
	}
	c.lines++
	dst = append(dst, "\n{\"ph\":\""...)
	dst = append(dst, phase)
	dst = append(dst, `","pid":`...)
	dst = strconv.AppendInt(dst, int64(p.id), 10)
	if line != 0 {
		dst = append(dst, `,"tid":`...)
		dst = strconv.AppendUint(dst, line, 10)
	}
	return dst
}

func appendQuoted(dst []byte, s string) []byte {
	quoted, err := json.Marshal(s)
	if err != nil {
		panic("trace: " + err.Error()) //lint:panic a string always marshals
	}
	return append(dst, quoted...)
}

func appendName(dst []byte, name string) []byte {
	return appendQuoted(append(dst, `,"name":`...), name)
}

// appendTime appends t in microseconds, exactly.
func (c *chrome) appendTime(dst []byte, t sim.Time) []byte {
	unit, digits := sim.Microsecond, 6
	if c.scale == Picoseconds {
		unit, digits = sim.Nanosecond, 3
	}
	dst = strconv.AppendInt(dst, int64(t/unit), 10)
	rest := int64(t % unit)
	if rest == 0 {
		return dst
	}
	dst = append(dst, '.')
	for digits--; digits >= 0; digits-- {
		power := int64(1)
		for range digits {
			power *= 10
		}
		dst = append(dst, byte('0'+rest/power))
		if rest %= power; rest == 0 {
			break
		}
	}
	return dst
}

func (c *chrome) appendArgs(dst []byte, args []sim.Arg, exact ...sim.Arg) []byte {
	dst = append(dst, `,"args":{`...)
	for i, a := range append(slices.Clip(args), exact...) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendQuoted(dst, a.Key), ':')
		if a.Text != "" {
			dst = appendQuoted(dst, a.Text)
		} else {
			dst = strconv.AppendInt(dst, a.Num, 10)
		}
	}
	return append(dst, '}', '}')
}

func (c *chrome) metadata(dst []byte, p *process, line uint64, what, key string, value []byte) []byte {
	dst = c.open(dst, 'M', p, line)
	dst = appendName(dst, what)
	dst = append(appendQuoted(append(dst, `,"args":{`...), key), ':')
	dst = append(dst, value...)
	return append(dst, '}', '}')
}

func (c *chrome) process(dst []byte, p *process) []byte {
	name := p.name
	if c.scale == Picoseconds {
		name += magnified
	}
	dst = c.metadata(dst, p, 0, "process_name", "name", appendQuoted(nil, name))
	return c.metadata(dst, p, 0, "process_sort_index", "sort_index", strconv.AppendInt(nil, int64(p.rank), 10))
}

// line names a thread after its whole path, because this format has no tree.
// Threads are ordered by number, and numbers are assigned in the order in which
// the tree grows.
func (c *chrome) line(dst []byte, l *lane) []byte {
	dst = c.metadata(dst, l.track.process, l.id, "thread_name", "name", appendQuoted(nil, l.track.path))
	return c.metadata(dst, l.track.process, l.id, "thread_sort_index", "sort_index", strconv.AppendUint(nil, l.track.main.id, 10))
}

// counterLine does nothing: a counter is identified by its name.
func (c *chrome) counterLine(dst []byte, _ *counter) []byte { return dst }

func (c *chrome) begin(dst []byte, l *lane, e *event) []byte {
	dst = c.open(dst, 'X', l.track.process, l.id)
	dst = c.appendTime(append(dst, `,"ts":`...), e.from)
	dst = c.appendTime(append(dst, `,"dur":`...), e.to-e.from)
	dst = appendName(dst, e.name)
	dst = c.appendArgs(dst, e.args,
		sim.Arg{Key: keyStart, Num: int64(e.from)}, sim.Arg{Key: keyLength, Num: int64(e.to - e.from)})
	return c.flow(dst, l, e)
}

// end does nothing: slices are written with their length.
func (c *chrome) end(dst []byte, _ *lane, _ sim.Time) []byte { return dst }

func (c *chrome) instant(dst []byte, l *lane, e *event) []byte {
	dst = c.open(dst, 'i', l.track.process, l.id)
	dst = c.appendTime(append(dst, `,"ts":`...), e.from)
	dst = append(appendName(dst, e.name), `,"s":"t"`...)
	dst = c.appendArgs(dst, e.args, sim.Arg{Key: keyAt, Num: int64(e.from)})
	return c.flow(dst, l, e)
}

func (c *chrome) counter(dst []byte, n *counter, e *event) []byte {
	dst = c.open(dst, 'C', n.track.process, 0)
	dst = c.appendTime(append(dst, `,"ts":`...), e.from)
	dst = appendName(dst, n.track.path+" "+n.name)
	dst = append(dst, `,"args":{"value":`...)
	dst = strconv.AppendFloat(dst, e.value, 'g', -1, 64)
	return append(dst, '}', '}')
}

// flow connects the slice just written to earlier slices of the same flows.
func (c *chrome) flow(dst []byte, l *lane, e *event) []byte {
	for _, flow := range e.flows {
		if flow == 0 {
			continue
		}
		phase := byte('t')
		if _, known := c.begun[flow]; !known {
			phase = 's'
			c.remember(flow)
		}
		dst = c.open(dst, phase, l.track.process, l.id)
		dst = c.appendTime(append(dst, `,"ts":`...), e.from)
		dst = append(dst, `,"name":"message","cat":"flow","bp":"e","id":"0x`...)
		dst = append(strconv.AppendUint(dst, flow, 16), '"', '}')
	}
	return dst
}

func (c *chrome) remember(flow uint64) {
	if len(c.ring) < maxFlows {
		c.ring = append(c.ring, flow)
	} else {
		delete(c.begun, c.ring[c.next])
		c.ring[c.next] = flow
		c.next = (c.next + 1) % maxFlows
	}
	c.begun[flow] = struct{}{}
}
