package spin17

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/spinsim/spinsim/experiment"
	handler "github.com/spinsim/spinsim/handlers/accumulate"
	"github.com/spinsim/spinsim/internal/memory"
	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/runtime"
)

var accumulate = &experiment.Experiment{
	Name:  "accumulate",
	Short: "element-wise product into an array of the target",
	Long: `Rank 0 puts an array of double-precision complex numbers to rank 1, where it is multiplied into the target array
element by element. The latency is the time from posting the put until rank 1's host knows that the
target array is complete.
  rdma         deposited into a temporary array; the host reads two arrays and writes one
  spin-stream  each packet's handler reads its part of the array by DMA, multiplies, and writes it back`,
	Source: "sPIN'17 §4.4.2",
	// the second has more packets than there are buffers
	Smoke: []experiment.Values{{"size": 4800}, {"size": 512 << 10}},
	Axes: []experiment.Axis{
		experiment.ModeAxis(experiment.ModeRDMA, experiment.ModeSpinStream),
		experiment.TwoRanks(),
		{
			Name: "size", Column: "bytes", Kind: report.Size, Least: elementSize, Most: experiment.MaxBytes, Multiple: elementSize,
			Default: "16,..,256KiB", Help: "size of the message; packets that come faster than handlers take them wait in nic.packet_buffer, and a run that loses some fails: spin-stream at 16 MiB with the 4 MiB of spin-dis and spin-int",
		},
	},
	Points:   wholeElements,
	Run:      experiment.Benchmark(runAccumulate),
	Columns:  experiment.BenchColumns(),
	Relative: experiment.AgainstModes(experiment.ModeRDMA),
	Ledger:   ledgerAccumulate(),
	Slots:    experiment.SlotIn(handler.TargetSlot, experiment.ModeSpinStream),
	Followed: experiment.LatencyColumn,
	View:     experiment.ModeView,
	Notes:    []string{experiment.Compared},
}

const elementSize = "16B" // handler.ElementSize

// wholeElements refuses devices whose packets would cut an element.
func wholeElements(p *experiment.Point) (bool, error) {
	if mtu := int(p.Profile.Fabric.MTU); mtu%handler.ElementSize != 0 {
		return false, fmt.Errorf("profile %s: fabric.mtu: %d, accumulate needs a multiple of %d bytes", p.Profile.Origin.Name, mtu, handler.ElementSize)
	}
	return true, nil
}

func runAccumulate(b *experiment.Bench) error {
	w := bench{b}
	if w.Mode == experiment.ModeSpinStream {
		if err := w.LoadHandlers(); err != nil {
			return err
		}
	}
	if err := w.Spawn(1, "target", w.accumulateTarget); err != nil {
		return err
	}
	return w.Spawn(0, "source", func(p *runtime.Proc) error {
		factors := p.Alloc(w.Bytes)
		numbers(factors.Raw(), w.Seed)
		md, err := p.NI().Objects().MDBind(&portals.MD{Start: factors.Addr(), Length: uint64(w.Bytes)})
		if err != nil {
			return err
		}
		return p.NI().Put(portals.Put{MD: md, Length: uint64(w.Bytes), Target: experiment.Peer(1), PT: experiment.RequestPT, MatchBits: experiment.RequestBits})
	})
}

func (w bench) accumulateTarget(p *runtime.Proc) error {
	array := p.Alloc(w.Bytes)
	numbers(array.Raw(), w.Seed+1)
	want := memory.Make[byte](w.Bytes)
	numbers(want, w.Seed)
	multiply(want, array.Raw())
	start := p.Now()
	if w.Mode == experiment.ModeRDMA {
		temporary := p.Alloc(w.Bytes)
		arrived, err := experiment.AppendEntry(p.NI(), experiment.RequestPT, experiment.RequestBits, temporary, nil)
		if err != nil {
			return err
		}
		if err := arrived.Wait(w.Bytes); err != nil {
			return err
		}
		p.Compute(p.Reads(used.Match).Host.Match)
		multiply(array.WriteFrom(temporary))
		runtime.Pass(p, array, array, temporary)
	} else {
		in, err := w.Handlers.Install(p, nil) // with the library's own buffers
		if err != nil {
			return err
		}
		arrived, err := experiment.AppendEntry(p.NI(), experiment.RequestPT, experiment.RequestBits, array, in)
		if err != nil {
			return err
		}
		if err := arrived.Wait(w.Bytes); err != nil {
			return err
		}
	}
	w.Latency = p.Now() - start
	w.Operation(p, start)
	return experiment.SameView("product", array, want)
}

// numbers fills b with complex numbers of moderate size.
func numbers(b []byte, seed uint64) {
	experiment.Pattern(b, seed)
	for i := 0; i+8 <= len(b); i += 8 {
		v := float64(int32(binary.LittleEndian.Uint32(b[i:]))) / (1 << 28)
		binary.LittleEndian.PutUint64(b[i:], math.Float64bits(v))
	}
}

// multiply replaces a by the element-wise product of a and b. The conversions
// keep the compiler from fusing operations, because these would round
// differently from WebAssembly.
func multiply(a, b []byte) {
	at := func(s []byte, i int) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(s[i:])) }
	for i := 0; i+handler.ElementSize <= len(a); i += handler.ElementSize {
		ar, ai, br, bi := at(a, i), at(a, i+8), at(b, i), at(b, i+8)
		re := float64(ar*br) - float64(ai*bi)
		im := float64(ar*bi) + float64(ai*br)
		binary.LittleEndian.PutUint64(a[i:], math.Float64bits(re))
		binary.LittleEndian.PutUint64(a[i+8:], math.Float64bits(im))
	}
}

// ledgerAccumulate are the rows of sPIN'17 that accumulate answers.
func ledgerAccumulate() []experiment.LedgerRow {
	const modes = bothNICs + "mode=rdma,spin-stream "
	return []experiment.LedgerRow{
		{
			ID: "spin17-4.4.2-01", Of: modes + "size=16,..,256KiB", How: "5 n bytes go through the host memories, n of them at the source, 16 B to 256 KiB",
			Holds: func(m *experiment.Measured) bool { return moved(m, experiment.ModeRDMA, 5) },
		},
		{
			ID: "spin17-4.4.2-03", Of: modes + smallSizes, How: "RDMA takes less time than spin-stream, 16 B to 256 B",
			Holds: func(m *experiment.Measured) bool {
				return below(m, experiment.LatencyColumn, experiment.ModeRDMA, 1, experiment.ModeSpinStream)
			},
		},
		{
			ID: "spin17-4.4.2-05", Of: modes + largeSizes, How: "1.25 times the time of spin-stream is less than that of RDMA, 64 KiB and 256 KiB",
			Holds: func(m *experiment.Measured) bool {
				return below(m, experiment.LatencyColumn, experiment.ModeSpinStream, significant, experiment.ModeRDMA)
			},
		},
		{
			ID: "spin17-4.4.2-06", Of: modes + "size=16,..,256KiB", How: "with spin-stream 3 n bytes go through the host memories: n at the source, and at the target each element is read and written there, 16 B to 256 KiB",
			Holds: func(m *experiment.Measured) bool { return moved(m, experiment.ModeSpinStream, 3) },
		},
		{
			ID: "spin17-C.3.2-03", Of: "profile=spin-int mode=rdma,spin-stream size=16 dma.latency=100us", How: "of a latency of 100 µs, by how many spin-stream takes longer than RDMA: only it reads the element by DMA",
			Ours: func(m *experiment.Measured) []float64 {
				return []float64{(m.At(experiment.LatencyColumn, "mode=spin-stream") - m.At(experiment.LatencyColumn, "mode=rdma")) / 100}
			},
		},
	}
}
