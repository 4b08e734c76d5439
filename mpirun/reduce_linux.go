package mpirun

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/runtime"
)

// Types and operations of link.h, from 1 on.
var (
	reductionTypes = []mpi.Type{mpi.Int32, mpi.Int64, mpi.Float32, mpi.Float64}
	reductionOps   = []*mpi.Op{mpi.Sum, mpi.Min, mpi.Max}
)

// reductions are what the ranks gave to their NICs, in the order of the calls, to
// check the results.
type reductions struct {
	calls map[int][][]byte // by number: the vectors of all ranks
	left  map[int]int      // ranks that have not compared
}

// reduce lets the NICs carry out the allreduce that the process calls, if they
// take it, and compares the result with what the host computes.
func (k *rank) reduce() error {
	one := k.reduction // a copy: the process cannot change it
	k.arg = 0
	k.refused++ // until it is done
	if one.kind == 0 || int(one.kind) > len(reductionTypes) || one.op == 0 || int(one.op) > len(reductionOps) {
		return nil
	}
	t, op := reductionTypes[one.kind-1], reductionOps[one.op-1]
	if one.count == 0 || one.count > maxMessage/uint64(t.Size()) {
		return nil // the library has an error for it, or another way
	}
	n := one.count * uint64(t.Size())
	receive, err := k.reached(one.receive, n)
	if err != nil {
		return err
	}
	a := mpi.Allreduce{Send: mpi.InPlace, Recv: receive, Type: t, Op: op}
	from := one.receive
	if one.send != 0 {
		if a.Send, err = k.reached(one.send, n); err != nil {
			return err
		}
		from = one.send
	}
	given := make([]byte, n)
	if err := k.read(from, given); err != nil {
		return err
	}
	number := k.reduced
	k.collected.give(number, int(k.rank), len(k.all), given)
	why, err := k.r.Allreduce(a)
	if err != nil || why != "" {
		k.collected.drop(number)
		return err
	}
	runtime.Settle(k.r.Proc())
	k.reduced++
	k.refused--
	k.arg = 1
	got := make([]byte, n)
	if err := k.read(one.receive, got); err != nil {
		return err
	}
	if err := k.collected.compare(number, got, t, op); err != nil {
		return fmt.Errorf("allreduce %d: %w", number, err)
	}
	k.collected.drop(number)
	return nil
}

// reached is memory of the process that the NIC uses.
func (k *rank) reached(addr, n uint64) (runtime.View, error) {
	v, err := k.memory.view(addr, n)
	if err == nil {
		_, err = k.memory.sync(v, true)
	}
	return v, err
}

func (r *reductions) give(number, rank, ranks int, vector []byte) {
	if r.calls[number] == nil {
		r.calls[number] = make([][]byte, ranks)
		r.left[number] = ranks
	}
	r.calls[number][rank] = vector
}

func (r *reductions) drop(number int) {
	if r.left[number]--; r.left[number] == 0 {
		delete(r.calls, number)
		delete(r.left, number)
	}
}

// compare compares a result with the vectors combined in the order of ranks. A
// sum of floats has another order in the NIC: then the difference may be a last
// bit for each rank, of the sum of magnitudes.
func (r *reductions) compare(number int, got []byte, t mpi.Type, op *mpi.Op) error {
	size := t.Size()
	for at := 0; at < len(got); at += size {
		var elements [][]byte
		for _, v := range r.calls[number] {
			if len(v) != len(got) {
				return fmt.Errorf("ranks give vectors of %d and %d B", len(v), len(got))
			}
			elements = append(elements, v[at:at+size])
		}
		if !agrees(got[at:at+size], elements, t, op) {
			return fmt.Errorf("element %d of %s of %s is %x, which the host computes otherwise", at/size, op, t, got[at:at+size])
		}
	}
	return nil
}

func agrees(got []byte, elements [][]byte, t mpi.Type, op *mpi.Op) bool {
	if t == mpi.Float32 || t == mpi.Float64 {
		return agreesFloat(got, elements, t, op)
	}
	want := whole(elements[0])
	for _, e := range elements[1:] {
		switch x := whole(e); op {
		case mpi.Sum:
			want += x
		case mpi.Min:
			want = min(want, x)
		default:
			want = max(want, x)
		}
	}
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(want))
	return bytes.Equal(got, b[:len(got)])
}

func whole(b []byte) int64 {
	if len(b) == 4 {
		return int64(int32(binary.LittleEndian.Uint32(b)))
	}
	return int64(binary.LittleEndian.Uint64(b))
}

func agreesFloat(got []byte, elements [][]byte, t mpi.Type, op *mpi.Op) bool {
	number := func(b []byte) float64 {
		if len(b) == 4 {
			return float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
		}
		return math.Float64frombits(binary.LittleEndian.Uint64(b))
	}
	last := 0x1p-52
	if t == mpi.Float32 {
		last = 0x1p-23
	}
	want, magnitudes := number(elements[0]), math.Abs(number(elements[0]))
	for _, e := range elements[1:] {
		switch x := number(e); op {
		case mpi.Sum:
			want += x
			magnitudes += math.Abs(x)
		case mpi.Min:
			want = min(want, x)
		default:
			want = max(want, x)
		}
	}
	is := number(got)
	if math.IsNaN(want) || math.IsInf(want, 0) || math.IsInf(magnitudes, 0) {
		return math.IsNaN(is) || math.IsInf(is, 0)
	}
	if op != mpi.Sum {
		return is == want
	}
	return math.Abs(is-want) <= magnitudes*last*float64(len(elements))
}
