package mpi

import (
	"cmp"

	"github.com/spinsim/spinsim/runtime"
)

// Allgather is Gather with the result at every rank.
func (c *Comm) Allgather(send, recv runtime.View) error { return blocking(c.allgather(send, recv)) }

// Iallgather starts Allgather.
func (c *Comm) Iallgather(send, recv runtime.View) (*Request, error) {
	return started(c.allgather(send, recv))
}

func (c *Comm) allgather(send, recv runtime.View) (*schedule, error) {
	if err := cmp.Or(c.owned(callAllgather, noRoot, send, recv), c.need(callAllgather, recv)); err != nil {
		return nil, err
	}
	n := send.Len()
	if send.Proc() == nil {
		n = recv.Len() / c.Size()
	}
	if recv.Len() != n*c.Size() {
		return nil, c.wrong(callAllgather, "%d B for the result, expected %d blocks of %d B", recv.Len(), c.Size(), n)
	}
	s := c.begin(call{kind: callAllgather, root: noRoot, bytes: n})
	s.allgather(send, recv, n)
	return s, nil
}

// Allgatherv is Allgather with a length and a place in recv for each block. All
// ranks must pass the same ones. places may be nil if the blocks follow each
// other.
func (c *Comm) Allgatherv(send, recv runtime.View, counts, places []int) error {
	return blocking(c.allgatherv(send, recv, counts, places))
}

// Iallgatherv starts Allgatherv.
func (c *Comm) Iallgatherv(send, recv runtime.View, counts, places []int) (*Request, error) {
	return started(c.allgatherv(send, recv, counts, places))
}

func (c *Comm) allgatherv(send, recv runtime.View, counts, places []int) (*schedule, error) {
	if err := cmp.Or(c.owned(callAllgatherv, noRoot, send, recv), c.need(callAllgatherv, recv)); err != nil {
		return nil, err
	}
	b, err := c.layout(callAllgatherv, recv, counts, places)
	if err != nil {
		return nil, err
	}
	if send.Proc() != nil && send.Len() != counts[c.rank] {
		return nil, c.wrong(callAllgatherv, "%d B to send, expected %d B", send.Len(), counts[c.rank])
	}
	total := 0
	for _, n := range counts {
		total += n
	}
	s := c.begin(call{kind: callAllgatherv, root: noRoot, bytes: total})
	s.allgatherv(send, recv, counts, b.places)
	return s, nil
}

// Alltoall sends block j of each rank's send to rank j. All blocks have the
// same length; send and recv hold one for each rank. send may be InPlace.
func (c *Comm) Alltoall(send, recv runtime.View) error { return blocking(c.alltoall(send, recv)) }

// Ialltoall starts Alltoall.
func (c *Comm) Ialltoall(send, recv runtime.View) (*Request, error) {
	return started(c.alltoall(send, recv))
}

func (c *Comm) alltoall(send, recv runtime.View) (*schedule, error) {
	if err := cmp.Or(c.owned(callAlltoall, noRoot, send, recv), c.need(callAlltoall, recv)); err != nil {
		return nil, err
	}
	n := recv.Len() / c.Size()
	if recv.Len() != n*c.Size() || send.Proc() != nil && send.Len() != recv.Len() {
		return nil, c.wrong(callAlltoall, "%d B to send and %d B for the result, expected %d blocks of the same length in both", send.Len(), recv.Len(), c.Size())
	}
	s := c.begin(call{kind: callAlltoall, root: noRoot, bytes: n})
	s.alltoall(send, recv, n)
	return s, nil
}

// Alltoallv is Alltoall with a length and a place for each block. places and
// recvPlaces may be nil if the blocks follow each other. A rank must send
// another exactly as many bytes as the other expects from it. send may be
// InPlace: then the lengths in recvCounts count for both directions.
func (c *Comm) Alltoallv(send runtime.View, counts, places []int, recv runtime.View, recvCounts, recvPlaces []int) error {
	return blocking(c.alltoallv(send, counts, places, recv, recvCounts, recvPlaces))
}

// Ialltoallv starts Alltoallv.
func (c *Comm) Ialltoallv(send runtime.View, counts, places []int, recv runtime.View, recvCounts, recvPlaces []int) (*Request, error) {
	return started(c.alltoallv(send, counts, places, recv, recvCounts, recvPlaces))
}

func (c *Comm) alltoallv(send runtime.View, counts, places []int, recv runtime.View, recvCounts, recvPlaces []int) (*schedule, error) {
	if err := cmp.Or(c.owned(callAlltoallv, noRoot, send, recv), c.need(callAlltoallv, recv)); err != nil {
		return nil, err
	}
	in, err := c.layout(callAlltoallv, recv, recvCounts, recvPlaces)
	if err != nil {
		return nil, err
	}
	what := call{kind: callAlltoallv, root: noRoot, bytes: -1}
	if send.Proc() == nil {
		s := c.begin(what)
		s.replacingAlltoall(in)
		return s, nil
	}
	out, err := c.layout(callAlltoallv, send, counts, places)
	if err != nil {
		return nil, err
	}
	if counts[c.rank] != recvCounts[c.rank] {
		return nil, c.wrong(callAlltoallv, "%d B to send to the rank itself and %d B to receive", counts[c.rank], recvCounts[c.rank])
	}
	s := c.begin(what)
	s.scatteredAlltoall(out, in)
	return s, nil
}
