package mpirun

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

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

// collectively lets the NICs begin the collective that the process calls, if they
// take it. Meanwhile the process looks for completions: peers may need what it does
// then.
func (k *rank) collectively() error {
	one := k.collective // a copy: the process cannot change it
	k.arg = 0
	if k.result.call != 0 {
		return k.spoiled("a collective in a collective")
	}
	k.refused++ // until it has begun
	o, given, err := one.operation(k)
	if o == nil || err != nil {
		return err
	}
	q, why, err := k.r.Collective(o)
	if err != nil || why != "" {
		return err
	}
	q.User = collecting
	k.collected.give(k.reduced, int(k.rank), len(k.all), given)
	k.result, k.taking, k.arg = one, 1, 1
	k.refused--
	return nil
}

// operation returns what the process calls, and what the rank gives. nil: the
// library has an error for it, or another way.
func (one *collective) operation(k *rank) (o mpi.Operation, given []byte, err error) {
	root := int(one.root)
	switch one.call {
	case callBarrier:
		return mpi.Barrier{}, []byte{}, nil
	case callBcast:
		if one.count == 0 || one.count > maxMessage {
			return nil, nil, nil
		}
		v, err := k.reached(one.receive, one.count)
		if err == nil && int(k.rank) == root {
			given = make([]byte, one.count)
			err = k.read(one.receive, given)
		}
		return mpi.Bcast{Data: mpi.Data{Memory: v}, Root: root}, given, err
	}
	if one.kind == 0 || int(one.kind) > len(reductionTypes) || one.op == 0 || int(one.op) > len(reductionOps) {
		return nil, nil, nil
	}
	t, op := reductionTypes[one.kind-1], reductionOps[one.op-1]
	n, gets := one.count*uint64(t.Size()), one.call == callAllreduce || int(k.rank) == root
	apart := max(one.send, one.receive)-min(one.send, one.receive) >= n
	if one.count == 0 || one.count > maxMessage/uint64(t.Size()) || one.send != 0 && gets && !apart {
		return nil, nil, nil
	}
	send, receive, from := mpi.InPlace, mpi.InPlace, one.send
	if gets {
		if receive, err = k.reached(one.receive, n); err != nil {
			return nil, nil, err
		}
	}
	if one.send == 0 {
		from = one.receive
	} else if send, err = k.reached(one.send, n); err != nil {
		return nil, nil, err
	}
	given = make([]byte, n)
	if err := k.read(from, given); err != nil {
		return nil, nil, err
	}
	if one.call == callReduce {
		return mpi.Reduce{Send: mpi.Data{Memory: send}, Recv: mpi.Data{Memory: receive}, Type: t, Op: op, Root: root}, given, nil
	}
	return mpi.Allreduce{Send: send, Recv: receive, Type: t, Op: op}, given, nil
}

// collecting is the number of no flight, but of a collective.
const collecting = -1

// combined ends the collective, and compares the result with what the host computes.
func (k *rank) combined() error {
	one, number := k.result, k.reduced
	runtime.Settle(k.r.Proc())
	k.reduced++
	k.result, k.taking = collective{}, 0
	if err := one.compare(k, number); err != nil {
		return fmt.Errorf("rank %d: collective %d: %w", k.rank, number, err)
	}
	k.collected.drop(number)
	return nil
}

func (one *collective) compare(k *rank, number int) error {
	switch {
	case one.call == callBarrier:
		if given := k.collected.calls[number]; slices.ContainsFunc(given, func(b []byte) bool { return b == nil }) {
			return errors.New("the barrier has let a rank go before all had come")
		}
		return nil
	case one.call == callReduce && k.rank != one.root:
		return nil
	case one.call == callBcast:
		got := make([]byte, one.count)
		if err := k.read(one.receive, got); err != nil {
			return err
		}
		if !bytes.Equal(got, k.collected.calls[number][one.root]) {
			return fmt.Errorf("%d B of a broadcast are not those of rank %d", len(got), one.root)
		}
		return nil
	}
	t, op := reductionTypes[one.kind-1], reductionOps[one.op-1]
	got := make([]byte, one.count*uint64(t.Size()))
	if err := k.read(one.receive, got); err != nil {
		return err
	}
	return k.collected.compare(number, got, t, op)
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
	const scale = 0x1p-64 // of sums, which may have more than the largest number
	last, most := 0x1p-52, scale*math.MaxFloat64
	if t == mpi.Float32 {
		last, most = 0x1p-23, scale*math.MaxFloat32
	}
	want, sum, magnitudes := number(elements[0]), 0.0, 0.0
	for i, e := range elements {
		x := number(e)
		sum, magnitudes = sum+scale*x, magnitudes+math.Abs(scale*x)
		switch {
		case i == 0:
		case op == mpi.Sum:
			want += x
		case op == mpi.Min:
			want = min(want, x)
		default:
			want = max(want, x)
		}
	}
	is := number(got)
	switch {
	case op != mpi.Sum || math.IsInf(magnitudes, 0) || math.IsNaN(magnitudes):
		return is == want || math.IsNaN(is) && math.IsNaN(want)
	case magnitudes < most:
		return math.Abs(is-want) <= magnitudes/scale*last*float64(len(elements))
	case math.IsInf(is, 0) || math.IsNaN(is): // partial sums may have been too large
		return true
	}
	return math.Abs(scale*is-sum) <= magnitudes*last*float64(len(elements))
}
