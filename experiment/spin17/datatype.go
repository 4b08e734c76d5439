package spin17

import (
	"fmt"

	offload "github.com/spinsim/spinsim/handlers/matching"

	mpi "github.com/spinsim/spinsim/datatype"
	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/handlers/datatype"
	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/runtime"
)

var datatypes = &experiment.Experiment{
	Name:  "datatype",
	Short: "a vector of blocks, packed at the source or unpacked at the target",
	Long: `Rank 0 sends to rank 1. At the target, the source or both, the distance between blocks of the message is twice their length (an MPI vector). The latency is
the time from the source's first action until rank 1's host knows that every block is in its place.
  rdma            sent and deposited in one piece; a core reads the message and writes the blocks, or the other way round
  iovec           the descriptor or match entry has an element for each block, up to limits.max_iovecs
  spin            handlers write the blocks of each packet, and read those of each packet that they send; at the target the loader chooses how they find the first block:
  spin-general    by a search in the type's tree
  spin-read-only  from a checkpoint that the host has made for each packet
  spin-progress   from the end of the previous packet
  mpi-host        Send and Recv of package mpi: cores match, pack and unpack
  mpi-offload     the same calls with matching by the NIC, where handlers unpack; a message above 16 KiB, which the receiver gets, is sent to itself for that`,
	Source: "sPIN'17 §5.2",
	Smoke:  []experiment.Values{{"size": 64 << 10}, {"size": 8 << 10, "mode": experiment.ModeSpin, "side": typeBoth}},
	Axes: []experiment.Axis{
		{Name: "mode", Kind: report.Text, Of: datatypeModes(), Default: "rdma,iovec,spin", Help: "who unpacks; the command's help describes each"},
		{Name: "side", Kind: report.Text, Of: []string{typeDestination, typeSource, typeBoth}, Default: typeDestination, Help: "where the blocks lie apart"},
		experiment.TwoRanks(),
		experiment.SizeAxis("4MiB"),
		{Name: "block", Kind: report.Size, Least: "1", Most: "64MiB", Default: "4,..,256KiB", Help: "size of a block"},
	},
	Points:   hasDatatype,
	Run:      experiment.Benchmark(runDatatype),
	Columns:  experiment.BenchColumns(datatypeColumns()...),
	Relative: experiment.AgainstModes(experiment.ModeRDMA),
	Ledger:   ledgerDatatype(),
	Slots:    datatypeSlots,
	// packed twice, two vectors with gaps, and the message under way
	Followed: experiment.LatencyColumn,
	View:     experiment.View{Value: "throughput", Series: []string{"mode"}, X: "block", Quiet: []string{"side", "ranks", "size"}, Answer: loaderAnswer},
	Presets: []experiment.Preset{{
		Name: "cost", Short: "what a vector costs: cores and memory of the hosts, HPUs",
		Values: map[string]string{"block": "16,256,4KiB,64KiB"},
		View: &experiment.View{
			Value: "throughput", Series: []string{"mode"}, X: "block", Quiet: []string{"side", "ranks", "size"},
			Summary: []string{experiment.ProfileColumn, "block", "mode", "throughput", "line_share", "hpus_needed", "littles_law_share", "host_cpu", "host_memory"},
		},
	}},
	Caveats: behindLineRate,
	Notes:   []string{experiment.Compared, "iovec is measured where the entry has no more elements than limits.max_iovecs."},
}

// Values of the axes.
const (
	modeIOVec       = "iovec"
	modeSpinGeneral = "spin-general"
	modeSpinRead    = "spin-read-only"
	modeSpinOn      = "spin-progress"

	typeSource      = "source"
	typeDestination = "destination"
	typeBoth        = "both"
)

// datatypeSlots are the slots of the modes with handlers.
func datatypeSlots(p *experiment.Point) []*handlers.Slot {
	switch p.Text("mode") {
	case experiment.ModeRDMA, modeIOVec, modeMPIHost:
		return nil
	case modeMPIOffload:
		return []*handlers.Slot{offload.ReceiverSlot, datatype.UnpackSlot}
	}
	switch p.Text("side") {
	case typeSource:
		return []*handlers.Slot{datatype.PackSlot}
	case typeBoth:
		return []*handlers.Slot{datatype.PackSlot, datatype.UnpackSlot}
	}
	return []*handlers.Slot{datatype.UnpackSlot}
}

func datatypeModes() []string {
	return []string{experiment.ModeRDMA, modeIOVec, experiment.ModeSpin, modeSpinGeneral, modeSpinRead, modeSpinOn, modeMPIHost, modeMPIOffload}
}

// hasDatatype leaves out entries that are longer than the device allows, and
// strategies where no data is unpacked.
func hasDatatype(p *experiment.Point) (bool, error) {
	size, block := p.Int("size"), p.Int("block")
	if size == 0 || size%block != 0 {
		return false, fmt.Errorf("a message of %d B in blocks of %d B, expected a whole number of them, at least one", size, block)
	}
	if _, chosen := strategies[p.Text("mode")]; chosen && p.Text("side") == typeSource {
		return false, nil
	}
	if p.Text("mode") == modeIOVec {
		return size/block <= p.Profile.Limits.MaxIOVecs, nil
	}
	vector, err := mpi.Vector(size/block, block, 2*block, mpi.Byte)
	if err != nil {
		return false, err
	}
	return true, fitsHPUs(p, vector)
}

func runDatatype(w *experiment.Bench) error {
	w.Reads("limits.max_iovecs") // the points depend on it
	block := w.Int("block")
	vector, err := mpi.Vector(w.Bytes/block, block, 2*block, mpi.Byte)
	if err != nil {
		return err
	}
	return (&vectors{Bench: w, of: vector, lines: vectorLines(w.Profile.Host.LineBytes, int64(w.Bytes), int64(block))}).run()
}

// run sends the message. With --side, one end may have packed bytes instead of
// vectors.
func (v *vectors) run() error {
	v.stream, v.sends, v.receives = make([]byte, v.Bytes), v.Text("side") != typeDestination, v.Text("side") != typeSource
	v.Finish = v.costs
	experiment.Pattern(v.stream, v.Seed)
	if form, called := mpiForms[v.Mode]; called {
		return v.runMPI(form)
	}
	if err := v.Spawn(1, "target", v.target); err != nil {
		return err
	}
	return v.Spawn(0, "source", v.source)
}

// packedByte is the element type of packed bytes.
var packedByte = mpi.Byte

// vectors is a running measurement of datatype, or of another type.
type vectors struct {
	*experiment.Bench
	of              *mpi.Type
	lines           int64 // bytes of the cache lines that a core touches
	stream          []byte
	sends, receives bool // the source has the vector, the target has it
}

// strategies are the strategies of modes that do not leave the choice to the
// loader.
var strategies = map[string]uint32{modeSpinGeneral: datatype.General, modeSpinRead: datatype.ReadOnly, modeSpinOn: datatype.Progressing}

// alloc allocates memory for the vector, or for the packed bytes.
func (v *vectors) alloc(p *runtime.Proc, vector bool) runtime.View {
	if first, n := v.of.TrueExtent(); vector {
		return p.Alloc(int(first + n))
	}
	return p.Alloc(v.Bytes)
}

// source sends the vector, or its packed bytes.
func (v *vectors) source(p *runtime.Proc) error {
	memory := v.alloc(p, v.sends)
	if !v.sends {
		copy(memory.Raw(), v.stream)
		return v.put(p, &portals.MD{Start: memory.Addr(), Length: uint64(v.Bytes)})
	}
	if err := v.of.Unpack(memory.Raw(), 0, v.stream, 1); err != nil {
		return err
	}
	switch v.Mode {
	case experiment.ModeRDMA:
		packed := p.Alloc(v.Bytes)
		into, from := packed.WriteFrom(memory)
		if err := v.of.Pack(into, from, 0, 1); err != nil {
			return err
		}
		if err := v.pass(p, packed, memory); err != nil {
			return err
		}
		return v.put(p, &portals.MD{Start: packed.Addr(), Length: uint64(v.Bytes)})
	case modeIOVec:
		list, err := v.list(memory)
		if err != nil {
			return err
		}
		return v.put(p, &portals.MD{IOVec: list, Length: uint64(len(list)), Options: portals.OptMDIOVec})
	}
	return v.pack(p, memory)
}

// pass occupies the core for packing or unpacking.
func (v *vectors) pass(p *runtime.Proc, packed, memory runtime.View) error {
	g := runtime.NewGather(p, packed)
	err := v.of.Runs(1, 0, v.of.Size(), func(at, n int64) { g.Piece(memory.Slice(int(at), int(at+n))) })
	g.Run(v.lines)
	return err
}

// put sends the memory of a descriptor.
func (v *vectors) put(p *runtime.Proc, d *portals.MD) error {
	md, err := p.NI().Objects().MDBind(d)
	if err != nil {
		return err
	}
	return p.NI().Put(portals.Put{MD: md, Length: uint64(v.Bytes), Target: experiment.Peer(1), PT: experiment.RequestPT, MatchBits: experiment.RequestBits})
}

// packBatch is how many packets a worker packs before it lets others run. With
// blocks of a byte, more packets would take longer than hpu.max_cycles.
const packBatch = 1

// packer compiles the type for handlers that pack.
func (v *vectors) packer() (*datatype.Program, error) {
	workers := v.Profile.HPU.Cores * v.Profile.HPU.Contexts
	return datatype.CompileSend(v.of, 1, datatype.Send{
		NID: 1, PT: experiment.RequestPT, Bits: experiment.RequestBits, SelfPT: experiment.RequestPT, Packet: uint32(v.Profile.Fabric.MTU), Batch: packBatch,
		Workers: uint32(min(workers, datatype.MaxWorkers)),
	}, v.Profile.HPU.MaxHPUMemory)
}

// unpacker compiles the type for handlers that unpack.
func (v *vectors) unpacker() (*datatype.Program, error) {
	o := datatype.Options{Packet: int(v.Profile.Fabric.MTU), Memory: v.Profile.HPU.MaxHPUMemory, Pieces: v.sends}
	if s, given := strategies[v.Mode]; given {
		o.Strategy = &s
	}
	return datatype.Compile(v.of, 1, o)
}

// pack has handlers send the vector.
func (v *vectors) pack(p *runtime.Proc, memory runtime.View) error {
	program, err := v.packer()
	if err != nil {
		return err
	}
	installed, err := v.install(p, datatype.PackSlot, program, handlers.Options{Header: datatype.Pack})
	if err != nil {
		return err
	}
	if _, err := experiment.AppendEntry(p.NI(), experiment.RequestPT, experiment.RequestBits, memory, installed); err != nil {
		return err
	}
	md, err := p.NI().Objects().MDBind(&portals.MD{Start: memory.Addr()})
	if err != nil {
		return err
	}
	return p.NI().Put(portals.Put{MD: md, Target: experiment.Peer(0), PT: experiment.RequestPT, MatchBits: experiment.RequestBits})
}

func (v *vectors) install(p *runtime.Proc, slot *handlers.Slot, program *datatype.Program, o handlers.Options) (*handlers.Installed, error) {
	m, err := slot.Load(v.Cluster)
	if err != nil {
		return nil, err
	}
	b := program.Bytes()
	o.State, o.Memory, o.Shared = b, int64(len(b)), true
	return m.Install(p, o)
}

// list returns an I/O vector for each block.
func (v *vectors) list(memory runtime.View) (list []portals.IOVec, err error) {
	err = v.of.Runs(1, 0, v.of.Size(), func(at, n int64) {
		list = append(list, portals.IOVec{Base: memory.Addr() + uint64(at), Length: uint64(n)})
	})
	return list, err
}

func (v *vectors) target(p *runtime.Proc) error {
	memory := v.alloc(p, v.receives)
	into := memory
	if v.receives && v.Mode == experiment.ModeRDMA {
		into = p.Alloc(v.Bytes)
	}
	arrived, err := v.entry(p, into)
	if err != nil {
		return err
	}
	start := p.Now()
	if err := arrived.Wait(v.Bytes); err != nil {
		return err
	}
	if v.Mode == experiment.ModeRDMA {
		p.Compute(p.Reads(used.Match).Host.Match)
	}
	if v.receives && v.Mode == experiment.ModeRDMA {
		to, packed := memory.WriteFrom(into)
		if err := v.of.Unpack(to, 0, packed, 1); err != nil {
			return err
		}
		if err := v.pass(p, into, memory); err != nil {
			return err
		}
	}
	v.took(p.Now() - start)
	v.Operation(p, start)
	return v.compare(memory)
}

// entry appends the target's entry.
func (v *vectors) entry(p *runtime.Proc, memory runtime.View) (*experiment.Entry, error) {
	switch {
	case !v.receives || v.Mode == experiment.ModeRDMA:
		return experiment.AppendEntry(p.NI(), experiment.RequestPT, experiment.RequestBits, memory, nil)
	case v.Mode == modeIOVec:
		list, err := v.list(memory)
		if err != nil {
			return nil, err
		}
		return v.vectorEntry(p, list)
	}
	program, err := v.unpacker()
	if err != nil {
		return nil, err
	}
	v.costed(program)
	installed, err := v.install(p, datatype.UnpackSlot, program, handlers.Options{Payload: datatype.Unpack})
	if err != nil {
		return nil, err
	}
	return experiment.AppendEntry(p.NI(), experiment.RequestPT, experiment.RequestBits, memory, installed)
}

// vectorLines is how many bytes a core writes for blocks at twice their length:
// whole cache lines that have a part of a block.
func vectorLines(lineBytes int, size, block int64) int64 {
	line := int64(lineBytes)
	if 2*block <= line {
		return (2*size + line - 1) / line * line
	}
	return size / block * ((block + line - 1) / line * line)
}

// vectorEntry appends an entry with a list of I/O vectors.
func (v *vectors) vectorEntry(p *runtime.Proc, list []portals.IOVec) (*experiment.Entry, error) {
	ni := p.NI()
	ct, err := ni.Objects().CTAlloc()
	if err != nil {
		return nil, err
	}
	if _, err := ni.Objects().PTAlloc(0, portals.EQNone, experiment.RequestPT); err != nil {
		return nil, err
	}
	_, err = ni.MEAppend(experiment.RequestPT, &portals.ME{
		IOVec: list, Length: uint64(v.Bytes), CT: ct, UID: portals.UIDAny, MatchID: portals.AnyID, MatchBits: experiment.RequestBits,
		Options: portals.OptMEOpPut | portals.OptMEEventCTComm | portals.OptMEEventCTBytes | portals.OptMEIOVec,
	}, portals.PriorityList, 0)
	return &experiment.Entry{NI: ni, CT: ct}, err
}

// ledgerDatatype are the rows of sPIN'17 §5.2. It does not give the block size
// of its numbers.
func ledgerDatatype() []experiment.LedgerRow {
	const of = "profile=spin-int side=destination size=4MiB "
	return []experiment.LedgerRow{
		{ID: "spin17-5.2-12", Of: of + "mode=spin block=64KiB", Column: "throughput"},
		{ID: "spin17-5.2-13", Of: of + "mode=rdma block=64KiB", Column: "throughput"},
		{
			ID: "spin17-5.2-11", Of: of + "mode=spin block=4,..,256KiB", How: "the largest block, of powers of two from 4 B, with which the throughput is less than half of that with 256 KiB: more than half of the time is overhead",
			Ours: func(m *experiment.Measured) []float64 {
				knee, most := 0.0, m.At("throughput", "block=256KiB")
				for _, r := range m.Results {
					if 2*m.Of(r, "throughput") < most {
						knee = max(knee, float64(r.Point.Int("block")))
					}
				}
				return []float64{knee}
			},
		},
	}
}
