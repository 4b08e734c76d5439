package handlerlab

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"
)

// lines runs a module and counts its cycles by line.
func lines(t *testing.T, cfg *Config) *Report {
	t.Helper()
	cfg.Lines, cfg.Host = true, make([]byte, 1<<16)
	cfg.Messages = []Message{{Source: AnySource, Data: make([]byte, 9000)}, {Source: AnySource, Data: make([]byte, 100)}}
	return mustRun(t, cfg)
}

// TestLinesAddUp counts cycles by line. It includes a handler that is killed
// and cores that execute several instructions in a cycle. The sum is the cost
// charged to the handlers, and the profile has the same sum.
func TestLinesAddUp(t *testing.T) {
	for _, x := range []struct {
		name, state string
		overrides   []string
	}{
		{"traps", "n=0", nil},
		{"traps", "n=3", []string{"hpu.max_cycles=1000"}},
		{"traps", "n=2", nil},
		{"races", "n=2", nil},
		{"races", "n=2", []string{"hpu.costs.core.fetch=3", "hpu.costs.core.int=2", "hpu.costs.core.load=1", "hpu.costs.core.store=1", "hpu.costs.core.float=1"}},
	} {
		cfg := module(t, x.name, x.overrides...)
		require.NoError(t, cfg.SetState(x.state))
		r := lines(t, cfg)
		require.Equal(t, r.Cycles, r.Lines.Cycles())
		p := r.Lines.Profile()
		require.NoError(t, p.CheckValid())
		total := int64(0)
		for _, s := range p.Sample {
			total += s.Value[0]
		}
		require.Equal(t, r.Cycles, total)
		require.Equal(t, "cycles", p.SampleType[0].Type)
		require.Equal(t, "instructions", p.SampleType[1].Type)

		var shown bytes.Buffer
		require.NoError(t, r.Lines.Write(&shown))
		total = 0
		for _, cycles := range regexp.MustCompile(`(?m)^ *(\d+) +[\d.]+ % |with (\d+) cycles?$`).FindAllStringSubmatch(shown.String(), -1) {
			n, err := strconv.ParseInt(cycles[1]+cycles[2], 10, 64)
			require.NoError(t, err)
			total += n
		}
		require.Equal(t, r.Cycles, total, "the lines add up: %s", &shown)

		cfg.Lines = false // observing changes nothing
		require.Equal(t, mustRun(t, cfg).Handlers, r.Handlers)
	}
}

// TestWholeCycles checks that rounding keeps the sum.
func TestWholeCycles(t *testing.T) {
	rows := []*placeRow{{parts: 24}, {parts: 7}, {parts: 6}, {parts: 5}, {}}
	require.Equal(t, []int64{2, 1, 1, 0, 0}, wholeCycles(rows, 10), "42 tenths; one by one they were 2, 1, 1 and 1")
	require.Empty(t, wholeCycles(nil, 10))
}

// TestPprofReads shows a profile with go tool pprof: lines with their chain of
// calls, and functions of a module without debugging information.
func TestPprofReads(t *testing.T) {
	show := func(p *profile.Profile, args ...string) string {
		name := filepath.Join(t.TempDir(), "p.pb.gz")
		var b bytes.Buffer
		require.NoError(t, p.Write(&b))
		require.NoError(t, os.WriteFile(name, b.Bytes(), 0o644))
		out, err := exec.Command("go", append(append([]string{"tool", "pprof"}, args...), name)...).CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	cfg := module(t, "traps", "hpu.max_cycles=1000")
	require.NoError(t, cfg.SetState("n=3"))
	r := lines(t, cfg)
	top := show(r.Lines.Profile(), "-top", "-lines")
	require.Contains(t, top, "Type: cycles")
	require.Regexp(t, `75\.00% .*forever .*traps\.c:18 \(inline\)`, top)
	require.Contains(t, show(r.Lines.Profile(), "-top", "-sample_index=instructions"), "Type: instructions")
	require.Contains(t, show(r.Lines.Profile(), "-tags"), "handler")

	var text bytes.Buffer
	require.NoError(t, r.Lines.Write(&text))
	require.Regexp(t, `(?m)^ +cycles +share +instructions\n +\d+ +\d+\.\d % +\d+ +traps\.c:18 \(forever\)$`, text.String())

	cfg = module(t, "actions")
	cfg.Payload = "forever"
	require.Contains(t, show(lines(t, cfg).Lines.Profile(), "-top"), "forever")
}
