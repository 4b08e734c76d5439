package main

import (
	"encoding/binary"
	"math"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers/accumulate"
	"github.com/spinsim/spinsim/handlers/internal/wasmtest"
	"github.com/spinsim/spinsim/spin"
	"github.com/spinsim/spinsim/spin/spintest"
)

const (
	mtu     = 4 * accumulate.ElementSize
	buffers = 3
)

type entry = spintest.Handlers[accumulate.State]

// each runs f with a fresh device and state, as Go and as wasm.
func each(t *testing.T, f func(*testing.T, *spintest.Device, entry, *accumulate.State)) {
	start, memory := accumulate.NewState(buffers, mtu)
	behind := memory - int(unsafe.Sizeof(start))
	for _, name := range []string{"native", "tinygo"} {
		t.Run(name, func(t *testing.T) {
			d := spintest.New(t, spintest.Config{HostMem: 1024, MTU: mtu})
			h := entry{Payload: payload}
			if name == "tinygo" {
				h = wasmtest.Handlers[accumulate.State](t, d, accumulate.Library.Wasm, wasmtest.Names{Payload: accumulate.Payload}, behind)
			}
			s := spintest.NewState[accumulate.State](d, behind)
			*s = start
			f(t, d, h, s)
		})
	}
}

func encode(values []complex128) []byte {
	var b []byte
	for _, v := range values {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(real(v)))
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(imag(v)))
	}
	return b
}

// array returns n elements whose products are exact in double precision.
func array(n int, scale float64) []complex128 {
	values := make([]complex128, n)
	for i := range values {
		values[i] = complex(float64(i+1)*scale, float64(2-i))
	}
	return values
}

func TestMultipliesElements(t *testing.T) {
	each(t, func(t *testing.T, d *spintest.Device, h entry, s *accumulate.State) {
		const n, offset = 10, 32 // packets of 4, 4 and 2 elements
		target, factors := array(n, 1), array(n, -3)
		copy(d.Host[offset:], encode(target))
		start := *s
		out := spintest.Deliver(d, h, s, spintest.Message{Data: encode(factors), Offset: offset, Order: []int{2, 0, 1}})
		require.Equal(t, []spin.Code{spin.Success, spin.Success, spin.Success}, out.Payloads, out.Traps)
		want := make([]complex128, n)
		for i := range want {
			want[i] = target[i] * factors[i]
		}
		require.Equal(t, encode(want), d.Host[offset:offset+n*accumulate.ElementSize])
		require.Equal(t, make([]byte, offset), d.Host[:offset])
		require.Equal(t, start, *s, "every buffer is free again")
		require.Equal(t, []string{"cas", "dma_from_host", "dma_to_host", "fadd"}, d.Names()[:4])
		require.Len(t, d.Calls, 12, "one read and one write per packet")
	})
}

// Two handlers in one buffer would mix their packets.
func TestTakesFreeBufferOnly(t *testing.T) {
	each(t, func(t *testing.T, d *spintest.Device, h entry, s *accumulate.State) {
		s.Free = 0b110 // another handler has buffer 0
		taken := unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(s), unsafe.Sizeof(*s))), mtu)
		taken[0] = 0xee
		copy(d.Host, encode(array(4, 1)))
		out := spintest.Deliver(d, h, s, spintest.Message{Data: encode(array(4, 2))})
		require.Equal(t, []spin.Code{spin.Success}, out.Payloads)
		require.Equal(t, byte(0xee), taken[0])
		require.Equal(t, uint64(0b110), s.Free)
		require.Equal(t, encode([]complex128{(1 + 2i) * (2 + 2i)}), d.Host[:16])
	})
}

func TestFailureFreesBuffer(t *testing.T) {
	each(t, func(t *testing.T, d *spintest.Device, h entry, s *accumulate.State) {
		start := *s
		for _, dma := range []string{"dma_from_host", "dma_to_host"} {
			d.Fail(dma, spin.Fault, 1)
			out := spintest.Deliver(d, h, s, spintest.Message{Data: make([]byte, mtu)})
			require.Equal(t, []spin.Code{spin.Fail}, out.Payloads, dma)
			require.Equal(t, start, *s, dma)
		}
	})
}

func TestRefusesPartOfElement(t *testing.T) {
	each(t, func(t *testing.T, d *spintest.Device, h entry, s *accumulate.State) {
		out := spintest.Deliver(d, h, s, spintest.Message{Data: make([]byte, mtu-8)})
		require.Equal(t, []spin.Code{spin.Fail}, out.Payloads)
		require.Empty(t, d.Calls)
		s.BufferSize = mtu - 16
		out = spintest.Deliver(d, h, s, spintest.Message{Data: make([]byte, mtu)})
		require.Equal(t, []spin.Code{spin.Fail}, out.Payloads, "larger than a buffer")
	})
}

func TestNewState(t *testing.T) {
	s, memory := accumulate.NewState(accumulate.MaxBuffers, 4096)
	require.Equal(t, ^uint64(0), s.Free)
	require.Equal(t, 16+64*4096, memory)
	require.Len(t, spin.EncodeState(&s), 16)
	require.Panics(t, func() { accumulate.NewState(accumulate.MaxBuffers+1, 16) })
}
