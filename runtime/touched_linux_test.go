//go:build !invariants && !wasmtime

// The invariants overwrite packet buffers behind each handler, and the second
// engine has copies of memories.

package runtime_test

import (
	"encoding/binary"
	"os"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers/rules"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
)

// A program that has handled a short message takes two pages of linear memory:
// the module's data, and the page on which state, records, packets and stacks
// lie side by side. There are as many programs as ranks.
func TestTouchedMemory(t *testing.T) {
	const ranks = 4
	page := os.Getpagesize()
	programs := map[int][]func(p *runtime.Proc) error{0: {func(p *runtime.Proc) error {
		addr := p.Alloc(64).Addr()
		md, err := p.NI().Objects().MDBind(&portals.MD{Start: addr, Length: 64})
		for to := uint32(1); to < ranks && err == nil; to++ {
			err = p.NI().Put(portals.Put{MD: md, Length: rules.UserHeader + 8, Target: portals.PhysID(to, 0)})
		}
		return err
	}}}
	touched := map[int]int{}
	for rank := 1; rank < ranks; rank++ {
		programs[rank] = append(programs[rank], func(p *runtime.Proc) error {
			module, err := p.Cluster().LoadModule("rules", rules.Library.Wasm)
			require.NoError(t, err)
			m, err := p.HPUAllocMem(module, int(unsafe.Sizeof(rules.State{})))
			require.NoError(t, err)
			spin, err := m.Spin("header", "payload", "completion")
			require.NoError(t, err)
			spin.InitialState = binary.LittleEndian.AppendUint64(nil, 4)
			eq, err := p.NI().Objects().EQAlloc(8)
			require.NoError(t, err)
			_, err = p.NI().Objects().PTAlloc(0, eq, 0)
			require.NoError(t, err)
			_, err = p.NI().MEAppend(0, &portals.ME{
				Start: p.Alloc(64).Addr(), Length: 64, UID: portals.UIDAny, MatchID: portals.AnyID, Spin: spin,
				Options: portals.OptMEOpPut | portals.OptMEEventLinkDisable,
			}, portals.PriorityList, 0)
			require.NoError(t, err)
			ev, err := p.NI().EQWait(eq)
			require.NoError(t, err)
			require.Equal(t, portals.NIOK, ev.Fail)
			require.Equal(t, int64(3), p.Node().Stats().HandlerCalls)
			touched[rank] = page * pagesTouched(t, m.Program().Memory())
			return nil
		})
	}
	_, err := program(t, ranks, programs)
	require.NoError(t, err)
	require.Equal(t, map[int]int{1: 2 * page, 2: 2 * page, 3: 2 * page}, touched)
}

// pagesTouched returns how many pages of memory the system has backed.
func pagesTouched(t *testing.T, memory []byte) (n int) {
	page := os.Getpagesize()
	entries := make([]byte, 8*len(memory)/page)
	f, err := os.Open("/proc/self/pagemap")
	require.NoError(t, err)
	_, err = f.ReadAt(entries, int64(8*uintptr(unsafe.Pointer(unsafe.SliceData(memory)))/uintptr(page)))
	require.NoError(t, err)
	require.NoError(t, f.Close())
	for at := 0; at < len(entries); at += 8 {
		if binary.LittleEndian.Uint64(entries[at:])>>62 != 0 { // present or swapped
			n++
		}
	}
	return n
}
