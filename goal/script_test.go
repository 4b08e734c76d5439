package goal

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"
)

// Scripts read a schedule in text form and print the result:
//
//	read            the schedule as WriteText writes it, or the error
//	run [path]      the finishing times, or the error; with path the critical path
//
// Parameters have the values of DefaultParams; L=10 and so on change them.
func TestScripts(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/script", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s, err := ReadText(strings.NewReader(d.Input), ReadOptions{File: "in"})
			if err != nil {
				return err.Error() + "\n"
			}
			switch d.Cmd {
			case "read":
				var out bytes.Buffer
				require.NoError(t, WriteText(&out, s))
				requireSameBinary(t, s, out.Bytes())
				return out.String()
			case "run":
				return scriptRun(t, d, s)
			}
			return "unknown command"
		})
	})
}

func scriptRun(t *testing.T, d *datadriven.TestData, s *Schedule) string {
	p := DefaultParams()
	for name, v := range map[string]*int64{
		"L": &p.L, "o": &p.Overhead, "g": &p.Gap,
	} {
		d.MaybeScanArgs(t, name, v)
	}
	for name, v := range map[string]*ByteTime{"G": &p.ByteGap, "O": &p.ByteOverhead} {
		if text := v.String(); d.MaybeScanArgs(t, name, &text) {
			var err error
			*v, err = ParseByteTime(text)
			require.NoError(t, err)
		}
	}
	d.MaybeScanArgs(t, "S", &p.Eager)
	if d.HasArg("atlahs") {
		p.Model = ATLAHS
	}
	var out strings.Builder
	if d.HasArg("path") {
		path, res, err := NewSimulator(s).CriticalPath(p)
		require.NoError(t, err)
		for _, step := range path.Steps {
			fmt.Fprintf(&out, "%d-%d rank %d %v: %v\n", step.Start, step.End, step.Rank, step.Kind, step.Op)
		}
		fmt.Fprintf(&out, "calc %d send %d recv %d latency %d of %d\n",
			path.CalcNS, path.SendNS, path.RecvNS, path.LatencyNS, res.MaxNS)
		return out.String()
	}
	res, err := NewSimulator(s).Run(p)
	fmt.Fprintln(&out, res.FinishNS)
	if err != nil {
		fmt.Fprintln(&out, err)
	}
	return out.String()
}

// requireSameBinary checks that a text gives the same schedule.
func requireSameBinary(t testing.TB, s *Schedule, text []byte) {
	t.Helper()
	again, err := ReadText(bytes.NewReader(text), ReadOptions{})
	require.NoError(t, err, "%s", text)
	if _, wide := s.WideTag(); wide {
		var out bytes.Buffer
		require.ErrorContains(t, WriteBinary(&out, s), "the binary form holds tags up to 4294967294")
		require.NoError(t, WriteText(&out, again))
		require.Equal(t, string(text), out.String())
		return
	}
	require.True(t, bytes.Equal(binaryOf(t, s), binaryOf(t, again)), "%s", text)
}

func binaryOf(t testing.TB, s *Schedule) []byte {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, WriteBinary(&out, s))
	return out.Bytes()
}
