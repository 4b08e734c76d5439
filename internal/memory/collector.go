package memory

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// floor is how large the heap is when the garbage collector begins, at least,
// bytes. Go's own floor is 4 MiB: while a simulation of a few hundred ranks is
// made, the collector would look through it six times, which takes longer than
// making it.
const floor = 128 << 20

// defaultPercent is Go's: the heap may grow by as much as is in use, %.
const defaultPercent = 100

// CollectLate has the garbage collector begin when the heap has reached 128
// MiB, if it would have begun before; above, all is as usual. It lasts as long
// as the program, for which one call is enough. A limit of memory holds all the
// same, and a program that was started with GOGC keeps that.
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
	_ *byte // not one of the tiny objects, which share memory
}

// again follows each collection.
func again(c *collected) {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	debug.SetGCPercent(latePercent(live[0].Value.Uint64()))
	runtime.SetFinalizer(c, again)
}

// latePercent is by how much a heap of which so many bytes are in use may grow,
// %: to the floor, or twofold. Go takes it of 4 MiB if less is in use.
func latePercent(live uint64) int {
	const least = 4 << 20
	if live < least {
		return defaultPercent * (floor / least)
	}
	return max(defaultPercent, int(100*(floor-min(live, floor))/live))
}
