package portals

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// deviceLimits are the limits of the device the tests use.
var deviceLimits = Limits{
	MaxEntries: 1 << 18, MaxUnexpectedHeaders: 1 << 17, MaxMDs: 64, MaxEQs: 16, MaxCTs: 1 << 12, MaxPTIndex: 63,
	MaxIOVecs: 16, MaxListSize: 1 << 18, MaxTriggeredOps: 1 << 16, MaxMsgSize: 1 << 20, MaxAtomicSize: 4096,
	MaxFetchAtomicSize: 4096, MaxWAWOrderedSize: 64, MaxWAROrderedSize: 64, MaxVolatileSize: 256,
	Features: FeatureTargetBindInaccessible | FeatureCoherentAtomics, MaxUserHdrSize: 64, MaxPayloadSize: 4096,
	MaxHandlerMem: 1 << 16, MaxInitialState: 1024, MinFragmentationLimit: 8,
}

// flatMemory is memory from address 0.
type flatMemory []byte

func (m flatMemory) Bytes(addr, n uint64, _ bool) ([]byte, bool) {
	if addr >= uint64(len(m)) || n > uint64(len(m))-addr {
		return nil, false
	}
	return m[addr : addr+n : addr+n], true
}

func (m flatMemory) Store(addr uint64, b []byte) int {
	to, _ := m.Bytes(addr, uint64(len(b)), true)
	return copy(to, b)
}

func (m flatMemory) Accessible(addr, n uint64, write bool) uint64 {
	b, _ := m.Bytes(addr, n, write)
	return uint64(len(b))
}

func testNI(tb testing.TB, options NIOptions) *NI {
	tb.Helper()
	ni, _, err := NewNI(NIConfig{Options: options, Device: deviceLimits, Memory: make(flatMemory, 1<<20)})
	require.NoError(tb, err)
	return ni
}

// matchBench appends n entries with exact bits and delivers to them in a
// scattered order.
func matchBench(b *testing.B, n int) {
	ni := testNI(b, OptNIMatching|OptNIPhysical)
	_, err := ni.PTAlloc(0, EQNone, 0)
	require.NoError(b, err)
	for i := range n {
		_, err := ni.MEAppend(0, &ME{Start: 0, Length: 64, UID: UIDAny, Options: OptMEOpPut, MatchID: PhysID(1, 0), MatchBits: uint64(i) * 0x10001}, PriorityList, 0)
		require.NoError(b, err)
	}
	h := Header{Kind: OpPut, NI: NIMatchingPhysical, Initiator: PhysID(1, 0), RLength: 8}
	b.ReportAllocs()
	b.ResetTimer()
	i := uint64(0)
	for b.Loop() {
		i = (i + 7919) % uint64(n)
		h.MatchBits = i * 0x10001
		d := ni.Port().Receive(&h)
		if !d.Matched() {
			b.Fatal("no match")
		}
		ni.Port().Finish(d, d.Done())
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e6, "Mmatch/s")
}

func BenchmarkMatch(b *testing.B) {
	for _, n := range []int{1000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) { matchBench(b, n) })
	}
}

// BenchmarkFind is the search alone.
func BenchmarkFind(b *testing.B) {
	for _, n := range []int{1000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			ni := testNI(b, OptNIMatching|OptNIPhysical)
			_, err := ni.PTAlloc(0, EQNone, 0)
			require.NoError(b, err)
			for i := range n {
				_, err := ni.MEAppend(0, &ME{UID: UIDAny, Options: OptMEOpPut, MatchID: PhysID(1, 0), MatchBits: uint64(i)}, PriorityList, 0)
				require.NoError(b, err)
			}
			h := Header{Kind: OpPut, NI: NIMatchingPhysical, Initiator: PhysID(1, 0), RLength: 8}
			i := uint64(0)
			for b.Loop() {
				i = (i + 7919) % uint64(n)
				h.MatchBits = i
				if ni.pts[0].priority.find(&h) == nil {
					b.Fatal("no match")
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e6, "Mmatch/s")
		})
	}
}

// BenchmarkMasks is the search of 100,000 entries with some different ignore
// bits.
func BenchmarkMasks(b *testing.B) {
	for _, masks := range []int{1, 8, 9, 100, 1000} {
		b.Run(fmt.Sprint(masks), func(b *testing.B) {
			ni := testNI(b, OptNIMatching|OptNIPhysical)
			_, err := ni.PTAlloc(0, EQNone, 0)
			require.NoError(b, err)
			for i := range 100_000 {
				me := ME{UID: UIDAny, Options: OptMEOpPut, MatchID: PhysID(1, 0), MatchBits: uint64(i), IgnoreBits: uint64(1+i%masks) << 40}
				_, err := ni.MEAppend(0, &me, PriorityList, 0)
				require.NoError(b, err)
			}
			h := Header{Kind: OpPut, NI: NIMatchingPhysical, Initiator: PhysID(1, 0), RLength: 8}
			i := uint64(0)
			for b.Loop() {
				i = (i + 7919) % 100_000
				h.MatchBits = i
				if ni.pts[0].priority.find(&h) == nil {
					b.Fatal("no match")
				}
			}
		})
	}
}

// BenchmarkUnexpected queues a header and takes it again, with 100,000 others in
// the list, naming the initiator or not.
func BenchmarkUnexpected(b *testing.B) {
	for _, c := range []struct {
		name string
		from ID
	}{{"exact", PhysID(1, 0)}, {"any-source", AnyID}} {
		b.Run(c.name, func(b *testing.B) {
			ni := testNI(b, OptNIMatching|OptNIPhysical)
			_, err := ni.PTAlloc(0, EQNone, 0)
			require.NoError(b, err)
			_, err = ni.MEAppend(0, &ME{Length: 64, UID: UIDAny, Options: OptMEOpPut, MatchID: AnyID, IgnoreBits: ^uint64(0)}, OverflowList, 0)
			require.NoError(b, err)
			h := Header{Kind: OpPut, NI: NIMatchingPhysical, Initiator: PhysID(1, 0), RLength: 8}
			for i := range 100_000 {
				h.MatchBits = uint64(i)
				d := ni.Port().Receive(&h)
				ni.Port().Finish(d, d.Done())
			}
			me := ME{UID: UIDAny, Options: OptMEOpPut | OptMEUseOnce, MatchID: c.from}
			b.ReportAllocs()
			i := uint64(0)
			for b.Loop() {
				i = (i + 7919) % 100_000
				me.MatchBits, h.MatchBits = i, i
				if _, err := ni.MEAppend(0, &me, PriorityList, 0); err != nil {
					b.Fatal(err)
				}
				d := ni.Port().Receive(&h)
				ni.Port().Finish(d, d.Done())
			}
			if ni.unexpectedCount != 100_000 {
				b.Fatal("headers were not taken")
			}
		})
	}
}

// BenchmarkTriggered runs chains of triggered increments: each counter fires
// the increment of the next.
func BenchmarkTriggered(b *testing.B) {
	const chain = 1000
	ni := testNI(b, OptNIMatching|OptNIPhysical)
	var cts [chain + 1]Handle
	for i := range cts {
		h, err := ni.CTAlloc()
		require.NoError(b, err)
		cts[i] = h
	}
	b.ReportAllocs()
	round := uint64(0)
	for b.Loop() {
		round++
		for i := range chain {
			if err := ni.Triggered(CTInc{CT: cts[i+1], Increment: CTEvent{Success: 1}}, cts[i], round); err != nil {
				b.Fatal(err)
			}
		}
		if err := ni.CTInc(cts[0], CTEvent{Success: 1}); err != nil {
			b.Fatal(err)
		}
	}
	v, err := ni.CTGet(cts[chain])
	require.NoError(b, err)
	require.Equal(b, round, v.Success)
	b.ReportMetric(float64(b.N)*chain/b.Elapsed().Seconds()/1e6, "Mops/s")
}

// BenchmarkMessage is a put of 64 bytes with acknowledgement and all its
// events, from the call to the empty queues on both sides.
func BenchmarkMessage(b *testing.B) {
	p := newPair(b, OptMDEventCTAck)
	_, err := p.b.MEAppend(0, &ME{Start: 8192, Length: 4096, UID: UIDAny, MatchID: AnyID, Options: OptMEOpPut}, PriorityList, 0)
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		if err := p.a.Put(Put{MD: p.md, Length: 64, Ack: Ack, Target: PhysID(1, 0)}); err != nil {
			b.Fatal(err)
		}
		p.flush(b)
	}
}
