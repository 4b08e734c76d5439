//go:build linux && (amd64 || arm64)

package runtime_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// The tests of this repository watch programs: whoever reaches into memory
// without a touch, or later than it may, is named. Without this test a guard
// that watches nothing would find nothing.
func TestStrayAccessIsFound(t *testing.T) {
	var seen byte
	for name, stray := range map[string]func(p *runtime.Proc, v runtime.View){
		"kept from Read": func(p *runtime.Proc, v runtime.View) {
			b := v.Read()
			p.Sleep(0)
			seen = b[5000]
		},
		"kept from Write": func(p *runtime.Proc, v runtime.View) {
			b := v.Write()
			p.Compute(1)
			b[5000] = 1
		},
		"kept from Raw": func(p *runtime.Proc, v runtime.View) {
			b := v.Raw()
			p.Stream(8, 8)
			seen = b[5000]
		},
		"written as read": func(_ *runtime.Proc, v runtime.View) { v.Read()[5000] = 1 },
		"copied for writing": func(p *runtime.Proc, v runtime.View) {
			_, src := v.Slice(0, 4096).WriteFrom(v.Slice(4096, 8192))
			src[5000-4096] = 1
		},
		"another touched": func(p *runtime.Proc, v runtime.View) {
			b := v.Write()
			p.Sleep(1)
			v.Slice(0, 4096).Write()
			b[5000] = 1
		},
	} {
		t.Run(name, func(t *testing.T) {
			value := panicOf(func() {
				_ = paged(t, nil, func(p *runtime.Proc) error {
					v := p.Alloc(10_000)
					require.Equal(t, uint64(0x11388), v.Addr()+5000)
					stray(p, v)
					return nil
				})
			})
			require.Equal(t, "runtime: process program of rank 0 reaches for 0x11388 in its memory, which it has not touched for that since it last waited", value)
		})
	}
	require.Zero(t, seen)

	// Other panics and faults are what they were.
	require.Equal(t, "mine", panicOf(func() {
		_ = paged(t, nil, func(*runtime.Proc) error { panic("mine") })
	}))
}

// panicOf is what a program has panicked with.
func panicOf(run func()) (value any) {
	defer func() {
		if e, ok := recover().(*sim.PanicError); ok {
			value = e.Value
		}
	}()
	run()
	return nil
}
