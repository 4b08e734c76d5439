package experiment

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/internal/cli"
	"github.com/spinsim/spinsim/internal/provenance"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/sim"
)

// named is an experiment with an axis of two values and an axis of one.
func named(name string) *Experiment {
	return &Experiment{
		Name: name, Profiles: []string{"spin-int"},
		Axes: []Axis{
			{Name: "loss-rate", Kind: report.Share, Least: "0", Most: "1", Default: "0,1%", Help: "packets that are lost"},
			{Name: "ranks", Kind: report.Count, Least: "2", Most: "2", Help: "nodes"},
		},
		Columns: []report.Column{{Name: "took", Unit: "us", Kind: report.Duration, Help: "how long"}},
		Run: func(_ context.Context, p *Point) (Values, error) {
			return Values{"took": sim.Microsecond + sim.Time(1e6*p.Float("loss-rate"))*sim.Nanosecond}, nil
		},
	}
}

// call runs a program of experiments.
func call(list []*Experiment, args ...string) (status int, out, errs string) {
	var o, e bytes.Buffer
	status = RunMain(list, provenance.Build{Version: "v1"}, args, &o, &e)
	return status, o.String(), e.String()
}

// A program of several experiments has a command for each. With one experiment
// the program is that command.
func TestPrograms(t *testing.T) {
	one, two := named("one"), named("two")
	status, out, errs := call([]*Experiment{one, two}, "two", "--loss-rate", "5%,0.1", "--format", "csv")
	require.Equal(t, cli.ExitOK, status, errs)
	rows := strings.Split(strings.TrimSpace(out), "\n")
	require.Equal(t, "benchmark,profile,loss_rate,ranks,took_us,profile_hash,overrides,seed,handler,handler_hash,version", rows[0])
	require.Len(t, rows, 4)
	require.Regexp(t, `^# sealed by spinsim v1, CSV, record [0-9a-f]{64}, complete, `, rows[3])
	require.Regexp(t, `^two,spin-int,0\.05,2,51,[0-9a-f]{12},,1,,,v1$`, rows[1])
	require.Regexp(t, `^two,spin-int,0\.1,2,101,`, rows[2])

	status, single, errs := call([]*Experiment{two}, "--loss-rate", "5%,0.1", "--format", "csv")
	require.Equal(t, cli.ExitOK, status, errs)
	require.Equal(t, out, single)

	status, out, _ = call([]*Experiment{one, two})
	require.Equal(t, cli.ExitOK, status)
	for _, name := range []string{"one", "two", "rerun", "columns"} {
		require.Contains(t, out, "\n  "+name)
	}
	_, out, _ = call([]*Experiment{one}, "--loss-rate", "5%")
	require.Contains(t, out, "\nColumns: the command columns of this program.\n", "whatever the file of the program is called")
	_, out, _ = call([]*Experiment{one}, "--help")
	require.Contains(t, out, `--loss-rate LIST        packets that are lost: LIST of values, 0% to 100% (default "0,1%")`)
	require.NotContains(t, out, "--ranks", "there is nothing to choose")
	require.NotContains(t, out, "--handler", "none runs")
	_, out, _ = call([]*Experiment{one}, "columns")
	require.Contains(t, out, "\ntook_us    time   how long\n")
}

// An override is said to be unused only if Run has said what it reads: it may
// read Point.Profile in ways that nothing else sees.
func TestUnusedOverridesOfYourOwn(t *testing.T) {
	reading := func(reads func(p *Point)) *Experiment {
		e := named("one")
		e.Run = func(_ context.Context, p *Point) (Values, error) {
			reads(p)
			return Values{"took": p.Profile.Host.Poll}, nil
		}
		return e
	}
	for _, of := range []struct {
		reads func(p *Point)
		named []string // overrides in notes
	}{
		{func(*Point) {}, nil},
		{func(p *Point) { p.Reads() }, []string{"host.poll", "os.fault_ask"}},
		{func(p *Point) { p.Reads("host.poll") }, []string{"os.fault_ask"}},
	} {
		status, out, errs := call([]*Experiment{reading(of.reads)}, "--loss-rate", "0", "--set", "host.poll=7us", "--set", "os.fault_ask=page")
		require.Equal(t, cli.ExitOK, status, errs)
		require.Equal(t, len(of.named), strings.Count(out, ": nothing used it ("), out)
		for _, path := range of.named {
			require.Contains(t, out, "--set "+path+": nothing used it (")
		}
	}
}

// Wrong input gives one message, exit status 2, and nothing on standard output.
func TestBadInput(t *testing.T) {
	one := []*Experiment{named("one")}
	for want, args := range map[string][]string{
		"one: --loss-rate: 200%, expected 0% to 100%\n":                        {"--loss-rate", "2"},
		"one: --loss-rate: 1% is given twice\n":                                {"--loss-rate", "1%,0.01"},
		"one: unknown flag: --ranks (did you mean --links?); see one --help\n": {"--ranks", "2"},
		"one: --profile: no profile \"x\", expected a file or one of ":         {"--profile", "x"},
		"one: --format: ": {"--format", "xml"},
		"one: --trace: follows one run, but this sweep has 2: choose one value for --":     {"--trace", "t.json"},
		"one: rerun: expected the argument RESULTS.json, got none; see one rerun --help\n": {"rerun"},
		"one: columns: expected no argument, got \"x\"; see one columns --help\n":          {"columns", "x"},
	} {
		status, out, errs := call(one, args...)
		require.Equal(t, cli.ExitInput, status, args)
		require.Empty(t, out)
		require.Contains(t, errs, want)
	}
	document := filepath.Join(t.TempDir(), "a.json")
	require.NoError(t, os.WriteFile(document, []byte(`{"provenance": {"command": "two", "arguments": {"axes": {}}}}`), 0o600))
	status, _, errs := call(one, "rerun", document)
	require.Equal(t, cli.ExitInput, status)
	require.Contains(t, errs, document+`: provenance.command: no experiment "two", expected one of one`)
}

// A program with a wrong experiment reports it before it reads its arguments.
func TestWrongPrograms(t *testing.T) {
	noAxes := named("one")
	noAxes.Axes = nil
	for want, list := range map[string][]*Experiment{
		"no experiment\n": nil,
		"experiment one: no axes: what varies from point to point?\n": {noAxes},
		"experiment one: the name is taken\n":                         {named("one"), named("one")},
		"experiment rerun: the name is taken\n":                       {named("rerun")},
	} {
		status, out, errs := call(list, "--help")
		require.Equal(t, cli.ExitFailed, status)
		require.Empty(t, out)
		require.Equal(t, want, errs)
	}
	require.Panics(t, func() { Command(noAxes, CommandOptions{}) })
}

// No axis may have the name of a common flag.
func TestFlagsAreNotNamesOfAxes(t *testing.T) {
	full := named("one")
	full.Slots = Always(handlers.New("x", nil).Slot(handlers.Slot{Name: "here"}))
	root := program([]*Experiment{full}, provenance.Build{})
	root.InitDefaultHelpFlag()
	root.InitDefaultVersionFlag()
	var names []string
	for _, line := range strings.Split(root.Flags().FlagUsages(), "\n") {
		if _, after, is := strings.Cut(line, "--"); is {
			names = append(names, strings.Fields(after)[0])
		}
	}
	require.Greater(t, len(names), 10)
	for _, name := range names {
		e := named("one")
		e.Axes[0].Name = name
		if name == "loss-rate" {
			require.NoError(t, e.Check())
			continue
		}
		require.ErrorContains(t, e.Check(), "the name is taken", name)
	}
	require.True(t, slices.Contains(names, "waterfall"))
}

// An experiment that could not be made ends the program with one line that
// gives the reason.
func TestMust(t *testing.T) {
	if os.Getenv("MUST_END") != "" {
		Must(nil, errors.New("no such policy"))
		return
	}
	e := named("one")
	require.Same(t, e, Must(e, nil))
	c := exec.Command(os.Args[0], "-test.run=^TestMust$")
	c.Env = append(os.Environ(), "MUST_END=1")
	var errs bytes.Buffer
	c.Stderr = &errs
	var ended *exec.ExitError
	require.ErrorAs(t, c.Run(), &ended)
	require.Equal(t, cli.ExitFailed, ended.ExitCode())
	require.Equal(t, "no such policy\n", errs.String())
}

// A sweep that a signal ends shows its results so far, in every format, and how
// many of all these are. It ends like an interrupted command.
func TestInterruptedSweepShowsWhatItHas(t *testing.T) {
	var measured atomic.Int32
	e := &Experiment{
		Name: "slow", Profiles: []string{"spin-int"},
		Axes: []Axis{
			{Name: "mode", Kind: report.Text, Of: []string{"quick"}, Help: "how"},
			{Name: "turn", Kind: report.Count, Least: "1", Most: "9", Default: "1,2,3,4,5,6", Help: "which; the fourth and what is behind it do not end"},
		},
		Columns: []report.Column{{Name: "took", Unit: "us", Kind: report.Duration, Help: "how long"}},
		View:    View{Value: "took", Series: []string{"mode"}, Base: "quick"},
		Run: func(ctx context.Context, p *Point) (Values, error) {
			if p.Int("turn") <= 3 {
				measured.Add(1)
				return Values{"took": sim.Time(p.Int("turn")) * sim.Microsecond}, nil
			}
			for measured.Load() < 3 && ctx.Err() == nil { // the others run meanwhile
				runtime.Gosched()
			}
			if measured.CompareAndSwap(3, 4) {
				require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGINT))
			}
			<-ctx.Done()
			// a simulation may take longer to end than a command without
			// results may take; here the command has more time
			<-cli.Showing(ctx)
			return nil, context.Cause(ctx)
		},
	}
	for _, c := range []struct {
		args []string
		says []string
	}{
		{nil, []string{"^Ended before all was done: 3 of 6 points were measured\\.\n", `(?m)^spin-int +1 +1$`, `(?m)^spin-int +3 +3$`}},
		{[]string{"--all"}, []string{"^Ended before all was done: 3 of 6 points", `(?m)quick +2 +2$`}},
		{[]string{"--format", "csv"}, []string{`^benchmark,.*\n`, `(?m)^slow,spin-int,quick,1,1,`, `(?m)^slow,spin-int,quick,3,3,`}},
		{[]string{"--format", "json"}, []string{`"turn": ?3`}},
		{[]string{"--format", "ndjson"}, []string{`"turn": ?3`}},
		{[]string{"--format", "markdown"}, []string{"3 of 6 points", `\| quick \| 3 \|`}},
	} {
		measured.Store(0)
		status, out, errs := call([]*Experiment{e}, c.args...)
		require.Equal(t, cli.ExitStopped, status, errs)
		require.Equal(t, "slow: interrupted: 3 of 6 points were measured\n", errs)
		for _, says := range c.says {
			require.Regexp(t, says, out, c.args)
		}
	}
	measured.Store(0)
	status, out, errs := call([]*Experiment{e}, "--time-limit", "1h", "--plot", filepath.Join(t.TempDir(), "x.svg"))
	require.Equal(t, cli.ExitStopped, status)
	require.Contains(t, out, "3 of 6 points", errs)
}

// A point that fails does not end the others. They are shown, marked as a part,
// and then the first of many errors. Their document can be made again. If all
// fail, nothing is shown.
func TestPointsThatFail(t *testing.T) {
	e := &Experiment{
		Name: "odd", Profiles: []string{"spin-int"},
		Axes: []Axis{
			{Name: "mode", Kind: report.Text, Of: []string{"quick"}, Help: "how"},
			{Name: "turn", Kind: report.Count, Least: "1", Most: "99", Default: "1,2,3,4", Help: "which; the even ones fail"},
		},
		Columns: []report.Column{{Name: "took", Unit: "us", Kind: report.Duration, Help: "how long"}},
		View:    View{Value: "took", Series: []string{"mode"}, Base: "quick"},
		Run: func(_ context.Context, p *Point) (Values, error) {
			if p.Int("turn")%2 == 0 {
				return nil, errors.New("bytes differ")
			}
			return Values{"took": sim.Time(p.Int("turn")) * sim.Microsecond}, nil
		},
	}
	list := []*Experiment{e}
	status, out, errs := call(list)
	require.Equal(t, cli.ExitFailed, status)
	require.Regexp(t, `^Ended before all was done: 2 of 4 points were measured\.\n(?s:.*)\n *spin-int +1 +1\n *spin-int +3 +3\n`, out)
	require.Regexp(t, `^odd: odd quick, .* 2 turn: bytes differ\nodd quick, .* 4 turn: bytes differ\n2 of 4 points were measured\n$`, errs)

	status, out, errs = call(list, "--turn", "1..20+1", "--format", "csv")
	require.Equal(t, cli.ExitFailed, status)
	require.Equal(t, 12, strings.Count(out, "\n"))
	require.Regexp(t, `\n# sealed by spinsim v1, CSV, record [0-9a-f]{64}, cut: odd quick, [^\n]* bytes differ, 10 of 20 points were measured, sha256 `, out)
	require.Equal(t, 5, strings.Count(errs, "bytes differ"))
	require.Contains(t, errs, "\nand 5 more have failed\n10 of 20 points were measured\n")

	status, out, errs = call(list, "--turn", "2,4")
	require.Equal(t, cli.ExitFailed, status)
	require.Empty(t, out)
	require.NotContains(t, errs, "were measured")

	folder := t.TempDir()
	status, out, _ = call(list, "--turn", "1,2,3", "--resume", folder, "--part", "1/1")
	require.Equal(t, cli.ExitFailed, status)
	require.Equal(t, "part 1/1: "+folder+" has 2 of 3 points\n", out)

	_, out, _ = call(list, "--format", "json")
	document := filepath.Join(t.TempDir(), "odd.json")
	require.NoError(t, os.WriteFile(document, []byte(out), 0o600))
	status, out, errs = call(list, "rerun", document)
	require.Equal(t, cli.ExitOK, status, errs)
	require.Contains(t, out, "the same")
}

// An interrupted waterfall shows the steps that were measured.
func TestInterruptedWaterfall(t *testing.T) {
	var measured atomic.Int64
	e := &Experiment{
		Name: "falls", Profiles: []string{"spin-int"},
		Axes:    []Axis{{Name: "turn", Kind: report.Count, Least: "1", Most: "9", Default: "1", Help: "which"}},
		Columns: []report.Column{{Name: "took", Unit: "us", Kind: report.Duration, Help: "how long"}},
		View:    View{Value: "took"},
		Run: func(ctx context.Context, p *Point) (Values, error) {
			if p.Profile.DMA.Latency > 100*sim.Nanosecond { // after the step "host memory"
				for measured.Load() == 0 && ctx.Err() == nil { // one worker begins with the last point
					runtime.Gosched()
				}
				_ = syscall.Kill(os.Getpid(), syscall.SIGTERM)
				<-ctx.Done()
				return nil, context.Cause(ctx)
			}
			measured.Add(1)
			return Values{"took": sim.Microsecond}, nil
		},
	}
	status, out, errs := call([]*Experiment{e}, "--waterfall", "spin-int,spin-dis")
	require.Equal(t, cli.ExitStopped, status, errs)
	require.Regexp(t, `^falls: interrupted: \d+ of \d+ points were measured\n$`, errs)
	require.Regexp(t, `^Ended before all was done: `, out)
	require.Regexp(t, `(?m)^ +1 +spin-int +1000 +–`, out)
	require.Contains(t, out, "spin-int as it is, the steps are on the way to spin-dis.")
}

// narrow is a terminal of 40 columns.
type narrow struct{ bytes.Buffer }

func (*narrow) Columns() int { return 40 }

// On a terminal a table is folded to its width, without loss. Output for
// programs does not depend on the terminal.
func TestTablesFitTheTerminal(t *testing.T) {
	shown := func(args ...string) (pipe, terminal string) {
		_, pipe, _ = call([]*Experiment{named("one")}, args...)
		var out narrow
		var errs bytes.Buffer
		require.Equal(t, cli.ExitOK, RunMain([]*Experiment{named("one")}, provenance.Build{Version: "v1"}, args, &out, &errs), &errs)
		require.Empty(t, errs.String())
		return pipe, out.String()
	}
	longest := func(text string) (most int) {
		for line := range strings.Lines(text) {
			most = max(most, utf8.RuneCountInString(line)-1)
		}
		return most
	}
	pipe, terminal := shown("--all", "--quiet")
	require.Greater(t, longest(pipe), 45)
	require.LessOrEqual(t, longest(terminal), 40, terminal)
	for _, word := range strings.Fields(pipe) {
		if !strings.HasPrefix(word, "─") {
			require.Contains(t, terminal, word)
		}
	}
	pipe, terminal = shown("--format=csv", "-q")
	require.Equal(t, pipe, terminal)
}

// On a terminal the lines of help fit, with the same words in the same order. A
// pipe gets the original lines.
func TestHelpFitsTheTerminal(t *testing.T) {
	for _, list := range [][]*Experiment{{named("one")}, {named("one"), named("two")}} {
		_, pipe, _ := call(list, "--help")
		var out narrow
		require.Equal(t, cli.ExitOK, RunMain(list, provenance.Build{Version: "v1"}, []string{"--help"}, &out, os.Stderr))
		require.Equal(t, strings.Fields(pipe), strings.Fields(out.String()))
		for line := range strings.Lines(out.String()) {
			require.True(t, utf8.RuneCountInString(line) <= 41 || len(strings.Fields(line)) == 1, line)
		}
		require.Equal(t, strings.Count(pipe, "\n\n"), strings.Count(out.String(), "\n\n"), "paragraphs")
	}
}
