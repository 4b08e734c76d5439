package main

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers/allreduce"
	"github.com/spinsim/spinsim/handlers/reduction"
	"github.com/spinsim/spinsim/spin/spintest"
)

// sends delivers what a child has for block 3 of a call with a root, or a token.
func (b *bench) sends(place, run uint32, value uint64, root bool, sign uint32) {
	bits := uint64(reduction.Rooted|reduction.KindVector) | uint64(place)<<reduction.PlaceShift
	if root {
		bits |= (reduction.RootBit | 3*8) << reduction.IndexShift
	}
	spintest.Deliver(b.d, b.h, b.s, spintest.Message{
		Data: binary.LittleEndian.AppendUint64(nil, value), MatchBits: bits, HdrData: uint64(run) | uint64(sign)<<32,
	})
}

// gets delivers a block from the parent.
func (b *bench) gets(run uint32, value uint64, sign uint32) {
	spintest.Deliver(b.d, b.h, b.s, spintest.Message{
		Data: binary.LittleEndian.AppendUint64(nil, value), MatchBits: reduction.Rooted | reduction.KindResult | 3*8<<reduction.IndexShift,
		HdrData: uint64(run) | uint64(sign)<<32,
	})
}

// given returns what the last three messages, to the children, have; 0: nothing.
func (b *bench) given(t *testing.T) (values []uint64) {
	puts := b.d.Puts()
	for i, p := range puts[len(puts)-3:] {
		require.EqualValues(t, 100+i, p.Op.TargetNID)
		require.Equal(t, i == 2, p.Op.MatchBits&reduction.Rooted != 0, "processes need no handlers")
		v, offset := uint64(0), uint64(0)
		if len(p.Data) > 0 {
			if v = binary.LittleEndian.Uint64(p.Data); i < 2 {
				offset = 3 * 8 // in its vector
			}
		}
		require.Equal(t, offset, p.Op.RemoteOffset)
		values = append(values, v)
	}
	return values
}

var (
	adding  = reduction.Sign(16, allreduce.Sum, allreduce.Int64) | reduction.Reduce
	copying = reduction.Sign(16, 0, 0)
)

// Among allreduces, the root of a reduce alone has the sum, and the root of a
// broadcast alone does not get what it has, whichever child it is below, and
// whenever vectors come.
func TestRooted(t *testing.T) {
	b := newBench(t, 1)
	for run := range uint32(12) {
		root := run % 3
		for _, place := range []uint32{2, 0, 1} {
			if run%4 == 3 {
				b.vector(place, run, 3, 1)
			} else {
				b.sends(place, run, uint64(7+place), place == root, []uint32{adding, copying}[run%2])
			}
		}
		if run%4 == 3 {
			require.EqualValues(t, 3, b.value(int(3*run)))
			continue
		}
		want := []uint64{0, 0, 0}
		if want[root] = 24; run%2 == 1 {
			want = []uint64{7 + uint64(root), 7 + uint64(root), 7 + uint64(root)}
			want[root] = 0
		}
		got := b.given(t)
		got[2] *= want[2] / max(1, want[2]) // a token has any value
		require.Equal(t, want, got, "run %d", run)
	}
	require.Equal(t, reduction.Counts{Vectors: 36, Early: 12, Blocks: 12}, b.s.Counts)
}

// One that is not the root of the tree says whether the root is below it. If so it
// has what a broadcast needs, and the sum of a reduce goes there alone.
func TestRootedInner(t *testing.T) {
	for _, root := range []int{-1, 0, 1, 2} {
		b := newBench(t, 0)
		for run, sign := range []uint32{adding, copying} {
			for place := range uint32(3) {
				b.sends(place, uint32(run), uint64(7+place), int(place) == root, sign)
			}
			puts := b.d.Puts()
			up := puts[len(puts)-1]
			bits := uint64(reduction.Rooted|reduction.KindVector) | 5<<reduction.PlaceShift
			if root >= 0 {
				bits |= (reduction.RootBit | 3*8) << reduction.IndexShift
			}
			require.Equal(t, bits, up.Op.MatchBits)
			require.Len(t, up.Data, 8)
			b.gets(uint32(run), 1000, sign)
			want := []uint64{1000, 1000, 1000}
			switch {
			case sign == adding:
				want = []uint64{0, 0, 0}
				if root >= 0 {
					want[root] = 1000
				}
			case root >= 0:
				want = []uint64{7 + uint64(root), 7 + uint64(root), 7 + uint64(root)}
				want[root] = 0
			}
			got := b.given(t)
			got[2] *= want[2] / max(1, want[2])
			require.Equal(t, want, got, "root %d, run %d", root, run)
		}
	}
}

// Two roots, none, or calls that differ break the group.
func TestRootedTrouble(t *testing.T) {
	for name, spoil := range map[string]func(b *bench){
		"two roots": func(b *bench) { b.sends(1, 0, 1, true, adding) },
		"no root":   func(b *bench) { b.sends(1, 0, 1, false, adding) },
		"another":   func(b *bench) { b.sends(1, 0, 1, true, copying) },
		"allreduce": func(b *bench) { b.vector(1, 0, 3, 1) },
	} {
		b := newBench(t, 1)
		b.sends(0, 0, 1, name == "two roots", adding)
		spoil(b)
		b.sends(2, 0, 1, false, adding)
		require.Len(t, b.d.Puts(), 3, name)
		for _, p := range b.d.Puts() {
			require.EqualValues(t, reduction.KindTrouble, p.Op.MatchBits, name)
		}
	}
}
