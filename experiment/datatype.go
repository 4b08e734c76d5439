package experiment

import (
	"fmt"

	mpi "github.com/spinsim/spinsim/datatype"
	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/handlers/datatype"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

var datatypes = &Experiment{
	Name:  "datatype",
	Short: "a vector of blocks, unpacked at the target",
	Long: `Rank 0 puts a packed vector to rank 1, whose blocks belong twice their length apart (an MPI vector). The latency is the time from posting the
put to the moment at which rank 1's host knows that every block is in its place.
  rdma            deposited in one piece; a core reads it and writes the blocks
  iovec           the match entry has an element for each block, as many as limits.max_iovecs
  spin            handlers write the blocks of each packet; the loader chooses how they find the first
  spin-general    by looking it up in the type's tree
  spin-read-only  from a checkpoint that the host has made for each packet
  spin-progress   from where the packet before it ended`,
	Source: "sPIN'17 §5.2",
	Axes: []Axis{
		{Name: "mode", Kind: report.Text, Of: datatypeModes(), Default: "rdma,iovec,spin", Help: "who unpacks; above it says what each is"},
		twoRanks(),
		sizeAxis("4MiB"),
		{Name: "block", Kind: report.Size, Least: "1", Most: "64MiB", Default: "4,..,256KiB", Help: "size of a block"},
	},
	Points: hasDatatype,
	Run:    benchmark(runDatatype),
	Columns: benchColumns(report.Column{
		Name: "throughput", Unit: "GiBps", Kind: report.Number, Help: "size of the message by latency",
	}),
	Relative:  againstModes(ModeRDMA),
	Published: publishedDatatype(),
	Modules: func(p *Point) []*handlers.Library {
		if p.Text("mode") == ModeRDMA || p.Text("mode") == modeIOVec {
			return nil
		}
		return []*handlers.Library{handlers.Must("datatype")}
	},
	Memory: func(p *Point) int64 { return benchMemory(p, 2) + messages(p, 8) }, // packed twice, two vectors with gaps, the message under way
	View:   View{Value: "throughput", Series: []string{"mode"}, X: "block", Quiet: []string{"ranks", "size"}},
	Notes:  []string{compared, "iovec is measured where the entry has no more elements than limits.max_iovecs."},
}

// Modes: values of the axis.
const (
	modeIOVec       = "iovec"
	modeSpin        = "spin"
	modeSpinGeneral = "spin-general"
	modeSpinRead    = "spin-read-only"
	modeSpinOn      = "spin-progress"
)

func datatypeModes() []string {
	return []string{ModeRDMA, modeIOVec, modeSpin, modeSpinGeneral, modeSpinRead, modeSpinOn}
}

// hasDatatype leaves out entries that are longer than the device allows.
func hasDatatype(p *Point) (bool, error) {
	size, block := p.Int("size"), p.Int("block")
	if size == 0 || size%block != 0 {
		return false, fmt.Errorf("a message of %d B in blocks of %d B, expected a whole number of them, at least one", size, block)
	}
	return p.Text("mode") != modeIOVec || size/block <= p.Profile.Limits.MaxIOVecs, nil
}

func runDatatype(w *bench) error {
	block := w.Int("block")
	vector, err := mpi.Vector(w.Bytes/block, block, 2*block, mpi.Byte)
	if err != nil {
		return err
	}
	stream := make([]byte, w.Bytes)
	pattern(stream, w.Seed)
	if err := w.spawn(1, "target", func(p *runtime.Proc) error { return w.datatypeTarget(p, vector, stream) }); err != nil {
		return err
	}
	return w.spawn(0, "source", func(p *runtime.Proc) error {
		packed := p.Alloc(w.Bytes)
		copy(packed.Raw(), stream)
		md, err := p.NI().MDBind(&portals.MD{Start: packed.Addr(), Length: uint64(w.Bytes)})
		if err != nil {
			return err
		}
		return p.NI().Put(md, 0, uint64(w.Bytes), portals.NoAck, peer(1), requestPT, requestBits, 0, 0, 0)
	})
}

func (w *bench) datatypeTarget(p *runtime.Proc, t *mpi.Type, stream []byte) error {
	_, extent := t.Extent()
	memory := p.Alloc(int(extent))
	arrived, temporary, err := w.datatypeEntry(p, t, memory)
	if err != nil {
		return err
	}
	start := p.Now()
	if err := arrived.wait(w.Bytes); err != nil {
		return err
	}
	if w.Mode == ModeRDMA {
		p.Compute(w.Profile.Host.Match)
		into, packed := memory.WriteFrom(temporary)
		if err := t.Unpack(into, 0, packed, 1); err != nil {
			return err
		}
		p.Stream(int64(w.Bytes), w.lines(int64(w.Int("block"))))
	}
	w.latency = p.Now() - start
	w.more["throughput"] = float64(w.Bytes) / (1 << 30) * float64(sim.Second) / float64(w.latency)
	want := make([]byte, extent)
	if err := t.Unpack(want, 0, stream, 1); err != nil {
		return err
	}
	return same("vector", memory.Read(), want)
}

// lines is what a core writes of blocks at twice their length: the lines of its cache that have some of them.
func (w *bench) lines(block int64) int64 {
	line := int64(w.Profile.Host.LineBytes)
	blocks := int64(w.Bytes) / block
	if 2*block <= line {
		return (2*int64(w.Bytes) + line - 1) / line * line
	}
	return blocks * ((block + line - 1) / line * line)
}

// datatypeEntry is the target's entry, and where rdma puts the packed vector.
func (w *bench) datatypeEntry(p *runtime.Proc, t *mpi.Type, memory runtime.View) (*inbox, runtime.View, error) {
	switch w.Mode {
	case ModeRDMA:
		temporary := p.Alloc(w.Bytes)
		in, err := receive(p.NI(), requestPT, requestBits, temporary, nil)
		return in, temporary, err
	case modeIOVec:
		var list []portals.IOVec
		err := t.Runs(1, 0, t.Size(), func(at, n int64) {
			list = append(list, portals.IOVec{Base: memory.Addr() + uint64(at), Length: uint64(n)})
		})
		if err != nil {
			return nil, memory, err
		}
		in, err := w.vectorEntry(p, list)
		return in, memory, err
	}
	installed, err := w.datatypeHandlers(p, t)
	if err != nil {
		return nil, memory, err
	}
	in, err := receive(p.NI(), requestPT, requestBits, memory, installed)
	return in, memory, err
}

func (w *bench) datatypeHandlers(p *runtime.Proc, t *mpi.Type) (*handlers.Installed, error) {
	o := datatype.Options{Packet: int(w.Profile.Fabric.MTU), Memory: w.Profile.HPU.MaxHPUMemory}
	strategy := map[string]uint32{modeSpinGeneral: datatype.General, modeSpinRead: datatype.ReadOnly, modeSpinOn: datatype.Progressing}
	if s, given := strategy[w.Mode]; given {
		o.Strategy = &s
	}
	program, err := datatype.Compile(t, 1, o)
	if err != nil {
		return nil, fmt.Errorf("datatype: %w", err)
	}
	m, err := handlers.Must("datatype").Load(w.c)
	if err != nil {
		return nil, err
	}
	b := program.Bytes()
	return m.Install(p, handlers.Options{State: b, Memory: int64(len(b)), Shared: true})
}

// vectorEntry is receive with a list of vectors.
func (w *bench) vectorEntry(p *runtime.Proc, list []portals.IOVec) (*inbox, error) {
	ni := p.NI()
	ct, err := ni.CTAlloc()
	if err != nil {
		return nil, err
	}
	if _, err := ni.PTAlloc(0, portals.EQNone, requestPT); err != nil {
		return nil, err
	}
	_, err = ni.MEAppend(requestPT, &portals.ME{
		IOVec: list, Length: uint64(w.Bytes), CT: ct, UID: portals.UIDAny, MatchID: portals.AnyID, MatchBits: requestBits,
		Options: portals.OptMEOpPut | portals.OptMEEventCTComm | portals.OptMEEventCTBytes | portals.OptMEIOVec,
	}, portals.PriorityList, 0)
	return &inbox{ni: ni, ct: ct}, err
}

// publishedDatatype are the two numbers of sPIN'17 §5.2, which says of no block that they are for it.
func publishedDatatype() (list []report.Published) {
	for _, p := range []struct {
		mode  string
		value float64
		note  string
	}{
		{ModeRDMA, 8.7, "set host.core_bandwidth"},
		{modeSpin, 50, "\"nearly\"; 400 Gb/s are 46.6 GiB/s"},
	} {
		list = append(list, report.Published{
			At: []report.Is{
				{Column: "profile", Value: "spin-int"}, {Column: "mode", Value: p.mode}, {Column: "bytes", Value: 4 << 20}, {Column: "block", Value: 64 << 10},
			},
			Column: "throughput", Value: p.value, Note: p.note,
		})
	}
	return list
}
