package memory_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/internal/memory"
)

// advised reports whether the kernel has been asked for huge pages at an address.
func advised(t *testing.T, address uint64) bool {
	f, err := os.Open("/proc/self/smaps")
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	within := false
	for s := bufio.NewScanner(f); s.Scan(); {
		var from, to uint64
		if n, _ := fmt.Sscanf(s.Text(), "%x-%x ", &from, &to); n == 2 {
			within = from <= address && address < to
		} else if flags, are := strings.CutPrefix(s.Text(), "VmFlags:"); are && within {
			return slices.Contains(strings.Fields(flags), "hg")
		}
	}
	t.Fatalf("no memory at %#x", address)
	return false
}

// What a program allocates behind HugePages, here small objects, lies where the kernel gives huge pages if it has some, unless it gives them to all programs or to none; the call by itself takes no memory. In a process of its own, whose heap
// no other test has filled.
func TestHugePages(t *testing.T) {
	const own = "SPINSIM_TEST_HUGE"
	if os.Getenv(own) == "" {
		c := exec.Command(os.Args[0], "-test.run=^TestHugePages$")
		c.Env = append(os.Environ(), own+"=1", "GOMEMLIMIT=off")
		out, err := c.CombinedOutput()
		require.NoError(t, err, string(out))
		return
	}
	state, _ := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled")
	before := memory.Resident()
	memory.HugePages()
	require.Less(t, memory.Resident()-before, int64(32<<20), "of 256 MiB")
	kept := make([]*[4096]byte, 4096)
	count := 0
	for i := range kept {
		kept[i] = new([4096]byte)
		if i%256 == 0 && advised(t, uint64(uintptr(unsafe.Pointer(kept[i])))) {
			count++
		}
	}
	require.Equal(t, strings.Contains(string(state), "[madvise]"), count > len(kept)/256/2, "the kernel's answer is %q", state)
	require.NotNil(t, kept[len(kept)-1])
}
