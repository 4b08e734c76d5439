package handlerlab

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/google/pprof/profile"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/internal/lab"
	"github.com/spinsim/spinsim/internal/visible"
	"github.com/spinsim/spinsim/nic"
)

// Lines counts the cycles of handlers by instruction and by chain of calls.
type Lines struct {
	module  *hpu.Module
	roots   map[string]*caller // by kind of handler
	running map[int]*spending
	blocks  map[blockKey]int64  // how often each was executed
	charges map[chargeKey]int64 // cost beyond the blocks, in parts of a cycle
	calls   int                 // callers numbered so far
}

// caller is a chain of calls.
type caller struct {
	number int
	kind   string
	parent *caller
	offset int // of the call instruction
	next   map[int]*caller
}

type blockKey struct {
	at *caller
	b  *hpu.WatchedBlock
}

type chargeKey struct {
	at     *caller
	offset int
}

// spending is a running handler.
type spending struct {
	at   *caller
	last int   // the instruction last reported
	told int64 // parts of a cycle
}

func newLines(m *hpu.Module) *Lines {
	return &Lines{module: m, roots: map[string]*caller{}, running: map[int]*spending{}, blocks: map[blockKey]int64{}, charges: map[chargeKey]int64{}}
}

func (l *Lines) newCaller(c caller) *caller {
	l.calls++
	c.number, c.next = l.calls, map[int]*caller{}
	return &c
}

// step is called through runtime.Config.Watch.
func (l *Lines) step(s *nic.HandlerStep) {
	switch s.What {
	case nic.StepBegan:
		root := l.roots[s.Handler]
		if root == nil {
			root = l.newCaller(caller{kind: s.Handler})
			l.roots[s.Handler] = root
		}
		l.running[s.Context] = &spending{at: root}
	// the cost beyond the executed instructions, or the rest that makes a
	// fraction of a cycle whole
	case nic.StepEnded:
		if r := l.running[s.Context]; r != nil {
			rest, offset := s.Cycles*l.module.CycleParts()-r.told, r.last
			if s.Err != nil && s.Err.Offset >= 0 {
				offset = s.Err.Offset
			}
			l.charges[chargeKey{r.at, offset}] += rest
			delete(l.running, s.Context)
		}
	}
}

func (l *Lines) block(c *hpu.Context, b *hpu.WatchedBlock) {
	r := l.running[c.Index()]
	if r == nil {
		return // before the first handler
	}
	l.blocks[blockKey{r.at, b}]++
	for _, cost := range b.Costs {
		r.told += cost
	}
	r.last = b.Offsets[len(b.Offsets)-1]
}

func (l *Lines) charge(c *hpu.Context, offset int, cost int64) {
	r := l.running[c.Index()]
	if r == nil {
		return
	}
	at := r.at
	if offset < 0 && at.parent != nil { // an import called through the table
		at, offset = at.parent, at.offset
	}
	l.charges[chargeKey{at, offset}] += cost
	r.told += cost
}

func (l *Lines) enter(c *hpu.Context, offset int) {
	r := l.running[c.Index()]
	if r == nil {
		return
	}
	next := r.at.next[offset]
	if next == nil {
		next = l.newCaller(caller{kind: r.at.kind, parent: r.at, offset: offset})
		r.at.next[offset] = next
	}
	r.at = next
}

func (l *Lines) leave(c *hpu.Context) {
	if r := l.running[c.Index()]; r != nil && r.at.parent != nil {
		r.at = r.at.parent
	}
}

// spent is the cost of an instruction.
type spent struct {
	at           *caller
	offset       int
	parts        int64
	instructions int64
}

// spent lists all instructions that were executed, in a fixed order.
func (l *Lines) spent() []*spent {
	all := make(map[chargeKey]*spent)
	of := func(at *caller, offset int) *spent {
		k := chargeKey{at, offset}
		if all[k] == nil {
			all[k] = &spent{at: at, offset: offset}
		}
		return all[k]
	}
	for k, times := range l.blocks { //lint:maporder sums
		for i, offset := range k.b.Offsets {
			s := of(k.at, offset)
			s.parts += times * k.b.Costs[i]
			s.instructions += times
		}
	}
	for k, parts := range l.charges { //lint:maporder sums
		of(k.at, k.offset).parts += parts
	}
	return slices.SortedFunc(maps.Values(all), func(a, b *spent) int {
		return cmp.Or(cmp.Compare(a.at.number, b.at.number), cmp.Compare(a.offset, b.offset))
	})
}

// Cycles returns the cycles of all handlers together.
func (l *Lines) Cycles() int64 {
	parts := int64(0)
	for _, s := range l.spent() {
		parts += s.parts
	}
	return parts / l.module.CycleParts()
}

// Profile returns a profile for pprof. Samples are cycles and instructions with
// their chain of calls, labelled with the kind of handler.
func (l *Lines) Profile(comments ...string) *profile.Profile {
	count := func(what string) *profile.ValueType { return &profile.ValueType{Type: what, Unit: "count"} }
	p := &profile.Profile{
		SampleType: []*profile.ValueType{count("cycles"), count("instructions")}, DefaultSampleType: "cycles",
		PeriodType: count("cycles"), Period: 1, Comments: comments,
		Mapping: []*profile.Mapping{{ID: 1, Limit: 1 << 32, File: l.module.Name(), HasFunctions: true, HasFilenames: true, HasLineNumbers: true, HasInlineFrames: true}},
	}
	b := &pprofBuilder{lines: l, p: p, locations: map[int]*profile.Location{}, functions: map[[2]string]*profile.Function{}}
	sum, given := int64(0), int64(0) // parts and cycles so far, so that fractions are not lost
	for _, s := range l.spent() {
		sum += s.parts
		cycles := sum/l.module.CycleParts() - given
		given += cycles
		sample := &profile.Sample{Value: []int64{cycles, s.instructions}, Label: map[string][]string{"handler": {s.at.kind}}}
		sample.Location = append(sample.Location, b.location(s.offset))
		for at := s.at; at.parent != nil; at = at.parent {
			sample.Location = append(sample.Location, b.location(at.offset))
		}
		p.Sample = append(p.Sample, sample)
	}
	return p
}

// pprofBuilder numbers locations and functions.
type pprofBuilder struct {
	lines     *Lines
	p         *profile.Profile
	locations map[int]*profile.Location
	functions map[[2]string]*profile.Function
}

func (b *pprofBuilder) location(offset int) *profile.Location {
	if loc := b.locations[offset]; loc != nil {
		return loc
	}
	loc := &profile.Location{ID: uint64(len(b.p.Location) + 1), Mapping: b.p.Mapping[0], Address: uint64(offset)}
	b.locations[offset] = loc
	b.p.Location = append(b.p.Location, loc)
	if s := b.lines.module.Source(offset); s.Line > 0 {
		loc.Line = append(loc.Line, b.line(s.Func, s.Path, s.Line))
		for _, c := range s.Callers {
			loc.Line = append(loc.Line, b.line(c.Func, c.Path, c.Line))
		}
		return loc
	}
	loc.Line = append(loc.Line, b.line(b.lines.module.FunctionAt(offset), "", 0))
	return loc
}

func (b *pprofBuilder) line(function, file string, line int) profile.Line {
	k := [2]string{function, file}
	f := b.functions[k]
	if f == nil {
		f = &profile.Function{ID: uint64(len(b.p.Function) + 1), Name: function, SystemName: function, Filename: file}
		b.functions[k] = f
		b.p.Function = append(b.p.Function, f)
	}
	return profile.Line{Function: f, Line: int64(line)}
}

// topLines is the number of lines that Write lists.
const topLines = 20

// placeRow is a line of source, or a function without lines.
type placeRow struct {
	place               string
	parts, instructions int64
}

// wholeCycles rounds the cycles of rows to whole numbers. It rounds down, then
// adds one to the rows with the largest remainders until the sum is right.
func wholeCycles(rows []*placeRow, parts int64) []int64 {
	cycles, order, sum, given := make([]int64, len(rows)), make([]int, len(rows)), int64(0), int64(0)
	for i, r := range rows {
		cycles[i], order[i] = r.parts/parts, i
		sum, given = sum+r.parts, given+cycles[i]
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rows[b].parts%parts, rows[a].parts%parts) })
	for _, i := range order[:sum/parts-given] {
		cycles[i]++
	}
	return cycles
}

// Write writes the lines with the most cycles.
func (l *Lines) Write(w io.Writer) error {
	byPlace := make(map[string]*placeRow)
	total := int64(0)
	for _, s := range l.spent() {
		place := l.module.FunctionAt(s.offset)
		if at := l.module.Source(s.offset); at.Line > 0 {
			at.Callers = nil
			place = at.String()
		}
		r := byPlace[place]
		if r == nil {
			r = &placeRow{place: place}
			byPlace[place] = r
		}
		r.parts += s.parts
		r.instructions += s.instructions
		total += s.parts
	}
	rows := slices.SortedFunc(maps.Values(byPlace), func(a, b *placeRow) int { return cmp.Or(cmp.Compare(b.parts, a.parts), cmp.Compare(a.place, b.place)) })
	var out strings.Builder
	t := tabwriter.NewWriter(&out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "cycles\tshare\tinstructions\t\n")
	cycles, others := wholeCycles(rows, l.module.CycleParts()), int64(0)
	for i, r := range rows {
		if i >= topLines {
			others += cycles[i]
			continue
		}
		fmt.Fprintf(t, "%d\t%.1f %%\t%d\t  %s\n", cycles[i], 100*float64(r.parts)/float64(max(total, 1)), r.instructions, visible.Line(r.place))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if len(rows) > topLines {
		fmt.Fprintf(&out, "and %s with %s\n", lab.Plural(len(rows)-topLines, "line", "lines"), lab.Plural(int(others), "cycle", "cycles"))
	}
	_, err := io.WriteString(w, out.String())
	return err
}
