//go:build !invariants && !race

package memcached_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/internal/memory/memorytest"
	"github.com/spinsim/spinsim/internal/npf/memcached"
	"github.com/spinsim/spinsim/internal/npf/memcached/memaslap"
	"github.com/spinsim/spinsim/runtime"
)

// With the tag invariants, allocated memory is overwritten, and so all of it is
// touched.

// A server with 256 MiB of objects, all of whose pages are present, needs less
// than 80 MiB of the simulating computer: for its data about the objects, and
// for the kernel's data about the pages.
func TestPagesThatAreTouchedTakeNoMemory(t *testing.T) {
	const size = 256 << 20
	begun := memorytest.Resident(t)
	b := bench{
		profile: paged, config: memcached.Config{Limit: size}, ops: 10, fill: true, loads: []memaslap.Config{{Window: 220_000, KeyBytes: 16}},
		begin: func(p *runtime.Proc, s *memcached.Server) {
			require.Equal(t, int64(220_000), s.Store.Stats.Items)
			require.Greater(t, p.OS().Resident(), 200_000_000/4096)
			require.Less(t, memorytest.Resident(t)-begun, int64(80<<20))
		},
	}
	b.run(t)
}
