package allreduce

import (
	"encoding/binary"
	"math"
)

// The sequential reference: what every rank must have, bit by bit, in the order
// of summation that package mpi promises.

// combined is a op b for vectors of elements.
func combined(a, b []byte, op, kind uint16) []byte {
	out := make([]byte, len(a))
	le := binary.LittleEndian
	for i := 0; i < len(a); i += int(Size(kind)) {
		switch kind {
		case Int32:
			le.PutUint32(out[i:], uint32(scalar(int32(le.Uint32(a[i:])), int32(le.Uint32(b[i:])), op)))
		case Int64:
			le.PutUint64(out[i:], uint64(scalar(int64(le.Uint64(a[i:])), int64(le.Uint64(b[i:])), op)))
		case Float32:
			x := scalar(math.Float32frombits(le.Uint32(a[i:])), math.Float32frombits(le.Uint32(b[i:])), op)
			if x != x {
				x = float32(math.NaN())
			}
			le.PutUint32(out[i:], math.Float32bits(x))
		case Float64:
			x := scalar(math.Float64frombits(le.Uint64(a[i:])), math.Float64frombits(le.Uint64(b[i:])), op)
			if x != x {
				x = math.NaN()
			}
			le.PutUint64(out[i:], math.Float64bits(x))
		}
	}
	return out
}

func scalar[T int32 | int64 | float32 | float64](a, b T, op uint16) T {
	switch op {
	case Sum:
		return a + b
	case Min:
		return min(a, b)
	}
	return max(a, b)
}

// halves adds the sum of the lower half to that of the upper half, and so on in
// each half. Of more than a power of two of summands the first are added in
// pairs.
func halves(v [][]byte, op, kind uint16) []byte {
	power := 1
	for 2*power <= len(v) {
		power *= 2
	}
	var w [][]byte
	rem := len(v) - power
	for i := range rem {
		w = append(w, combined(v[2*i], v[2*i+1], op, kind))
	}
	w = append(w, v[2*rem:]...)
	for len(w) > 1 {
		var next [][]byte
		for i := 0; i < len(w); i += 2 {
			next = append(next, combined(w[i], w[i+1], op, kind))
		}
		w = next
	}
	return w[0]
}

// inOrder adds one after the other.
func inOrder(v [][]byte, op, kind uint16) []byte {
	sum := v[0]
	for _, x := range v[1:] {
		sum = combined(sum, x, op, kind)
	}
	return sum
}

func reference(algorithm uint32, vectors [][]byte, block int, op, kind uint16) []byte {
	n := len(vectors)
	if n == 1 {
		return vectors[0]
	}
	switch algorithm {
	case Doubling:
		return halves(vectors, op, kind)
	case Boards:
		var boards [][]byte
		for i := 0; i < n; i += 4 {
			boards = append(boards, inOrder(vectors[i:i+4], op, kind))
		}
		return halves(boards, op, kind)
	}
	var out []byte
	for b := 0; b*block < len(vectors[0]); b++ {
		var pieces [][]byte
		for i := range n {
			pieces = append(pieces, vectors[(b+1+i)%n][b*block:min((b+1)*block, len(vectors[0]))])
		}
		out = append(out, inOrder(pieces, op, kind)...)
	}
	return out
}
