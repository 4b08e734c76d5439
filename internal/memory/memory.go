// Package memory finds out how much memory a program may take and has. Programs
// use it to fail with an error before the kernel kills them without one.
//
// Its results depend on the machine and the moment, so no result of a
// simulation may depend on them.
package memory

import (
	"io/fs"
	"math"
	"os"
	"path"
	"strconv"
	"strings"
)

// Available returns how many bytes the program can still take without pushing
// out others: as many as the system has free, or as a control group or a bound
// of the process leaves, if that is less. 0 means unknown. Tests replace it, so
// that they do not depend on the machine.
var Available = func() int64 { return available(os.DirFS("/")) }

// Resident returns how many bytes of the machine's memory the program has. 0
// means unknown.
func Resident() int64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var pages int64
	if fields := strings.Fields(string(text)); len(fields) > 1 {
		pages = number(fields[1])
	}
	return max(0, pages) * int64(os.Getpagesize())
}

// unknown stands for a number that is missing in a file.
const unknown = -1

// available is Available for a system whose files are below root, as in Linux.
func available(root fs.FS) int64 {
	least := int64(math.MaxInt64)
	if total := value(root, "proc/meminfo", "MemAvailable:"); total != unknown {
		least = total << 10 // kB means KiB here
	}
	for _, g := range groups(root) {
		limit, used := int64(math.MaxInt64), value(root, g.dir+"/"+g.used, "")
		for _, name := range g.limits {
			if n := value(root, g.dir+"/"+name, ""); n != unknown {
				limit = min(limit, n)
			}
		}
		if limit == math.MaxInt64 || used == unknown {
			continue // there is none
		}
		// The system takes pages of files back on demand if nobody has used
		// them for a while.
		used -= max(0, value(root, g.dir+"/memory.stat", g.cache))
		least = min(least, max(1, limit-max(0, used)))
	}
	if least = min(least, bounded(root)); least == math.MaxInt64 {
		return 0
	}
	return least
}

// group is a control group that bounds the program.
type group struct {
	dir, used, cache string
	limits           []string
}

// groups returns the control groups of the program and their parents, for both
// versions of the kernel's interface. Above memory.high the kernel does not end
// a program of version 2, but lets it hardly run. Within a container the names do not
// exist, but the top is its own group.
func groups(root fs.FS) (list []group) {
	text, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		g := group{"sys/fs/cgroup", "memory.current", "inactive_file", []string{"memory.max", "memory.high"}}
		switch {
		case parts[0] == "0" && parts[1] == "":
		case parts[1] == "memory":
			g = group{"sys/fs/cgroup/memory", "memory.usage_in_bytes", "total_inactive_file", []string{"memory.limit_in_bytes"}}
		default:
			continue
		}
		top := g.dir
		for dir := path.Clean("/" + parts[2]); ; dir = path.Dir(dir) {
			g.dir = path.Join(top, dir)
			list = append(list, g)
			if dir == "/" {
				break
			}
		}
	}
	return list
}

// value reads a number from a file: the first one, or the one behind a key at
// the beginning of a line.
func value(root fs.FS, name, key string) int64 {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return unknown
	}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		switch {
		case key == "" && len(words) > 0:
			return number(words[0])
		case len(words) > 1 && words[0] == key:
			return number(words[1])
		}
	}
	return unknown
}

// number parses a number of bytes or pages. It returns unknown for "max", which
// is no limit, and for numbers beyond 64 bits.
func number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return unknown
	}
	return n
}
