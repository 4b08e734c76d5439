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
// counts what is reserved, whether it is used or not, and what would exceed it
// is refused: Go's own memory then ends the program with a list of all
// goroutines.
type Bound struct {
	Name         string // such as "ulimit -v"
	Limit, Taken int64  // bytes
}

// Left is how much of the bound there is, at least 1 byte.
func (b Bound) Left() int64 { return max(1, b.Limit-b.Taken) }

// Bounds are those of the process, without those that are not set, or that cannot be known here.
func Bounds() []Bound { return boundsOf(os.DirFS("/")) }

// boundsOf is Bounds of a system whose files are below root: those of Linux.
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
			rest, is := strings.CutPrefix(line, k.line)
			words := strings.Fields(rest)
			if !is || len(words) == 0 {
				continue
			}
			limit, taken := number(words[0]), value(root, "proc/self/status", k.taken)
			if limit != unknown && taken != unknown { // "unlimited" is no number
				list = append(list, Bound{k.name, limit, taken << 10}) // kB, which are KiB
			}
		}
	}
	return list
}

// bounded is the least that the bounds of the process leave.
func bounded(root fs.FS) int64 {
	least := int64(math.MaxInt64)
	for _, b := range boundsOf(root) {
		least = min(least, b.Left())
	}
	return least
}

// exhausted is what OnExhausted has set.
var exhausted atomic.Pointer[func(n int64)]

// OnExhausted sets what Exhausted calls, which ends the program; nil: nothing.
// It returns what was set before.
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

// Exhausted is called by those whom the system has refused n bytes, before they
// ask Go for them, which cannot be refused.
func Exhausted(n int) {
	if end := exhausted.Load(); end != nil {
		(*end)(int64(n))
	}
}

// large is what is worth a look before it is allocated, bytes.
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

// Spare is how much of its bounds a process leaves to Go: the heap, and the
// stacks of threads. Go cannot be refused memory, so others must be in time.
const Spare = 8 * large

// mapped is how much Reserve was asked for, bytes.
var mapped atomic.Int64

// Reserve is called before n bytes are reserved outside of Go's heap. It looks
// at the bounds of the process after each 16 MiB. If they leave less than
// Spare, it calls Exhausted. For example, a thousand nodes reserve a megabyte
// each: without it the last megabyte would be theirs, and Go's next page, of
// which it needs few, would end the program.
func Reserve(n int) {
	const step = large / 2
	now := mapped.Add(int64(n))
	if now/step != (now-int64(n))/step && bounded(os.DirFS("/")) < int64(n)+Spare {
		Exhausted(n)
	}
}
