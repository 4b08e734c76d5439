package mpirun

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/spinsim/spinsim/sim"
)

// patience is how long processes have to end by themselves, of real time.
const patience = 500 * time.Millisecond

// mark is in the environment of all processes of a run, with its socket. Children
// of ranks have it, too, or at least the UTS namespace of their node (agent.sh).
const mark = "SPINSIM_LINK="

// janitor has a shell kill what is left, and remove the folder, when this process
// has ended, however it ends: then the pipe closes. end does so, too.
func janitor(folder, path string) (end func(), err error) {
	const script = `read -r _
user=; [ "$(id -u)" = 0 ] || user='--user --preserve-credentials'
for i in 1 2 3 4 5 6 7 8 9; do # they may have children meanwhile
	list=$(grep -lszF "$1" /proc/[0-9]*/environ
		for p in $(find /proc/[0-9]*/ns/uts -maxdepth 0 -printf '%p %l\n' | grep -F -f "$0/uts" | cut -d / -f 3); do
			# else the namespace's number has a new owner
			grep -qszF "$2" "/proc/$p/environ" && continue
			case $(nsenter $user --uts -t "$p" hostname) in node[0-9]*) echo "/proc/$p";; esac
		done)
	[ -n "$list" ] || break
	for p in $list; do p=${p#/proc/}; kill -9 "${p%%/*}"; done
done
rm -rf "$0"`
	c := exec.Command("/bin/sh", "-c", script, folder, mark+path, mark)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // no signal of the terminal reaches it
	pipe, err := c.StdinPipe()
	if err != nil {
		return nil, err
	}
	return func() { _ = errors.Join(pipe.Close(), c.Wait()) }, c.Start()
}

// sweep kills all processes of a run, or only those of ranks, and returns the ranks
// of those that ranks have left behind.
func sweep(path string, links []*link, ofRanks bool) (ranks []string) {
	var nodes []string
	for _, l := range links {
		if l != nil {
			nodes = append(nodes, l.node)
		}
	}
	for range 10 { // they may start others meanwhile
		list, _ := os.ReadDir("/proc") //lint:files of the kernel
		found := false
		for _, e := range list {
			pid, err := strconv.Atoi(e.Name())
			if err != nil {
				continue
			}
			rank, is := member(pid, path)
			if space, _ := os.Readlink(fmt.Sprintf("/proc/%d/ns/uts", pid)); !is && slices.Contains(nodes, space) {
				is = true
				if line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); len(line) > 0 { //lint:files of the kernel
					rank = "unknown" // else it is about to end, and has lost its environment
				}
			}
			if !is || ofRanks && rank == "" {
				continue
			}
			found = true
			if fd, err := unix.PidfdOpen(pid, 0); err == nil { // else it has ended
				_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
				polled(fd, patience)
				_ = unix.Close(fd)
			}
			if rank != "" && !slices.Contains(ranks, rank) {
				ranks = append(ranks, rank)
			}
		}
		if !found {
			break
		}
	}
	slices.Sort(ranks)
	return ranks
}

// member says whether a process is one of a run, and its rank, if it has one.
func member(pid int, path string) (rank string, is bool) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid)) //lint:files of the kernel
	for w := range strings.SplitSeq(string(text), "\x00") {
		is = is || w == mark+path
		if r, ranked := strings.CutPrefix(w, "OMPI_COMM_WORLD_RANK="); ranked {
			rank = r
		}
	}
	return rank, is
}

// settle ends mpirun, when it has written what ranks have said at last.
func settle(ended <-chan error, kill func(), path string, links []*link) (err error) {
	select {
	case err = <-ended:
		sweep(path, links, false)
	case <-time.After(patience):
		kill()
		sweep(path, links, false)
		err = <-ended
	}
	return err
}

// late is the error of a run that has ended. At the end of time it names the rank
// that has not handed over for long.
func late(run context.Context, err error, links []*link) error {
	if cause := context.Cause(run); !errors.Is(cause, errEarly) {
		switch stopped, is := errors.AsType[*sim.LimitError](err); {
		case !is:
			err = cause
		case stopped.Pending > 0: // what comes with it is of processes that have been ended
			err = stopped
		}
	}
	if _, limit := errors.AsType[*sim.LimitError](err); !limit {
		return err
	}
	var held []string
	for i, l := range links {
		if l != nil && l.held.Load() {
			held = append(held, strconv.Itoa(i))
		}
	}
	if held == nil {
		return err
	}
	return fmt.Errorf("rank %s computes, is stopped or waits outside MPI: %w", strings.Join(held, ", "), err)
}

// leave waits until all processes have ended by themselves. What ranks have left
// behind does not count.
func (p *Program) leave(ctx context.Context, links []*link, ended <-chan error, kill func(), path string) (err error) {
	over := make(chan struct{})
	go func() {
		for _, l := range links {
			<-l.over
		}
		time.AfterFunc(patience, func() { close(over) })
	}()
	select {
	case err = <-ended:
	case <-ctx.Done():
		_ = settle(ended, kill, path, links)
		return late(ctx, context.Cause(ctx), links)
	case <-over: // mpirun waits for all who have the program's output
	}
	if left := sweep(path, links, true); left != nil {
		fmt.Fprintf(p.Err, "spinsim: mpirun: ended processes that rank %s had left behind\n", strings.Join(left, ", "))
	}
	if err == nil { // mpirun still writes what ranks have said, or has
		select {
		case err = <-ended:
		case <-ctx.Done():
		case <-time.After(10 * patience):
		}
	}
	_ = settle(ended, kill, path, links)
	links = slices.DeleteFunc(slices.Clone(links), func(l *link) bool {
		<-l.over
		status, said := l.status()
		return said && status == 0
	})
	if len(links) == 0 {
		return err
	}
	// mpirun has ended the others
	first := slices.MinFunc(links, func(a, b *link) int { return a.at.Compare(b.at) })
	if _, said := first.status(); said || err != nil {
		return fmt.Errorf("rank %d: the process has ended %s", first.rank, first.how())
	}
	return err
}

// without drops a warning of mpirun's about its launch agent, which comes or not
// by a race of its own, and means nothing: the agent has its process group.
type without struct{ io.Writer }

// Write writes the other lines. Several may come at once.
func (w *without) Write(b []byte) (int, error) {
	kept := make([]byte, 0, len(b))
	for line := range bytes.Lines(b) {
		if !bytes.Contains(line, []byte("plm:rsh: Warning: setpgid(")) {
			kept = append(kept, line...)
		}
	}
	if len(kept) == 0 {
		return len(b), nil
	}
	if _, err := w.Writer.Write(kept); err != nil {
		return 0, err
	}
	return len(b), nil
}
