package main

import (
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	mpi "github.com/spinsim/spinsim/datatype"
	"github.com/spinsim/spinsim/handlers/datatype"
	"github.com/spinsim/spinsim/handlers/internal/wasmtest"
	"github.com/spinsim/spinsim/internal/typetest"
	"github.com/spinsim/spinsim/spin"
	"github.com/spinsim/spinsim/spin/spintest"
)

const packet = 48

// Packets in any order put every byte where the type has it, whatever the strategy.
func TestUnpacks(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) { unpackRandom(t, rt, false) })
}

// The module does what its source does.
func TestModuleUnpacks(t *testing.T) {
	random := rapid.Custom(func(rt *rapid.T) bool { unpackRandom(t, rt, true); return true })
	for seed := range 40 {
		random.Example(seed)
	}
}

func unpackRandom(t *testing.T, rt *rapid.T, wasm bool) {
	count := rapid.IntRange(1, 3).Draw(rt, "count")
	apart := func(d *mpi.Type) bool {
		overlaps, err := d.Overlaps(count)
		require.NoError(rt, err)
		return !overlaps && d.Size() > 0
	}
	d := rapid.Custom(func(rt *rapid.T) *mpi.Type { return typetest.Draw(rt, 3) }).Filter(apart).Draw(rt, "type")
	strategies := []*uint32{nil, strategy(datatype.General), strategy(datatype.ReadOnly), strategy(datatype.Progressing)}
	o := datatype.Options{Strategy: rapid.SampledFrom(strategies).Draw(rt, "strategy"), Packet: packet, Memory: 24 << 10}
	p, err := datatype.Compile(d, count, o)
	require.NoError(rt, err)
	shuffle := rapid.Bool().Draw(rt, "shuffle")
	// checkpoints are for the longest packet
	step := rapid.OneOf(rapid.Just(packet), rapid.IntRange(1, packet)).Draw(rt, "bytes of a packet")
	deliver(t, d, count, p, wasm, step, shuffle, rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "order"), 1)))
}

func strategy(s uint32) *uint32 { return &s }

// deliver delivers a message of a type in packets and compares memory with the
// type.
func deliver(t *testing.T, d *mpi.Type, count int, p *datatype.Program, wasm bool, step int, shuffle bool, random *rand.Rand) {
	stream := make([]byte, int(d.Size())*count)
	for i := range stream {
		stream[i] = byte(i*13 + 5)
	}
	low, high := typetest.Reach(d, count)
	expected := make([]byte, high-low)
	require.NoError(t, d.Unpack(expected, int(-low), stream, count))

	device := spintest.New(t, spintest.Config{HostMem: len(expected), MTU: packet})
	s := spintest.NewState[datatype.State](device, len(p.Behind))
	*s = p.State
	s.Origin -= low
	copy(unsafe.Slice((*byte)(behind(s, 0)), len(p.Behind)), p.Behind)
	handler := spintest.Handlers[datatype.State]{Payload: unpack}
	if wasm {
		handler = wasmtest.Handlers[datatype.State](t, device, datatype.Library.Wasm, wasmtest.Names{Payload: datatype.Unpack}, len(p.Behind))
	}
	order := make([]int, (len(stream)+step-1)/step)
	for i := range order {
		order[i] = i
	}
	if shuffle {
		random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	}
	for _, i := range order {
		b, address := device.Memory(step)
		n := copy(b, stream[i*step:])
		record := spin.Payload{Base: address, Length: uint32(n), Offset: uint64(i * step), HostOffset: uint64(i * step), MLength: uint64(len(stream))}
		require.Equal(t, spin.Success, spintest.Run(device, handler.Payload, &record, s))
	}
	require.True(t, slices.Equal(expected, device.Host), "memory")
	require.EqualValues(t, len(order), s.Packets)
	writes := device.Named("dma_to_host")
	require.Len(t, writes, int(s.Runs))
	for _, w := range writes {
		require.NotEmpty(t, w.Data)
	}
	// a message that is longer than the type: nothing of its last packet is
	// written
	for _, size := range []int{1, packet} {
		_, address := device.Memory(size)
		at := uint64(len(stream) - size + 1)
		record := spin.Payload{Base: address, Length: uint32(size), Offset: at, HostOffset: at, MLength: uint64(len(stream) + 1)}
		require.Equal(t, spin.Fail, spintest.Run(device, handler.Payload, &record, s))
		require.True(t, slices.Equal(expected, device.Host), "a message that is too long")
	}
	if !shuffle && s.Strategy == datatype.Progressing {
		require.EqualValues(t, 1, s.Seeks, "packets in order go on where the last one ended")
	}
}

// Every packet that pack sends is that part of the stream, each once, whatever
// the type: also one that has bytes twice.
func TestPacks(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) { packRandom(t, rt, false) })
}

// The module does what its source does.
func TestModulePacks(t *testing.T) {
	random := rapid.Custom(func(rt *rapid.T) bool { packRandom(t, rt, true); return true })
	for seed := range 40 {
		random.Example(seed)
	}
}

func packRandom(t *testing.T, rt *rapid.T, wasm bool) {
	count := rapid.IntRange(1, 3).Draw(rt, "count")
	d := rapid.Custom(func(rt *rapid.T) *mpi.Type { return typetest.Draw(rt, 3) }).Filter(func(d *mpi.Type) bool { return d.Size() > 0 }).Draw(rt, "type")
	send := datatype.Send{
		NID: 3, PT: 9, Packet: packet, Bits: 77, Offset: 1000, DoneCT: 5, SelfPT: 2,
		Workers: rapid.Uint32Range(1, 5).Draw(rt, "workers"), Batch: rapid.Uint32Range(1, 4).Draw(rt, "batch"),
	}
	p, err := datatype.CompileSend(d, count, send, 24<<10)
	require.NoError(rt, err)
	low, high := typetest.Reach(d, count)
	device := spintest.New(t, spintest.Config{HostMem: int(high - low), MTU: packet})
	for i := range device.Host {
		device.Host[i] = byte(i*7 + i>>8 + 1)
	}
	device.Counters[5] = &spintest.Count{}
	stream := make([]byte, int(d.Size())*count)
	require.NoError(rt, d.Pack(stream, device.Host, int(-low), count))
	s := spintest.NewState[datatype.State](device, len(p.Behind))
	*s = p.State
	s.Origin -= low
	copy(unsafe.Slice((*byte)(behind(s, 0)), len(p.Behind)), p.Behind)
	handler := spintest.Handlers[datatype.State]{Header: pack}
	if wasm {
		handler = wasmtest.Handlers[datatype.State](t, device, datatype.Library.Wasm, wasmtest.Names{Header: datatype.Pack}, len(p.Behind))
	}
	start := spin.Header{MatchBits: 4}
	require.Equal(rt, spin.Drop, spintest.Run(device, handler.Header, &start, s))
	for done := 0; done < len(device.Named("to_self")); done++ { //nolint:intrange // there are more and more: messages to self, one after the other
		m := device.Named("to_self")[done].Op
		require.EqualValues(rt, 2, m.PTIndex)
		again := spin.Header{Type: spin.MsgSelf, MatchBits: m.MatchBits, HdrData: m.HdrData}
		require.Equal(rt, spin.Drop, spintest.Run(device, handler.Header, &again, s))
	}
	packets := (len(stream) + packet - 1) / packet
	require.Len(rt, device.Puts(), packets)
	require.EqualValues(rt, packets, device.Counters[5].Success)
	got := make([]byte, len(stream))
	for _, c := range device.Puts() {
		require.Equal(rt, [3]uint64{3, 9, 77}, [3]uint64{uint64(c.Op.TargetNID), uint64(c.Op.PTIndex), c.Op.MatchBits})
		copy(got[c.Op.RemoteOffset-1000:], c.Data)
	}
	require.True(rt, slices.Equal(stream, got), "stream")
}

// A worker that finds all buffers in use asks again; one that fails gives its buffer back.
func TestBuffers(t *testing.T) {
	d, err := mpi.Vector(8, 4, 8, mpi.Byte)
	require.NoError(t, err)
	p, err := datatype.CompileSend(d, 1, datatype.Send{Packet: packet, Workers: 2, Batch: 1, SelfPT: 2}, 4096)
	require.NoError(t, err)
	device := spintest.New(t, spintest.Config{HostMem: 64, MTU: packet})
	s := spintest.NewState[datatype.State](device, len(p.Behind))
	*s = p.State
	copy(unsafe.Slice((*byte)(behind(s, 0)), len(p.Behind)), p.Behind)
	buffer := func(i int) *uint64 {
		return (*uint64)(behind(s, uint64(s.Send.Buffers)+uint64(i*(8+packet))))
	}
	worker := spin.Header{Type: spin.MsgSelf}
	*buffer(0), *buffer(1) = 1, 1
	require.Equal(t, spin.Drop, spintest.Run(device, pack, &worker, s))
	require.Len(t, device.Named("to_self"), 1)
	require.Empty(t, device.Puts())
	*buffer(1) = 0
	device.Fail("put_from_device", spin.NoSpace, 1)
	require.Equal(t, spin.Fail, spintest.Run(device, pack, &worker, s))
	require.Zero(t, *buffer(1))
	require.Equal(t, spin.Drop, spintest.Run(device, pack, &worker, s))
	require.Zero(t, *buffer(1))
	require.EqualValues(t, 1, *buffer(0), "another's")
}

// What cannot be compiled is an error that says why.
func TestCompileErrors(t *testing.T) {
	comb, err := mpi.Vector(1<<24, 1, 2, mpi.Byte)
	require.NoError(t, err)
	combs, err := mpi.Hindexed([]int{1, 1}, []int64{0, 1}, comb)
	require.NoError(t, err)
	twice, err := mpi.Vector(2, 2, 1, mpi.Byte)
	require.NoError(t, err)
	deep := mpi.Byte
	for i := range datatype.MaxDepth + 1 {
		deep, err = mpi.Hvector(2, 1, 3<<(2*i), deep)
		require.NoError(t, err)
	}
	whole := datatype.Options{Packet: packet, Memory: 4096}
	for _, test := range []struct {
		of       *mpi.Type
		count    int
		o        datatype.Options
		expected string
	}{
		{mpi.Byte, 1, datatype.Options{Memory: 4096}, "packets of 0 bytes"},
		{mpi.Byte, 1, datatype.Options{Packet: 1, Memory: 4096, Strategy: strategy(9)}, "strategy 9"},
		{mpi.Byte, 0, whole, datatype.ErrEmpty.Error()},
		{mpi.Byte, 1, datatype.Options{Packet: 1, Memory: 100}, datatype.ErrLarge.Error()},
		{comb, 1, datatype.Options{Packet: 1, Memory: 4096, Strategy: strategy(datatype.ReadOnly)}, datatype.ErrLarge.Error()},
		{twice, 1, whole, datatype.ErrOverlap.Error()},
		{combs, 1, whole, "would take 33554432 comparisons"},
		{deep, 1, whole, datatype.ErrDeep.Error()},
	} {
		_, err := datatype.Compile(test.of, test.count, test.o)
		require.ErrorContains(t, err, test.expected)
	}
	_, err = datatype.CompileSend(mpi.Byte, 1, datatype.Send{Packet: packet, Batch: 1}, 4096)
	require.ErrorContains(t, err, "0 workers")
	_, err = datatype.CompileSend(mpi.Byte, 1, datatype.Send{Packet: packet, Batch: 1, Workers: 64}, 256)
	require.ErrorIs(t, err, datatype.ErrLarge)
}
