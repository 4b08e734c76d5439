package networks

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/goal"
	"github.com/spinsim/spinsim/internal/goal/chakra"
	"github.com/spinsim/spinsim/internal/goal/collective"
	"github.com/spinsim/spinsim/internal/provenance"
)

// step is the workload without a file: a training step of a small model.
const step = "step"

// workload is a schedule, and the files that it was made from.
type workload struct {
	schedule *goal.Schedule
	files    []provenance.Input
	notes    []string // what an importer has left out
	err      error
	changed  time.Time // of the file, when it was read; zero: a pipe, which can be read once
}

// origin is where a workload is from.
type origin struct {
	name     string
	recorded *experiment.Recorded
}

// workloads are what has been read. A point asks several times.
var workloads = struct {
	sync.Mutex

	of map[origin]*workload
}{of: make(map[origin]*workload)}

// load returns the workload of a point.
func load(p *experiment.Point) *workload {
	name, changed := p.Text("workload"), time.Time{}
	at := origin{name, p.Recorded}
	if info, err := os.Stat(name); err == nil && at.recorded == nil && info.Mode().IsRegular() {
		changed = info.ModTime()
	}
	workloads.Lock()
	defer workloads.Unlock()
	w := workloads.of[at]
	if w == nil || !w.changed.Equal(changed) {
		w = &workload{changed: changed}
		switch {
		case name == step:
			w.schedule, w.err = trainingStep()
		case strings.HasSuffix(name, ".et"):
			w.err = w.chakra(p, name)
		default:
			w.err = w.read(p, name, func(r io.Reader) (err error) {
				w.schedule, err = goal.ReadPacked(r, name, goal.ReadOptions{})
				return err
			})
		}
		if w.err == nil && len(w.schedule.Collectives()) == 0 {
			w.err = fmt.Errorf("%s: names no collectives: lines with //coll do, and goal import writes them", name)
		}
		workloads.of[at] = w
	}
	return w
}

// read reads a file.
func (w *workload) read(p *experiment.Point, name string, parse func(io.Reader) error) (err error) {
	f, err := p.Recorded.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%w: expected %s, the file of a GOAL schedule, or the first of a Chakra trace", err, step)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	r := provenance.NewReader(f)
	if err := parse(r); err != nil {
		return err
	}
	in, err := r.Input(name)
	in.Flag = "workload"
	w.files = append(w.files, in)
	return err
}

// firstNPU is the number in the name of a trace's first file.
var firstNPU = regexp.MustCompile(`\.0\.et$`)

// chakra reads a trace: the file of NPU 0, and those beside it.
func (w *workload) chakra(p *experiment.Point, first string) error {
	if !firstNPU.MatchString(first) {
		return fmt.Errorf("%s: expected the file of NPU 0 of a Chakra trace, such as trace.0.et", first)
	}
	names := []string{first}
	for npu := 1; ; npu++ {
		name := firstNPU.ReplaceAllString(first, fmt.Sprintf(".%d.et", npu))
		f, err := p.Recorded.Open(name)
		if errors.Is(err, os.ErrNotExist) {
			break
		}
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			return err
		}
		names = append(names, name)
	}
	im := chakra.New(len(names), chakra.DefaultSystem(), nil)
	for npu, name := range names {
		if err := w.read(p, name, func(r io.Reader) error { return im.Rank(npu, name, r) }); err != nil {
			return err
		}
	}
	var err error
	w.schedule, err = im.Schedule()
	w.notes = im.Notes()
	return err
}

// The training step: a grid of ranks, in which the ranks of a row share the layers
// and those of a column the model.
const (
	gridRows, gridColumns = 4, 4
	layers                = 4
	forwardNS             = 20_000 // computing, of a layer
	backwardNS            = 2 * forwardNS
	activations           = 64 << 10  // bytes, added in a row
	gradients             = 256 << 10 // bytes, added in a column
)

// trainingStep makes the schedule. Each layer adds activations in the rows, forward
// and backward; its gradients are added in the columns while the layers before it
// compute.
func trainingStep() (*goal.Schedule, error) {
	b := goal.NewBuilder()
	for rank := range gridRows * gridColumns {
		b.Rank(rank)
		before := -1
		after := func(at int) int {
			if before >= 0 {
				b.Requires(at, before)
			}
			return at
		}
		add := func(name string, of, bytes int) int {
			b.Begin(goal.Collective{Name: fmt.Sprintf("%s_%d", name, of), Kind: goal.AllReduce, Bytes: uint64(bytes)})
			defer b.End()
			return after(b.Calc(0))
		}
		row, column := rank/gridColumns, rank%gridColumns
		for layer := range layers {
			before = after(b.Calc(forwardNS))
			before = add(fmt.Sprintf("forward%d", layer), row, activations)
		}
		for layer := layers - 1; layer >= 0; layer-- {
			before = after(b.Calc(backwardNS))
			before = add(fmt.Sprintf("backward%d", layer), row, activations)
			add(fmt.Sprintf("gradients%d", layer), column, gradients)
		}
	}
	s, err := b.Schedule()
	if err != nil {
		return nil, err
	}
	by := make([]string, len(s.Collectives()))
	for i := range by {
		by[i] = "ring"
	}
	return collective.Swap(s, by)
}
