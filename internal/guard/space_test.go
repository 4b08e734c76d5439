//go:build linux && (amd64 || arm64)

package guard

import (
	"errors"
	"runtime"
	"runtime/debug"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// faults reports whether an access causes a fault of the processor, and where.
func faults(access func()) (at uintptr, faulted bool) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		var fault interface {
			runtime.Error
			Addr() uintptr
		}
		if err, ok := recover().(error); ok && errors.As(err, &fault) {
			at, faulted = fault.Addr(), true
		}
	}()
	access()
	return 0, false
}

// state returns which accesses to a byte are possible: read, write.
func state(b *byte) string {
	if _, no := faults(func() { _ = *b + 1; sink = *b }); no {
		return "closed"
	}
	if _, no := faults(func() { *b = 1 }); no {
		return "readable"
	}
	return "writable"
}

var sink byte

// Pages are closed until they are opened, and open only for the accesses asked
// for, until they are closed again. Devices always have access.
func TestOpenAndClose(t *testing.T) {
	Enable(1)
	s := New()
	defer s.Release()
	n := 4*pageSize + 5
	devices := s.Alloc(n)
	other := s.Alloc(10)
	cores := s.Cores(0, devices, 0)
	states := func() (all []string) {
		for p := range 5 {
			all = append(all, state(&cores[p*pageSize]))
		}
		return all
	}
	closed := []string{"closed", "closed", "closed", "closed", "closed"}
	require.Equal(t, closed, states())
	page := uint64(pageSize)
	s.Open(0, page-1, 2, false)
	s.Open(0, 3*page, 1, true)
	require.Equal(t, []string{"readable", "readable", "closed", "writable", "closed"}, states())
	s.Open(0, page, 2*page+1, false) // does not take away
	s.Open(0, 0, 1, true)
	require.Equal(t, []string{"writable", "readable", "readable", "writable", "closed"}, states())
	s.Open(1, 9, 1, false)
	require.Equal(t, "readable", state(&s.Cores(1, other, 0)[0]))
	devices[n-1] = 9
	s.Close()
	require.Equal(t, closed, states())
	require.Equal(t, "closed", state(&s.Cores(1, other, 0)[0]))
	s.Open(0, 4*page+4, 1, false)
	require.Equal(t, byte(9), cores[n-1])

	at, faulted := faults(func() { sink = cores[2*pageSize+7] })
	require.True(t, faulted)
	i, off, ok := s.Find(at)
	require.True(t, ok)
	require.Equal(t, []uint64{0, 2*page + 7}, []uint64{uint64(i), off})
	_, _, ok = s.Find(uintptr(unsafe.Pointer(&devices[0])))
	require.False(t, ok)
}

// A program that keeps memory too long is found at once during its first waits.
// After many waits it is found before it has waited a twentieth as often again.
func TestClosesNowAndThen(t *testing.T) {
	Enable(1)
	s := New()
	defer s.Release()
	cores := s.Cores(0, s.Alloc(1), 0)
	late := 0 // calls in a row that left the page open
	for call := range 20 * thorough {
		s.Open(0, 0, 1, false)
		s.Close()
		if _, closed := faults(func() { sink = cores[0] }); closed {
			late = 0
			continue
		}
		late++
		require.Greater(t, call, thorough)
		require.LessOrEqual(t, late, call/thorough)
	}
}

// Memory is freed; when there is too much of it the rest is not guarded.
func TestReleaseAndMost(t *testing.T) {
	Enable(1)
	before := live.Load()
	s := New()
	b := s.Alloc(0)
	require.Empty(t, s.Cores(0, b, 0))
	b = s.Alloc(1)
	require.Equal(t, before+1, live.Load())
	b[0] = 1
	live.Add(most)
	c := s.Alloc(1)
	require.Equal(t, &c[0], &s.Cores(2, c, 0)[0])
	s.Open(2, 0, 1, true)
	s.Close()
	live.Add(-most)
	s.Release()
	s.Release()
	require.Equal(t, before, live.Load())
}
