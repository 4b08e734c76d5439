package memory

import (
	"io/fs"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
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
var exhausted atomic.Pointer[func(n int64)]

// OnExhausted sets the function that Exhausted calls to end the program; nil:
// none. It returns the previous function.
func OnExhausted(end func(n int64)) (before func(n int64)) {
	var now *func(n int64)
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
func Exhausted(n int) {
	if end := exhausted.Load(); end != nil {
		(*end)(int64(n))
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

// Ask is called before n bytes are allocated on Go's heap, if they are many or
// if the user's input can ask for many of them. Go asks the system for them,
// and ends the program with a list of all goroutines when that refuses. So if
// the process may not take so much, Ask collects garbage, and if what is then
// free is too little, it calls Exhausted.
func Ask(n int64) {
	if !crosses(&asked, n) || bounded(os.DirFS("/")) >= n+Spare && (n < large || grants(n+Pressing)) {
		return
	}
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if int64(m.HeapIdle) < n+Pressing {
		Exhausted(int(n))
	}
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
