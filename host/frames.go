package host

import (
	"errors"
	"fmt"
)

// frame is the number of a page of physical memory: its address is that times 4
// KiB. Frame 0 is the page of zeros that all absent pages of anonymous memory
// that were only read share.
type frame uint32

const zeroFrame frame = 0

// physical is the memory of a node, page by page. What nobody has used yet costs nothing.
type physical struct {
	blocks  []block // of 2 MiB, those that were ever used
	total   int     // pages
	free    int
	partial []int32 // blocks with some pages free
	empty   []int32 // blocks with all pages free
}

// block is 2 MiB of physical memory.
type block struct {
	pages *[hugePages]page
	free  int32
	head  int32 // first free page, -1: none; the rest by page.next
	place int32 // in partial, -1: not there
}

// page is what the kernel knows about a frame (struct page). The zero value is a free one.
type page struct {
	used    bool
	inHand  bool  // a thread has it in hand: it is not mapped yet, or no longer
	dirty   bool  // its content is nowhere else
	locked  bool  // it is under way to storage or from there
	filled  bool  // of a file: it has its content
	read    bool  // of a file: File.Read has been at it since reclaim last looked
	list    uint8 // of reclaim: onInactive, onActive
	held    int32 // whoever is about to use it, so that it stays
	pins    int32 // get_user_pages
	home    int32 // in maps: whose backing has the bytes of an anonymous page
	next    int32 // in the list, or among the free ones of the block
	prev    frame // in the list
	slot    frame // where storage has the same bytes
	index   uint32
	file    *File // whose page it is, at index; nil: anonymous
	maps    []place
	room    [1]place // for the first of maps
	waiters []*Thread
}

// place is where a page is mapped.
type place struct {
	p  *Process
	va uint64
}

func (m *physical) init(pages int) {
	m.total, m.free = pages, pages
	m.take() // the page of zeros: nobody else gets frame 0
}

// page returns what is known about a frame that was given out.
func (m *physical) page(f frame) *page { return &m.blocks[f/hugePages].pages[f%hugePages] }

// block returns an empty block, -1 if there is none.
func (m *physical) block() int32 {
	if n := len(m.empty); n > 0 {
		b := m.empty[n-1]
		m.empty = m.empty[:n-1]
		return b
	}
	if len(m.blocks) >= m.total/hugePages {
		return -1
	}
	m.blocks = append(m.blocks, block{pages: new([hugePages]page), place: -1})
	b := &m.blocks[len(m.blocks)-1]
	m.clear(b)
	return int32(len(m.blocks) - 1)
}

// clear makes all pages of a block free, lowest first.
func (m *physical) clear(b *block) {
	b.free, b.head = hugePages, 0
	for i := range b.pages {
		b.pages[i].next = int32(i) + 1
	}
	b.pages[hugePages-1].next = -1
}

// take gives out a frame, of which at least one is free.
func (m *physical) take() frame {
	if len(m.partial) == 0 {
		b := m.block()
		m.blocks[b].place = int32(len(m.partial))
		m.partial = append(m.partial, b)
	}
	n := m.partial[len(m.partial)-1]
	b := &m.blocks[n]
	i := b.head
	if b.pages[i].used {
		panic("host: a page is given out twice") // a mistake of the kernel's
	}
	b.head = b.pages[i].next
	b.free--
	m.free--
	if b.free == 0 {
		m.partial = m.partial[:len(m.partial)-1]
		b.place = -1
	}
	b.pages[i].used = true
	return frame(n)*hugePages + frame(i)
}

// takeHuge gives out the 512 frames of a block, the first of which it returns;
// false: there is no empty one.
func (m *physical) takeHuge() (f frame, ok bool) {
	n := m.block()
	if n < 0 {
		return 0, false
	}
	b := &m.blocks[n]
	for i := range b.pages {
		b.pages[i].used = true
	}
	b.free, b.head = 0, -1
	m.free -= hugePages
	return frame(n) * hugePages, true
}

// give takes a frame back. One that somebody still uses is a mistake of the kernel's, and panics.
func (m *physical) give(f frame) {
	g := m.page(f)
	if !g.used || g.pins != 0 || g.held != 0 || g.file != nil || g.list != onNone || len(g.maps) != 0 || len(g.waiters) != 0 {
		panic(fmt.Sprintf("host: frame %d is freed in use: %+v", f, *g))
	}
	n := int32(f / hugePages)
	b := &m.blocks[n]
	*g = page{next: b.head}
	b.head = int32(f % hugePages)
	b.free++
	m.free++
	switch b.free {
	case 1:
		b.place = int32(len(m.partial))
		m.partial = append(m.partial, n)
	case hugePages:
		last := len(m.partial) - 1
		moved := m.partial[last]
		m.partial[b.place] = moved
		m.blocks[moved].place = b.place
		m.partial = m.partial[:last]
		b.place = -1
		m.clear(b)
		m.empty = append(m.empty, n)
	}
}

// add notes that a page is mapped at a place.
func (g *page) add(p *Process, va uint64) {
	if g.maps == nil {
		g.maps = g.room[:0]
	}
	g.maps = append(g.maps, place{p, va})
}

// find is where in maps a place is.
func (g *page) find(p *Process, va uint64) int {
	for i := range g.maps {
		if g.maps[i] == (place{p, va}) {
			return i
		}
	}
	panic("host: a page is not where its table says") // a mistake of the kernel's
}

// wake lets whoever waits for the page look again.
func (g *page) wake() {
	for _, t := range g.waiters {
		t.Wake()
	}
	clear(g.waiters)
	g.waiters = g.waiters[:0]
}

// wait waits until the page has changed, or perhaps nothing has. Before the
// program begins nobody can.
func (g *page) wait(t *Thread, what string) error {
	if t == nil {
		return fmt.Errorf("%s: %w", what, errBusy)
	}
	g.waiters = append(g.waiters, t)
	t.Wait(what)
	return nil
}

var errBusy = errors.New("memory that is being set up is under way to storage or elsewhere")
