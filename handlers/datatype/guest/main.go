// Unpacks messages into memory that is not in one piece, and packs them out of
// it: MPI datatypes (sPIN'17 §5.2, SC'19).
//
//spin:library datatype 1.0
//spin:needs spaces=entry entry_options=op_put
package main

import (
	"unsafe"

	"github.com/spinsim/spinsim/handlers/datatype"
	"github.com/spinsim/spinsim/spin"
)

// unpack writes each run of a packet to its place.
//
//go:wasmexport unpack
func unpack(p *spin.Payload, s *datatype.State) spin.Code {
	if p.Length == 0 {
		return spin.Success
	}
	base := p.HostOffset - p.Offset + uint64(s.Origin)
	if s.Pieces != 0 {
		p.Offset, base = p.HostOffset, uint64(s.Origin)
	}
	if p.Offset > s.Size || uint64(p.Length) > s.Size-p.Offset {
		return spin.Fail
	}
	s.Packets++
	if s.Strategy == datatype.Vector {
		return vector(p, s, base)
	}
	var c datatype.Cursor
	t := tree(s)
	switch s.Strategy {
	case datatype.ReadOnly:
		i := p.Offset / uint64(s.Interval)
		c.Load(behind(s, uint64(s.Checkpoints)+i*uint64(datatype.HeadSize+s.Depth*datatype.FrameSize)))
		c.Skip(t, p.Offset-i*uint64(s.Interval))
	case datatype.Progressing:
		slot := slotOf(s, p.Offset)
		if spin.CAS(&slot.Position, p.Offset+1, 0) {
			c.Load(unsafe.Pointer(&slot.Cursor))
		} else {
			s.Seeks++
			c.Seek(t, s.Root, p.Offset)
		}
	default:
		s.Seeks++
		c.Seek(t, s.Root, p.Offset)
	}
	code := runs(p, s, t, &c, base)
	if end := p.Offset + uint64(p.Length); s.Strategy == datatype.Progressing && end < s.Size {
		slot := slotOf(s, end)
		c.Save(unsafe.Pointer(&slot.Cursor))
		slot.Position = end + 1
	}
	return code
}

func behind(s *datatype.State, at uint64) unsafe.Pointer {
	return unsafe.Add(unsafe.Pointer(s), unsafe.Sizeof(*s)+uintptr(at))
}

func tree(s *datatype.State) datatype.Tree { return datatype.TreeAt(behind(s, 0)) }

// slotOf returns the slot with the state that the previous packet has left for
// the packet at a byte of the stream.
func slotOf(s *datatype.State, offset uint64) *datatype.Slot {
	i := offset / uint64(s.Interval) % datatype.Slots
	return (*datatype.Slot)(behind(s, uint64(s.Checkpoints)+i*datatype.SlotSize))
}

// runs writes a packet, from the cursor's place on, and moves the cursor behind
// it.
func runs(p *spin.Payload, s *datatype.State, t datatype.Tree, c *datatype.Cursor, base uint64) spin.Code {
	bytes := p.Bytes()
	written := uint64(0)
	for {
		n := uint64(len(bytes))
		if n > c.Left {
			n = c.Left
		}
		written++
		if spin.DMAToHost(spin.MEHostMem, base+uint64(c.Place), bytes[:n]).Failed() {
			return spin.Fail
		}
		c.Place += int64(n)
		c.Left -= n
		if bytes = bytes[n:]; len(bytes) == 0 {
			break
		}
		// Most runs are in an innermost loop: complete ones, one after the
		// other.
		if size, stride, more := c.Whole(t); more > 0 {
			if whole := uint64(len(bytes)) / size; more > whole {
				more = whole
			}
			place := base + uint64(c.Place) - size + uint64(stride)
			for range more {
				if spin.DMAToHost(spin.MEHostMem, place, bytes[:size]).Failed() {
					return spin.Fail
				}
				place += uint64(stride)
				bytes = bytes[size:]
			}
			c.Pass(more, stride)
			if written += more; len(bytes) == 0 {
				break
			}
		} else if e, place, more := c.Table(t); more > 0 { // or in a table
			passed := uint64(0)
			for end := e.End; passed < more; passed++ {
				e = e.After()
				size := e.End - end
				if size > uint64(len(bytes)) {
					break
				}
				if spin.DMAToHost(spin.MEHostMem, base+uint64(place+e.Place), bytes[:size]).Failed() {
					return spin.Fail
				}
				bytes, end = bytes[size:], e.End
			}
			c.PassEntries(passed)
			if written += passed; len(bytes) == 0 {
				break
			}
		}
		c.Next(t)
	}
	s.Runs += written
	if c.Left == 0 && p.Offset+uint64(p.Length) < s.Size {
		c.Next(t) // the saved state begins with bytes
	}
	return spin.Success
}

// vector is runs for equal blocks at equal distances.
func vector(p *spin.Payload, s *datatype.State, base uint64) spin.Code {
	block, stride := s.Block, uint64(s.Stride)
	i := p.Offset / block
	within := p.Offset - i*block
	place := base + i*stride
	bytes := p.Bytes()
	written := uint64(0)
	for len(bytes) > 0 {
		n := block - within
		if n > uint64(len(bytes)) {
			n = uint64(len(bytes))
		}
		written++
		if spin.DMAToHost(spin.MEHostMem, place+within, bytes[:n]).Failed() {
			return spin.Fail
		}
		bytes, within = bytes[n:], 0
		place += stride
	}
	s.Runs += written
	return spin.Success
}

func main() {}
