package host

import "fmt"

// maxCommand is how many pages a read asks of storage at a time: 1 MiB, which
// is what Linux lets a command to a disk have (max_sectors_kb 1280, less what
// is no power of two).
const maxCommand = 256

// Read is pread: it brings the n bytes of the file from at on into the page
// cache, as far as they are not there, and hands each piece of a page to use,
// which may wait and keeps none of it; page is nil if the file was made by
// Generate and it is zeros. Neighbouring pages that are absent are one command
// to storage, for which the thread pays as for one fault that waits. What use
// does with the bytes, such as a copy, is for the caller to charge.
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
	fresh := first // pages before it that were absent have been read by this call
	for i := first; i <= last; i++ {
		if _, is := f.pages[i]; !is {
			brought, err := f.ahead(t, p, i, last)
			if err != nil {
				return err
			}
			fresh = i + uint32(brought)
		}
		fr, err := f.read(t, p, i, want{what: "read"})
		if err != nil {
			return err
		}
		g := f.kernel.memory.page(fr)
		g.read = g.read || i >= fresh // the first use does not make a page young
		from, to := max(at, int(i)*PageBytes), min(at+n, (int(i)+1)*PageBytes)
		if use == nil {
			continue
		}
		g.held++ // it stays while the bytes are used
		err = use(from, f.piece(i, from, to, page))
		f.kernel.loosen(fr)
		if err != nil {
			return err
		}
	}
	return nil
}

// piece returns bytes of a page that is there.
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

// load fills a page of the cache from storage.
func (f *File) load(i uint32) {
	if f.generate == nil {
		b := f.bytes(i)
		clear(b[copy(b, f.disk[int(i)*PageBytes:]):])
	}
}

// ahead brings page i, which is absent, and those behind it that are, up to the
// last, with one command. It returns how many.
func (f *File) ahead(t *Thread, p *Process, i, last uint32) (brought int, err error) {
	k := f.kernel
	var frames []frame
	for j := i; j <= last && len(frames) < maxCommand; j++ {
		if _, is := f.pages[j]; is {
			break
		}
		fr, err := k.alloc(t, p)
		if err != nil {
			if len(frames) > 0 {
				break // with fewer
			}
			return 0, err
		}
		if _, is := f.pages[j]; is { // somebody else has been faster
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
	run(t, k.spec.FaultMajor, "read")
	k.storage.transfer(t, len(frames)*PageBytes, false)
	k.stats.Major++
	for _, fr := range frames {
		g := k.memory.page(fr)
		k.stats.FileReads++
		f.load(g.index)
		g.filled, g.locked = true, false
		k.enlist(fr, onInactive)
		g.wake()
	}
	return len(frames), nil
}

// Cached is how many pages of the file are in memory.
func (f *File) Cached() int { return len(f.pages) }

// Size is its length, bytes.
func (f *File) Size() int { return f.size }
