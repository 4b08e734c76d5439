package hpu

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/spinsim/spinsim/internal/lazy"
)

// residents are the memories of an image's programs, of which all but some are
// in store: a program whose handlers are not executing keeps only the words in
// which its memory differs from the image, the memory that initialisation
// leaves behind. Another program then gets the memory itself, whose pages the
// system has backed already.
//
// Where the system does not tell which pages are backed, for a program that
// writes much, and for one that often needs its memory again, memories stay.
type residents struct {
	image  [][]byte   // by page; nil: zeros
	arena  *arena     // nil: memories stay
	leaves func()     // is called when a memory is taken from a program
	seats  []*Program // who have a memory and may lose it
	hand   int        // the seat that is looked at next
	pages  []int      // buffer
	words  []byte     // buffer
}

const (
	wordBytes = 8
	lineBytes = 64
	// busySeats is how many programs are looked at for one that may lose its
	// memory: one whose handler is not executing. Then there is one memory more.
	busySeats = 8
	// stays is the part of its pages that a program has written if its memory
	// is not worth to be stored: one in stays.
	stays = 4
)

// often is how many times a program loses its memory: storing costs as much as a
// short handler, so a program that has always something to do keeps it. Tests
// change it.
var often = uint8(4)

var noWords [pageBytes]byte

// init takes mem, as initialisation leaves it, for the image.
func (r *residents) init(mem []byte, a *arena, leaves func()) {
	pages, known := touched(mem, nil)
	r.image = make([][]byte, len(mem)/pageBytes)
	for _, i := range pages {
		if page := mem[i*pageBytes:][:pageBytes]; !bytes.Equal(page, noWords[:]) {
			r.image[i] = bytes.Clone(page)
		}
	}
	if r.leaves = leaves; known {
		r.arena = a
	}
}

// page returns page i of the image.
func (r *residents) page(i int) []byte {
	if b := r.image[i]; b != nil {
		return b
	}
	return noWords[:]
}

// take returns a memory that is the image's: of another program, or a new one.
func (r *residents) take(a *arena) ([]byte, error) {
	for tries := 0; r.arena != nil && len(r.seats) >= max(1, lazy.Many) && tries < busySeats; tries++ {
		r.hand = (r.hand + 1) % len(r.seats)
		if p := r.seats[r.hand]; p.running == nil {
			if mem := r.evict(p); mem != nil {
				return mem, nil
			}
		}
	}
	mem, err := a.take(len(r.image) * pageBytes)
	if err != nil {
		return nil, err
	}
	for i, page := range r.image {
		copy(mem[i*pageBytes:], page)
	}
	return mem, nil
}

// evict stores the memory of a program and returns it, with the contents of the
// image. It returns nil if the memory stays.
func (r *residents) evict(p *Program) []byte {
	r.remove(p)
	if p.stored == often {
		return nil
	}
	var known bool
	if r.pages, known = touched(p.mem, r.pages[:0]); !known {
		return nil
	}
	r.words = r.words[:0]
	end := 0
	for _, i := range r.pages {
		r.words, end = differing(r.words, p.mem[i*pageBytes:][:pageBytes], r.page(i), i*pageBytes, end)
	}
	if len(r.words) > len(r.pages)*pageBytes/stays {
		return nil
	}
	mem := p.mem
	for at, words := range runs(r.words) {
		copy(mem[at:][:len(words)], r.page(at / pageBytes)[at%pageBytes:])
	}
	if cap(p.store) < len(r.words) {
		p.store = make([]byte, 0, len(r.words))
	}
	p.mem, p.store = nil, append(p.store[:0], r.words...)
	p.stored++
	r.leaves()
	return mem
}

// differing appends the runs of words in which mem differs from image, both a
// page at address at: the number of words between the run and the end of the
// last one, the number of its words, and these. It returns the address behind
// the last run.
func differing(b, mem, image []byte, at, end int) (runs []byte, last int) {
	for line := 0; line < pageBytes; line += lineBytes {
		if [lineBytes]byte(mem[line:]) == [lineBytes]byte(image[line:]) {
			continue
		}
		for i := line; i < line+lineBytes; {
			from := i
			for i < pageBytes && [wordBytes]byte(mem[i:]) != [wordBytes]byte(image[i:]) {
				i += wordBytes
			}
			if i == from {
				i += wordBytes
				continue
			}
			b = binary.AppendUvarint(b, uint64(at+from-end)/wordBytes)
			b = binary.AppendUvarint(b, uint64(i-from)/wordBytes)
			b, end = append(b, mem[from:i]...), at+i
			line = max(line, (i-1)/lineBytes*lineBytes)
		}
	}
	return b, end
}

// runs are the runs of differing, with their addresses.
func runs(b []byte) func(yield func(at int, words []byte) bool) {
	return func(yield func(at int, words []byte) bool) {
		for at := 0; len(b) > 0; {
			gap, n := binary.Uvarint(b)
			words, k := binary.Uvarint(b[n:])
			at += int(gap) * wordBytes
			size := int(words) * wordBytes
			b = b[n+k:]
			if !yield(at, b[:size]) {
				return
			}
			at, b = at+size, b[size:]
		}
	}
}

// admit gives a program its memory back.
func (p *Program) admit() {
	if p.closed {
		return
	}
	r := &p.image.residents
	mem, err := r.take(r.arena)
	if err != nil {
		panic(fmt.Sprintf("hpu: program %s of module %s: %v", p.owner, p.module.name, err)) //lint:panic the machine is out of memory
	}
	for at, words := range runs(p.store) {
		copy(mem[at:], words)
	}
	p.mem = mem
	r.add(p)
}

// add notes that a program has a memory, which it may lose.
func (r *residents) add(p *Program) {
	if r.arena != nil {
		r.seats = append(r.seats, p)
		p.seat = int32(len(r.seats))
	}
}

// remove lets a program keep its memory.
func (r *residents) remove(p *Program) {
	if p.seat == 0 {
		return
	}
	last := len(r.seats) - 1
	r.seats[p.seat-1] = r.seats[last]
	r.seats[p.seat-1].seat = p.seat
	r.seats[last] = nil
	r.seats, p.seat = r.seats[:last], 0
}
