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

// large is the smallest allocation that is worth a check, bytes.
const large = 32 << 20

// Ask is called before n bytes are allocated in one piece. Go asks the system
// for them, and ends the program with a list of all goroutines when that
// refuses. So if the process may not reserve n bytes more, Ask collects
// garbage, and if what is then free is too little, it calls Exhausted.
func Ask(n int64) {
	if n < large || bounded(os.DirFS("/")) >= n+2*large {
		return
	}
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if int64(m.HeapIdle) < n+2*large {
		Exhausted(int(n))
	}
}

// Spare is how much of its bounds a process leaves to Go for the heap and the
// stacks of threads. Go cannot handle a refusal, so others must stop earlier.
const Spare = 8 * large

// mapped is the sum of all calls of Reserve, bytes.
var mapped atomic.Int64

// Reserve is called before n bytes are reserved outside Go's heap. It checks
// the bounds of the process after each 16 MiB. If they leave less than Spare,
// it calls Exhausted. For example, if a thousand nodes reserve a megabyte each,
// their last megabyte could take all that is left. Go's next page would then
// end the program.
func Reserve(n int) {
	const step = large / 2
	now := mapped.Add(int64(n))
	if now/step != (now-int64(n))/step && bounded(os.DirFS("/")) < int64(n)+Spare {
		Exhausted(n)
	}
}
