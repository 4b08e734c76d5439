package handlerlab

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/internal/lab"
	"github.com/spinsim/spinsim/internal/manifest"
	"github.com/spinsim/spinsim/internal/visible"
	"github.com/spinsim/spinsim/profile"
)

// Inspection is the result of checking a module without running it. Its JSON
// form is the output of "spinsim handler inspect --format json".
type Inspection struct {
	Module   string         `json:"module"`
	Bytes    int            `json:"bytes"`
	Profile  string         `json:"profile"`
	Accepted bool           `json:"accepted"`
	Library  string         `json:"library,omitempty"` // the profile assigns pools by this name
	Manifest *Said          `json:"manifest,omitempty"`
	Reasons  []Reason       `json:"reasons,omitempty"`  // why the device rejects it
	Limits   []LimitUse     `json:"limits,omitempty"`   // sizes, and the limits of the device
	Exports  []ExportInfo   `json:"handlers,omitempty"` // exported handlers
	Imports  []ImportUse    `json:"imports,omitempty"`
	Memory   []MemoryRange  `json:"memory,omitempty"` // the memory map of a program
	Code     []FunctionInfo `json:"functions,omitempty"`
	Budget   Budget         `json:"budget"`
	Stack    string         `json:"shadow_stack,omitempty"`
	// the pools for the kinds of handlers that the module may have
	Pools []PoolUse `json:"pools,omitempty"`
}

// PoolUse is the pool of processors that runs the handlers of a kind (pools,
// serve in the profile).
type PoolUse struct {
	Kind string `json:"handler"`
	Pool string `json:"pool"`
}

// Reason is why a device rejects a module.
type Reason struct {
	Function string `json:"function,omitempty"`
	Offset   int    `json:"offset"` // in the file; -1: no single place
	Cause    string `json:"cause"`
}

// LimitUse is a size that the device limits.
type LimitUse struct {
	Name  string `json:"limit"`
	Path  string `json:"path"` // in the profile
	Used  int64  `json:"used"`
	Limit int64  `json:"allowed"`
}

// ExportInfo is a handler that the module exports.
type ExportInfo struct {
	Name     string `json:"export"`
	Function int    `json:"function"`
	// the name is header, payload or completion, which are chosen by default
	Usual      bool  `json:"usual"`
	MaySuspend bool  `json:"may_suspend"`
	Stack      int64 `json:"stack_bytes"` // need of its longest chain of calls
	// no function of a chain recurses or computes the size of its frame
	Bounded bool `json:"stack_bounded"`
}

// ImportUse is an import of the module.
type ImportUse struct {
	Name       string `json:"import"`
	Calls      int    `json:"calls"` // call instructions
	Cost       Cycles `json:"cost_cycles"`
	MaySuspend bool   `json:"may_suspend"`
}

// MemoryRange is a part of the memory of a program.
type MemoryRange struct {
	Name  string `json:"range"`
	From  uint32 `json:"from"`
	Bytes int64  `json:"bytes"`
}

// FunctionInfo is a function that the module defines.
type FunctionInfo struct {
	Index        int      `json:"function"`
	Name         string   `json:"name"`
	Exports      []string `json:"exports,omitempty"`
	Signature    string   `json:"signature"`
	Offset       int      `json:"offset"`
	Bytes        int      `json:"bytes"`
	Instructions int      `json:"instructions"`
	Blocks       int      `json:"blocks"`
	Loops        int      `json:"loops"`
	Cost         Cycles   `json:"cost_cycles"` // all blocks, each counted once
	Worst        Cycles   `json:"worst_block_cycles"`
	WorstAt      int      `json:"worst_block_offset"`
	MaySuspend   bool     `json:"may_suspend"`
	Recursive    bool     `json:"recursive"`
}

// Cycles is a number of cycles, rounded to hundredths. Cores that execute
// several instructions in one cycle have fractions.
type Cycles float64

func cyclesOf(m *hpu.Module, parts int64) Cycles {
	return Cycles(math.Round(float64(parts)/float64(m.CycleParts())*100) / 100)
}

func (c Cycles) String() string { return strconv.FormatFloat(float64(c), 'f', -1, 64) }

// Budget is the limit at which a handler is killed.
type Budget struct {
	Cycles  int64   `json:"cycles"`
	PerByte int64   `json:"cycles_per_byte"`
	Period  float64 `json:"cycles_1000_ns"` // time of 1000 cycles
}

// Inspect checks a module for a device of the profile. A rejected module is no
// error: the reasons are in the result. HPUMemory is the size for the memory
// map, in bytes.
func Inspect(m *handlers.Library, p *profile.Profile, hpuMemory int) *Inspection {
	in := &Inspection{
		Module: m.Name, Bytes: len(m.Wasm), Profile: p.Name,
		Budget: Budget{p.HPU.MaxCycles, p.HPU.MaxCyclesPerByte, p.HPU.Clock.Cycles(1000).Nanoseconds()},
	}
	module, reasons := hpu.Check(m.Name, m.Wasm, p.Device())
	if module != nil && module.Manifest() != nil {
		hpuMemory = in.needs(module, p, hpuMemory)
	}
	for _, r := range reasons {
		in.Reasons = append(in.Reasons, Reason{r.Func, r.Offset, r.Cause})
	}
	if module != nil {
		in.describe(module, p, hpuMemory)
	}
	in.Accepted = len(in.Reasons) == 0
	return in
}

func (in *Inspection) describe(m *hpu.Module, p *profile.Profile, hpuMemory int) {
	sizes := m.Sizes()
	in.Limits = []LimitUse{
		{"code section, bytes", "hpu.max_code_bytes", int64(sizes.CodeBytes), int64(p.HPU.MaxCodeBytes)},
		{"functions", "hpu.max_functions", int64(sizes.Functions), int64(p.HPU.MaxFunctions)},
		{"own memory, bytes", "hpu.max_memory_bytes", sizes.MemoryBytes, p.HPU.MaxMemoryBytes},
		{"HPU memory, bytes", "hpu.max_hpu_memory", int64(hpuMemory), p.HPU.MaxHPUMemory},
	}
	if l, err := m.Layout(uint32(hpuMemory)); err != nil {
		in.Reasons = append(in.Reasons, Reason{Offset: -1, Cause: strings.TrimPrefix(err.Error(), "module "+m.Name()+": ")})
	} else {
		in.Memory = []MemoryRange{
			{"the module's own", 0, int64(l.Own)},
			{"HPU memory", l.HPU, int64(l.HPUBytes)},
			{fmt.Sprintf("%d contexts", l.Contexts), l.Base, int64(max(l.Packet(l.Contexts, hpu.ShortPacket+1), l.StackLimit(l.Contexts)) - l.Base)},
			{"  context 0: record", l.Args(0), int64(l.Packet(0, 0) - l.Args(0))},
			{"  context 0: short packet", l.Packet(0, 0), hpu.ShortPacket},
			{"  context 0: packet", l.Packets, int64(l.PacketBytes)},
			{"  context 0: stack", l.StackLimit(0), int64(l.StackBytes)},
		}
	}
	for _, kind := range Kinds {
		if has(m, manifest.Kind(kind)) {
			in.Pools = append(in.Pools, PoolUse{kind, p.Serve.Pool(m.Library(), kind)})
		}
	}
	in.Library = m.Library()
	in.Stack = "none"
	if global, ok := m.ShadowStack(); ok {
		in.Stack = fmt.Sprintf("global %d", global)
	}
	for _, i := range m.Imports() {
		in.Imports = append(in.Imports, ImportUse{i.Op.String(), i.Calls, cyclesOf(m, i.Cost), i.Op.MayBlock()})
	}
	exported := map[string]int{}
	for _, f := range m.Functions() {
		for _, name := range f.Exports {
			exported[name] = f.Index
		}
		if f.Import != hpu.OpNone {
			continue
		}
		in.Code = append(in.Code, FunctionInfo{
			f.Index, f.Name, f.Exports, f.Signature, f.Offset, f.Bytes, f.Instructions, f.Blocks, f.Loops, cyclesOf(m, f.Cost),
			cyclesOf(m, f.WorstBlock.Cost), f.WorstBlock.Offset, f.MaySuspend, f.Recursive,
		})
	}
	worst := int64(0)
	for _, x := range m.Exports() {
		stack, bounded := m.Stack(x)
		worst = max(worst, stack)
		usual := x.Name() == Kinds[0] || x.Name() == Kinds[1] || x.Name() == Kinds[2]
		in.Exports = append(in.Exports, ExportInfo{x.Name(), exported[x.Name()], usual, x.MaySuspend(), stack, bounded})
	}
	in.Limits = append(in.Limits, LimitUse{"shadow stack, bytes", "hpu.stack_bytes", worst, int64(p.HPU.StackBytes)})
}

// Err returns nil if the device accepts the module.
func (in *Inspection) Err() error {
	if in.Accepted {
		return nil
	}
	return fmt.Errorf("%s: a device of profile %s rejects it for %s, see above", in.Module, in.Profile, lab.Plural(len(in.Reasons), "reason", "reasons"))
}

// Write writes the inspection for people.
func (in *Inspection) Write(w io.Writer) error {
	var out bytes.Buffer
	t := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	row := func(cells ...any) {
		text := make([]string, len(cells))
		for i, c := range cells {
			text[i] = visible.Line(fmt.Sprint(c))
		}
		fmt.Fprintln(t, "  "+strings.Join(text, "\t"))
	}
	if in.Accepted {
		fmt.Fprintf(t, "%s, %d B: accepted by %s\n", visible.Line(in.Module), in.Bytes, in.Profile)
	} else {
		fmt.Fprintf(t, "%s, %d B: rejected by %s\n", visible.Line(in.Module), in.Bytes, in.Profile)
		for _, r := range in.Reasons {
			row(r.text())
		}
	}
	in.said(t, row)
	in.tables(t, row)
	if err := t.Flush(); err != nil {
		return err
	}
	for line := range bytes.Lines(out.Bytes()) {
		if _, err := fmt.Fprintf(w, "%s\n", bytes.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

func (r *Reason) text() string {
	place := ""
	if r.Function != "" {
		place = "function " + r.Function + ", "
	}
	if r.Offset >= 0 {
		place += fmt.Sprintf("offset 0x%x, ", r.Offset)
	}
	if place == "" {
		return r.Cause
	}
	return strings.TrimSuffix(place, ", ") + ": " + r.Cause
}

// tables writes the tables of a module that could be read.
func (in *Inspection) tables(t io.Writer, row func(...any)) {
	if len(in.Limits) == 0 {
		return
	}
	fmt.Fprintln(t, "\nfunctions, with the cycles of all blocks, each once")
	row("", "offset", "bytes", "instructions", "blocks", "loops", "cycles", "worst block", "notes")
	for _, f := range in.Code {
		var notes []string
		for _, name := range f.Exports {
			if name != f.Name {
				notes = append(notes, "exported as "+name)
			}
		}
		if f.MaySuspend {
			notes = append(notes, "may suspend")
		}
		if f.Recursive {
			notes = append(notes, "recursive")
		}
		worst := ""
		if f.Worst > 0 {
			worst = fmt.Sprintf("%v at 0x%x", f.Worst, f.WorstAt)
		}
		row(f.Name, fmt.Sprintf("0x%x", f.Offset), f.Bytes, f.Instructions, f.Blocks, f.Loops, f.Cost, worst, strings.Join(notes, ", "))
	}
	in.importTable(t, row)
	fmt.Fprintln(t, "\nlimits of the device")
	row("", "used", "allowed")
	for _, l := range in.Limits {
		note := ""
		if l.Used > l.Limit {
			note = "too much"
		}
		row(l.Name, l.Used, l.Limit, l.Path, note)
	}
	if len(in.Memory) > 0 {
		fmt.Fprintln(t, "\nmemory of a program")
		row("", "from", "bytes")
	}
	for _, m := range in.Memory {
		row(m.Name, fmt.Sprintf("0x%x", m.From), m.Bytes)
	}
	fmt.Fprintf(t, "\nshadow stack pointer: %s\n", in.Stack)
	var runs []string
	for _, use := range in.Pools {
		runs = append(runs, use.Kind+" "+use.Pool)
	}
	fmt.Fprintln(t, "runs on:", strings.Join(runs, ", "))
	fmt.Fprintf(t, "budget of a handler: %d cycles and %d per byte of its packet; 1000 cycles take %s ns\n",
		in.Budget.Cycles, in.Budget.PerByte, strconv.FormatFloat(in.Budget.Period, 'f', -1, 64))
}

// has reports whether a module may have handlers of a kind. It is true as well
// if the module does not give the kind of an export.
func has(m *hpu.Module, kind manifest.Kind) bool {
	said := m.Manifest()
	return said == nil || len(said.Handlers) == 0 || slices.ContainsFunc(said.Handlers, func(h manifest.Handler) bool { return h.Kind == kind || h.Kind == "" })
}

func (in *Inspection) importTable(t io.Writer, row func(...any)) {
	if len(in.Imports) == 0 {
		return
	}
	fmt.Fprintln(t, "\nimports, with the cycles of a call")
	row("", "calls", "cycles")
	for _, i := range in.Imports {
		note := ""
		if i.MaySuspend {
			note = "may suspend"
		}
		row(i.Name, i.Calls, i.Cost, note)
	}
}
