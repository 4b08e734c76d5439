package main

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/handlers/internal/wasmtest"
	"github.com/spinsim/spinsim/handlers/kv"
	"github.com/spinsim/spinsim/spin"
	"github.com/spinsim/spinsim/spin/spintest"
)

const (
	mtu       = 512
	tableAt   = 64               // of the one stripe, 4 buckets
	blocksAt  = 1 << 10          // from here on every class has two blocks
	hostBytes = blocksAt + 2<<13 // of classes up to 6: 4 KiB
	classes   = 7
)

// bench is a device with an empty store.
type bench struct {
	t *testing.T
	d *spintest.Device
	s *kv.State
	h spintest.Handlers[kv.State]
}

func newBench(t *testing.T, wasm bool, change func(*kv.State)) *bench {
	b := &bench{t: t, d: spintest.New(t, spintest.Config{HostMem: hostBytes, MTU: mtu, NID: 4, PID: 1})}
	state := kv.State{
		Stripes: 1, Steps: 4, Tries: 5, Load: 1, Limit: 2, Low: 1, Depth: 4, Slots: 2, Buffers: 2, Free: 3, Chunk: mtu, NID: 4, PID: 1, HostPT: 9, HostBits: 77,
	}
	if change != nil {
		change(&state)
	}
	behind := state.Lay()
	b.s = spintest.NewState[kv.State](b.d, behind)
	*b.s = state
	st := b.stripe()
	st.Table, st.GrowAt = kv.Link(tableAt, 2, 0), 100
	at := uint64(blocksAt)
	for class := range uint32(classes) {
		k := b.stack(class)
		k.Count = 2
		for i := range 2 {
			b.links(class)[i] = kv.Link(at, class, 0)
			at += 64 << class
		}
	}
	b.h = spintest.Handlers[kv.State]{Header: header, Payload: payload, Completion: completion}
	if wasm {
		b.h = wasmtest.Handlers[kv.State](t, b.d, kv.Library.Wasm, wasmtest.Names{Header: kv.Header, Payload: kv.Payload, Completion: kv.Completion}, behind)
	}
	return b
}

// behind is spin.Behind outside of handlers.
func behind[T any](s *kv.State, at uint32) *T {
	return (*T)(unsafe.Add(unsafe.Pointer(s), unsafe.Sizeof(*s)+uintptr(at)))
}

func (b *bench) stripe() *kv.Stripe { return behind[kv.Stripe](b.s, b.s.StripesAt) }

func (b *bench) stack(class uint32) *kv.Stack {
	return behind[kv.Stack](b.s, b.s.StacksAt+class*(kv.StackSize+8*b.s.Depth))
}

func (b *bench) slot(i uint32) *kv.Slot { return behind[kv.Slot](b.s, b.s.SlotsAt+i*kv.SlotSize) }

func (b *bench) links(class uint32) []uint64 {
	return unsafe.Slice((*uint64)(unsafe.Add(unsafe.Pointer(b.stack(class)), kv.StackSize)), b.s.Depth)
}

// send delivers a request, and returns its answer and value; ok: there was one.
func (b *bench) send(r kv.Request, key, value []byte, m spintest.Message) (a kv.Answer, got []byte, ok bool) {
	r.Key, r.Value, r.PT, r.Bits, r.Tag, r.Room = uint32(len(key)), uint32(len(value)), 30, 55, 1234, 1<<20
	m.Data = append(append(spin.EncodeState(&r), key...), value...)
	m.UserHdrLen, m.SourceNID, m.SourcePID = kv.UserHeader, 7, 3
	before := len(b.d.Puts())
	out := spintest.Deliver(b.d, b.h, b.s, m)
	require.False(b.t, out.Failed, "%+v", out)
	var whole []byte
	for _, p := range b.d.Puts()[before:] {
		if p.Op.PTIndex == b.s.HostPT {
			continue
		}
		require.Equal(b.t, [4]uint64{7, 3, 30, 55}, [4]uint64{uint64(p.Op.TargetNID), uint64(p.Op.TargetPID), uint64(p.Op.PTIndex), p.Op.MatchBits})
		require.EqualValues(b.t, len(whole), p.Op.RemoteOffset)
		require.LessOrEqual(b.t, len(p.Data), mtu)
		whole = append(whole, p.Data...)
		ok = true
		defer func(all uint64) { require.Equal(b.t, kv.AnswerData(1234, uint64(len(whole))), all) }(p.Op.HdrData)
	}
	if ok {
		require.NoError(b.t, spin.DecodeState(whole, &a))
		require.EqualValues(b.t, 1234, a.Tag)
		got = whole[kv.AnswerSize:]
	}
	return a, got, ok
}

// handoffs are what the host has been given.
func (b *bench) handoffs() (list []kv.Handoff, behind [][]byte) {
	for _, p := range b.d.Puts() {
		if p.Op.PTIndex == b.s.HostPT {
			var f kv.Handoff
			require.NoError(b.t, spin.DecodeState(p.UserHdr, &f))
			require.Equal(b.t, [3]uint64{4, 1, 77}, [3]uint64{uint64(p.Op.TargetNID), uint64(p.Op.TargetPID), p.Op.MatchBits})
			list, behind = append(list, f), append(behind, p.Data)
		}
	}
	return list, behind
}

// tell delivers a word of the host.
func (b *bench) tell(w kv.Word, links ...uint64) {
	m := spintest.Message{Data: spin.EncodeState(&w), UserHdrLen: kv.UserHeader, SourceNID: 4, SourcePID: 1}
	for _, l := range links {
		m.Data = binary.LittleEndian.AppendUint64(m.Data, l)
	}
	require.Equal(b.t, spin.Drop, spintest.Deliver(b.d, b.h, b.s, m).Header)
}

// Any sequence of requests answers as a map does, and no block is lost; packets
// of long ones come in any order.
func TestAnswersAsAMapDoes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) { asAMap(t, rt, false) })
}

// The module does what its source does.
func TestModuleAnswersAsAMapDoes(t *testing.T) {
	random := rapid.Custom(func(rt *rapid.T) bool { asAMap(t, rt, true); return true })
	for seed := range 20 {
		random.Example(seed)
	}
}

// model is what a store has: the value of a key and its version, which is 0 where there is none.
type model struct {
	values   map[string]string
	versions map[string]uint64
	last     uint64
}

// step is what a request answers.
func (m *model) step(r *kv.Request, key, value string) (a kv.Answer, got string) {
	now := m.versions[key]
	a = kv.Answer{Version: now, Tag: 1234}
	switch {
	case r.Op == kv.Swap && r.Expect != now:
		a.Status = kv.Changed
	case r.Op == kv.Put || r.Op == kv.Swap:
		m.last++
		a.Version, m.values[key], m.versions[key] = m.last, value, m.last
	case now == 0:
		a.Status = kv.NotFound
	case r.Op == kv.Get:
		got = m.values[key]
		a.Value = uint32(len(got))
	default:
		delete(m.values, key)
		delete(m.versions, key)
	}
	return a, got
}

func asAMap(t *testing.T, rt *rapid.T, wasm bool) {
	b := newBench(t, wasm, func(s *kv.State) { s.Steps = 100 })
	m := model{map[string]string{}, map[string]uint64{}, 0}
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
	keys := []string{"", "a", "bb", fmt.Sprintf("%0208d", 1), fmt.Sprintf("%0207d", 2)}
	for range rapid.IntRange(1, 40).Draw(rt, "requests") {
		key := keys[rng.IntN(len(keys))]
		r := kv.Request{Op: uint32(1 + rng.IntN(4))}
		var value []byte
		if r.Op == kv.Put || r.Op == kv.Swap {
			value = make([]byte, []int{0, 1, 100, 300, 3000}[rng.IntN(5)])
			for i := range value {
				value[i] = byte(rng.Uint32())
			}
		}
		if r.Op == kv.Swap && rng.IntN(3) > 0 {
			r.Expect = m.versions[key]
		}
		var message spintest.Message
		if packets := (kv.RequestSize + len(key) + len(value) + mtu - 1) / mtu; packets > 1 {
			message.Order = rng.Perm(packets)
		}
		a, got, ok := b.send(r, []byte(key), value, message)
		require.True(rt, ok)
		if a.Status == kv.Again { // there are two blocks of each class
			require.True(rt, r.Op == kv.Put || r.Op == kv.Swap)
			continue
		}
		expected, expectedValue := m.step(&r, key, string(value))
		require.Equal(rt, expected, a)
		require.Equal(rt, expectedValue, string(got))
	}
	st := b.stripe()
	require.EqualValues(rt, len(m.values), st.Items)
	require.Equal(rt, m.last, st.Version)
	require.Zero(rt, st.Lock)
	free := 0
	for class := range uint32(classes) {
		require.Zero(rt, b.stack(class).Lock)
		free += int(b.stack(class).Count)
	}
	require.Equal(rt, 2*classes, free+len(m.values), "blocks")
	for i := range b.s.Slots {
		require.Zero(rt, b.slot(i).Message)
	}
	require.EqualValues(rt, 3, b.s.Free, "buffers")
}

// A walk that is too long makes the stripe the host's, with the request; others
// join it until the host has dealt with all, and then handlers serve again.
func TestHandsOver(t *testing.T) {
	b := newBench(t, false, func(s *kv.State) { s.Steps, s.Limit, s.Depth = 1, 3, 8 })
	st := b.stripe()
	st.Table = kv.Link(tableAt, 0, 0) // one bucket
	b.tell(kv.Word{Op: kv.Refill, Count: 1}, kv.Link(512, 0, 0))
	for i := range 2 {
		_, _, ok := b.send(kv.Request{Op: kv.Put}, []byte{byte(i)}, nil, spintest.Message{})
		require.True(t, ok)
	}
	_, _, ok := b.send(kv.Request{Op: kv.Get}, []byte{0}, nil, spintest.Message{}) // behind the other
	require.False(t, ok, "the host answers")
	_, _, ok = b.send(kv.Request{Op: kv.Put}, []byte("x"), []byte("yz"), spintest.Message{})
	require.False(t, ok)
	list, requests := b.handoffs()
	require.Len(t, list, 3)
	require.EqualValues(t, kv.Asking, list[1].Kind) // the last block has gone
	list, requests = append(list[:1], list[2]), append(requests[:1], requests[2])
	require.Equal(t, kv.Handoff{Kind: kv.Serve, NID: 7, PID: 3, Fresh: 1, Table: st.Table, Items: 2, Update: 2, Era: 1}, list[0])
	require.NotZero(t, list[1].Block)
	require.Equal(t, kv.Handoff{Kind: kv.Serve, NID: 7, PID: 3, Block: list[1].Block, Era: 1}, list[1])
	require.Equal(t, []byte{0}, requests[0][kv.RequestSize:])
	place := kv.Place(list[1].Block) + kv.RequestSize
	require.Equal(t, "xyz", string(b.d.Host[place:place+3]))
	require.EqualValues(t, 2*kv.AtHost, st.Lock)

	long := make([]byte, 300) // its key is the host's from the first
	_, _, ok = b.send(kv.Request{Op: kv.Get}, long, nil, spintest.Message{})
	require.False(t, ok)
	a, _, ok := b.send(kv.Request{Op: kv.Get}, []byte{1}, nil, spintest.Message{})
	require.True(t, ok)
	require.EqualValues(t, kv.Again, a.Status, "the host has as much as it may")
	require.EqualValues(t, 3, b.s.Held)

	// Words that overtake each other: the last one counts.
	b.tell(kv.Word{Op: kv.Done, Count: 2, Table: st.Table, Items: 3, Update: 9, GrowAt: 50, Turn: 8})
	b.tell(kv.Word{Op: kv.Done, Count: 1, Table: 0, Items: 1, Update: 5, Turn: 7})
	require.Equal(t, kv.Stripe{Table: st.Table, Items: 3, Version: 9, GrowAt: 50, Turn: 8, Era: 1}, *st)
	require.Zero(t, b.s.Held)
	a, _, ok = b.send(kv.Request{Op: kv.Get}, []byte{1}, nil, spintest.Message{})
	require.True(t, ok)
	require.EqualValues(t, kv.OK, a.Status)
}

// A stripe with too many items is handed to the host, with no request, after the answer's.
func TestAsksForMoreBuckets(t *testing.T) {
	b := newBench(t, false, nil)
	b.stripe().GrowAt = 0
	a, _, ok := b.send(kv.Request{Op: kv.Put}, []byte("k"), nil, spintest.Message{})
	require.True(t, ok)
	require.EqualValues(t, kv.OK, a.Status)
	list, _ := b.handoffs()
	require.Equal(t, []kv.Handoff{{Kind: kv.Growing, NID: 7, PID: 3, Fresh: 1, Table: b.stripe().Table, Items: 1, Update: 1, Era: 1}}, list)
	require.EqualValues(t, kv.AtHost, b.stripe().Lock)
}

// Locks that stay taken send the client back, and leave nothing behind: readers
// beside readers, writers alone, a writer before later readers.
func TestLocks(t *testing.T) {
	b := newBench(t, false, nil)
	b.send(kv.Request{Op: kv.Put}, []byte("k"), nil, spintest.Message{})
	st := b.stripe()
	for _, test := range []struct {
		lock   uint64
		op     uint32
		status uint32
		after  uint64
	}{
		{kv.Reader, kv.Get, kv.OK, kv.Reader},
		{kv.Reader, kv.Put, kv.Again, kv.Reader},
		{kv.Writer, kv.Get, kv.Again, kv.Writer},
		{kv.Writer, kv.Delete, kv.Again, kv.Writer},
		{kv.Reader | kv.Writer, kv.Get, kv.Again, kv.Reader | kv.Writer},
		{kv.Reader | kv.Writer, kv.Put, kv.Again, kv.Reader | kv.Writer},
		{0, kv.Get, kv.OK, 0},
		{0, kv.Put, kv.OK, 0},
	} {
		st.Lock = test.lock
		a, _, ok := b.send(kv.Request{Op: test.op}, []byte("k"), nil, spintest.Message{})
		require.True(t, ok)
		require.Equal(t, test.status, a.Status, "%+v", test)
		require.Equal(t, test.after, st.Lock, "%+v", test)
	}
	require.EqualValues(t, 2, b.stack(0).Count+uint32(st.Items), "blocks")
}

// The host is asked once for blocks, before there are none; when it has none
// clients are told so; full stacks give half to it.
func TestBlocks(t *testing.T) {
	b := newBench(t, false, func(s *kv.State) { s.Low = 2 })
	put := func(i int) uint32 {
		a, _, ok := b.send(kv.Request{Op: kv.Put}, []byte{byte(i)}, nil, spintest.Message{})
		require.True(t, ok)
		return a.Status
	}
	for i, expected := range []uint32{kv.OK, kv.OK, kv.Again, kv.Again} {
		require.Equal(t, expected, put(i))
	}
	list, _ := b.handoffs()
	require.Equal(t, []kv.Handoff{{Kind: kv.Asking}}, list)
	b.tell(kv.Word{Op: kv.Refill, Empty: kv.Full})
	require.EqualValues(t, kv.Full, put(2))
	var more []uint64
	for i := range uint64(6) { // stacks have room for 4
		more = append(more, kv.Link(8192+i*64, 0, 0))
	}
	b.tell(kv.Word{Op: kv.Refill, Count: 6}, more...)
	list, links := b.handoffs()
	require.Len(t, list, 2)
	require.Equal(t, kv.Handoff{Kind: kv.Returning, Count: 2}, list[1])
	require.Len(t, links[1], 16)
	require.EqualValues(t, 4, b.stack(0).Count)
	require.EqualValues(t, kv.OK, put(2))
}

// What is no request, or has lost a packet, changes nothing.
func TestRefuses(t *testing.T) {
	b := newBench(t, false, nil)
	for _, m := range []spintest.Message{
		{Data: nil},
		{Data: make([]byte, 47)},
		{Data: make([]byte, 48)},
		{Data: spin.EncodeState(&kv.Request{Op: kv.Get, Key: 1})},
		{Data: spin.EncodeState(&kv.Request{Op: 9})},
		{Data: append(spin.EncodeState(&kv.Request{Op: kv.Get, Value: 1}), 0)},
		{Data: spin.EncodeState(&kv.Request{Op: kv.Put, Key: 1 << 31, Value: 1 << 31})},
		{Data: append(spin.EncodeState(&kv.Word{Op: kv.Done, Count: 1}), 0)}, // of a stranger
		{Data: make([]byte, 60), Type: spin.MsgGet},
	} {
		m.UserHdrLen = kv.UserHeader
		require.Equal(t, spin.Drop, spintest.Deliver(b.d, b.h, b.s, m).Header)
	}
	require.EqualValues(t, 9, b.s.Counts.Illegal)
	a, _, ok := b.send(kv.Request{Op: kv.Put}, []byte("k"), make([]byte, 1000), spintest.Message{Lost: []int{1}})
	require.True(t, ok)
	require.EqualValues(t, kv.Again, a.Status)
	require.Zero(t, b.stripe().Items)
	require.Zero(t, b.stripe().Lock)
	require.EqualValues(t, 2, b.stack(kv.ClassOf(1049)).Count)
	require.Zero(t, b.slot(0).Message+b.slot(1).Message)
	b.s.Slots = 0 // a long message finds none
	a, _, ok = b.send(kv.Request{Op: kv.Put}, []byte("k"), make([]byte, 1000), spintest.Message{})
	require.True(t, ok)
	require.EqualValues(t, kv.Again, a.Status)
	require.EqualValues(t, 2, b.stack(kv.ClassOf(1049)).Count)
}

// Records are what handlers and hosts both take them for.
func TestSizes(t *testing.T) {
	require.EqualValues(t, kv.StripeSize, unsafe.Sizeof(kv.Stripe{}))
	require.EqualValues(t, kv.StackSize, unsafe.Sizeof(kv.Stack{}))
	require.EqualValues(t, kv.SlotSize, unsafe.Sizeof(kv.Slot{}))
	require.EqualValues(t, kv.RequestSize, unsafe.Sizeof(kv.Request{}))
	require.EqualValues(t, kv.RequestSize, unsafe.Sizeof(kv.Item{}))
	require.EqualValues(t, kv.AnswerSize, unsafe.Sizeof(kv.Answer{}))
	require.EqualValues(t, kv.HandoffSize, unsafe.Sizeof(kv.Handoff{}))
	require.EqualValues(t, kv.WordSize, unsafe.Sizeof(kv.Word{}))
}
