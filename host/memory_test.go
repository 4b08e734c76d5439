package host

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/internal/guard/guardtest"
)

func TestMain(m *testing.M) { os.Exit(guardtest.Run(m, 1)) }

// asked is a page table that records its calls and has one absent page.
type asked struct {
	touches []touched
	absent  Pages
}

type touched struct {
	addr, n uint64
	write   bool
}

func (a *asked) Touch(addr, n uint64, write bool) Pages {
	a.touches = append(a.touches, touched{addr, n, write})
	return a.absent
}

func (a *asked) Fault(*Thread, Pages, bool) error {
	a.absent = Pages{}
	return nil
}

// The page table answers a touch. Touching an address without memory panics.
// Accesses of devices do not call the page table.
func TestTouchAsksThePageTable(t *testing.T) {
	table := &asked{absent: Pages{1 << 16, 2}}
	a := NewAddressSpace(table)
	defer a.Release()
	addr := a.Alloc(100)
	require.Equal(t, Pages{1 << 16, 2}, a.Touch(addr+1, 99, true))
	require.NoError(t, a.Fault(nil, table.absent, true))
	require.Zero(t, a.Touch(addr+1, 99, true))
	require.Zero(t, a.Touch(addr, 1, false))
	_, ok := a.Bytes(addr, 100)
	require.True(t, ok)
	require.Equal(t, []touched{{addr + 1, 99, true}, {addr + 1, 99, true}, {addr, 1, false}}, table.touches)
	require.Panics(t, func() { a.Touch(addr, 101, true) })
}

// Programs, after a touch, and devices access the same bytes, in ranges of all
// sizes.
func TestCoresAndDevicesShareBytes(t *testing.T) {
	a := NewAddressSpace(nil)
	defer a.Release()
	for i, n := range []uint64{1, 4095, 4096, 4097, 100_000, 0} {
		addr := a.Alloc(int(n))
		ours, ok := a.Cores(addr, n)
		require.True(t, ok)
		theirs, ok := a.Bytes(addr, n)
		require.True(t, ok)
		require.Len(t, ours, int(n))
		require.Equal(t, int(n), cap(ours))
		if n == 0 {
			continue
		}
		require.Zero(t, a.Touch(addr, n, true))
		ours[n-1] = byte(i + 1)
		require.Equal(t, byte(i+1), theirs[n-1])
		a.Settle()
		theirs[0] = byte(i + 10)
		require.Zero(t, a.Touch(addr, n, false))
		require.Equal(t, byte(i+10), ours[0])
	}
	_, ok := a.Cores(1, 1)
	require.False(t, ok)
}
