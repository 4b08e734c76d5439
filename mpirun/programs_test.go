//go:build programs

package mpirun

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/experiment/exanest"
	"github.com/spinsim/spinsim/experiment/part"
	_ "github.com/spinsim/spinsim/internal/libraries"
	_ "github.com/spinsim/spinsim/internal/wings"
	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// compiled is a program of testdata.
func compiled(t *testing.T, name string) string {
	program := filepath.Join(t.TempDir(), name)
	out, err := exec.Command("mpicc.openmpi", "-O2", "-o", program, filepath.Join("testdata", name+".c"), "-lfabric").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return program
}

// try runs a program, and returns what it said.
func try(t *testing.T, device, transport string, ranks int, command ...string) (Result, string, error) {
	return tryOn(t, device, transport, ranks, func(*Program) {}, command...)
}

func tryOn(t *testing.T, device, transport string, ranks int, change func(p *Program), command ...string) (Result, string, error) {
	p, err := profile.Load(device)
	require.NoError(t, err)
	o, err := exanest.TransportOptions(p, transport)
	require.NoError(t, err)
	o.Ranks = ranks
	var out bytes.Buffer
	var errs locked
	program := Program{Config: runtime.Config{Profile: p}, MPI: o, Command: command, Out: &out, Err: &errs}
	change(&program)
	r, err := program.Run(t.Context())
	t.Log(errs.String())
	return r, out.String() + errs.String(), err
}

// locked is where mpirun and the simulator write at the same time.
type locked struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// Pages that the process does not have are absent for devices, until it has
// touched them, and again after it has given them back: PART and an MPI that
// touches bring them in, in time. The bytes are right in all modes, and the
// times the same in each run.
func TestPages(t *testing.T) {
	program := compiled(t, "pages")
	const times, size, pages = 4, 1 << 16, 16
	took := make(map[string][]float64)
	for _, mode := range []string{"present", "touch", "pio", "pia"} {
		for range 2 {
			r, out, err := tryOn(t, "exanest", "exanet", 2, func(p *Program) {
				p.Absent = mode != "present"
				part.WithPages(&p.MPI.ExaNet, mode)
			}, program, fmt.Sprint(times), fmt.Sprint(size))
			require.NoError(t, err, "%s: %s", mode, out)
			if p := took[mode]; p != nil {
				require.Equal(t, p, numbers(t, out), mode)
			}
			took[mode] = numbers(t, out)
			require.Len(t, took[mode], times)
			if mode == "present" {
				require.Zero(t, r.Absent)
				continue
			}
			// of both ranks: new, had, given back, had, given back and zeros
			require.EqualValues(t, 2*(2*times+2)*pages, r.Pages, mode)
			require.EqualValues(t, 2*4*pages, r.Absent, mode)
			require.GreaterOrEqual(t, r.Faults, r.Absent, mode)
		}
		for i, us := range took[mode] { // the second and the fourth have their pages
			least := took["present"][i]
			if i%2 == 0 && mode != "present" {
				least *= 1.5
			}
			require.GreaterOrEqual(t, us, least, "%s, exchange %d", mode, i)
			require.LessOrEqual(t, took[mode][1], 1.1*took["present"][1], mode) // touching costs latencies
		}
	}
}

// An access to a process's memory takes no memory of the simulator's.
func TestMovesDoNotAllocate(t *testing.T) {
	var l link
	l.pid = int32(os.Getpid())
	there, here := make([]byte, 25), make([]byte, 25)
	copy(there, "some bytes of the process")
	at := uint64(uintptr(unsafe.Pointer(&there[0])))
	require.Zero(t, testing.AllocsPerRun(100, func() {
		require.NoError(t, l.read(at, here))
		require.NoError(t, l.write(at, here))
		require.NoError(t, l.turns())
	}))
	require.Equal(t, "some bytes of the process", string(here))
	require.Error(t, l.read(1, here))
}

// What a program computes takes no time, or that of a table, or that of the
// processor.
func TestCompute(t *testing.T) {
	program := compiled(t, "pages")
	for us, c := range map[float64]Compute{0: {}, 100: {Regions: map[int]sim.Time{7: 100 * sim.Microsecond}}} { //lint:maporder each by itself
		_, out, err := tryOn(t, "exanest", "exanet", 2, func(p *Program) { p.Compute = c }, program, "2", "8")
		require.NoError(t, err)
		for _, took := range numbers(t, out) {
			require.InDelta(t, us, took, 3)
		}
	}
	_, _, err := tryOn(t, "exanest", "exanet", 2, func(p *Program) { p.Compute.Regions = map[int]sim.Time{} }, program, "2", "8")
	require.ErrorContains(t, err, "MPI_Pcontrol(7): the table has no time for this level")
	none, _, err := try(t, "exanest", "exanet", 2, program, "2", "1000000")
	require.NoError(t, err)
	r, _, err := tryOn(t, "exanest", "exanet", 2, func(p *Program) { p.Compute.Factor = 100 }, program, "2", "1000000")
	require.NoError(t, err)
	require.Greater(t, r.Took, none.Took+sim.Millisecond, "6 million comparisons, and more")
}

// Instructions have a price where they are counted. Where they are not, the error
// comes before the program, and the same counter of another event, time on a
// processor, has one.
func TestInstructions(t *testing.T) {
	program := compiled(t, "pages")
	run := func() (Result, error) {
		r, _, err := tryOn(t, "exanest", "exanet", 2, func(p *Program) { p.Compute.Instruction = sim.Nanosecond }, program, "2", "1000000")
		return r, err
	}
	none, _, err := try(t, "exanest", "exanet", 2, program, "2", "1000000")
	require.NoError(t, err)
	r, err := run()
	if err != nil {
		require.ErrorContains(t, err, "mpirun: no counter of instructions")
		own := counted
		defer func() { counted = own }()
		counted.Type, counted.Config = unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_TASK_CLOCK
		r, err = run()
		require.NoError(t, err)
	}
	require.Greater(t, r.Took, none.Took+500*sim.Microsecond)
}

// Allreduce of all ranks in the NICs gives what the program expects; what they do
// not take, and other communicators, the host does.
func TestReductions(t *testing.T) {
	program := compiled(t, "reduce")
	for _, c := range []struct {
		device, transport string
		mode              mpi.Mode
		node              int   // ranks of each
		done, refused     int64 // of each rank
	}{
		{"exanest", "exanet", mpi.ModeHost, 1, 0, 0},
		{"exanest", "exanet", mpi.ModeAccelerator, 1, 2*3*6 + 3, 2*(8+3*2+8) + 1}, // no int64
		{"exanest", "exanet", mpi.ModeDoubling, 2, 2*4*6 + 3, 2*(4*2+8) + 1},
		{"spin-int", "portals-offload", mpi.ModeRing, 2, 2*4*6 + 3, 2*(4*2+8) + 1},
		{"spin-int", "portals", mpi.ModeTree, 2, 2*4*6 + 3, 2*(4*2+8) + 1},
		{"inc", "portals-offload", mpi.ModeSwitch, 2, 2*4*6 + 3, 2*(4*2+8) + 1}, // it has units
	} {
		var first Result
		for i := range 2 {
			r, out, err := tryOn(t, c.device, c.transport, 4, func(p *Program) { p.MPI.Allreduce, p.MPI.PerNode = c.mode, c.node }, program)
			require.NoError(t, err, "%s: %s", c.mode, out)
			require.Equal(t, []int64{4 * c.done, 4 * c.refused}, []int64{r.Reduced, r.Refused}, c.mode)
			if i > 0 {
				require.Equal(t, first, r)
			}
			first = r
		}
	}
}

// Reduces, broadcasts and barriers of all ranks in trees give what the program
// expects; modules of allreduces alone refuse them, and nobody asks who is not to.
func TestRooted(t *testing.T) {
	program := compiled(t, "rooted")
	for _, c := range []struct {
		device        string
		mode          mpi.Mode
		rooted        bool
		done, refused int64 // of each rank
	}{
		{"spin-int", mpi.ModeTree, true, 4*5 + 1, 4}, // no products
		{"inc", mpi.ModeSwitch, true, 4*5 + 1, 4},
		{"inc", mpi.ModeSwitch, false, 0, 0},
		{"spin-int", mpi.ModeDoubling, true, 0, 4*6 + 1},
	} {
		var first Result
		for i := range 2 {
			r, out, err := tryOn(t, c.device, "portals", 4, func(p *Program) { p.MPI.Allreduce, p.MPI.Rooted, p.MPI.PerNode = c.mode, c.rooted, 2 }, program)
			require.NoError(t, err, "%s: %s", c.mode, out)
			require.Equal(t, []int64{4 * c.done, 4 * c.refused}, []int64{r.Reduced, r.Refused}, c.mode)
			if i > 0 {
				require.Equal(t, first, r)
			}
			first = r
		}
	}
}

// HPCC passes its own checks as it does over shared memory, and all that it prints,
// times and rates among it, is the same in each run.
func TestHPCC(t *testing.T) {
	input, err := os.ReadFile(filepath.Join("testdata", "hpccinf.txt"))
	require.NoError(t, err)
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("hpccinf.txt", input, 0o600))
	passed := func() (text string, n int) {
		b, err := os.ReadFile("hpccoutf.txt")
		require.NoError(t, err)
		require.NoError(t, os.Remove("hpccoutf.txt"))
		return string(b), len(regexp.MustCompile(`\(passed\)|\.\.\. PASSED|passed residual checks`).FindAll(b, -1))
	}
	require.NoError(t, exec.Command("mpirun", "--allow-run-as-root", "--oversubscribe", "-np", "4", "hpcc").Run())
	text, want := passed()
	require.Contains(t, text, "Success=1")
	first := ""
	for i := range 2 {
		_, out, err := try(t, "spin-int", "portals", 4, "hpcc")
		require.NoError(t, err, out)
		text, got := passed()
		require.Contains(t, text, "Success=1")
		require.Equal(t, want, got)
		if i > 0 {
			require.Equal(t, first, text)
		}
		first = text
	}
}

func numbers(t *testing.T, text string) (list []float64) {
	for _, word := range strings.Fields(text) {
		x, err := strconv.ParseFloat(word, 64)
		require.NoError(t, err)
		list = append(list, x)
	}
	return list
}

// A program's own latency is what experiment osu measures, to the nanosecond of
// MPI_Wtime: Open MPI adds no time of its own.
func TestLatency(t *testing.T) {
	program := compiled(t, "latency")
	e, err := experiment.Find("osu")
	require.NoError(t, err)
	for device, transports := range map[string][]string{"spin-int": {"portals", "portals-offload"}, "exanest": {"exanet"}} { //lint:maporder each by itself
		for _, transport := range transports {
			_, out, err := try(t, device, transport, 2, program)
			require.NoError(t, err, "%s", out)
			p, err := profile.Load(device)
			require.NoError(t, err)
			lines := strings.Split(strings.TrimSpace(out), "\n")
			require.Len(t, lines, 15)
			for i, line := range lines {
				point, err := e.At(p, experiment.Values{"benchmark": "latency", "path": "0-1", "transport": transport, "size": 1 << i, "warmup": 5, "iterations": 20})
				require.NoError(t, err)
				r, err := e.Measure(t.Context(), point)
				require.NoError(t, err)
				var size int
				var us float64
				_, err = fmt.Sscan(line, &size, &us)
				require.NoError(t, err, line)
				require.Equal(t, 1<<i, size)
				want, delta := r.Time(experiment.LatencyColumn).Microseconds(), 0.001
				if transport == "portals" {
					delta = 0.01 * want // buffers that smaller messages have filled are appended again
				}
				require.InDelta(t, want, us, delta, "%s over %s, %d B", device, transport, size)
			}
		}
	}
}

// Fortran's bindings, and tools, call MPI by its other names.
func TestOtherNames(t *testing.T) {
	r, out, err := tryOn(t, "spin-int", "portals-offload", 2, func(p *Program) {
		p.MPI.Allreduce, p.Compute.Regions = mpi.ModeRing, map[int]sim.Time{7: sim.Millisecond}
	}, compiled(t, "pmpi"))
	require.NoError(t, err, out)
	require.Equal(t, []int64{2, 0}, []int64{r.Reduced, r.Refused})
	require.Greater(t, r.Took, sim.Millisecond)
}

// How programs end, and what the run says of it.
func TestEnds(t *testing.T) {
	program := compiled(t, "ends")
	longOutside = time.Second
	defer func() { longOutside = 10 * time.Second }()
	for how, wrong := range map[string]string{ //lint:maporder each by itself
		"well": "", "clock": "", "test": "", "cancel": "", "mprobe": "", "ssend": "", "hosts": "", "child": "",
		"error":    "rank 1: the process has ended before MPI_Finalize, with status 2",
		"dynamic":  "calls MPI_Win_create_dynamic, which is not supported with one rank on each node",
		"spawn":    "calls MPI_Comm_spawn, which is not supported",
		"outside":  "rank 1: the process has ended before MPI_Finalize",
		"deadlock": "rank 0 waits in receive from rank 1, 4 B, tag 1",
		"kill":     "rank 1: the process has ended before MPI_Finalize",
		"exit":     "rank 1: the process has ended before MPI_Finalize",
		"abort":    "rank 1: the process has ended before MPI_Finalize",
		"truncate": "message of 100 B from rank 1 with tag 1 is longer than its receive of 10 B",
		"code":     "the process has ended with status 7",
	} {
		r, out, err := try(t, "spin-int", "portals-offload", 2, program, how)
		if wrong == "" {
			require.NoError(t, err, "%s: %s", how, out)
		} else {
			require.ErrorContains(t, err, wrong, "%s: %s", how, out)
		}
		if how == "outside" {
			require.Contains(t, out, "spinsim: rank 1 waits in ")
		}
		if how == "child" {
			require.Contains(t, out, "ended processes that rank unknown had left behind")
		}
		if how == "error" {
			require.Contains(t, out, "spinsim: rank 1: MPI_Send: MPI_ERR_COUNT: invalid count argument")
		}
		if how == "clock" {
			require.InDelta(t, 2.0, r.Took.Seconds()*1000, 0.01)
		}
		left, _ := exec.Command("pgrep", "-f", "^"+program).Output()
		require.Empty(t, string(left), how)
	}
	folders, err := filepath.Glob(filepath.Join(os.TempDir(), fmt.Sprintf(".spinsim-mpirun.%d-*", os.Getpid())))
	require.NoError(t, err)
	require.Empty(t, folders)
}

// A daemon of Open MPI that is killed while it starts ends the run.
func TestDaemonDies(t *testing.T) {
	program := compiled(t, "ends")
	for range 5 {
		over := make(chan bool)
		go func() {
			defer close(over)
			for killed := false; !killed; {
				files, _ := filepath.Glob("/proc/[0-9]*/comm")
				for _, file := range files {
					if name, _ := os.ReadFile(file); string(name) != "orted\n" {
						continue
					}
					pid, _ := strconv.Atoi(strings.Split(file, "/")[2])
					environment, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
					if strings.Contains(string(environment), fmt.Sprintf("%s%s/.spinsim-mpirun.%d-", mark, os.TempDir(), os.Getpid())) {
						killed = syscall.Kill(pid, syscall.SIGKILL) == nil
					}
				}
			}
		}()
		_, _, err := try(t, "spin-int", "portals", 4, program, "well")
		require.Error(t, err)
		<-over
	}
}

// writer is called for what is written.
type writer func()

func (w writer) Write(b []byte) (int, error) {
	w()
	return len(b), nil
}

// A limit of time says how far the run had come, and blames a rank only if that has
// not handed over for long.
func TestEndless(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	p, err := profile.Load("spin-int")
	require.NoError(t, err)
	o, err := exanest.TransportOptions(p, "portals")
	require.NoError(t, err)
	o.Ranks = 2
	limit := writer(func() { cancel(&sim.LimitError{Limit: "a test"}) })
	_, err = (&Program{Config: runtime.Config{Profile: p}, MPI: o, Command: []string{compiled(t, "ends"), "endless"}, Out: limit, Err: t.Output()}).Run(ctx)
	require.ErrorContains(t, err, "stopped by the limit of a test, at ")
	require.NotContains(t, err.Error(), "computes")
}

// At a limit nothing is said of what the end of the ranks has done to the simulation.
func TestLate(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	limit := &sim.LimitError{Limit: "a test", Pending: 2}
	cancel(&sim.LimitError{Limit: "a test"})
	require.Equal(t, error(limit), late(ctx, errors.Join(limit, errors.New("bytes have vanished")), nil))
	require.EqualError(t, late(ctx, errors.New("bytes have vanished"), nil), "incomplete: stopped by the limit of a test")
	require.ErrorContains(t, late(ctx, missing([]*link{nil}, context.Cause(ctx)), nil), "before rank 0 was on the network")
}

// A receive from an endpoint does not take what another endpoint of its rank sent.
func TestAimed(t *testing.T) {
	p := post{peer: 1, peerEndpoint: 2}
	require.NoError(t, p.aimed(done{sourceEndpoint: 2}))
	require.ErrorContains(t, p.aimed(done{sourceEndpoint: 3}), "a receive from endpoint 2 of rank 1 has found a message of its endpoint 3 first")
	p.peer = -1
	require.NoError(t, p.aimed(done{sourceEndpoint: 3}))
}

// What is no MPI program measures nothing.
func TestNoMPI(t *testing.T) {
	_, _, err := try(t, "spin-int", "portals", 2, "echo", "hello")
	require.ErrorContains(t, err, "before rank 0, 1 was on the network")
	_, out, err := try(t, "spin-int", "portals", 1, "env", "-u", "LD_PRELOAD", compiled(t, "ends"), "well")
	require.ErrorContains(t, err, "before rank 0 was on the network")
	require.Contains(t, out, "rank 0 runs without the LD_PRELOAD that spinsim has given it")
	_, _, err = try(t, "spin-int", "portals", 2, "./nothing")
	require.ErrorContains(t, err, "before rank 0, 1 was on the network")
}

var thermo = regexp.MustCompile(`(?m)^ +\d+( +-?[\d.]+)+ *$`)

// LAMMPS computes what it computes over shared memory, in the same virtual time
// in each run.
func TestLAMMPS(t *testing.T) {
	input, err := filepath.Abs(filepath.Join("testdata", "in.lj"))
	require.NoError(t, err)
	t.Chdir(t.TempDir())
	shared, err := exec.Command("mpirun", "--allow-run-as-root", "--oversubscribe", "-np", "8", "lmp", "-in", input, "-log", "none").Output()
	require.NoError(t, err)
	want := thermo.FindAllString(string(shared), -1)
	require.Len(t, want, 6)
	first, out, err := try(t, "exanest", "exanet", 8, "lmp", "-in", input, "-log", "none")
	require.NoError(t, err, "%s", out)
	require.Equal(t, want, thermo.FindAllString(out, -1))
	for range 2 {
		again, same, err := try(t, "exanest", "exanet", 8, "lmp", "-in", input, "-log", "none")
		require.NoError(t, err)
		require.Equal(t, first, again)
		require.Equal(t, out, same)
	}
}

// A process alone in its communicators does not wait for others.
func TestSingle(t *testing.T) {
	_, said, err := try(t, "spin-int", "portals", 2, compiled(t, "single"))
	require.NoError(t, err)
	require.Equal(t, "200\n200\n", said)
}
