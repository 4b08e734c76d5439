package hpu

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/hpu/internal/wasm"
	"github.com/spinsim/spinsim/internal/memory"
)

// When the system refuses an engine memory for machine code, or for a linear
// memory, the program ends as for any other memory. It is not told that its
// module is wrong.
func TestRefusedMemory(t *testing.T) {
	if of, part, is := strings.Cut(os.Getenv("REFUSED"), " "); is {
		refuse(t, of, part == "memory")
		return
	}
	for _, engine := range engines {
		for _, part := range []string{"code", "memory"} {
			if engine == "wasmtime" && part == "code" {
				continue // its compiler ends the program, see package floor
			}
			var out []byte
			for range 9 {
				c := exec.Command(os.Args[0], "-test.run=^TestRefusedMemory$")
				c.Env = append(os.Environ(), "REFUSED="+engine+" "+part, "GOMAXPROCS=1")
				out, _ = c.CombinedOutput()
				if !bytes.Contains(out, []byte("\ngoroutine ")) { // not Go was refused memory
					break
				}
			}
			require.Equal(t, "refused\n", string(out), "%s, %s", engine, part)
		}
	}
}

// refuse compiles a module and makes an instance, in a process that gets no
// more memory from the code or from the instance on.
func refuse(t *testing.T, engine string, later bool) {
	spec := testSpec()
	spec.MaxCodeBytes = 1 << 24
	n := 3 << 17 // megabytes of code
	if later {
		n = 1
	}
	stores := bytes.Repeat([]byte{byte(wasm.OpLocalGet), 0, byte(wasm.OpLocalGet), 1, 0x36, 0, 0}, n)
	large := handlerModule(append(stores, byte(wasm.OpI32Const), 0)...)
	m, err := Load("test", large.bytes(), spec)
	require.NoError(t, err)
	e, err := NewEngine(engine)
	require.NoError(t, err)
	small, err := Load("small", importsWasm, spec)
	require.NoError(t, err)
	_, err = e.Compile(small, 4096) // starts threads
	require.NoError(t, err)
	heap := make([]byte, 256<<20)
	heap[0] = 1
	bound := func() {
		heap = nil
		runtime.GC() // what Go has is enough for itself
		memory.OnExhausted(func(_, _ int64) {
			fmt.Println("refused")
			os.Exit(1)
		})
		status, err := os.ReadFile("/proc/self/status")
		require.NoError(t, err)
		_, size, _ := strings.Cut(string(status), "VmSize:")
		kib, err := strconv.ParseUint(strings.Fields(size)[0], 10, 64)
		require.NoError(t, err)
		require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_AS, &syscall.Rlimit{Cur: kib<<10 + 1<<20, Max: math.MaxInt64}))
	}
	if !later {
		bound()
	}
	img, err := e.Compile(m, 4096)
	if err == nil && later {
		bound()
		_, err = img.Instantiate("owner", &testDevice{})
	}
	require.Fail(t, "it has the memory", err)
}
