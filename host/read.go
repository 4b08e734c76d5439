package host

import (
	"fmt"

	"github.com/spinsim/spinsim/internal/used"
)

// maxCommand is the largest read from storage, in pages: 1 MiB, as Linux allows
// for one disk command (max_sectors_kb 1280, rounded down to a power of two).
const maxCommand = 256

// Read is pread. It brings the n bytes of the file from at on into the page
// cache, as far as they are absent. It passes each piece of a page to use,
// which may wait and must not keep the piece. page is nil for zeros of a file
// made by Generate. Adjacent absent pages are one command to storage; the
// thread pays for it as for one major fault. The caller charges the work of
// use, such as a copy.
func (f *File) Read(t *Thread, p *Process, at, n int, use func(at int, page []byte) error) error {
	if at < 0 || n < 0 || at > f.size-n {
		return fmt.Errorf("process %s: read of %d bytes at %d of file %s, which has %d", p.name, n, at, f.name, f.size)
	}
	if n == 0 {
		return nil
	}
	var page []byte
	if f.generate != nil {
		page = make([]byte, PageBytes)
	}
	first, last := uint32(at/PageBytes), uint32((at+n-1)/PageBytes)
	fresh := first // absent pages before it were read by this call
	for i := first; i <= last; i++ {
		if _, is := f.pages[i]; !is {
			brought, err := f.ahead(t, &p.pager, i, last)
			if err != nil {
				return err
			}
			fresh = i + uint32(brought)
		}
		fr, err := f.read(t, &p.pager, i, want{what: "read"})
		if err != nil {
			return err
		}
		g := f.kernel.memory.page(fr)
		g.read = g.read || i >= fresh // its first use does not make a page recently used
		from, to := max(at, int(i)*PageBytes), min(at+n, (int(i)+1)*PageBytes)
		if use == nil {
			continue
		}
		g.held++ // the page stays while the bytes are used
		err = use(from, f.piece(i, from, to, page))
		f.kernel.loosen(fr)
		if err != nil {
			return err
		}
	}
	return nil
}

// piece returns bytes of a present page.
func (f *File) piece(i uint32, from, to int, page []byte) []byte {
	start := int(i) * PageBytes
	if f.generate == nil {
		return f.bytes(i)[from-start : to-start]
	}
	page = page[:min(PageBytes, f.size-start)]
	if f.generate(start, page) {
		return nil
	}
	return page[from-start : to-start]
}

// load reads a page into the cache from storage.
func (f *File) load(i uint32) {
	if f.generate == nil {
		b := f.bytes(i)
		clear(b[copy(b, f.disk[int(i)*PageBytes:]):])
	}
}

// ahead brings in page i, which is absent, and the absent pages directly after
// it, up to last, with one command. It returns their number.
func (f *File) ahead(t *Thread, p *pager, i, last uint32) (brought int, err error) {
	k := f.kernel
	var frames []frame
	for j := i; j <= last && len(frames) < maxCommand; j++ {
		if _, is := f.pages[j]; is {
			break
		}
		fr, err := k.alloc(t, p)
		if err != nil {
			if len(frames) > 0 {
				break // read fewer pages
			}
			return 0, err
		}
		if _, is := f.pages[j]; is { // another thread was faster
			k.putBack(fr)
			break
		}
		g := k.memory.page(fr)
		g.file, g.index, g.locked, g.inHand = f, j, true, false
		f.pages[j] = fr
		frames = append(frames, fr)
	}
	if len(frames) == 0 {
		return 0, nil
	}
	k.cpu.Use(used.MajorFault)
	run(t, k.spec.FaultMajor, "read")
	k.storage.transfer(t, len(frames)*PageBytes, false)
	k.stats.Major++
	for _, fr := range frames {
		g := k.memory.page(fr)
		k.stats.FileReads++
		f.load(g.index)
		g.filled, g.locked = true, false
		k.memory.enlist(fr, onInactive)
		g.wake()
	}
	return len(frames), nil
}

// Cached returns the number of the file's pages in memory.
func (f *File) Cached() int { return len(f.pages) }

// Size returns the length of the file in bytes.
func (f *File) Size() int { return f.size }
