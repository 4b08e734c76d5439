package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	attackTime  = flag.Duration("attack.time", 0, "how long TestAttack draws; 0: -attack.draws")
	attackDraws = flag.Int("attack.draws", 24, "how many draws TestAttack makes")
	attackFrom  = flag.Int("attack.from", 0, "number of the first draw: a campaign goes on, or one draw is made again")
	attackSeed  = flag.Uint64("attack.seed", 1, "what the draws are made from; 0: something new")
	attackKeep  = flag.String("attack.keep", "", "folder for the files of draws that found something; none: they are removed")
)

// TestAttack runs the program on input that a draw has spoiled, and spoils what
// happens to the program: signals, full disks, little memory. A draw is made
// from the seed and its number, so that it can be made again. scripts/attack.sh
// makes many.
//
// Whatever is drawn, the program ends soon with status 0, 1, 2 or 130 and a
// sentence for a status other than 0, it does nothing if the status is 2, and
// makes the same bytes twice: on both engines if the build has both.
func TestAttack(t *testing.T) {
	seed := *attackSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-attack.seed=%d -attack.from=%d", seed, *attackFrom)
	a := &campaign{t: t, seed: seed, next: *attackFrom, end: *attackFrom + *attackDraws, made: make(map[string]int), cases: attackCases(t)}
	if *attackTime > 0 {
		a.end, a.until = 1<<40, time.Now().Add(*attackTime)
	}
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(a.work)
	}
	wg.Wait()
	for _, name := range slices.Sorted(maps.Keys(a.made)) {
		t.Logf("%7d %s", a.made[name], name)
	}
	t.Logf("%7d draws, the next is -attack.from=%d", a.next-*attackFrom, a.next)
}

// campaign is many draws.
type campaign struct {
	t     *testing.T
	seed  uint64
	cases []attackCase

	mu    sync.Mutex
	next  int
	end   int
	until time.Time      // zero: the end is what counts
	made  map[string]int // draws by their kind and status
	finds int
}

// mostFinds ends a campaign: many finds have mostly one cause.
const mostFinds = 20

func (a *campaign) take() (number int, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.next >= a.end || a.finds >= mostFinds || !a.until.IsZero() && time.Now().After(a.until) {
		return 0, false
	}
	a.next++
	return a.next - 1, true
}

func (a *campaign) work() {
	for {
		number, ok := a.take()
		if !ok {
			return
		}
		d := &attempt{t: a.t, number: number, rng: rand.New(rand.NewPCG(a.seed, uint64(number))), cases: a.cases}
		d.make()
		a.mu.Lock()
		a.made[d.kind]++
		if d.finds != nil {
			a.finds++
			a.t.Errorf("draw %d of seed %d, %s:\n%s\nagain: bash scripts/attack.sh --seed %d --from %d --draws 1",
				number, a.seed, d.kind, strings.Join(d.finds, "\n"), a.seed, number)
		}
		a.mu.Unlock()
	}
}

// attempt is one draw.
type attempt struct {
	t      *testing.T
	number int
	rng    *rand.Rand
	cases  []attackCase
	dir    string
	kind   string
	finds  []string
}

// make makes the draw in a folder of its own.
func (d *attempt) make() {
	dir, err := os.MkdirTemp("", "attack")
	require.NoError(d.t, err)
	d.dir = dir
	k := attackKinds[d.rng.IntN(len(attackKinds))]
	d.kind = k.name
	k.make(d)
	if d.finds != nil && *attackKeep != "" {
		kept := filepath.Join(*attackKeep, fmt.Sprintf("draw-%d", d.number))
		require.NoError(d.t, os.CopyFS(kept, os.DirFS(dir)))
	}
	require.NoError(d.t, os.RemoveAll(dir))
}

func (d *attempt) find(format string, args ...any) {
	d.finds = append(d.finds, fmt.Sprintf(format, args...))
}

// outcome is how a run of the program has ended.
type outcome struct {
	args      []string
	status    int // -1: killed
	out, errs string
	files     map[string]string // of the folder, afterwards
	limited   bool              // by real time or memory taken, which no run repeats
}

// attackPatience is how long a run may take before it gets a signal: until then
// it may have good reasons. After the signal it has none.
const attackPatience = 20 * time.Second

// run runs the program in the draw's folder, and checks what always holds.
// prepare, if not nil, changes the command before it starts, and started is
// called when it runs.
func (d *attempt) run(args []string, prepare func(c *exec.Cmd), started func(c *exec.Cmd)) outcome {
	before := d.files()
	ctx, cancel := context.WithTimeout(context.Background(), attackPatience)
	defer cancel()
	program, err := exec.LookPath("spinsim") // this test binary, see TestMain
	require.NoError(d.t, err)
	c := exec.CommandContext(ctx, program, args...)
	c.Dir = d.dir
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.WaitDelay = attackPatience
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	if prepare != nil {
		prepare(c)
	}
	require.NoError(d.t, c.Start())
	if started != nil {
		started(c)
	}
	err = c.Wait()
	e := outcome{args: args, status: c.ProcessState.ExitCode(), out: out.String(), errs: errs.String(), files: d.files()}
	e.limited = ctx.Err() != nil || strings.Contains(e.errs, "of real time") || strings.Contains(e.errs, "ended: it has taken ")
	if errors.Is(err, exec.ErrWaitDelay) {
		d.find("spinsim %q does not end on a signal", args)
	}
	d.check(&e, before)
	return e
}

var (
	// commands whose answer is what is wrong
	looks = regexp.MustCompile(`^(handler inspect|scenario check) `)
	crash = regexp.MustCompile(`(?m)^(panic|fatal error|goroutine \d+|runtime): |SIG[A-Z]+: `)
	// what a terminal acts on
	acts = regexp.MustCompile(`[\x00-\x08\x0b-\x1f\x7f\x{80}-\x{9f}\x{200e}\x{200f}\x{202a}-\x{202e}\x{2066}-\x{2069}]`)
)

// check checks what holds for each end of the program.
func (d *attempt) check(e *outcome, before map[string]string) {
	report := func(what string) { d.find("spinsim %q: %s, status %d\n%s", e.args, what, e.status, shortened(e.errs)) }
	switch {
	case crash.MatchString(e.errs):
		report("crashes")
	case e.status != exitOK && e.status != exitFailed && e.status != exitInput && e.status != exitStopped && e.status != -1:
		report("strange status")
	case e.status > 0 && !strings.HasPrefix(e.errs, "spinsim: ") && !strings.Contains(e.errs, "\nspinsim: "):
		report("no sentence for it")
	case e.status == exitInput && e.out != "" && !looks.MatchString(strings.Join(e.args, " ")):
		report("refused, and yet there is output: " + shortened(e.out))
	case e.status == exitInput && !maps.Equal(before, e.files):
		report("refused, and yet files have changed: " + changes(before, e.files))
	}
	for _, text := range []string{e.errs, e.out} {
		if at := acts.FindString(text); at != "" && !isFile(text) {
			report(fmt.Sprintf("a terminal would act on %q: %q", at, shortened(text)))
		}
	}
}

// isFile reports whether an output is meant for a file: a table for programs,
// which keeps names as they are.
func isFile(text string) bool { return strings.HasPrefix(text, "{") || strings.HasPrefix(text, "PAR1") }

func shortened(text string) string {
	const most = 1500
	if len(text) > most {
		return text[:most] + "…"
	}
	return text
}

// files returns the files of the draw's folder, and of its folders.
func (d *attempt) files() map[string]string {
	all := make(map[string]string)
	err := filepath.WalkDir(d.dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		name, _ := filepath.Rel(d.dir, path)
		all[name] = string(data)
		return err
	})
	require.NoError(d.t, err)
	return all
}

// changes names the files that differ.
func changes(before, after map[string]string) string {
	var names []string
	for name := range after {
		if was, ok := before[name]; !ok || was != after[name] {
			names = append(names, name)
		}
	}
	for name := range before {
		if _, ok := after[name]; !ok {
			names = append(names, name+" (gone)")
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// write writes a file into the draw's folder.
func (d *attempt) write(name, text string) {
	name = filepath.Join(d.dir, name)
	require.NoError(d.t, os.MkdirAll(filepath.Dir(name), 0o755))
	require.NoError(d.t, os.WriteFile(name, []byte(text), 0o600))
}
