package cores

import (
	"bytes"
	_ "embed"
	"encoding/binary"
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/profile"
)

//go:generate go run ../../internal/build/cmd -o kernels.wasm guest

//go:embed kernels.wasm
var kernels []byte

//go:generate go run ../../internal/build/cmd -o vectors.wasm vectors

//go:embed vectors.wasm
var vectors []byte

//go:embed references.csv
var references []byte

//go:embed deviations.csv
var deviations []byte

// Tolerance is how far the cost of a round may be from its reference without a
// reason in deviations.csv, as a fraction of the reference.
const Tolerance = 0.2

// Loop is a loop for comparison.
type Loop struct {
	Name string // export of its module
	What string // what a round does
	// Vectors means that the loop comes in a module with SIMD, which a core
	// without it refuses.
	Vectors bool
}

// Loops returns the loops in the order of the output.
func Loops() []Loop {
	return []Loop{
		{Name: "copy", What: "copies a 32-bit word"},
		{Name: "sum8", What: "adds a byte"},
		{Name: "sum64", What: "adds a 64-bit word"},
		{Name: "xor32", What: "xor of two words"},
		{Name: "cmul", What: "product of complex doubles"},
		{Name: "cmulf", What: "product of complex floats"},
		{Name: "hash", What: "MurmurHash3 of a word"},
		{Name: "crc", What: "CRC-32 of a byte, table"},
		{Name: "chase", What: "item of a linked list"},
		{Name: "histogram", What: "counts a byte"},
		{Name: "filter", What: "keeps every second word"},
		{Name: "normf", What: "length of a vector, inverse"},
	}
}

// Place is where the words of a loop lie that are not in its packet.
type Place bool

// Places of words.
const (
	Near Place = false // in memory of one cycle
	Far  Place = true  // in the module's own memory, which a cost table may price apart (hpu.Levels)
)

// More returns the loops without a reference, for tables that describe more than
// a core.
func More() []Loop {
	return []Loop{
		{Name: "multiply", What: "multiplies a word by a number"},
		{Name: "divide_small", What: "divides a word by 100, which is not known to the compiler"},
		{Name: "divide_large", What: "divides a word by 2^31 + 1, likewise"},
		{Name: "sum_l1", What: "adds a word"},
		{Name: "sum_l2", What: "adds a word of the module's memory"},
		{Name: "copy_l2", What: "copies a word to the module's memory"},
		{Name: "histogram_l2", What: "counts a byte in the module's memory"},
		{Name: "leaf", What: "calls a function that calls none"},
		{Name: "atomic", What: "adds a word to another atomically"},
	}
}

// Vectors returns the inner loop of a reduction of floats, with and without
// SIMD, for tables that have it. Both give the same bits.
func Vectors() []Loop {
	return []Loop{
		{Name: "floats", What: "adds four floats to four others, one by one", Vectors: true},
		{Name: "lanes", What: "the same in the lanes of vectors", Vectors: true},
	}
}

// sources maps cost tables to the sources of their references.
var sources = map[string]string{
	"a15":        "llvm-mca's Cortex-A57, as wide as the A15, on code for the A15",
	"rv32-pspin": "the cycle counts of the CV32E40P user manual, on code for RV32IMFC",
	"scalar":     "llvm-mca's Rocket, in order, on code for RV64GC",
}

// Source returns the source of a cost table's references, "" if it has none.
func Source(table string) string { return sources[table] }

// Tables returns the names of the embedded cost tables that have references, in
// alphabetical order.
func Tables() []string {
	return slices.DeleteFunc(profile.CostNames(), func(table string) bool { return Source(table) == "" })
}

// Comparison is a loop on a core.
type Comparison struct {
	Table        string
	Loop         Loop
	Cycles       float64 // of a round, by the cost table
	Reference    float64 // of a round; 0: none
	Instructions int     // of the round in the core's own machine code
	Reason       string  // why it deviates by more than Tolerance, or has no reference
}

// Deviation returns the difference between cost and reference as a fraction of
// the reference; 0 without one.
func (c *Comparison) Deviation() float64 {
	if c.Reference == 0 {
		return 0
	}
	return c.Cycles/c.Reference - 1
}

// Compare measures all loops with the embedded cost table of that name.
func Compare(table string) ([]Comparison, error) {
	costs, err := profile.Costs(table)
	if err != nil {
		return nil, err
	}
	cycles, err := Measure(costs)
	if err != nil {
		return nil, fmt.Errorf("cost table %s: %w", table, err)
	}
	known, err := readCSV("references.csv", references, 4)
	if err != nil {
		return nil, err
	}
	reasons, err := readCSV("deviations.csv", deviations, 3)
	if err != nil {
		return nil, err
	}
	out := make([]Comparison, len(cycles))
	for i, loop := range Loops() {
		out[i] = Comparison{Table: table, Loop: loop, Cycles: cycles[i]}
		for _, r := range known {
			if r[0] != table || r[1] != loop.Name {
				continue
			}
			if r[2] != "" {
				if out[i].Reference, err = strconv.ParseFloat(r[2], 64); err != nil {
					return nil, fmt.Errorf("references.csv: %s of %s: %w", loop.Name, table, err)
				}
			}
			if out[i].Instructions, err = strconv.Atoi(r[3]); err != nil {
				return nil, fmt.Errorf("references.csv: %s of %s: %w", loop.Name, table, err)
			}
		}
		for _, r := range reasons {
			if r[0] == table && r[1] == loop.Name {
				out[i].Reason = r[2]
			}
		}
	}
	return out, nil
}

// readCSV reads a table with a heading.
func readCSV(name string, data []byte, columns int) ([][]string, error) {
	r := csv.NewReader(bytes.NewReader(data))
	r.Comment, r.FieldsPerRecord = '#', columns
	rows, err := r.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return rows[1:], nil
}

// rounds is divisible by the denominators of cycles in all tables, so that a
// round's cost is exact.
const rounds = 240

// Measure returns the cycles of a round of each loop by a table. It takes the
// difference between rounds and twice as many, so that the code around the loop
// does not count.
func Measure(table *hpu.CostTable) (cycles []float64, err error) {
	return MeasureLoops(table, Loops(), Near)
}

// MeasureLoops is Measure for some of Loops, More and Vectors.
func MeasureLoops(table *hpu.CostTable, loops []Loop, place Place) (cycles []float64, err error) {
	spec := specOf(table)
	engine, err := hpu.NewEngine("wazero")
	if err != nil {
		return nil, err
	}
	defer func() {
		if e := engine.Close(); err == nil {
			err = e
		}
	}()
	images := map[bool]hpu.Image{}
	for _, loop := range loops {
		if images[loop.Vectors] == nil {
			if images[loop.Vectors], err = compile(engine, loop.Vectors, spec); err != nil {
				return nil, err
			}
		}
		var took [2]int64
		for i := range took {
			if took[i], err = run(images[loop.Vectors], loop.Name, (i+1)*rounds, place); err != nil {
				return nil, err
			}
		}
		cycles = append(cycles, float64(took[1]-took[0])/rounds)
	}
	return cycles, nil
}

// specOf is a device with one core, and memory for the rounds of any loop.
func specOf(table *hpu.CostTable) *hpu.Spec {
	return &hpu.Spec{
		Cores: 1, Contexts: 1, PacketBytes: 2 * rounds * 16, StackBytes: 4096, MaxCodeBytes: 1 << 16, MaxFunctions: 100,
		MaxMemoryBytes: 1 << 20, MaxHPUMemoryBytes: 1 << 20, MaxCallDepth: 10, Costs: *table,
	}
}

func compile(engine hpu.Engine, withVectors bool, spec *hpu.Spec) (hpu.Image, error) {
	name, binary := "kernels", kernels
	if withVectors {
		name, binary = "vectors", vectors
	}
	module, err := hpu.Load(name, binary, spec)
	if err != nil {
		return nil, err
	}
	return engine.Compile(module, 2*rounds*16)
}

// run returns the cycles of a call of a loop with n rounds.
func run(image hpu.Image, name string, n int, place Place) (int64, error) {
	program, err := image.Instantiate(name, silent{})
	if err != nil {
		return 0, err
	}
	f, err := image.Module().Export(name)
	if err != nil {
		return 0, err
	}
	c := program.Context(0)
	le := binary.LittleEndian
	packet := program.Memory()[c.PacketAddr(n):]
	// the input of loops: words on both sides of a limit in turn, bytes, small
	// numbers
	for i := range 2 * rounds {
		word := uint32(i) * 0x9E3779B1 >> 1
		le.PutUint32(packet[4*i:], word|uint32(i%2)<<31)
	}
	args := program.Memory()[c.ArgsAddr():]
	le.PutUint32(args, c.PacketAddr(n))
	le.PutUint32(args[4:], uint32(n))
	if place == Far {
		c.Begins(f, hpu.Scratchpads{}, false)
	}
	const budget = 1 << 40
	state, _ := program.HPUMemory()
	c.Start(f, c.ArgsAddr(), state, budget)
	if o := c.Outcome(); o.Err != nil {
		return 0, o.Err
	}
	cycles := c.Outcome().Cycles
	return cycles, program.Close()
}

// silent is a device for loops, which never call it.
type silent struct{}

func (silent) Act(*hpu.Context, *hpu.Action) (result int64, blocked bool) { return 0, false }
