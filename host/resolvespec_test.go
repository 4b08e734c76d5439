package host_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/internal/hosttest"
)

// mlock empties the lists of cores once if it meets a present page, and not
// otherwise.
func TestLockDrains(t *testing.T) {
	program(t, func(w *world) {
		spec := w.Kernel.Spec()
		absent, present := w.mmap(3*page), w.mmap(3*page)
		w.touch(present, 3*page, true)
		w.last = w.th.Now()
		require.NoError(t, w.p.Lock(w.th, absent, 3*page))
		w.took(spec.LockCall + 3*spec.LockAbsent)
		require.NoError(t, w.p.Lock(w.th, present, 3*page))
		w.took(spec.LockCall + 7*us + 3*spec.LockPresent)
	}, "lock_drain=7us")
}

// Wrong names are refused, each with its field and the right ones.
func TestResolveSpecNames(t *testing.T) {
	for field, names := range map[string]string{"fault_ask": "block or page or run", "fault_look": "again or once", "fault_touch": "write or read-write", "netlink_core": "next or process or interrupt"} {
		_, err := hosttest.Spec(field + "=sometimes")
		require.EqualError(t, err, field+`: "sometimes", expected `+names)
	}
}
