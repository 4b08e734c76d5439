// Package floor lets a program that ulimit bounds end in good order: with one
// line, where Go would list all goroutines.
package floor

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// A program that ulimit bounds runs in a second process. Go ends a program
// whose memory is refused with status 2 and a list of all goroutines, and so do
// the C library and wasmtime, each in its own words. The system kills a program
// at the end of its processor time. The first process waits, and turns such an
// end into status 1 and one line.
//
// The second process has a file in memory as its descriptor 2, for last words,
// and writes its errors to a new descriptor. All others are as the user has
// opened them: a file may be named /dev/fd/3.
func init() {
	if errs, ok := watched(); ok {
		os.Stderr = os.NewFile(uintptr(errs), "/dev/stderr")
		syscall.CloseOnExec(errs)
		return
	}
	for _, resource := range []int{syscall.RLIMIT_AS, syscall.RLIMIT_DATA, syscall.RLIMIT_CPU} {
		var is syscall.Rlimit
		if err := syscall.Getrlimit(resource, &is); err == nil && is.Cur < math.MaxInt64 {
			watch()
			return
		}
	}
}

// watchedBy names the variable of the environment that holds the number of the
// process that waits, and the descriptor for errors.
const watchedBy = "SPINSIM_WATCHED_BY"

// watched returns the descriptor for errors, if another process waits.
func watched() (errs int, ok bool) {
	var by int
	n, _ := fmt.Sscan(os.Getenv(watchedBy), &by, &errs)
	_ = os.Unsetenv(watchedBy) // what this program starts is not watched by its parent
	return errs, n == 2 && by == os.Getppid()
}

// watch runs the program in a second process and ends as it ends. It returns
// only if the system does not start one.
func watch() {
	words, err := unix.MemfdCreate("last words", unix.MFD_CLOEXEC)
	if err != nil {
		return
	}
	last := os.NewFile(uintptr(words), "last words")
	errs, err := syscall.Dup(2)
	if err != nil {
		_ = last.Close()
		return
	}
	signals := make(chan os.Signal, 8)
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGXCPU} {
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
	runtime.LockOSThread() // the second process is killed when this thread ends
	child, err := syscall.ForkExec("/proc/self/exe", os.Args, &syscall.ProcAttr{
		// an arena for each thread would take 64 MiB of ulimit -v
		Env:   append(os.Environ(), fmt.Sprintf("%s=%d %d", watchedBy, os.Getpid(), errs), "MALLOC_ARENA_MAX=1"),
		Files: []uintptr{0, 1, last.Fd()},
		Sys:   &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		signal.Stop(signals)
		_ = last.Close()
		_ = syscall.Close(errs)
		runtime.UnlockOSThread()
		return
	}
	go func() {
		for s := range signals {
			_ = syscall.Kill(child, s.(syscall.Signal))
		}
	}()
	var status syscall.WaitStatus
	var used syscall.Rusage
	for {
		if _, err := syscall.Wait4(child, &status, 0, &used); err != syscall.EINTR {
			break
		}
	}
	said, _ := io.ReadAll(io.NewSectionReader(last, 0, 1<<20))
	os.Exit(end(status, used.Utime.Sec+used.Stime.Sec, said))
}

// end says how the second process ended, which had so many seconds of a
// processor, and returns its status.
func end(status syscall.WaitStatus, seconds int64, said []byte) int {
	var limit syscall.Rlimit
	err := syscall.Getrlimit(syscall.RLIMIT_CPU, &limit)
	if err == nil && status.Signaled() && status.Signal() == syscall.SIGKILL && uint64(seconds)+1 >= limit.Max {
		_, _ = os.Stderr.WriteString("spinsim: ended: ulimit -t allows it no more processor time\n")
		return 1
	}
	if status.Signaled() || status.ExitStatus() == 2 {
		for _, words := range refused {
			if bytes.Contains(said, []byte(words)) {
				_, _ = os.Stderr.WriteString("spinsim: ended: the system has refused it memory or a thread that ulimit does not allow\n")
				return 1
			}
		}
	}
	_, _ = os.Stderr.Write(said)
	if status.Signaled() {
		signal.Reset(status.Signal())
		_ = syscall.Kill(os.Getpid(), status.Signal())
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}

// refused are the last words of a process whose memory is refused: of Go, of
// its threads, of the C library, and of wasmtime and its threads.
var refused = []string{
	"out of memory", "cannot allocate memory", "errno=12", "failed to create new OS thread",
	"pthread_create failed", "Cannot allocate memory", "memory allocation of ",
	"ThreadPoolBuildError",
}
