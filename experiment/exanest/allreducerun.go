package exanest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/internal/memory"
	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

func allreduceType(p *experiment.Point) mpi.Type {
	return map[string]mpi.Type{"float32": mpi.Float32, "float64": mpi.Float64, "int32": mpi.Int32, "int64": mpi.Int64}[p.Text("type")]
}

func allreduceOp(p *experiment.Point) *mpi.Op {
	return map[string]*mpi.Op{"sum": mpi.Sum, "min": mpi.Min, "max": mpi.Max}[p.Text("op")]
}

func allreduceOptions(p *experiment.Point) mpi.Options {
	o := mpi.DefaultOptions(mpi.Host)
	if p.Text("transport") == string(mpi.ExaNet) {
		o = mpi.DefaultExaNetOptions()
	}
	o.Allreduce, o.Window = mpi.Mode(p.Text("mode")), p.Int("window")
	o.Ranks, o.PerNode = p.Int("ranks"), p.Int("ranks-per-node")
	return o
}

// allreducing is a running measurement.
type allreducing struct {
	*experiment.Point
	o     mpi.Options
	calls int
	t     mpi.Type
	op    *mpi.Op
	want  []byte     // the result
	mu    sync.Mutex // of what ranks write
	begun []sim.Time // when the first rank called
	ended []sim.Time // when the last rank had the result
	sum   sim.Time   // over the calls of all ranks
}

// allreduceWarmup is how many calls are not measured.
const allreduceWarmup = 2

// served returns the point with handlers on other processors: a pool, or HPUs
// with some clock. by may also leave them on the processors of the profile.
func served(p *experiment.Point, field, by string) (*experiment.Point, error) {
	var set []string
	switch by {
	case poolOfProfile:
		return p, nil
	case "r5", "hpu":
		set = []string{field + "=" + by}
	default:
		set = []string{field + "=hpu", "hpu.clock=" + by}
	}
	device, err := experiment.WithFields(p.Profile, set)
	if err != nil {
		return nil, err
	}
	other := *p
	other.Profile = device
	return &other, nil
}

func runAllreduce(ctx context.Context, p *experiment.Point) (values experiment.Values, err error) {
	for _, slot := range mpi.Mode(p.Text("mode")).Slots() {
		library, _, _ := strings.Cut(slot.Name, ".")
		p, err = served(p, "serve."+library+".payload", p.Text("pool"))
	}
	if err != nil {
		return nil, err
	}
	a := &allreducing{Point: p, o: allreduceOptions(p), calls: p.Int("calls"), t: allreduceType(p), op: allreduceOp(p)}
	a.begun, a.ended = make([]sim.Time, a.calls), make([]sim.Time, a.calls)
	a.expect()
	c, err := runtime.NewCluster(p.Config(ctx, a.o.Nodes(a.o.Ranks)))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	w, err := mpi.New(c, a.o)
	if err != nil {
		return nil, err
	}
	for rank := range a.o.Ranks {
		if err := w.Spawn(rank, a.program); err != nil {
			return nil, err
		}
	}
	if err := w.Run(ctx); err != nil {
		return nil, err
	}
	stats, counts := c.Stats(), w.Stats()
	values = experiment.ClusterValues(&stats)
	values[experiment.LatencyColumn] = a.sum / sim.Time(a.calls*a.o.Ranks)
	last := sim.Time(0)
	for i := range a.calls {
		last += a.ended[i] - a.begun[i]
	}
	values["last_rank"] = last / sim.Time(a.calls)
	values["offloaded"] = float64(counts.Offloaded) / float64((a.calls+allreduceWarmup)*a.o.Ranks)
	var why []string
	for _, f := range w.Fallbacks() {
		why = append(why, f.Why)
	}
	if values["fallback"] = nil; why != nil {
		values["fallback"] = strings.Join(why, "; ")
	}
	return values, nil
}

// element is the element of a rank at place i: a small whole number, so that
// sums are exact in any order.
func element(rank, i int, seed uint64) int64 {
	return int64((uint64(rank)*7+uint64(i)*13+seed)%61) - 20
}

// vector writes the elements of a vector.
func (a *allreducing) vector(b []byte, of func(i int) int64) {
	for i := range len(b) / a.t.Size() {
		switch x := of(i); a.t {
		case mpi.Float32:
			binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(float32(x)))
		case mpi.Float64:
			binary.LittleEndian.PutUint64(b[8*i:], math.Float64bits(float64(x)))
		case mpi.Int32:
			binary.LittleEndian.PutUint32(b[4*i:], uint32(x))
		default:
			binary.LittleEndian.PutUint64(b[8*i:], uint64(x))
		}
	}
}

// expect computes the result by a loop over all ranks.
func (a *allreducing) expect() {
	a.want = memory.Make[byte](a.Int("size"))
	a.vector(a.want, func(i int) int64 {
		x := element(0, i, a.Seed)
		for rank := 1; rank < a.o.Ranks; rank++ {
			switch y := element(rank, i, a.Seed); a.op {
			case mpi.Min:
				x = min(x, y)
			case mpi.Max:
				x = max(x, y)
			default:
				x += y
			}
		}
		return x
	})
}

// program is the program of a rank.
func (a *allreducing) program(r *mpi.Rank) error {
	n := a.Int("size")
	send, err := r.Alloc(n)
	if err != nil {
		return err
	}
	recv, err := r.Alloc(n)
	if err != nil {
		return err
	}
	a.vector(send.Write(), func(i int) int64 { return element(r.Rank(), i, a.Seed) })
	for i := -allreduceWarmup; i < a.calls; i++ {
		if err := r.World().Barrier(); err != nil {
			return err
		}
		begin := r.Now()
		if err := r.World().Allreduce(send, recv, a.t, a.op); err != nil {
			return err
		}
		if i >= 0 {
			a.called(i, begin, r.Now())
			a.Operation(r.Proc(), begin)
		}
	}
	if err := experiment.SameView("the result", recv, a.want); err != nil {
		return fmt.Errorf("rank %d: %w", r.Rank(), err)
	}
	return nil
}

// called notes a call of a rank.
func (a *allreducing) called(i int, begin, end sim.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sum += end - begin
	if a.ended[i] == 0 || begin < a.begun[i] {
		a.begun[i] = begin
	}
	a.ended[i] = max(a.ended[i], end)
}
