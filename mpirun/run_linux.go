package mpirun

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	gort "runtime"
	"strconv"
	"strings"
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
	if err := p.Compute.possible(); err != nil {
		return result, err
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
	path := filepath.Join(folder, "link")
	end, err := janitor(folder, path)
	if err != nil {
		return result, fmt.Errorf("mpirun: %w", err)
	}
	defer end()
	listener, err := listen(folder)
	if err != nil {
		return result, fmt.Errorf("mpirun: %w", err)
	}
	// it may have been closed
	defer func() { _ = listener.Close() }()
	run, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	command, kill := context.WithCancel(context.WithoutCancel(ctx))
	defer kill()
	ended := p.start(command, mpirun, provider, folder, path, fail)
	links, err := gather(run, listener, p.MPI.Ranks, fail)
	defer forget(links)
	if err == nil {
		result, err = p.simulate(run, links, fail)
	}
	if err != nil {
		fail(err) // which ends the ranks
		_ = settle(ended, kill, path, links)
		return result, late(run, err, links)
	}
	for _, l := range links {
		l.finished.Store(true)
	}
	for _, l := range links {
		_ = l.turns() // what peers have done since its MPI_Finalize is nobody's concern
		l.state = stateEnded
		l.wake(turnProcess)
	}
	if err := p.leave(ctx, links, ended, kill, path); err != nil {
		return result, fmt.Errorf("mpirun: %w", err)
	}
	if p.MPI.Ranks > 1 && result.Stats.Sent+result.Onesided+result.Reduced == 0 {
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

// start starts Open MPI's mpirun, whose end is over's. It ends with ctx.
func (p *Program) start(ctx context.Context, mpirun, provider, folder, path string, over func(error)) <-chan error {
	var hosts []string
	for node, left := 0, p.MPI.Ranks; left > 0; node++ {
		here := min(left, max(1, p.MPI.PerNode))
		hosts = append(hosts, fmt.Sprintf("node%d:%d", node, here))
		left -= here
	}
	c := exec.CommandContext(ctx, mpirun, append([]string{
		"--quiet", // about ranks that spinsim ends
		"--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-np", strconv.Itoa(p.MPI.Ranks),
		// nothing passes the network
		"--mca", "pml", "cm", "--mca", "mtl", "ofi", "--mca", "mtl_ofi_provider_include", "spinsim",
		"--mca", "coll", "^sm,hcoll,han",
		"--mca", "mpi_add_procs_cutoff", "1000000", // not later, from another thread
		"--mca", "odls_base_sigkill_timeout", "0", // of ranks that wait for their turn
		"--mca", "orte_tmpdir_base", folder,
		// so that mpirun sees it when a daemon dies before it has connected
		"--mca", "orte_leave_session_attached", "1", "--mca", "plm_rsh_num_concurrent", "1000000",
		"--host", strings.Join(hosts, ","), "--mca", "plm_rsh_agent", filepath.Join(folder, "agent.sh"), "--mca", "plm_rsh_no_tree_spawn", "1",
		"-x", mark + path, "-x", "FI_PROVIDER_PATH=" + filepath.Dir(provider), "-x", "LD_PRELOAD=" + provider,
	}, append(p.onesided(), p.Command...)...)...)
	c.Env = append(os.Environ(), mark+path)
	c.Stdout, c.Stderr = p.Out, &without{p.Err}
	c.Stdin = nil
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	c.WaitDelay = patience
	ended := make(chan error, 1)
	go func() {
		gort.LockOSThread() // the system kills the child when this thread ends
		defer gort.UnlockOSThread()
		err := c.Run()
		early := errEarly
		if err != nil {
			early = fmt.Errorf("%w (mpirun: %w)", early, err)
		}
		over(early)
		ended <- err
		close(ended)
	}()
	return ended
}

var errEarly = errors.New("the program has ended")

// missing is the error of a program that has ended before it was on the network.
func missing(links []*link, err error) error {
	var ranks []string
	for i, l := range links {
		if l == nil {
			ranks = append(ranks, strconv.Itoa(i))
		}
	}
	return fmt.Errorf("mpirun: %w before rank %s was on the network: is it an MPI program, and compiled against Debian's Open MPI?", err, strings.Join(ranks, ", "))
}

// gather waits for all ranks, and until each has left MPI_Init. The ranks end
// with ctx.
func gather(ctx context.Context, listener *net.UnixListener, ranks int, ended func(error)) ([]*link, error) {
	links := make([]*link, ranks)
	w, err := newWatch(ranks, ended)
	if err != nil {
		return links, fmt.Errorf("mpirun: %w", err)
	}
	context.AfterFunc(ctx, func() { time.AfterFunc(patience, w.close) })
	go w.run()
	context.AfterFunc(ctx, func() { _ = listener.Close() }) // it has served
	for range ranks {
		conn, err := listener.AcceptUnix()
		if err != nil {
			return links, missing(links, context.Cause(ctx))
		}
		stop := context.AfterFunc(ctx, func() { _ = conn.Close() }) // it may say nothing
		l, err := accept(conn, ranks)
		if err != nil && ctx.Err() != nil {
			return links, missing(links, context.Cause(ctx))
		}
		if err != nil {
			return links, err
		}
		stop()
		context.AfterFunc(ctx, l.kill)
		if links[l.rank] != nil {
			return links, fmt.Errorf("mpirun: rank %d is there twice", l.rank)
		}
		links[l.rank] = l
		if err := w.add(l); err != nil {
			return links, fmt.Errorf("mpirun: %w", err)
		}
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
			err := k.program(ctx, r)
			result.Took = max(result.Took, r.Now())
			result.Pages += k.memory.pages
			result.Absent += k.memory.absent
			result.Reduced += int64(k.reduced)
			if k.one != nil {
				result.Onesided += k.one.all
			}
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
