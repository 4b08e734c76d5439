//go:build programs

package mpirun

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
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/spinsim/spinsim/experiment/exanest"
	"github.com/spinsim/spinsim/experiment/part"
	"github.com/spinsim/spinsim/mpi"
)

var (
	hostileRuns = flag.Int("hostile.runs", 20, "how many runs TestHostile makes")
	hostileTime = flag.Duration("hostile.time", 0, "how long TestHostile makes runs; 0: -hostile.runs")
	hostileFrom = flag.Int("hostile.from", 0, "number of the first run: a campaign goes on, or one run is made again")
	hostileSeed = flag.Uint64("hostile.seed", 1, "what the runs are drawn from")
	hostileDeed = flag.String("hostile.deed", "", "the deed of all runs; none: a drawn one")
)

const (
	hostileLimit  = 6 * time.Second // of real time, for a run
	hostileSoon   = 2 * time.Second // after a deed, or the limit
	hostileSteps  = 12              // of hostile.c
	hostileInCall = 100
)

var (
	// of spinsim or mpirun, and not of a rank, whose host is node0 or such
	hostileCrash = regexp.MustCompile(`(?m)^(panic|fatal error|goroutine \d+|runtime): |^\[[^n][^:]*:\d+\] Signal: `)
	// deeds that act on others, which may be named for them
	hostileOthers = []string{"parent", "group", "post", "noise", "noise_below", "flood", "null"}
	// deeds after which a rank may end well, and say nothing
	hostileEnds = []string{"exec_true", "finalize", "exit", "exit_now"}
	// deeds after which a rank does not hand over
	hostileHolds = []string{"loop", "deaf", "stop"}
)

// TestHostile runs a program one of whose ranks does something wrong: it ends, is
// stopped, closes its connection, has children, loses memory, writes anything into
// the memory that it shares with the simulator. Or spinsim is killed meanwhile.
// Each run ends soon, with right data or with one error that names the rank, and
// nothing of it is left.
func TestHostile(t *testing.T) {
	dir := t.TempDir()
	out, err := exec.Command("go", "build", "-o", filepath.Join(dir, "spinsim"), "../cmd/spinsim").CombinedOutput()
	require.NoError(t, err, "%s", out)
	program := compiled(t, "hostile")
	deeds, err := exec.Command(program).Output()
	require.NoError(t, err)
	c := hostile{t: t, spinsim: filepath.Join(dir, "spinsim"), program: program, deeds: strings.Fields(string(deeds)), made: make(map[string]int)}
	begin, number := time.Now(), *hostileFrom
	for ; c.finds < 20; number++ {
		if *hostileTime > 0 && time.Since(begin) > *hostileTime || *hostileTime == 0 && number == *hostileFrom+*hostileRuns {
			break
		}
		c.run(number)
	}
	for _, name := range slices.Sorted(maps.Keys(c.made)) {
		t.Logf("%5d %s", c.made[name], name)
	}
	t.Logf("%5d runs of -hostile.seed=%d, the next is -hostile.from=%d", number-*hostileFrom, *hostileSeed, number)
}

type hostile struct {
	t                *testing.T
	spinsim, program string
	deeds            []string
	made             map[string]int // runs by what came of them
	finds            int
}

// hostileRun is one drawn run.
type hostileRun struct {
	number            int
	deed, signal      string
	rank, ranks, step int
	args              []string
	dir               string
	out, errs         bytes.Buffer
	began, did, ended time.Time
	status            int
	problems          []string
}

func (c *hostile) run(number int) {
	r := c.drawn(number)
	dir, err := os.MkdirTemp("", "hostile") //lint:files of the test
	require.NoError(c.t, err)
	defer func() { require.NoError(c.t, os.RemoveAll(dir)) }()
	r.dir = dir
	shm := names("/dev/shm")
	c.start(r)
	r.check()
	r.left(shm)
	outcome := map[int]string{0: "right", 1: "error", 130: "interrupted", -1: "killed"}[r.status]
	if strings.Contains(r.errs.String(), "incomplete: ") {
		outcome = "limit of time"
	}
	c.made[r.deed+" "+r.signal+": "+outcome]++
	if r.problems != nil {
		c.finds++
		c.t.Errorf("run %d, %s of rank %d of %d at %d %s: %s\nstatus %d after %v, the deed after %v\n%s\n%s\nagain: -hostile.seed=%d -hostile.from=%d -hostile.runs=1", number, r.deed, r.rank, r.ranks,
			r.step, r.signal, strings.Join(r.problems, "; "), r.status, r.ended.Sub(r.began), r.did.Sub(r.began), strings.Join(r.args, " "), r.errs.String(), *hostileSeed, number)
	}
}

func (c *hostile) drawn(number int) *hostileRun {
	rng := rand.New(rand.NewPCG(*hostileSeed, uint64(number)))
	pick := func(list ...string) string { return list[rng.IntN(len(list))] }
	r := &hostileRun{number: number, deed: pick(c.deeds...), ranks: 1 + rng.IntN(4)}
	if *hostileDeed != "" {
		r.deed = *hostileDeed
	}
	r.rank, r.step = rng.IntN(r.ranks), rng.IntN(hostileSteps+2)
	if r.step > 0 && r.step <= hostileSteps && rng.IntN(3) == 0 {
		r.step += hostileInCall
	}
	if rng.IntN(8) == 0 {
		r.signal = pick("KILL", "INT")
	}
	device, transports := pick("spin-int", "exanest"), []string{"portals", "portals-offload"}
	if device == "exanest" {
		transports = exanest.TransportNames()[:1]
	}
	r.args = []string{
		"mpirun", "-np", strconv.Itoa(r.ranks), "--ranks-per-node", pick("1", "2"), "--profile", device, "--transport", pick(transports...),
		"--time-limit", hostileLimit.String(),
	}
	if device == "exanest" {
		modes := part.PageModes()
		r.args = append(r.args, "--pages", pick(modes[:len(modes)-1]...)) // the last one needs a handler
	}
	r.args = append(r.args, "--", c.program, r.deed, strconv.Itoa(r.rank), strconv.Itoa(r.step), strconv.FormatUint(rng.Uint64(), 10))
	return r
}

func names(folder string) (list []string) {
	entries, _ := os.ReadDir(folder)
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

// start runs spinsim to its end, and notes when the deed was done.
func (c *hostile) start(r *hostileRun) {
	deed := filepath.Join(r.dir, "deed")
	require.NoError(c.t, os.Mkdir(filepath.Join(r.dir, "tmp"), 0o700))
	ctx, cancel := context.WithTimeout(c.t.Context(), hostileLimit+10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.spinsim, append(r.args, deed)...)
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), "TMPDIR="+filepath.Join(r.dir, "tmp"), "HOSTILE="+r.dir)
	cmd.Stdout, cmd.Stderr = &r.out, &r.errs
	cmd.WaitDelay = hostileSoon
	r.began = time.Now()
	require.NoError(c.t, cmd.Start())
	if r.signal != "" {
		over := make(chan struct{})
		defer close(over)
		go func() { // a signal when the deed has been done
			for {
				if info, err := os.Stat(deed); err == nil && info.Size() > 0 {
					_ = cmd.Process.Signal(unix.SignalNum("SIG" + r.signal))
					return
				}
				select {
				case <-over:
					return
				case <-time.After(time.Millisecond):
				}
			}
		}()
	}
	if err := cmd.Wait(); errors.Is(err, exec.ErrWaitDelay) {
		r.find("its output is still open")
	}
	r.ended, r.status = time.Now(), cmd.ProcessState.ExitCode()
	text, _ := os.ReadFile(deed)
	first, _, _ := strings.Cut(string(text), "\n")
	if ns, err := strconv.ParseInt(first, 10, 64); err == nil {
		r.did = time.Unix(0, ns)
	}
}

func (r *hostileRun) find(format string, args ...any) {
	r.problems = append(r.problems, fmt.Sprintf(format, args...))
}

// check checks how the run has ended.
func (r *hostileRun) check() {
	errs := r.errs.String()
	at := strings.LastIndex(errs, "spinsim: ")
	limited := strings.Contains(errs, "incomplete: ")
	due := r.did.Add(hostileSoon)
	if limited || r.deed == "flood" { // whose 20,000 messages are simulated first
		due = r.began.Add(hostileLimit + hostileSoon)
	}
	switch {
	case hostileCrash.MatchString(errs):
		r.find("crashes")
	case r.status == 0:
		for i := range r.ranks {
			if !strings.Contains(r.out.String(), fmt.Sprintf("rank %d is right\n", i)) && (i != r.rank || !slices.Contains(hostileEnds, r.deed)) {
				r.find("rank %d has not said that it is right", i)
			}
		}
	case r.status == -1 && r.signal == "KILL", r.status == 130 && r.signal == "INT":
		if r.ended.After(due) {
			r.find("%v after the deed", r.ended.Sub(r.did))
		}
	case r.status != 1:
		r.find("strange status")
	case at < 0:
		r.find("no error")
	case strings.Count(errs[at:], "\n") > 1 && !limited && !strings.Contains(errs[at:], "nothing left to happen"):
		r.find("%d lines of errors", strings.Count(errs[at:], "\n"))
	case r.ended.After(due):
		r.find("%v after the deed, limited: %v", r.ended.Sub(r.did), limited)
	case r.ranks > 1 && strings.Contains(errs[at:], "no message went over"):
	case limited && !slices.Contains(hostileHolds, r.deed): // the machine is slow
	case !regexp.MustCompile(fmt.Sprintf(`rank (\d+, )*%d\b`, r.rank)).MatchString(errs[at:]) && !slices.Contains(hostileOthers, r.deed):
		r.find("the error does not name rank %d", r.rank)
	}
}

// left checks that nothing is left: no process, file or socket.
func (r *hostileRun) left(shm []string) {
	var what string
	for deadline := time.Now().Add(hostileSoon); ; {
		what = r.leftovers(shm)
		if what == "" || time.Now().After(deadline) {
			break
		}
		if r.signal == "" { // else the shell that removes it has just begun
			break
		}
	}
	if what != "" {
		r.find("left: %s", what)
	}
}

func (r *hostileRun) leftovers(shm []string) string {
	for _, name := range names("/proc") {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		environment, _ := os.ReadFile(filepath.Join("/proc", name, "environ"))
		if bytes.Contains(environment, []byte("HOSTILE="+r.dir+"\x00")) {
			line, _ := os.ReadFile(filepath.Join("/proc", name, "cmdline"))
			if r.signal == "" {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			return fmt.Sprintf("process %d: %q", pid, line)
		}
		if line, _ := os.ReadFile(filepath.Join("/proc", name, "cmdline")); bytes.Contains(line, []byte(r.dir)) {
			return fmt.Sprintf("process %d: %q", pid, line)
		}
	}
	if list := names(filepath.Join(r.dir, "tmp")); list != nil {
		return fmt.Sprintf("files %q", list)
	}
	if sockets, _ := os.ReadFile("/proc/net/unix"); bytes.Contains(sockets, []byte(r.dir)) {
		return "a socket"
	}
	host, _ := os.Hostname() // its files are another's: ranks have node0 and such
	for _, name := range names("/dev/shm") {
		if !slices.Contains(shm, name) && !strings.Contains(name, "."+host+".") {
			return "/dev/shm/" + name
		}
	}
	return ""
}

// A process may have ended before its memory is looked for.
func TestMemoryOfNobody(t *testing.T) {
	m, err := adopt(&link{pid: 1 << 30}, mpi.Tagged{}, true, nil)
	require.ErrorContains(t, err, "no such file")
	require.NotNil(t, m)
	require.NoError(t, m.close())
}
