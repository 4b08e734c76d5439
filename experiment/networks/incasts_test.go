package networks

import (
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/laws"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/sim"
)

var (
	matrices = flag.String("networks.matrices", "", "folder datacenter/connection_matrices/incast of spcl/HTSIM: all incasts with its sources and starts")
	mostMiB  = flag.Int("networks.mib", 1<<20, "with it: only incasts of at most so many MiB in all")
)

// oneIncast is a row of testdata/incasts.tsv.
type oneIncast struct {
	gbps, over, senders, start, mib int
	law                             string
	published, built                float64 // us; built 0: unknown
}

func readIncasts(t *testing.T) (list []oneIncast) {
	text, err := os.ReadFile("testdata/incasts.tsv")
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if strings.HasPrefix(f[0], "#") || f[0] == "gbps" {
			continue
		}
		var n [5]int
		for i := range n {
			n[i], err = strconv.Atoi(f[i])
			require.NoError(t, err)
		}
		in := oneIncast{n[0], n[1], n[2], n[3], n[4], f[5], 0, 0}
		in.published, err = strconv.ParseFloat(f[6], 64)
		require.NoError(t, err)
		if f[7] != "" {
			in.built, err = strconv.ParseFloat(f[7], 64)
			require.NoError(t, err)
		}
		list = append(list, in)
	}
	require.Len(t, list, 720)
	return list
}

const incastNodes = 8192

// profile is the device of the run's command line: 50 packets a queue, marks
// from 12 and 37, and a first window of 75 at 200 Gb/s.
func (in *oneIncast) profile() (*profile.Profile, error) {
	const packet = 4150
	times := in.gbps / 200
	p, err := profile.Load("uec", fmt.Sprintf("fabric.rate=%dGb/s", in.gbps), fmt.Sprintf("fabric.spines=%d", 64/in.over),
		fmt.Sprintf("fabric.queue=%d", 50*packet*times), "transport.law="+in.law)
	if err != nil {
		return nil, err
	}
	p.Fabric.MarkFrom, p.Fabric.MarkTo, p.Transport.FirstWindow = []int64{12, 25, 50}[times/2]*packet, []int64{37, 75, 150}[times/2]*packet, 75*times
	if laws.Find(laws.Rates, in.law).Grants {
		p.Transport.FirstWindow = 0
	}
	return p, p.Validate()
}

// load reads the sources and starts of a run, or spreads sources. The published
// runs took starts as microseconds, the program of the commit as picoseconds.
func (in *oneIncast) load(t *testing.T, unit sim.Time) (list []flow, starts []sim.Time) {
	if *matrices == "" {
		for i := range in.senders {
			list, starts = append(list, flow{64 + i*(incastNodes-64)/in.senders, 0}), append(starts, 0)
		}
		return list, starts
	}
	text, err := os.ReadFile(filepath.Join(*matrices, fmt.Sprintf("gen_random_incast_%dn_%dc_%dus_%dMs.cm", incastNodes, in.senders, in.start, in.mib)))
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		var from, to, id, start, size int
		if _, err := fmt.Sscanf(line, "%d->%d id %d start %d size %d", &from, &to, &id, &start, &size); err == nil {
			require.Equal(t, in.mib<<20, size)
			list, starts = append(list, flow{from, to}), append(starts, sim.Time(start)*unit)
		}
	}
	require.Len(t, list, in.senders)
	return list, starts
}

// The last message of an incast ends when htsim says, within 5%: in plain tests
// in a few small ones, and with -networks.matrices in all, where the table of
// both distances, from the published results and from the program of the
// commit, is printed. The published results are of an older program: its own
// distance is printed as well.
func TestIncasts(t *testing.T) {
	var published, built, both []float64
	for _, in := range readIncasts(t) {
		if all := *matrices != ""; !all && (in.start > 0 || in.over == 4 || in.senders*in.mib > 8 || in.built == 0) || in.senders*in.mib > *mostMiB {
			continue
		}
		p, err := in.profile()
		require.NoError(t, err)
		last := func(unit sim.Time) float64 {
			list, starts := in.load(t, unit)
			ends, err := play(p, incastNodes, 1, list, starts, in.mib<<20, nil)
			require.NoError(t, err)
			return float64(slices.Max(ends)) / float64(sim.Microsecond)
		}
		if in.built > 0 {
			ours := last(1)
			built = append(built, distance(ours, in.built))
			both = append(both, distance(in.built, in.published))
			t.Logf("%+v: %.4g us, %.1f%% from the program", in, ours, 100*distance(ours, in.built))
			if *matrices == "" {
				require.Less(t, distance(ours, in.built), 0.05, "%+v", in)
			}
		}
		if *matrices != "" {
			ours := last(sim.Microsecond)
			published = append(published, distance(ours, in.published))
			t.Logf("%+v: %.4g us, %.1f%% from what was published", in, ours, 100*distance(ours, in.published))
		}
	}
	require.NotEmpty(t, built)
	for _, d := range []struct {
		what string
		list []float64
	}{{"ours, from the program of the commit", built}, {"ours, from what was published", published}, {"the program, from what was published", both}} {
		if slices.Sort(d.list); len(d.list) > 0 {
			within, _ := slices.BinarySearch(d.list, 0.05)
			t.Logf("%s: %d incasts, median %.2f%%, %d within 5%%, the farthest %.1f%%", d.what, len(d.list), 100*d.list[len(d.list)/2], within, 100*d.list[len(d.list)-1])
		}
	}
}

// distance is how far two times are apart: half as long is as far as twice as
// long.
func distance(a, b float64) float64 { return math.Exp(math.Abs(math.Log(a/b))) - 1 }
