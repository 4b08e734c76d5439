package host

import (
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/internal/lazy"
	"github.com/spinsim/spinsim/internal/poison"
	"github.com/spinsim/spinsim/internal/used"
)

// File is bytes on storage, with its pages in memory: the page cache. Shared
// mappings use the cache as their backing. Private mappings have copies of its
// pages, made at the first use. Memory that processes share without a file is a
// File, too; its storage is swap.
type File struct {
	kernel    *Kernel
	name      string
	anonymous bool
	gone      bool   // no process shares it any more
	disk      []byte // nil if anonymous
	cache     []byte // whole pages
	pages     map[uint32]frame
	slots     map[uint32]frame // anonymous pages that are on storage
	large     [2][]byte
	size      int
	generate  func(at int, into []byte) (zeros bool) // nil: the bytes are in disk and cache
}

// Create makes a file of n zeros on the node's storage. Its content can be set
// before the first use.
func (k *Kernel) Create(name string, n int) (f *File, content []byte, err error) {
	if k.storage == nil {
		return nil, nil, fmt.Errorf("file %s: %w", name, errNoStorage)
	}
	f = k.newFile(name, n)
	f.large[1] = lazy.Bytes(n)
	f.disk = f.large[1][:n]
	return f, f.disk, nil
}

// Generate makes a read-only file of n bytes, at least 1, whose bytes are
// computed from their offset (File.Read). So the content takes no memory of the
// simulator. content fills into with the bytes from at on: one page, or the
// rest of the file. If they are all zeros it may return true and fill nothing.
func (k *Kernel) Generate(name string, n int, content func(at int, into []byte) (zeros bool)) (*File, error) {
	if k.storage == nil {
		return nil, fmt.Errorf("file %s: %w", name, errNoStorage)
	}
	f := &File{kernel: k, name: name, size: n, pages: map[uint32]frame{}, slots: map[uint32]frame{}, generate: content}
	k.files = append(k.files, f)
	return f, nil
}

func (k *Kernel) newFile(name string, n int) *File {
	f := &File{kernel: k, name: name, size: n, pages: map[uint32]frame{}, slots: map[uint32]frame{}}
	f.large[0] = lazy.Bytes(int(pageEnd(uint64(n))))
	f.cache = f.large[0]
	poison.Bytes(f.cache)
	k.files = append(k.files, f)
	return f
}

// Name is the name given to Create.
func (f *File) Name() string { return f.name }

// Content returns a copy of the bytes that a program would read now, for an
// observer.
func (f *File) Content() []byte {
	if f.generate != nil {
		all := make([]byte, f.size)
		for at := 0; at < f.size; at += PageBytes {
			f.generate(at, all[at:min(at+PageBytes, f.size)])
		}
		return all
	}
	all := slices.Clone(f.disk)
	for i := range (len(all) + PageBytes - 1) / PageBytes {
		if fr, is := f.pages[uint32(i)]; is && f.kernel.memory.page(fr).filled {
			copy(all[i*PageBytes:], f.bytes(uint32(i)))
		}
	}
	return all
}

// bytes returns a page of the cache.
func (f *File) bytes(i uint32) []byte {
	from, to := int(i)*PageBytes, (int(i)+1)*PageBytes
	return f.cache[from:to:to]
}

// MapFile maps n bytes of a file, at least 1, from offset on, a multiple of 4
// KiB (mmap). shared: writes change the file.
func (p *Process) MapFile(t *Thread, f *File, offset, n int, shared bool) (addr uint64, err error) {
	if f.generate != nil {
		return 0, fmt.Errorf("process %s: mmap of file %s, which can only be read", p.name, f.name)
	}
	if offset%PageBytes != 0 || offset < 0 || n < 1 || uint64(offset)+uint64(n) > uint64(len(f.cache)) {
		return 0, fmt.Errorf("process %s: mmap of %d bytes at %d of file %s, which has %d", p.name, n, offset, f.name, len(f.disk))
	}
	if err := p.pager.begin(t, "mmap"); err != nil {
		return 0, err
	}
	defer p.pager.lock.Unlock(t)
	p.kernel.cpu.Use(used.Map)
	run(t, p.kernel.spec.MapCall, "mmap")
	return p.mapFile(f, offset, n, shared)
}

// MapShared maps n zeros, at least 1, that children of the process share with
// it (mmap, MAP_SHARED|MAP_ANONYMOUS).
func (p *Process) MapShared(t *Thread, n int) (addr uint64, err error) {
	if n < 1 {
		return 0, fmt.Errorf("process %s: mmap of %d bytes, expected at least 1", p.name, n)
	}
	if err := p.pager.begin(t, "mmap"); err != nil {
		return 0, err
	}
	defer p.pager.lock.Unlock(t)
	p.kernel.cpu.Use(used.Map)
	run(t, p.kernel.spec.MapCall, "mmap")
	if _, err = p.place(n); err != nil {
		return 0, err
	}
	f := p.kernel.newFile("shared memory of "+p.name, n)
	f.anonymous = true
	return p.mapFile(f, 0, n, true)
}

func (p *Process) mapFile(f *File, offset, n int, shared bool) (addr uint64, err error) {
	if addr, err = p.place(n); err != nil {
		return 0, err
	}
	if shared {
		p.space.share(addr, f.cache[offset:offset+n:offset+n])
	} else {
		p.space.back(addr, n)
	}
	p.pager.mappings = append(p.pager.mappings, mapping{
		start: addr, end: pageEnd(addr + uint64(n)), prot: ProtWrite, file: f, shared: shared, first: uint32(offset / PageBytes),
	})
	return addr, nil
}

// read returns the frame of a page of the file. The page is present and not in
// transfer at this moment.
func (f *File) read(t *Thread, p *pager, i uint32, w want) (frame, error) {
	for {
		fr, is := f.pages[i]
		if !is {
			if err := f.fill(t, p, i, w); err != nil {
				return 0, err
			}
			continue
		}
		g := f.kernel.memory.page(fr)
		if !g.locked {
			return fr, nil
		}
		if err := g.wait(t, "a page of "+f.name); err != nil {
			return 0, err
		}
	}
}

// fill brings a page into the cache.
func (f *File) fill(t *Thread, p *pager, i uint32, w want) error {
	k := f.kernel
	fr, err := k.alloc(t, p)
	if err != nil {
		return err
	}
	if _, is := f.pages[i]; is || f.gone {
		k.putBack(fr)
		if f.gone { // the last process has unmapped it meanwhile
			return fmt.Errorf("process %s: %s: %w", p.name, f.name, ErrNoMapping)
		}
		return nil
	}
	g := k.memory.page(fr)
	g.file, g.index, g.locked, g.inHand = f, i, true, false
	f.pages[i] = fr
	switch s := f.slots[i]; {
	case f.anonymous && s == 0:
		run(t, w.absent, w.what)
		k.stats.Absent++
		k.stats.Minor++
		blank(f.bytes(i))
		g.dirty = true
	case t == nil:
		delete(f.pages, i)
		*g = page{used: true}
		k.putBack(fr)
		return errBusy
	default:
		k.cpu.Use(used.MajorFault)
		run(t, k.spec.FaultMajor, w.what)
		k.storage.transfer(t, PageBytes, false)
		k.stats.Major++
		if f.anonymous {
			k.stats.SwappedIn++
			k.swap.load(f.bytes(i), s)
			g.slot = s
			delete(f.slots, i)
		} else {
			k.stats.FileReads++
			f.load(i)
		}
	}
	g.filled, g.locked = true, false
	k.memory.enlist(fr, onInactive)
	g.wake()
	return nil
}

// firstOfFile provides a page of a file at its first use by the process.
func (p *pager) firstOfFile(t *Thread, va uint64, w want) error {
	k, m := p.kernel, *p.mappings.find(va)
	i := m.first + uint32((va-m.start)/PageBytes)
	fr, err := m.file.read(t, p, i, w)
	if err != nil {
		return err
	}
	g := k.memory.page(fr)
	g.held++ // the page stays while the thread works
	own := frame(0)
	if w.write && !m.shared {
		if own, err = k.alloc(t, p); err != nil {
			k.loosen(fr)
			return err
		}
		k.cpu.Use(used.CopyFault)
		run(t, k.spec.FaultCopy, w.what)
	} else {
		k.cpu.Use(used.MapFault)
		run(t, k.spec.FaultMap, w.what)
	}
	defer k.loosen(fr)
	if !p.same(va, pte{}, w.write) || g.locked {
		k.putBack(own)
		return nil
	}
	k.stats.Minor++
	if !m.shared {
		copy(p.space.page(va), m.file.bytes(i))
	}
	switch {
	case own != 0:
		k.stats.Copies++
		p.attach(va, own, pteWrite|pteYoung)
		k.dirty(k.memory.page(own))
	case w.write:
		p.attach(va, fr, pteWrite|pteYoung)
		k.dirty(g)
	default:
		p.attach(va, fr, pteYoung)
	}
	return nil
}

func (k *Kernel) loosen(f frame) {
	k.memory.page(f).held--
	k.unused(f)
}

// Sync writes the changed pages of a file to storage and returns when they are
// there (fsync). Programs and devices continue meanwhile; what they write then
// is left to the next Sync.
func (f *File) Sync(t *Thread) error {
	k := f.kernel
	if k.storage == nil || f.anonymous {
		return fmt.Errorf("file %s: %w", f.name, errNoStorage)
	}
	k.cpu.Use(used.Sync)
	run(t, k.spec.SyncCall, "fsync")
	var writing []frame
	for i := range uint32(len(f.cache) / PageBytes) {
		fr, is := f.pages[i]
		if g := k.memory.page(fr); is && g.dirty && !g.locked {
			g.clean()
			g.locked = true
			writing = append(writing, fr)
		}
	}
	run(t, k.spec.SyncPage*simTime(len(writing)), "fsync")
	k.memory.settle(t, writing)
	var writes []*command
	for range writing {
		c := &command{t: t, write: true, bytes: PageBytes}
		k.storage.submit(c)
		writes = append(writes, c)
	}
	k.storage.wait(t, writes)
	for _, fr := range writing {
		g := k.memory.page(fr)
		k.stats.FileWrites++
		copy(f.disk[int(g.index)*PageBytes:], f.bytes(g.index))
		g.locked = false
		g.wake()
	}
	return nil
}

// clean marks a cached page clean: the next write to it is a fault.
func (g *page) clean() {
	g.dirty = false
	for _, at := range g.maps {
		if e := at.p.tables.pte(at.va); e.flags&pteWrite != 0 {
			at.p.change(at.va, e.flags&^pteWrite)
		}
	}
}

// farewellFile removes a page from the cache. Its content is on storage.
func (k *Kernel) farewellFile(g *page) {
	f, i := g.file, g.index
	switch {
	case f.anonymous:
		if g.dirty {
			k.stats.SwappedOut++
			k.swap.store(g.slot, f.bytes(i))
		}
		k.swap.use(g.slot)
		f.slots[i] = g.slot
	case g.dirty:
		k.stats.FileWrites++
		copy(f.disk[int(i)*PageBytes:], f.bytes(i))
	}
	for _, at := range g.maps {
		at.p.resident--
		at.p.tables.set(at.va, pte{})
		poison.Bytes(at.p.space.page(at.va))
	}
	if f.generate == nil {
		poison.Bytes(f.bytes(i))
	}
	delete(f.pages, i)
	g.file, g.filled = nil, false
}

// release frees shared memory that no process uses any more.
func (f *File) release(t *Thread) {
	k := f.kernel
	for i := 0; i < len(f.cache)/PageBytes; i++ {
		fr, is := f.pages[uint32(i)]
		if g := k.memory.page(fr); is && g.locked && g.wait(t, "a page of "+f.name) == nil {
			i = -1 // in use by reclaim or by a driver: start again
		}
	}
	for _, p := range k.processes {
		if slices.ContainsFunc(p.pager.mappings, func(m mapping) bool { return m.file == f }) {
			return
		}
	}
	for i := range uint32(len(f.cache) / PageBytes) {
		if s := f.slots[i]; s != 0 {
			k.swap.drop(s)
		}
		if fr, is := f.pages[i]; is {
			g := k.memory.page(fr)
			g.file, g.filled = nil, false
			k.unused(fr)
		}
	}
	f.gone = true
	clear(f.slots)
	clear(f.pages)
	k.files = slices.DeleteFunc(k.files, func(o *File) bool { return o == f })
}
