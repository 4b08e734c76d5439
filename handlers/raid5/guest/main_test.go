package main

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers/internal/wasmtest"
	"github.com/spinsim/spinsim/handlers/raid5"
	"github.com/spinsim/spinsim/spin"
	"github.com/spinsim/spinsim/spin/spintest"
)

const (
	packet  = 200 // no multiple of 8
	buffers = 3
	slots   = 5
	memory  = (raid5.Locks + 2) * raid5.LockBytes // locks begin anew
)

// array is servers that are devices without time: what they send each other is
// delivered by drain, in any order.
type array struct {
	t       *testing.T
	rng     *rand.Rand
	code    raid5.Code
	servers []*server
	replies []spintest.Call // to the client
}

type server struct {
	*spintest.Device
	state *raid5.State
	seen  int // calls that were looked at
	run   map[string]spintest.Handlers[raid5.State]
}

// kinds are the handlers of entries by name.
var kinds = map[string]spintest.Handlers[raid5.State]{
	"write": {Header: open, Payload: write}, "apply": {Payload: apply}, "done": {Header: done},
	"gather": {Header: gather}, "fold": {Payload: fold}, "fill": {Payload: fill},
}

var modules = map[string]wasmtest.Names{
	"write": {Header: raid5.Open, Payload: raid5.Write}, "apply": {Payload: raid5.Apply}, "done": {Header: raid5.Done},
	"gather": {Header: raid5.Gather}, "fold": {Payload: raid5.Fold}, "fill": {Payload: raid5.Fill},
}

// The same with several parity servers.
var codeKinds = map[string]spintest.Handlers[raid5.State]{
	"write": {Header: open, Payload: encode}, "apply": {Payload: apply}, "done": {Header: done},
	"gather": {Header: collect}, "fold": {Payload: blend}, "fill": {Payload: fill},
}

var codeModules = map[string]wasmtest.Names{
	"write": {Header: raid5.Open, Payload: raid5.Encode}, "apply": {Payload: raid5.Apply}, "done": {Header: raid5.Done},
	"gather": {Header: raid5.Collect}, "fold": {Payload: raid5.Blend}, "fill": {Payload: raid5.Fill},
}

func newArray(t *testing.T, data int, wasm bool, seed uint64) *array {
	return newArrayOf(t, data, 1, wasm, seed)
}

func newArrayOf(t *testing.T, data, parity int, wasm bool, seed uint64) *array {
	a := &array{t: t, rng: rand.New(rand.NewPCG(seed, 3)), code: raid5.NewCode(data, parity)}
	kinds, modules := kinds, modules
	if parity > 1 {
		kinds, modules = codeKinds, codeModules
	}
	for i := range data + parity {
		s := &server{Device: spintest.New(t, spintest.Config{HostMem: memory, MTU: packet, NID: uint32(10 + i)}), run: kinds}
		state := raid5.State{
			Free: 1<<buffers - 1, BufferSize: packet, Slots: slots, PT: 7, ReplyPT: 8, Index: uint32(i), Parity: uint32(data),
			Code: a.code,
		}
		for j := range data + parity {
			state.Servers[j] = raid5.Server{NID: uint32(10 + j), PID: 1}
		}
		for j := range parity {
			state.Steps[j] = a.step(data+j, i)
		}
		behind := int(state.Memory(buffers))
		s.state = spintest.NewState[raid5.State](s.Device, behind)
		*s.state = state
		if wasm {
			s.run = wasmtest.Entries[raid5.State](t, s.Device, raid5.Library.Wasm, modules, behind)
		}
		a.servers = append(a.servers, s)
	}
	return a
}

// kindOf is the entry that match bits find, by name.
func kindOf(bits uint64) string {
	return map[uint64]string{
		raid5.WriteBits: "write", raid5.AloneBits: "write", raid5.DeltaBits: "apply", raid5.DoneBits: "done", raid5.FailedBits: "done",
		raid5.GatherBits: "gather", raid5.FoldBits: "fold", raid5.FillBits: "fill", raid5.CollectBits: "gather", raid5.BlendBits: "fold",
	}[bits&raid5.KindMask]
}

// deliver has a server handle a message; its packets come in any order.
func (a *array) deliver(to int, m spintest.Message) spintest.Outcome {
	packets := (len(m.Data) - m.UserHdrLen + packet - 1) / packet
	m.Order = a.rng.Perm(packets)
	if m.UserHdrLen > 0 {
		m.Order = nil
	}
	s := a.servers[to]
	return spintest.Deliver(s.Device, s.run[kindOf(m.MatchBits)], s.state, m)
}

// drain delivers what servers have sent until nothing is on its way.
func (a *array) drain() {
	for {
		var due []spintest.Call
		var from []int
		for i, s := range a.servers {
			for ; s.seen < len(s.Calls); s.seen++ {
				if c := s.Calls[s.seen]; c.Result >= 0 && (c.Name == "put_from_device" || c.Name == "put_from_host") {
					due, from = append(due, c), append(from, i)
				}
			}
		}
		if len(due) == 0 {
			return
		}
		for _, i := range a.rng.Perm(len(due)) {
			c := due[i]
			if c.Op.PTIndex == 8 {
				a.replies = append(a.replies, c)
				continue
			}
			require.EqualValues(a.t, 7, c.Op.PTIndex)
			require.EqualValues(a.t, 1, c.Op.TargetPID)
			a.deliver(int(c.Op.TargetNID)-10, spintest.Message{
				Data: c.Data, Offset: c.Op.RemoteOffset, SourceNID: uint32(10 + from[i]), SourcePID: 1, MatchBits: c.Op.MatchBits, HdrData: c.Op.HdrData,
			})
		}
	}
}

// write sends new data to a data server, in messages of up to three packets.
func (a *array) write(to int, at int, data []byte, slot uint32, match uint64) {
	var parts [][]byte
	packets := uint32(0)
	told := uint32(max(bits.OnesCount32(a.code.ParityServers()&^uint32(match>>raid5.ChainShift)), 1))
	if match == raid5.AloneBits {
		told = 1
	}
	for part := range slices.Chunk(data, 1+a.rng.IntN(3*packet)) {
		parts = append(parts, part)
		packets += told * uint32((len(part)+packet-1)/packet)
	}
	ticket := raid5.NewTicket(99, 2, slot, packets)
	for _, part := range parts {
		a.deliver(to, spintest.Message{Data: part, Offset: uint64(at), SourceNID: 99, SourcePID: 2, MatchBits: match, HdrData: uint64(ticket)})
		at += len(part)
	}
}

// quiet requires that parity is right, and that no lock, buffer or slot is taken.
func (a *array) quiet() {
	for _, s := range a.servers {
		require.EqualValues(a.t, 1<<buffers-1, s.state.Free)
		for i := range raid5.Locks {
			l := (*raid5.Lock)(unsafe.Add(unsafe.Pointer(s.state), unsafe.Sizeof(*s.state)+uintptr(slots*raid5.SlotSize+i*raid5.LockSize)))
			require.Equal(a.t, l.Next, l.Serving, "lock %d", i)
		}
		for i := range slots {
			require.Zero(a.t, *(*uint64)(unsafe.Add(unsafe.Pointer(s.state), unsafe.Sizeof(*s.state)+uintptr(i*raid5.SlotSize))))
		}
	}
	for i := range a.code.Parity {
		parity := a.code.Data + i
		require.True(a.t, slices.Equal(a.said(a.code.DataServers(), parity, 0, memory), a.servers[parity].Host), "parity server %d", i)
	}
}

func each(t *testing.T, f func(t *testing.T, wasm bool)) {
	t.Run("source", func(t *testing.T) { f(t, false) })
	t.Run("module", func(t *testing.T) { f(t, true) })
}

// Data is written, parity is its exclusive or, and each write is answered once,
// when all of it is done; whatever the order of packets, differences and
// answers.
func TestWrites(t *testing.T) {
	each(t, func(t *testing.T, wasm bool) {
		a := newArray(t, 3, wasm, 5)
		want := [3][]byte{make([]byte, memory), make([]byte, memory), make([]byte, memory)}
		for round := range 6 {
			var writes [slots]bool
			for slot := range uint32(slots) {
				if a.rng.IntN(2) == 0 {
					continue
				}
				to, n := a.rng.IntN(3), 1+a.rng.IntN(1500)
				at := a.rng.IntN(memory - n + 1)
				if round%2 == 0 { // where locks begin anew, and all on the same bytes
					at = raid5.Locks*raid5.LockBytes - a.rng.IntN(n)
				}
				data := make([]byte, n)
				for i := range data {
					data[i] = byte(a.rng.Uint32())
				}
				copy(want[to][at:], data)
				writes[slot] = true
				a.write(to, at, data, slot, raid5.WriteBits)
			}
			a.replies = nil
			a.drain()
			for _, c := range a.replies {
				slot := c.Op.MatchBits - raid5.ReplyBits
				require.Less(t, slot, uint64(slots))
				require.True(t, writes[slot])
				writes[slot] = false
				require.Equal(t, [3]uint64{99, 2, raid5.OK}, [3]uint64{uint64(c.Op.TargetNID), uint64(c.Op.TargetPID), c.Op.HdrData})
			}
			require.NotContains(t, writes[:], true)
			for i := range want {
				require.True(t, slices.Equal(want[i], a.servers[i].Host))
			}
		}
		a.quiet()
	})
}

// A write beyond the end changes nothing, and its client is told; so it is of
// memory that is not there, at whichever server.
func TestWritesThatFail(t *testing.T) {
	each(t, func(t *testing.T, wasm bool) {
		a := newArray(t, 2, wasm, 6)
		ticket := uint64(raid5.NewTicket(99, 2, 1, 1))
		out := a.deliver(0, spintest.Message{Data: make([]byte, 100), MLength: 50, Offset: memory - 50, MatchBits: raid5.WriteBits, HdrData: ticket})
		require.Equal(t, spin.Drop, out.Header)
		a.drain()
		require.Len(t, a.replies, 1)
		require.EqualValues(t, raid5.Refused, a.replies[0].Op.HdrData)
		require.EqualValues(t, 1, a.servers[0].state.Counts.Refused)

		for i, fail := range []struct {
			at   int
			call string
		}{{0, "dma_from_host"}, {0, "dma_to_host"}, {2, "dma_from_host"}, {2, "dma_to_host"}} {
			a.servers[fail.at].Fail(fail.call, spin.Fault, 1)
			a.replies = nil
			a.write(0, 0, slices.Repeat([]byte{byte(i + 1)}, 3*packet), 2, raid5.WriteBits)
			a.drain()
			require.Len(t, a.replies, 1, "%v", fail)
			require.EqualValues(t, raid5.Failed, a.replies[0].Op.HdrData)
			a.servers[0].Host = make([]byte, memory) // as if rebuilt
			a.servers[2].Host = make([]byte, memory)
			a.quiet()
		}
	})
}

// Without a parity server, and when it has failed, the data server answers.
func TestWritesAlone(t *testing.T) {
	each(t, func(t *testing.T, wasm bool) {
		a := newArray(t, 1, wasm, 7)
		a.write(0, 3, slices.Repeat([]byte{7}, 5*packet), 0, raid5.AloneBits)
		a.servers[0].state.Parity = raid5.NoParity
		a.write(0, 3+5*packet, []byte{8}, 1, raid5.WriteBits)
		a.drain()
		require.Len(t, a.replies, 2)
		require.EqualValues(t, 8, a.servers[0].Host[3+5*packet])
		require.Zero(t, a.servers[1].state.Counts.Applied)
	})
}

// A chain collects what a server had, for a client and for one in its place;
// each of the others adds its bytes once.
func TestChains(t *testing.T) {
	each(t, func(t *testing.T, wasm bool) {
		a := newArray(t, 4, wasm, 8)
		for i := range 4 {
			data := make([]byte, 3000)
			for j := range data {
				data[j] = byte(a.rng.Uint32())
			}
			a.write(i, 1000*i, data, 0, raid5.WriteBits)
			a.drain()
		}
		for failed := range a.servers {
			const from, n = 1234, 2*packet + 77
			want := slices.Clone(a.servers[failed].Host)
			clear(a.servers[failed].Host)
			first := 0
			if failed == 0 {
				first = 1
			}
			asked := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, from), n)
			chain := uint64(0b11111&^(1<<failed)) << raid5.ChainShift
			ask := spintest.Message{Data: asked, UserHdrLen: raid5.RangeSize, SourceNID: 99, SourcePID: 2}

			const here = 50 // in the client's entry
			var back int64 = here - from
			ask.MatchBits = raid5.ToClient<<raid5.LastShift | chain | raid5.GatherBits
			ask.HdrData = uint64(raid5.NewDestination(99, 2, uint64(back)))
			a.replies = nil
			require.Equal(t, spin.Drop, a.deliver(first, ask).Header)
			a.drain()
			got := make([]byte, here+n)
			for _, c := range a.replies {
				require.Equal(t, [3]uint64{99, 2, raid5.SumBits}, [3]uint64{uint64(c.Op.TargetNID), uint64(c.Op.TargetPID), c.Op.MatchBits})
				copy(got[c.Op.RemoteOffset:], c.Data)
			}
			require.Equal(t, want[from:from+n], got[here:])

			ask.MatchBits = uint64(failed)<<raid5.LastShift | chain | raid5.GatherBits
			ask.HdrData = uint64(raid5.NewTicket(99, 2, 3, 3))
			a.replies = nil
			a.deliver(first, ask)
			a.drain()
			require.Len(t, a.replies, 1)
			require.EqualValues(t, raid5.OK, a.replies[0].Op.HdrData)
			require.Equal(t, want[from:from+n], a.servers[failed].Host[from:from+n])
			copy(a.servers[failed].Host, want)
		}
		a.quiet()
	})
}

// A request that is no message of the protocol fails, and hurts nobody.
func TestNonsense(t *testing.T) {
	each(t, func(t *testing.T, wasm bool) {
		a := newArray(t, 1, wasm, 9)
		s := a.servers[0]
		require.Equal(t, spin.Fail, a.deliver(0, spintest.Message{MatchBits: raid5.DoneBits, HdrData: uint64(raid5.NewTicket(1, 1, slots, 1))}).Header, "a slot that there is not")
		require.Equal(t, spin.Fail, a.deliver(0, spintest.Message{MatchBits: raid5.GatherBits, Data: []byte{1}, UserHdrLen: 1}).Header, "no range")
		large := &spin.Payload{Length: packet + 1}
		for _, f := range []string{"write", "apply", "fold"} {
			large.Base = memoryOf(s, packet+1)
			require.Equal(t, spin.Fail, spintest.Run(s.Device, s.run[f].Payload, large, s.state), f)
		}
		require.Empty(t, s.Puts())
		a.quiet()
	})
}

func memoryOf(s *server, n int) spin.Ptr {
	_, at := s.Memory(n)
	return at
}

// Words and bytes of any length.
func TestXor(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for n := range 300 {
		to, from, want := make([]byte, n), make([]byte, n), make([]byte, n)
		for i := range n {
			to[i], from[i] = byte(rng.Uint32()), byte(rng.Uint32())
			want[i] = to[i] ^ from[i]
		}
		xor(to, from)
		require.Equal(t, want, to)
	}
}
