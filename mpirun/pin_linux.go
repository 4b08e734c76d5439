package mpirun

import (
	"os"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// one is held by the simulation that has the processor.
var one sync.Mutex

// pin keeps the simulator and the processes of all ranks on one processor: only
// one of them runs at a time, and to wake another processor takes many times
// as long. undo gives the simulator its processors back. Where that is not
// allowed, hand-overs are slower.
func pin(links []*link) (undo func()) {
	one.Lock()
	var allowed, own unix.CPUSet
	if unix.SchedGetaffinity(0, &allowed) != nil || allowed.Count() == 0 {
		return one.Unlock
	}
	for nth, cpu := os.Getpid()%allowed.Count(), 0; ; cpu++ { // several simulators take several
		if allowed.IsSet(cpu) {
			if nth == 0 {
				own.Set(cpu)
				break
			}
			nth--
		}
	}
	for _, l := range links {
		_ = unix.SchedSetaffinity(int(l.pid), &own) // the main thread; Open MPI's others do not compute
	}
	threads(&own)
	return func() {
		threads(&allowed)
		one.Unlock()
	}
}

// threads gives all threads of the simulator a set of processors. Later ones
// have it from them.
func threads(set *unix.CPUSet) {
	list, _ := os.ReadDir("/proc/self/task") //lint:files of the kernel
	for _, t := range list {
		if id, err := strconv.Atoi(t.Name()); err == nil {
			_ = unix.SchedSetaffinity(id, set) // it may have ended
		}
	}
}
