package goal

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// Detour is a time in which the operating system takes a processor from the
// application, in ns.
type Detour struct{ Start, Duration int64 }

// NoiseTrace is a sequence of detours that repeats: it starts again at the end
// of its last detour.
type NoiseTrace struct {
	start []int64 // of each detour
	sum   []int64 // total duration of the detours before each, then of all
	work  []int64 // start minus sum: time for work before each
}

// NewNoiseTrace returns the trace of the given detours. They must not overlap,
// and must leave some time for work.
func NewNoiseTrace(detours []Detour) (*NoiseTrace, error) {
	t := &NoiseTrace{sum: []int64{0}}
	end, free := int64(0), int64(0)
	for i, d := range detours {
		if d.Start < end || d.Duration < 0 || d.Start > MaxCost || d.Duration > MaxCost {
			return nil, fmt.Errorf("goal: detour %d: start %d ns, duration %d ns, expected a start from %d to %d ns",
				i, d.Start, d.Duration, end, MaxCost)
		}
		free += d.Start - end
		end = d.Start + d.Duration
		t.start = append(t.start, d.Start)
		t.work = append(t.work, free)
		t.sum = append(t.sum, end-free)
	}
	if free == 0 {
		return nil, errors.New("goal: noise trace leaves no time for work")
	}
	return t, nil
}

// ReadNoise reads a trace. Each line has the start and the duration of a
// detour, in ns from the beginning of the trace; fractions are rounded. Empty
// lines and lines that begin with # are ignored.
func ReadNoise(r io.Reader, file string) (*NoiseTrace, error) {
	var detours []Detour
	in := bufio.NewScanner(r)
	line := 0
	for in.Scan() {
		line++
		text := strings.TrimSpace(in.Text())
		if text == "" || text[0] == '#' {
			continue
		}
		fields := strings.Fields(text)
		if len(fields) != 2 {
			return nil, &SyntaxError{file, line, 1, fmt.Sprintf("%d fields, expected a start and a duration", len(fields))}
		}
		var v [2]int64
		for i, f := range fields {
			x, err := strconv.ParseFloat(f, 64)
			if err != nil || !(x >= 0 && x <= float64(MaxCost)) {
				return nil, &SyntaxError{file, line, 1 + strings.Index(in.Text(), f), fmt.Sprintf(
					"expected a time of 0 to %d ns, found %q", MaxCost, f)}
			}
			v[i] = int64(math.Round(x))
		}
		detours = append(detours, Detour{v[0], v[1]})
	}
	if err := in.Err(); err != nil {
		return nil, fmt.Errorf("%sline %d: %w", prefix(file), line+1, err)
	}
	t, err := NewNoiseTrace(detours)
	if err != nil {
		return nil, fmt.Errorf("%s %w", prefix(file), err)
	}
	return t, nil
}

// Period returns the length of the trace in ns.
func (t *NoiseTrace) Period() int64 {
	return t.start[len(t.start)-1] + t.sum[len(t.sum)-1] - t.sum[len(t.sum)-2]
}

// Noise is a trace with a starting place for each rank.
type Noise struct {
	trace  *NoiseTrace
	period int64
	free   int64 // time for work in a period
	offset []int64
}

// Noise draws the starting place of each rank. Co-scheduled ranks all have the
// same.
func (t *NoiseTrace) Noise(ranks int, seed uint64, coscheduled bool) *Noise {
	n := &Noise{trace: t, period: t.Period(), offset: make([]int64, ranks)}
	n.free = n.period - t.sum[len(t.sum)-1]
	rng := rand.New(rand.NewPCG(seed, 0))
	for r := range n.offset {
		if r == 0 || !coscheduled {
			n.offset[r] = rng.Int64N(n.period)
		} else {
			n.offset[r] = n.offset[0]
		}
	}
	return n
}

// WithNoise makes the processors of every rank pause during the detours of a
// trace. A computation or an overhead that a detour interrupts continues after
// it. One that would begin within a detour begins after it. A message leaves
// when its sender has done the overhead o. Network interfaces do not pause.
func WithNoise(n *Noise) Option { return func(m *Simulator) { m.noise = n } }

func (n *Noise) fits(ranks int) error {
	if len(n.offset) != ranks {
		return fmt.Errorf("goal: noise for %d ranks, expected %d", len(n.offset), ranks)
	}
	return nil
}

// end returns the time when a processor of a rank has done the given work, if
// it begins at t.
func (n *Noise) end(rank uint32, t, work int64) int64 {
	if work == 0 {
		return t
	}
	tr := n.trace
	at := (t%n.period + n.offset[rank]) % n.period
	// Detour i is the last that began by now. Count from its end if it is over,
	// else from its start.
	i, begins := slices.BinarySearch(tr.start, at)
	if !begins {
		i--
	}
	done := at
	if i >= 0 {
		done = max(tr.work[i], at-tr.sum[i+1])
	}
	// The end of the work: first in time for work, then in time.
	target := done + work
	periods := (target - 1) / n.free
	target -= periods * n.free
	before, _ := slices.BinarySearch(tr.work, target)
	end := target + tr.sum[before]
	hi, lo := bits.Mul64(uint64(periods), uint64(n.period))
	if hi != 0 || lo > uint64(maxTime) {
		return maxTime + 1
	}
	return t + int64(lo) + end - at
}
