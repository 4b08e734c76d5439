package memory

import (
	"io/fs"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"sync"
	"sync/atomic"
)

// Bound is a limit that the process was started with, as ulimit sets it. It
// counts reserved memory, in use or not. The system refuses more, and then Go's
// own memory ends the program with a list of all goroutines.
type Bound struct {
	Name         string // for example "ulimit -v"
	Limit, Taken int64  // bytes
}

// Left returns the rest of the bound, at least 1 byte.
func (b Bound) Left() int64 { return max(1, b.Limit-b.Taken) }

// Bounds returns the bounds of the process, without bounds that are not set or
// not known on this system.
func Bounds() []Bound { return boundsOf(os.DirFS("/")) }

// boundsOf is Bounds for a system whose files are below root, as in Linux.
func boundsOf(root fs.FS) (list []Bound) {
	text, err := fs.ReadFile(root, "proc/self/limits")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(text)) {
		for _, k := range []struct{ line, name, taken string }{
			{"Max address space", "ulimit -v", "VmSize:"},
			{"Max data size", "ulimit -d", "VmData:"},
		} {
			rest, ok := strings.CutPrefix(line, k.line)
			words := strings.Fields(rest)
			if !ok || len(words) == 0 {
				continue
			}
			limit, taken := number(words[0]), value(root, "proc/self/status", k.taken)
			if limit != unknown && taken != unknown { // "unlimited" is not a number
				list = append(list, Bound{k.name, limit, taken << 10}) // kB means KiB here
			}
		}
	}
	return list
}

// bounded returns the smallest rest of the bounds.
func bounded(root fs.FS) int64 {
	least := int64(math.MaxInt64)
	for _, b := range boundsOf(root) {
		least = min(least, b.Left())
	}
	return least
}

// exhausted is the function of OnExhausted.
var exhausted atomic.Pointer[func(n, limit int64)]

// OnExhausted sets the function that ends the program when n bytes cannot be
// had; nil: none. The limit is the one of Limit that they would exceed; 0: the
// system has refused them. It returns the previous function.
func OnExhausted(end func(n, limit int64)) (before func(n, limit int64)) {
	var now *func(n, limit int64)
	if end != nil {
		now = &end
	}
	if was := exhausted.Swap(now); was != nil {
		return *was
	}
	return nil
}

// Exhausted is for callers to whom the system has refused n bytes, before they
// ask Go for memory: Go cannot handle a refusal.
func Exhausted(n int) { exhaust(int64(n), 0) }

func exhaust(n, limit int64) {
	if end := exhausted.Load(); end != nil {
		(*end)(n, limit)
	}
}

// large is the smallest allocation that is tried before it is made, bytes.
const large = 32 << 20

// Spare is how much of its bounds a process leaves to Go for the heap and the
// stacks of threads. Go cannot handle a refusal, so others must stop earlier.
const Spare = 4 * large

// Pressing is the rest of a bound at which a command must end at once: Go takes
// the heap in pieces of 64 MiB.
const Pressing = 2 * large

// asked and mapped are the sums of all calls of Ask and Reserve, bytes.
var asked, mapped atomic.Int64

// crosses adds n to a sum. It reports whether the sum has crossed a multiple of
// 16 MiB, because a look at the bounds takes as long as filling a mebibyte.
func crosses(sum *atomic.Int64, n int64) bool {
	const step = large / 2
	now := sum.Add(n)
	return now/step != (now-n)/step
}

// limit is the bound of Limit.
var limit atomic.Int64

// Limit bounds the memory that Ask lets the process take, bytes; 0: no bound.
func Limit(n int64) { limit.Store(n) }

// promised is what Ask has granted: the sum of all allocations on the heap, once
// the callers have made theirs. Anybody's allocations count, so what a caller
// does not make is forgotten soon.
var promised struct {
	sync.Mutex
	until uint64 // bytes
}

// Ask is called before n bytes are allocated on Go's heap, if they are many or
// if the user's input can ask for many of them. Go asks the system for them,
// and ends the program with a list of all goroutines when that refuses. So if
// the process may not take so much, Ask collects garbage, and if what is then
// free is too little, it ends the program as Exhausted does. Several callers may
// ask before one of them allocates: each gets only what the others leave.
func Ask(n int64) {
	if crosses(&asked, n) {
		ask(n)
	}
}

// ask is what Ask rarely does. It needs more of a stack than those that Ask runs
// on have as a rule.
//
//go:noinline
func ask(n int64) {
	promised.Lock()
	defer promised.Unlock()
	heap := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(heap)
	allocated, most := heap[0].Value.Uint64(), limit.Load()
	until := max(promised.until, allocated) + uint64(n)
	need := int64(until - allocated)
	// a large piece counts whether it is touched or not
	over := func(heap uint64) bool {
		return most > 0 && (n >= large && int64(heap)+need > most || Resident()+need > most)
	}
	scarce := bounded(os.DirFS("/")) < need+Spare || need >= large && !grants(need+Pressing)
	if scarce || over(heap[1].Value.Uint64()) {
		debug.FreeOSMemory()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		if over(m.HeapAlloc) {
			exhaust(n, most)
			return
		}
		if scarce && int64(m.HeapIdle) < need+Pressing {
			exhaust(n, 0)
			return
		}
	}
	promised.until = until
}

// Reserve is called before n bytes are reserved outside Go's heap. If the bounds
// of the process then leave less than Spare, it calls Exhausted. For example,
// if a thousand nodes reserve a megabyte each, their last megabyte could take
// all that is left. Go's next page would then end the program.
func Reserve(n int) {
	if crosses(&mapped, int64(n)) && bounded(os.DirFS("/")) < int64(n)+Spare {
		Exhausted(n)
	}
}
