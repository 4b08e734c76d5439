package memory

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The smallest number counts: the system's or that of a group. Unused pages of
// files count as free.
func TestAvailable(t *testing.T) {
	const meminfo = "MemTotal:       24684092 kB\nMemFree:        100 kB\nMemAvailable:   2000000 kB\n"
	for name, x := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"another system": {nil, 0},
		"no groups":      {map[string]string{"proc/meminfo": meminfo}, 2000000 << 10},
		"an old kernel":  {map[string]string{"proc/meminfo": "MemTotal: 1 kB\n"}, 0},
		"version 2, a group above limits": {map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/user/a/b\n",
			"sys/fs/cgroup/user/a/b/memory.max": "max\n", "sys/fs/cgroup/user/a/b/memory.current": "5\n",
			"sys/fs/cgroup/user/a/memory.max": "1000\n", "sys/fs/cgroup/user/a/memory.current": "700\n",
			"sys/fs/cgroup/user/a/memory.stat": "anon 400\nfile 300\ninactive_file 200\n",
		}, 500},
		"version 2, a group that is throttled within one that is not": {map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a/b/c\n",
			"sys/fs/cgroup/a/b/memory.max": "9000\n", "sys/fs/cgroup/a/b/memory.high": "800\n", "sys/fs/cgroup/a/b/memory.current": "500\n",
			"sys/fs/cgroup/a/b/c/memory.max": "max\n", "sys/fs/cgroup/a/b/c/memory.high": "max\n", "sys/fs/cgroup/a/b/c/memory.current": "100\n",
			"sys/fs/cgroup/a/memory.max": "1000\n", "sys/fs/cgroup/a/memory.high": "max\n", "sys/fs/cgroup/a/memory.current": "600\n",
		}, 300},
		"version 2, within a container": {map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/../../somewhere\n",
			"sys/fs/cgroup/memory.max": "3000\n", "sys/fs/cgroup/memory.current": "1000\n",
		}, 2000},
		"version 1": {map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "5:cpu:/\n4:memory:/a\n0::/\nnonsense\n",
			"sys/fs/cgroup/memory/a/memory.limit_in_bytes": "9223372036854771712\n", "sys/fs/cgroup/memory/a/memory.usage_in_bytes": "10\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "4000\n", "sys/fs/cgroup/memory/memory.usage_in_bytes": "3500\n",
			"sys/fs/cgroup/memory/memory.stat": "inactive_file 1\ntotal_inactive_file 100\n",
		}, 600},
		"limits of the process": {map[string]string{
			"proc/meminfo": meminfo, "proc/self/limits": limits("8192000000", "2000000000"), "proc/self/status": "VmPeak:\t 9 kB\nVmSize:\t 1000000 kB\nVmData:\t 500000 kB\n",
		}, 2000000000 - 500000<<10},
		"a limit of addresses": {map[string]string{
			"proc/self/limits": limits("1024000001", "unlimited"), "proc/self/status": "VmSize:\t 1000000 kB\nVmData:\t 500000 kB\n",
		}, 1},
		"no limits of the process": {map[string]string{
			"proc/meminfo": meminfo, "proc/self/limits": limits("unlimited", "unlimited"), "proc/self/status": "VmSize:\t 1000000 kB\nVmData:\t 500000 kB\n",
		}, 2000000 << 10},
		"a group that is full": {map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "3000\n", "sys/fs/cgroup/memory.current": "5000\n",
		}, 1},
	} {
		files := fstest.MapFS{}
		for name, text := range x.files {
			files[name] = &fstest.MapFile{Data: []byte(text)}
		}
		require.Equal(t, x.want, available(files), name)
	}
}

// limits returns the limits of a process in the kernel's format.
func limits(addresses, data string) string {
	return fmt.Sprintf("Limit                     Soft Limit           Hard Limit           Units     \n"+
		"Max data size             %-20s unlimited            bytes     \nMax address space         %-20s unlimited            bytes     \n", data, addresses)
}

// Exhausted calls the function that was set last, which ends the program.
func TestExhausted(t *testing.T) {
	Exhausted(5)
	var asked []int64
	require.Nil(t, OnExhausted(func(n, _ int64) { asked = append(asked, n) }))
	Exhausted(7)
	require.NotNil(t, OnExhausted(nil))
	Exhausted(9)
	require.Equal(t, []int64{7}, asked)
}

// What the system would refuse is not asked of Go, which cannot handle that.
func TestAsk(t *testing.T) {
	var asked []int64
	before := OnExhausted(func(n, _ int64) { asked = append(asked, n) })
	defer func() { OnExhausted(before) }()
	Ask(1 << 10)
	Ask(large)
	require.Empty(t, asked)
	if Ask(1 << 50); runtime.GOOS == "linux" {
		require.Equal(t, []int64{1 << 50}, asked)
	}
}

// Callers that ask one after the other, before they allocate, get only what the
// limit leaves to all of them. What is allocated is promised no longer.
func TestPromises(t *testing.T) {
	refused := 0
	before := OnExhausted(func(_, most int64) {
		require.Positive(t, most)
		refused++
	})
	defer func() { OnExhausted(before); Limit(0) }()
	const part, parts = 2 * large, 8
	begin := func() {
		debug.FreeOSMemory()
		promised.until, refused = 0, 0
		Limit(Resident() + parts*part + part/2) // the test itself takes less than half a part
	}
	rapid.Check(t, func(t *rapid.T) {
		begin()
		for left := int64(parts); refused == 0; {
			n := rapid.Int64Range(1, 4).Draw(t, "parts")
			Ask(n * part)
			require.Equal(t, n > left, refused > 0, "%d of %d parts", n, left)
			left -= n
		}
	})
	begin()
	kept := make([]byte, parts*part)
	Ask(part)
	require.Equal(t, 1, refused, "all is in use")
	runtime.KeepAlive(kept)
	Ask(parts * part)
	require.Equal(t, 1, refused, "it is free again")
}

// Touched bytes are resident, on systems that report it.
func TestResident(t *testing.T) {
	before := Resident()
	if before == 0 {
		require.NotEqual(t, "linux", runtime.GOOS)
		return
	}
	const size = 64 << 20
	b := make([]byte, size)
	for i := 0; i < size; i += 1 << 10 {
		b[i] = 1
	}
	require.Greater(t, Resident(), before+size/2)
	runtime.KeepAlive(b)
	require.Positive(t, Available())
}
