package mpirun

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"time"
)

// longOutside is how long, in real time, a process may wait for something besides
// MPI before spinsim says so.
var longOutside = 10 * time.Second

// outside watches for processes that wait for something besides MPI, in their
// turn. If that is another rank, they wait for ever: one process runs at a time.
// It returns when ctx is done.
func outside(ctx context.Context, links []*link, errs io.Writer) {
	waits := make([]int, len(links)) // looks in a row
	used := make([]string, len(links))
	const looks = 10
	tick := time.NewTicker(longOutside / looks)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for i, l := range links {
			state, now := l.waitsFor()
			if atomic.LoadUint32(&l.turn) != turnProcess || state == "" || now != used[i] {
				waits[i], used[i] = 0, now
				continue
			}
			if waits[i]++; waits[i] == looks {
				fmt.Fprintf(errs, "spinsim: rank %d %s, outside MPI, for %v now. Ranks run one at a time, so that this may never end.\n", l.rank, state, longOutside)
			}
		}
	}
}

// waitsFor describes what the main thread of a process waits for; "": for nothing.
// used changes whenever the thread runs.
func (l *link) waitsFor() (state, used string) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/stat", l.pid, l.pid)) //lint:files of the kernel
	if err != nil {
		return "", ""
	}
	// behind the name, which may have any characters: the state, and from there on
	// utime and stime at places 11 and 12
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(fields) < 13 {
		return "", ""
	}
	used = fields[11] + " " + fields[12]
	switch fields[0] {
	case "S":
		where, _ := os.ReadFile(fmt.Sprintf("/proc/%d/wchan", l.pid)) //lint:files of the kernel
		if name := strings.TrimSpace(string(where)); name != "" && name != "0" {
			return "waits in " + name, used
		}
		return "waits", used
	case "T", "t":
		return "is stopped", used
	}
	return "", used
}
