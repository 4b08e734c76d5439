package experiment

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/spinsim/spinsim/handlers"
	handler "github.com/spinsim/spinsim/handlers/accumulate"
	"github.com/spinsim/spinsim/internal/manifest"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/runtime"
)

var accumulate = &Experiment{
	Name:  "accumulate",
	Short: "element-wise product into an array of the target",
	Long: `Rank 0 puts an array of double-precision complex numbers to rank 1, where it is multiplied into the target array
element by element. The latency is the time from posting the put to the moment at which rank 1's host knows that the
target array is complete.
  rdma         deposited into a temporary array; the host reads two arrays and writes one
  spin-stream  each packet's handler reads its part of the array by DMA, multiplies, and writes it back`,
	Source: "sPIN'17 §4.4.2",
	Smoke:  []Values{{"size": 4800}},
	Axes: []Axis{
		modeAxis(ModeRDMA, ModeSpinStream),
		twoRanks(),
		{
			Name: "size", Column: "bytes", Kind: report.Size, Least: elementSize, Most: maxBytes, Multiple: elementSize,
			Default: "16,..,256KiB", Help: "size of the message; packets that come faster than handlers take them wait in nic.packet_buffer, and a run that loses some fails: spin-stream at 16 MiB with the 4 MiB of spin-dis and spin-int",
		},
	},
	Points:   wholeElements,
	Run:      benchmark(runAccumulate),
	Columns:  benchColumns(),
	Relative: againstModes(ModeRDMA),
	Modules:  inSpinModes("accumulate"),
	Roles: []Role{{
		Axis: "mode", Is: ModeSpinStream, Exports: handlers.Exports{"", handler.Payload, ""}, Needs: []manifest.Kind{manifest.Payload},
	}},
	Memory:      func(p *Point) int64 { return benchMemory(p, 2) + messages(p, 5) }, // factors, array, product, copy, the message under way
	Replaceable: true,
	Followed:    latencyColumn,
	View:        modeView,
	Notes:       []string{compared},
}

const elementSize = "16B" // handler.ElementSize

// wholeElements refuses devices whose packets would cut an element.
func wholeElements(p *Point) (bool, error) {
	if mtu := int(p.Profile.Fabric.MTU); mtu%handler.ElementSize != 0 {
		return false, fmt.Errorf("profile %s: fabric.mtu: %d, accumulate needs a multiple of %d bytes", p.Profile.Origin.Name, mtu, handler.ElementSize)
	}
	return true, nil
}

func runAccumulate(w *bench) error {
	if w.Mode == ModeSpinStream {
		if err := w.load(); err != nil {
			return err
		}
	}
	if err := w.spawn(1, "target", w.accumulateTarget); err != nil {
		return err
	}
	return w.spawn(0, "source", func(p *runtime.Proc) error {
		factors := p.Alloc(w.Bytes)
		numbers(factors.Raw(), w.Seed)
		md, err := p.NI().Objects().MDBind(&portals.MD{Start: factors.Addr(), Length: uint64(w.Bytes)})
		if err != nil {
			return err
		}
		return p.NI().Put(portals.Put{MD: md, Length: uint64(w.Bytes), Target: peer(1), PT: requestPT, MatchBits: requestBits})
	})
}

func (w *bench) accumulateTarget(p *runtime.Proc) error {
	array := p.Alloc(w.Bytes)
	numbers(array.Raw(), w.Seed+1)
	want := make([]byte, w.Bytes)
	numbers(want, w.Seed)
	multiply(want, array.Raw())
	start := p.Now()
	if w.Mode == ModeRDMA {
		temporary := p.Alloc(w.Bytes)
		arrived, err := receive(p.NI(), requestPT, requestBits, temporary, nil)
		if err != nil {
			return err
		}
		if err := arrived.wait(w.Bytes); err != nil {
			return err
		}
		p.Compute(w.Profile.Host.Match)
		multiply(array.WriteFrom(temporary))
		p.Stream(2*int64(w.Bytes), int64(w.Bytes))
	} else {
		in, err := w.runs.Install(p, nil) // its buffers are as the library says
		if err != nil {
			return err
		}
		arrived, err := receive(p.NI(), requestPT, requestBits, array, in)
		if err != nil {
			return err
		}
		if err := arrived.wait(w.Bytes); err != nil {
			return err
		}
	}
	w.latency = p.Now() - start
	w.Operation(p, start)
	return same("product", array.Read(), want)
}

// numbers fills b with complex numbers of moderate size.
func numbers(b []byte, seed uint64) {
	pattern(b, seed)
	for i := 0; i+8 <= len(b); i += 8 {
		v := float64(int32(binary.LittleEndian.Uint32(b[i:]))) / (1 << 28)
		binary.LittleEndian.PutUint64(b[i:], math.Float64bits(v))
	}
}

// multiply replaces a by the element-wise product of a and b. The conversions keep the compiler from fusing operations, which
// would round differently from WebAssembly.
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
