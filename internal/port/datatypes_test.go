package port

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/internal/manifest"
)

// A segment of MPITypes as its handler in FPsPIN reads it: the fields that a
// vector of numbers needs, with pointers of 8 bytes.
type (
	dtElement struct {
		Reload               int64
		Count, Offset, Block uint64 // left
		Of, From, Whole      uint64 // original
		Loop                 uint64
	}
	dtSegmentFields struct {
		Buffer, Handle, Stream uint64
		Stack                  [16]dtElement
		Current, Valid         int32
		Kind                   uint64 // 4 bytes and padding
		Count, Inner           uint64
		Block, Stride          uint64
		_                      uint64
		Size, Extent           uint64
	}
)

// What the segment says puts the message where the model expects it.
func TestVector(t *testing.T) {
	tr := &trial{packets: make([][]byte, packetCount)}
	unpacked(tr)
	le := binary.LittleEndian
	require.Equal(t, []int64{0, int64(le.Uint64(tr.handlerMem)) + 24 + 56}, tr.pointers)
	var s dtSegmentFields
	memory := tr.handlerMem[le.Uint64(tr.handlerMem):]
	require.NoError(t, binary.Read(bytes.NewReader(memory), le, &s))
	top := s.Stack[0]
	loop := dtElement{Count: s.Count, Block: s.Block, Of: s.Count, Whole: s.Block, Loop: le.Uint64(tr.handlerMem) + 1056}
	require.Equal(t, loop, top)
	require.Equal(t, uint64(0x8|0x2), s.Kind, "a vector of numbers")
	require.Zero(t, s.Current)
	var message []byte
	for _, p := range tr.packets {
		message = append(message, p[ethernetBytes+ipUDPBytes+10:]...)
	}
	require.Len(t, message, int(s.Count*s.Block*s.Size))
	want := make([]byte, s.Count*s.Stride)
	for i := range s.Count {
		copy(want[i*s.Stride:], message[i*s.Block*s.Size:][:s.Block*s.Size])
	}
	require.Equal(t, []piece{{2 * 8 * 4096, want}}, tr.wantHost)
	require.Equal(t, tr.hostBytes, tr.wantHost[0].offset+int64(len(want)))
}

// Pointers in handler memory become addresses, behind the module's own memory.
func TestPointers(t *testing.T) {
	wasm, err := os.ReadFile(filepath.Join("..", "pspin", "filtering.wasm"))
	require.NoError(t, err)
	described, err := manifest.Read(wasm)
	require.NoError(t, err)
	j := &job{
		name: "x", program: &program{toolchain: psPIN}, set: &set{}, files: make(map[string][]byte), module: &module{name: "x.wasm", wasm: wasm, described: described},
		trial: &trial{hostBytes: hostBytes, handlerMem: sums([]uint32{5, 8, 7}), pointers: []int64{4}},
	}
	_, err = j.state()
	require.NoError(t, err)
	at, err := described.States[0].Lookup("handler_mem[0]")
	require.NoError(t, err)
	memory := j.files["x.state"][at.Offset:]
	require.Equal(t, []uint32{5, 7}, []uint32{word(memory, 0), word(memory, 2)})
	address := int64(word(memory, 1)) - 8 - at.Offset
	require.Positive(t, address)
	require.Zero(t, address%65536, "whole pages of the module's own memory")
}
