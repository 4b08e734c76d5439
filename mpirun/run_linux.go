package mpirun

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	gort "runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spinsim/spinsim/internal/file"
	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/runtime"
)

// Run runs the program to its end. Errors: a *MissingError; a rank has ended
// before MPI_Finalize; ranks wait for each other; the program has failed; no
// message of several ranks went over the network.
func (p *Program) Run(ctx context.Context) (result Result, err error) {
	mpirun, err := exec.LookPath("mpirun")
	if err != nil {
		return result, &MissingError{"mpirun", packages}
	}
	provider, err := Provider()
	if err != nil {
		return result, err
	}
	folder, remove, err := file.Scratch("spinsim-mpirun")
	if err != nil {
		return result, fmt.Errorf("mpirun: %w", err)
	}
	defer remove()
	end, err := janitor(folder)
	if err != nil {
		return result, fmt.Errorf("mpirun: %w", err)
	}
	defer end()
	listener, err := listen(folder)
	if err != nil {
		return result, fmt.Errorf("mpirun: %w", err)
	}
	defer func() { _ = listener.Close() }() // it is closed when the program has ended
	user := ctx
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var quiet atomic.Bool
	ended := p.start(ctx, mpirun, provider, folder, listener, &quiet)
	run, fail := context.WithCancelCause(ctx)
	links, err := gather(listener, p.MPI.Ranks, func(l *link) { fail(l.early()) })
	if err == nil {
		result, err = p.simulate(run, links, fail)
	}
	if err != nil {
		quiet.Store(true)
		for _, l := range links {
			l.kill()
		}
		end := stopped(ended, links, cancel)
		if user.Err() != nil {
			return result, context.Cause(user)
		}
		return result, errors.Join(err, end)
	}
	for _, l := range links {
		l.state = stateEnded
		l.wake(turnProcess)
	}
	if err := <-ended; err != nil {
		return result, fmt.Errorf("mpirun: %w", err)
	}
	if p.MPI.Ranks > 1 && result.Stats.Sent == 0 {
		return result, errors.New("mpirun: no message went over the network: nothing was measured")
	}
	return result, nil
}

// listen makes what processes find in the folder of a run.
func listen(folder string) (*net.UnixListener, error) {
	if err := os.WriteFile(filepath.Join(folder, "agent.sh"), agent, 0o700); err != nil { //lint:files scratch
		return nil, err
	}
	return net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(folder, "link"), Net: "unix"})
}

// stopped waits until mpirun has ended by itself, as it does soon when its ranks
// have been killed: asked to do so meanwhile, it crashes. Without ranks it is asked.
func stopped(ended <-chan error, links []*link, cancel func()) error {
	if !slices.Contains(links, nil) {
		select {
		case err := <-ended:
			return ignore(err)
		case <-time.After(time.Second):
		}
	}
	cancel()
	return ignore(<-ended)
}

// without drops a warning of mpirun's about its launch agent, which comes or not
// by a race of its own, and means nothing: the agent has its process group. When
// we have killed the ranks, it drops everything: what mpirun says of that.
type without struct {
	io.Writer
	quiet *atomic.Bool
}

func (w *without) Write(b []byte) (int, error) {
	if w.quiet.Load() {
		return len(b), nil
	}
	if bytes.Contains(b, []byte("plm:rsh: Warning: setpgid(")) && bytes.Count(b, []byte("\n")) <= 1 {
		return len(b), nil
	}
	return w.Writer.Write(b)
}

// janitor has a shell remove the folder when this process has ended, however it
// ends: then the pipe closes. end does so, too.
func janitor(folder string) (end func(), err error) {
	c := exec.Command("/bin/sh", "-c", `read -r _; rm -rf "$0"`, folder)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // no signal of the terminal reaches it
	pipe, err := c.StdinPipe()
	if err != nil {
		return nil, err
	}
	return func() { _ = errors.Join(pipe.Close(), c.Wait()) }, c.Start()
}

// ignore drops the end of a program that we have killed.
func ignore(err error) error {
	if _, is := errors.AsType[*exec.ExitError](err); is {
		return nil
	}
	return err
}

// start starts Open MPI's mpirun. Its end closes the listener.
func (p *Program) start(ctx context.Context, mpirun, provider, folder string, listener net.Listener, quiet *atomic.Bool) <-chan error {
	var hosts []string
	for node, left := 0, p.MPI.Ranks; left > 0; node++ {
		here := min(left, max(1, p.MPI.PerNode))
		hosts = append(hosts, fmt.Sprintf("node%d:%d", node, here))
		left -= here
	}
	c := exec.CommandContext(ctx, mpirun, append([]string{
		"--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-np", strconv.Itoa(p.MPI.Ranks),
		// nothing passes the network
		"--mca", "pml", "cm", "--mca", "mtl", "ofi", "--mca", "mtl_ofi_provider_include", "spinsim",
		"--mca", "osc", "pt2pt", "--mca", "btl", "self", "--mca", "coll", "^sm,hcoll,han",
		"--mca", "mpi_add_procs_cutoff", "1000000", // not later, from another thread
		"--mca", "orte_tmpdir_base", folder,
		"--host", strings.Join(hosts, ","), "--mca", "plm_rsh_agent", filepath.Join(folder, "agent.sh"), "--mca", "plm_rsh_no_tree_spawn", "1",
		"-x", "SPINSIM_LINK=" + listener.Addr().String(), "-x", "FI_PROVIDER_PATH=" + filepath.Dir(provider), "-x", "LD_PRELOAD=" + provider,
	}, p.Command...)...)
	c.Stdout, c.Stderr = p.Out, &without{p.Err, quiet}
	c.Stdin = nil
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) } // mpirun ends its ranks
	c.WaitDelay = 2 * time.Second
	ended := make(chan error, 1)
	go func() {
		gort.LockOSThread() // the system kills the child when this thread ends
		defer gort.UnlockOSThread()
		err := c.Run()
		_ = listener.Close()
		ended <- err
	}()
	return ended
}

// gather waits for all ranks, and until each has left MPI_Init.
func gather(listener *net.UnixListener, ranks int, ended func(*link)) ([]*link, error) {
	links := make([]*link, ranks)
	for range ranks {
		conn, err := listener.AcceptUnix()
		if err != nil {
			return links, errors.New("mpirun: the program has ended before all ranks were on the network: is it an MPI program, and compiled against Debian's Open MPI?")
		}
		l, err := accept(conn, ranks)
		if err != nil {
			return links, err
		}
		if links[l.rank] != nil {
			return links, fmt.Errorf("mpirun: rank %d is there twice", l.rank)
		}
		links[l.rank] = l
		go l.watch(ended)
	}
	for _, l := range links {
		if why := l.await(); why != whyInit {
			return links, fmt.Errorf("mpirun: rank %d has ended in MPI_Init", l.rank)
		}
	}
	return links, nil
}

func (p *Program) simulate(ctx context.Context, links []*link, fail func(error)) (result Result, err error) {
	defer pin(links)()
	watched, end := context.WithCancel(ctx)
	defer end()
	go outside(watched, links, p.Err)
	cfg := p.Config
	cfg.Nodes = p.MPI.Nodes(p.MPI.Ranks)
	c, err := runtime.NewCluster(cfg)
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	w, err := mpi.New(c, p.MPI)
	if err != nil {
		return result, err
	}
	all := make([]*rank, len(links))
	collected := &reductions{make(map[int][][]byte), make(map[int]int)}
	for i, l := range links {
		k := &rank{link: l, of: p, all: all, fail: fail, collected: collected, free: make(map[int][]runtime.View), said: make([]map[uint32]label, len(links))}
		for to := range k.said {
			k.said[to] = make(map[uint32]label)
		}
		all[i] = k
		if err := w.Spawn(i, func(r *mpi.Rank) error {
			err := k.program(r)
			result.Took = max(result.Took, r.Now())
			result.Pages += k.memory.pages
			result.Absent += k.memory.absent
			result.Reduced += int64(k.reduced)
			result.Refused += int64(k.refused)
			return err
		}); err != nil {
			return result, err
		}
	}
	err = w.Run(ctx)
	result.Stats, result.Nodes = w.Stats(), c.Stats()
	for i := range c.Nodes() {
		if k := c.Node(i).Kernel(); k != nil {
			result.Faults += k.Stats().Minor + k.Stats().Major
		}
	}
	return result, err
}
