package portals

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestSegments compares the iteration over vectors with a list of every single
// address: same bytes in the same order, no empty range, nothing past the end.
func TestSegments(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		iov := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) IOVec {
			return IOVec{rapid.Uint64Range(0, 1000).Draw(t, "base"), rapid.Uint64Range(0, 5).Draw(t, "length")}
		}), 0, 6).Draw(t, "vectors")
		r, ok := vectored(iov)
		require.True(t, ok)
		var all []uint64
		for _, v := range iov {
			for i := range v.Length {
				all = append(all, v.Base+i)
			}
		}
		require.EqualValues(t, len(all), r.Length)
		if rapid.Bool().Draw(t, "contiguous") {
			r, ok = contiguous(500, r.Length)
			require.True(t, ok)
			for i := range all {
				all[i] = 500 + uint64(i)
			}
		}
		off := rapid.Uint64Range(0, 20).Draw(t, "offset")
		n := rapid.OneOf(rapid.Uint64Range(0, 20), rapid.Just(SizeMax)).Draw(t, "length")
		want := all[min(off, r.Length):]
		want = want[:min(n, uint64(len(want)))]
		var got []uint64
		it := r.Segments(off, n)
		for addr, n, ok := it.Next(); ok; addr, n, ok = it.Next() {
			require.Positive(t, n)
			for i := range n {
				got = append(got, addr+i)
			}
		}
		require.Equal(t, append([]uint64{}, want...), append([]uint64{}, got...))
		if len(want) > 0 {
			require.Equal(t, want[0], r.Addr(off))
		}
	})
}

// patchyMemory gives out at most three bytes at a time, to prove that no caller
// needs contiguous backing.
type patchyMemory []byte

func (m patchyMemory) Bytes(addr, n uint64, _ bool) ([]byte, bool) {
	if addr >= uint64(len(m)) {
		return nil, false
	}
	return m[addr:min(addr+min(n, 3), uint64(len(m)))], true
}

func (m patchyMemory) Store(addr uint64, b []byte) int { return copy(m[min(addr, uint64(len(m))):], b) }

func (m patchyMemory) Accessible(addr, n uint64, _ bool) uint64 {
	return min(n, uint64(len(m))-min(addr, uint64(len(m))))
}

func TestPatchyMemory(t *testing.T) {
	m := make(patchyMemory, 64)
	r, _ := contiguous(0, 64)
	text := []byte("the quick brown fox jumps")
	require.Equal(t, len(text), writeMem(m, &r, 5, text))
	back := make([]byte, len(text))
	require.True(t, readMem(m, &r, 5, back))
	require.Equal(t, text, back)
	require.True(t, accessible(m, &r, 0, r.Length, true))

	ni, _, err := NewNI(NIConfig{Options: OptNIMatching | OptNIPhysical, Device: deviceLimits, Memory: m})
	require.NoError(t, err)
	_, err = ni.PTAlloc(0, EQNone, 0)
	require.NoError(t, err)
	_, err = ni.MEAppend(0, &ME{Length: 64, UID: UIDAny, MatchID: AnyID, Options: OptMEOpPut}, PriorityList, 0)
	require.NoError(t, err)
	for i := range m {
		m[i] = 0xff
	}
	h := Header{Kind: OpAtomic, NI: NIMatchingPhysical, Op: OpSUM, Type: Uint64, RLength: 16}
	d := ni.Port().Receive(&h)
	ni.Port().Write(d, 0, []byte{1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0})
	ni.Port().Finish(d, d.Done())
	require.Equal(t, append(make([]byte, 8), 1, 0, 0, 0, 0, 0, 0, 0), []byte(m[:16]))
}

// TestStaleAnswer replays the acknowledgement of a finished operation whose
// place another operation has taken.
func TestStaleAnswer(t *testing.T) {
	p := newPair(t, OptMDEventCTAck)
	var old Header
	for i := range 3 {
		require.NoError(t, p.a.Put(Put{MD: p.md, Length: 8, Ack: CTAck, Target: PhysID(1, 0)}))
		op := p.a.Port().NextOp()
		ack := op.Header
		ack.Kind = OpAck
		p.a.Port().Sent(op, NIOK)
		p.a.Port().Release(op)
		if i > 0 {
			p.a.Port().Acked(&old)
			v, err := p.a.CTGet(p.ct)
			require.NoError(t, err)
			require.EqualValues(t, i, v.Success, "a stale acknowledgement was taken for another operation's")
		}
		p.a.Port().Acked(&ack)
		p.a.Port().Acked(&ack)
		old = ack
	}
	v, err := p.a.CTGet(p.ct)
	require.NoError(t, err)
	require.Equal(t, CTEvent{Success: 3}, v)
	require.NoError(t, p.a.MDRelease(p.md))
}

// Who desires pieces that are aligned to less may have other user headers; what
// is granted is a power of two.
func TestDesiredFragmentation(t *testing.T) {
	device := deviceLimits
	device.MinFragmentationLimit = 8
	for want, granted := range map[uint64]uint64{0: 8, 1: 1, 3: 2, 4: 4, 7: 4, 8: 8, 100: 8} { //lint:maporder each by itself
		desired := device
		desired.MinFragmentationLimit = want
		ni, got, err := NewNI(NIConfig{Options: OptNIMatching | OptNIPhysical, Device: device, Desired: &desired, Memory: make(flatMemory, 64)})
		require.NoError(t, err)
		require.Equal(t, granted, got.MinFragmentationLimit, want)
		_, err = ni.PTAlloc(0, EQNone, 0)
		require.NoError(t, err)
		for header := range uint64(17) {
			_, err = ni.MEAppend(0, &ME{Length: 64, UID: UIDAny, MatchID: AnyID, Options: OptMEOpPut, Spin: &Spin{UserHdrLen: header}}, PriorityList, 0)
			if header%granted == 0 {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, ErrArgInvalid)
			}
		}
	}
}
