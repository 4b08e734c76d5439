package mpi

import "github.com/spinsim/spinsim/runtime"

// In these calls counts and places have one number for each rank. Counts are in
// elements and places in extents of the type (MPI's counts and displacements).
// Places may be nil if the blocks follow each other. The field Count of such
// elements must be 0.

// ScattervTyped is Scatterv for elements of datatypes. At the root recv may be
// InPlaceTyped. At other ranks send, counts and places are ignored.
func (c *Comm) ScattervTyped(send Typed, counts, places []int, recv Typed, root int) error {
	return blocking(c.scattervTyped(send, counts, places, recv, root))
}

// IscattervTyped starts ScattervTyped.
func (c *Comm) IscattervTyped(send Typed, counts, places []int, recv Typed, root int) (*Request, error) {
	return started(c.scattervTyped(send, counts, places, recv, root))
}

func (c *Comm) scattervTyped(send Typed, counts, places []int, recv Typed, root int) (*schedule, error) {
	out, in, err := c.rootedBlocks(callScatterv, root, send, counts, places, recv, true)
	if err != nil {
		return nil, err
	}
	s := c.begin(call{kind: callScatterv, root: root, bytes: -1})
	to := s.optional(in)
	if out == nil {
		s.scatterv(vector{}, to, root)
	} else {
		from := s.streams(out)
		s.pack(out, s.skipped(in))
		s.scatterv(from, to, root)
	}
	if in != nil {
		s.unpack(in, noBlock)
	}
	return s, nil
}

// rootedBlocks checks a call in which the root has a block of its own length
// for each rank, and each rank has one block.
func (c *Comm) rootedBlocks(k callKind, root int, many Typed, counts, places []int, few Typed, scatters bool) (whole, part *side, err error) {
	if err := c.owned(k, root); err != nil {
		return nil, nil, err
	}
	if c.rank == root {
		if whole, err = c.blocksOf(k, many, counts, places, !scatters); err != nil {
			return nil, nil, err
		}
	}
	if c.rank != root || !few.inPlace() {
		if part, err = c.blocksAlike(k, few, 1, scatters); err != nil {
			return nil, nil, err
		}
	}
	if whole != nil && part != nil {
		err = c.agree(k, many.Type.Signature(counts[root]), part.types)
	}
	return whole, part, err
}

// GathervTyped is Gatherv for elements of datatypes. At the root send may be
// InPlaceTyped. At other ranks recv, counts and places are ignored.
func (c *Comm) GathervTyped(send, recv Typed, counts, places []int, root int) error {
	return blocking(c.gathervTyped(send, recv, counts, places, root))
}

// IgathervTyped starts GathervTyped.
func (c *Comm) IgathervTyped(send, recv Typed, counts, places []int, root int) (*Request, error) {
	return started(c.gathervTyped(send, recv, counts, places, root))
}

func (c *Comm) gathervTyped(send, recv Typed, counts, places []int, root int) (*schedule, error) {
	in, out, err := c.rootedBlocks(callGatherv, root, recv, counts, places, send, false)
	if err != nil {
		return nil, err
	}
	s := c.begin(call{kind: callGatherv, root: root, bytes: -1})
	from := s.optional(out)
	if out != nil {
		s.pack(out, noBlock)
	}
	if in == nil {
		s.gatherv(from, vector{}, root)
		return s, nil
	}
	s.gatherv(from, s.streams(in), root)
	s.unpack(in, s.skipped(out))
	return s, nil
}

// AllgathervTyped is GathervTyped with the result at every rank. All ranks must
// agree on the number of basic elements in each block. send may be
// InPlaceTyped.
func (c *Comm) AllgathervTyped(send, recv Typed, counts, places []int) error {
	return blocking(c.allgathervTyped(send, recv, counts, places))
}

// IallgathervTyped starts AllgathervTyped.
func (c *Comm) IallgathervTyped(send, recv Typed, counts, places []int) (*Request, error) {
	return started(c.allgathervTyped(send, recv, counts, places))
}

func (c *Comm) allgathervTyped(send, recv Typed, counts, places []int) (*schedule, error) {
	if err := c.owned(callAllgatherv, noRoot); err != nil {
		return nil, err
	}
	in, err := c.blocksOf(callAllgatherv, recv, counts, places, true)
	if err != nil {
		return nil, err
	}
	var out *side
	if !send.inPlace() {
		if out, err = c.blocksAlike(callAllgatherv, send, 1, false); err == nil {
			err = c.agree(callAllgatherv, out.types, recv.Type.Signature(counts[c.rank]))
		}
		if err != nil {
			return nil, err
		}
	}
	s := c.begin(call{kind: callAllgatherv, root: noRoot, bytes: in.bytes(), types: plain(in.types)})
	from, to := s.optional(out), s.stream(in)
	s.own(out, in)
	lengths := make([]int, c.Size())
	for i, t := range in.each {
		lengths[i] = t.size
	}
	s.allgatherv(from, to, lengths, in.bounds[:c.Size()])
	s.unpack(in, s.skipped(out))
	return s, nil
}

// AlltoallvTyped is Alltoallv for elements of datatypes. send may be
// InPlaceTyped: then counts and places are ignored.
func (c *Comm) AlltoallvTyped(send Typed, counts, places []int, recv Typed, recvCounts, recvPlaces []int) error {
	return blocking(c.alltoallvTyped(send, counts, places, recv, recvCounts, recvPlaces))
}

// IalltoallvTyped starts AlltoallvTyped.
func (c *Comm) IalltoallvTyped(send Typed, counts, places []int, recv Typed, recvCounts, recvPlaces []int) (*Request, error) {
	return started(c.alltoallvTyped(send, counts, places, recv, recvCounts, recvPlaces))
}

func (c *Comm) alltoallvTyped(send Typed, counts, places []int, recv Typed, recvCounts, recvPlaces []int) (*schedule, error) {
	if err := c.owned(callAlltoallv, noRoot); err != nil {
		return nil, err
	}
	in, err := c.blocksOf(callAlltoallv, recv, recvCounts, recvPlaces, true)
	if err != nil {
		return nil, err
	}
	var out *side
	if !send.inPlace() {
		if out, err = c.blocksOf(callAlltoallv, send, counts, places, false); err == nil {
			err = c.agree(callAlltoallv, send.Type.Signature(counts[c.rank]), recv.Type.Signature(recvCounts[c.rank]))
		}
		if err != nil {
			return nil, err
		}
	}
	return c.exchangeBlocks(callAlltoallv, out, in), nil
}

// Alltoallw sends elements to each rank and receives elements from each
// (MPI_Alltoallw). Each of these has its own memory, number and type. If send
// is nil, the data to send lies where the received data will go.
func (c *Comm) Alltoallw(send, recv []Typed) error { return blocking(c.alltoallw(send, recv)) }

// Ialltoallw starts Alltoallw.
func (c *Comm) Ialltoallw(send, recv []Typed) (*Request, error) {
	return started(c.alltoallw(send, recv))
}

func (c *Comm) alltoallw(send, recv []Typed) (*schedule, error) {
	if err := c.owned(callAlltoallw, noRoot); err != nil {
		return nil, err
	}
	in, err := c.various(callAlltoallw, recv, true)
	if err != nil {
		return nil, err
	}
	var out *side
	if send != nil {
		if out, err = c.various(callAlltoallw, send, false); err == nil {
			mine, theirs := send[c.rank], recv[c.rank]
			err = c.agree(callAlltoallw, mine.Type.Signature(mine.Count), theirs.Type.Signature(theirs.Count))
		}
		if err != nil {
			return nil, err
		}
	}
	return c.exchangeBlocks(callAlltoallw, out, in), nil
}

// exchangeBlocks sends the blocks of out, or of in if out is nil, and receives
// the blocks of in.
func (c *Comm) exchangeBlocks(k callKind, out, in *side) *schedule {
	s := c.begin(call{kind: k, root: noRoot, bytes: -1})
	to := s.streams(in)
	if out == nil {
		s.pack(in, c.rank)
		s.replacingAlltoall(to)
	} else {
		from := s.streams(out)
		s.pack(out, noBlock)
		s.scatteredAlltoall(from, to)
	}
	s.unpack(in, s.skipped(out))
	return s
}

// scatterv makes the root send each rank its block. blocks counts only at the
// root.
func (s *schedule) scatterv(blocks vector, recv runtime.View, root int) {
	me := s.comm.rank
	if me != root {
		if recv.Len() > 0 {
			s.receive(recv, root)
		}
		return
	}
	for i, n := range blocks.counts {
		if i != root && n > 0 {
			s.send(blocks.block(i), i)
		}
	}
	if recv.Proc() != nil {
		s.copy(recv, blocks.block(root))
	}
}

// gatherv makes every rank send to the root, synchronously if there are many
// ranks. blocks counts only at the root.
func (s *schedule) gatherv(send runtime.View, blocks vector, root int) {
	c := s.comm
	if c.rank != root {
		if send.Len() > 0 {
			s.send(send, root)
			s.steps[len(s.steps)-1].sync = c.Size() >= gathervSsend
		}
		return
	}
	for i, n := range blocks.counts {
		if i != root && n > 0 {
			s.receive(blocks.block(i), i)
		}
	}
	if send.Proc() != nil {
		s.copy(blocks.block(root), send)
	}
}
