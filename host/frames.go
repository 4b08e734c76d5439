package host

import (
	"errors"
	"fmt"
)

// frame is the number of a page of physical memory: address divided by 4 KiB.
// Frame 0 is the shared page of zeros for anonymous memory that was only read.
type frame uint32

const zeroFrame frame = 0

// physical is the memory of a node, page by page. Unused memory takes no memory
// of the simulator.
type physical struct {
	blocks  []block // of 2 MiB, as far as ever used
	total   int     // pages
	free    int
	partial []int32 // blocks that have some free pages
	empty   []int32 // blocks that have only free pages

	active, inactive lru
}

// block is 2 MiB of physical memory.
type block struct {
	pages *[hugePages]page
	free  int32
	head  int32 // first free page, -1: none; page.next links the rest
	place int32 // index in partial, -1: not there
}

// page is the kernel's record of a frame (struct page). The zero value is free.
type page struct {
	used    bool
	inHand  bool  // a thread uses it while it is not mapped
	dirty   bool  // storage has no copy of its content
	locked  bool  // in transfer to or from storage
	filled  bool  // of a file: it has its content
	read    bool  // of a file: File.Read has used it since reclaim last looked
	list    uint8 // list of reclaim: onInactive, onActive
	held    int32 // users that are about to access it and keep it in memory
	pins    int32 // get_user_pages
	home    int32 // index in maps of the process whose backing has the bytes of an anonymous page
	next    int32 // in its list, or among the free pages of the block
	prev    frame // in its list
	slot    frame // slot of storage with the same bytes
	index   uint32
	file    *File // file of the page, at index; nil: anonymous
	maps    []place
	room    [1]place // for the first of maps
	waiters []*Thread
}

// place is one mapping of a page.
type place struct {
	p  *pager
	va uint64
}

func (m *physical) init(pages int) {
	m.total, m.free = pages, pages
	m.take() // takes frame 0, the page of zeros, out of use
}

// page returns the record of a frame that is in use.
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

// clear frees all pages of a block, lowest first.
func (m *physical) clear(b *block) {
	b.free, b.head = hugePages, 0
	for i := range b.pages {
		b.pages[i].next = int32(i) + 1
	}
	b.pages[hugePages-1].next = -1
}

// take allocates a frame. At least one must be free.
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
		panic("host: a page is given out twice") // kernel bug
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

// takeHuge allocates the 512 frames of a block and returns the first. false:
// there is no empty block.
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

// give frees a frame. It panics if the frame is still in use: a kernel bug.
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

// add records a mapping of the page.
func (g *page) add(p *pager, va uint64) {
	if g.maps == nil {
		g.maps = g.room[:0]
	}
	g.maps = append(g.maps, place{p, va})
}

// find returns the index of a place in maps.
func (g *page) find(p *pager, va uint64) int {
	for i := range g.maps {
		if g.maps[i] == (place{p, va}) {
			return i
		}
	}
	panic("host: a page is not where its table says") // kernel bug
}

// wake wakes all threads that wait for the page, to check it again.
func (g *page) wake() {
	for _, t := range g.waiters {
		t.Wake()
	}
	clear(g.waiters)
	g.waiters = g.waiters[:0]
}

// wait waits for a change of the page; it may also return early. Before the
// program begins it fails: there is no thread to wait.
func (g *page) wait(t *Thread, what string) error {
	if t == nil {
		return fmt.Errorf("%s: %w", what, errBusy)
	}
	g.waiters = append(g.waiters, t)
	t.Wait(what)
	return nil
}

var errBusy = errors.New("memory that is being set up is under way to storage or elsewhere")

// detach removes one mapping of a page and reports whether it was the last.
func (g *page) detach(p *pager, va uint64) (last bool) {
	i := g.find(p, va)
	if int(g.home) == i && len(g.maps) > 1 && g.file == nil {
		heir := (i + 1) % len(g.maps)
		h := g.maps[heir]
		h.p.borrow(h.va, p.space.page(va))
		g.home = int32(heir)
	}
	end := len(g.maps) - 1
	if int(g.home) == end {
		g.home = int32(i)
	}
	g.maps[i] = g.maps[end]
	g.maps[end] = place{}
	g.maps = g.maps[:end]
	if end == 0 {
		g.home = 0
	}
	return end == 0
}
