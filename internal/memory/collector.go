package memory

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// floor is the smallest size of the heap at which the garbage collector begins,
// bytes. Go's own floor is 4 MiB: the collector would look through a simulation
// of a few hundred ranks six times while it is made, which takes longer than
// making it.
const floor = 128 << 20

// largePercent is by how much a heap may grow of which largeHeap bytes are in
// use, in %: the machine has no room for another one.
const (
	largePercent = 30
	largeHeap    = 1 << 30
)

// defaultPercent is Go's default: the heap may grow by as much as is in use, %.
const defaultPercent = 100

// CollectLate makes the garbage collector begin when the heap has reached 128
// MiB, if it would have begun earlier. A larger heap is collected as usual. It
// lasts as long as the program, so one call is enough. A limit of memory still
// holds, and a program that was started with GOGC keeps that.
func CollectLate() { collectLate() }

var collectLate = sync.OnceFunc(func() {
	if os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(latePercent(0))
	runtime.SetFinalizer(new(collected), again)
})

// collected is an object that every collection finds unused.
type collected struct {
	_ *byte // without it the object would be tiny, and tiny objects share memory
}

// again runs after each collection.
func again(c *collected) {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	debug.SetGCPercent(latePercent(live[0].Value.Uint64()))
	runtime.SetFinalizer(c, again)
}

// latePercent returns by how much a heap may grow, in %, if live bytes are in
// use: to the floor, or twofold, but a large heap less. Go takes it of 4 MiB if less is in use.
func latePercent(live uint64) int {
	const least = 4 << 20
	switch {
	case live < least:
		return defaultPercent * (floor / least)
	case live >= largeHeap:
		return largePercent
	}
	return max(defaultPercent, int(100*(floor-min(live, floor))/live))
}
