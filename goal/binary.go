package goal

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// The binary format is little-endian and packed:
//
//	0      u64 magic 4223
//	8      u32 num_ranks ; u8 max_cpu_index ; u8 max_nic_index
//	14     num_ranks x { u64 start, u64 end }         offsets relative to file byte 8
//	rank:  u32 nNodes ; u32 nRoots ; u32 rootIdx[nRoots] ; node[nNodes] ; u32 appendix[]
//	node (39 B): u32 depCount, u8 type (1 send, 2 recv, 3 calc), u32 peer, u64 size, u32 tag, u8 cpu, u8 nic,
//	             u32 nDone, u32 idxDone, u32 nStart, u32 idxStart
//
// The appendix holds for each node first the nodes that it releases when it is
// done, then those that it releases when it starts. Index and count of the
// lists are in the node.

// Behind the last rank of a schedule that names collectives, where readers that
// follow the table of ranks do not look (ATLAHS' parser gives the same graphs):
//
//	u64 magic of "//coll" ; u32 nCollectives
//	collective:  u64 bytes, u32 root, u8 length of kind, kind, u8 length of name, name
//	for each rank: u32 nRuns ; run[nRuns]
//	run (12 B):  u32 first operation, u32 operations, u32 collective

// Sizes in the binary format, in bytes.
const (
	binaryMagic   = 4223
	magicBytes    = 8 // offsets in the file count from behind the magic number
	headerBytes   = 14
	tableBytes    = 16 // per rank
	rankBytes     = 8  // before the roots
	nodeBytes     = 39
	chunkBytes    = 1 << 16
	readBufferLen = 1 << 16
)

// ReadBinary reads a schedule in binary form. Ranks must follow each other
// without gaps, and so must the lists of the appendix, as the format's own
// converter writes them. The index of an empty list is ignored.
//
// If the input is not a schedule, the error is a *FormatError. Memory grows
// with the bytes read, not with the sizes that the file announces.
func ReadBinary(r io.Reader, opt ReadOptions) (*Schedule, error) {
	b := binaryReader{src: bufio.NewReaderSize(r, readBufferLen), file: opt.File, buf: make([]byte, chunkBytes), b: NewBuilder()}
	if err := b.header(); err != nil {
		return nil, err
	}
	for r := range b.ends {
		if err := b.rank(r); err != nil {
			return nil, err
		}
	}
	if err := b.collectives(); err != nil {
		return nil, err
	}
	return b.b.Schedule()
}

type binaryReader struct {
	src  *bufio.Reader
	file string
	at   int64 // offset of the next byte
	buf  []byte

	b     *Builder
	ends  []uint64 // per rank: the offset of its end
	roots []uint32
	// of the current rank: the ends of its lists, its numbers of releases, and
	// the lists, as Builder.link takes them
	bounds, deps, lists []uint32
}

func (b *binaryReader) errorf(at int64, format string, args ...any) error {
	return &FormatError{File: b.file, Offset: at, Msg: fmt.Sprintf(format, args...)}
}

// take reads n <= chunkBytes bytes into the buffer.
func (b *binaryReader) take(n int, what string) ([]byte, error) {
	got, err := io.ReadFull(b.src, b.buf[:n])
	b.at += int64(got)
	switch {
	case err == nil:
		return b.buf[:n], nil
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, b.errorf(b.at, "expected %s, found the end of the file", what)
	}
	return nil, &FormatError{File: b.file, Offset: b.at, Msg: "cannot read " + what, Err: err}
}

// records reads n records of size bytes in chunks and passes each to f with its
// offset.
func (b *binaryReader) records(n, size int, what string, f func(at int64, rec []byte) error) error {
	for n > 0 {
		now := min(n, chunkBytes/size)
		at := b.at
		chunk, err := b.take(now*size, what)
		if err != nil {
			return err
		}
		for ; len(chunk) > 0; chunk = chunk[size:] {
			if err := f(at, chunk[:size]); err != nil {
				return err
			}
			at += int64(size)
		}
		n -= now
	}
	return nil
}

func (b *binaryReader) header() error {
	h, err := b.take(headerBytes, "the header")
	if err != nil {
		return err
	}
	if magic := binary.LittleEndian.Uint64(h); magic != binaryMagic {
		return b.errorf(0, "magic number %d, expected %d", magic, binaryMagic)
	}
	ranks := binary.LittleEndian.Uint32(h[8:])
	if ranks == 0 || ranks > math.MaxInt32 {
		return b.errorf(8, "%d ranks, expected 1 to %d", ranks, math.MaxInt32)
	}
	b.b.s.maxCPU, b.b.s.maxNIC = h[12], h[13]
	want := uint64(headerBytes-magicBytes) + uint64(ranks)*tableBytes
	return b.records(int(ranks), tableBytes, "the table of ranks", func(at int64, rec []byte) error {
		start, end := binary.LittleEndian.Uint64(rec), binary.LittleEndian.Uint64(rec[8:])
		if start != want {
			return b.errorf(at, "rank %d starts at %d, expected %d", len(b.ends), start, want)
		}
		if end < start || end-start < rankBytes || end > math.MaxInt64-magicBytes {
			return b.errorf(at+8, "rank %d ends at %d, expected at least %d", len(b.ends), end, start+rankBytes)
		}
		want = end
		b.ends = append(double(b.ends, 1), end)
		b.b.s.room = int(min(segmentOps, want/nodeBytes))
		return nil
	})
}

func (b *binaryReader) rank(r int) error {
	start := b.at
	size := b.ends[r] + magicBytes - uint64(start)
	h, err := b.take(rankBytes, "a rank")
	if err != nil {
		return err
	}
	n, roots := binary.LittleEndian.Uint32(h), binary.LittleEndian.Uint32(h[4:])
	if uint64(n)+uint64(b.b.s.ops) > MaxOps {
		return b.errorf(start, "rank %d has %d operations, expected at most %d in all ranks", r, n, MaxOps)
	}
	if roots > n {
		return b.errorf(start+4, "rank %d has %d roots among %d operations", r, roots, n)
	}
	fixed := rankBytes + 4*uint64(roots) + nodeBytes*uint64(n)
	if size < fixed || (size-fixed)%4 != 0 {
		return b.errorf(start, "rank %d has %d bytes, expected %d and a number of 4-byte entries", r, size, fixed)
	}
	b.b.start(uint32(r))
	rootsAt := b.at
	b.roots = b.roots[:0]
	if err := b.records(int(roots), 4, "a root", func(_ int64, rec []byte) error {
		b.roots = append(b.roots, binary.LittleEndian.Uint32(rec))
		return nil
	}); err != nil {
		return err
	}
	opsAt := b.at
	if err := b.operations(n, (size-fixed)/4); err != nil {
		return err
	}
	if err := b.appendix(opsAt, (size-fixed)/4); err != nil {
		return err
	}
	return b.checkRoots(rootsAt)
}

// operations reads the n nodes of a rank. entries is the length of its appendix.
func (b *binaryReader) operations(n uint32, entries uint64) error {
	if b.b.s.links+entries > math.MaxUint32 {
		return b.errorf(b.at, "expected at most %d dependencies in all ranks", uint32(math.MaxUint32))
	}
	b.bounds, b.deps = b.bounds[:0], b.deps[:0]
	var next uint64
	list := func(at int64, rec []byte) error {
		n, index := binary.LittleEndian.Uint32(rec), binary.LittleEndian.Uint32(rec[4:])
		if n > 0 && uint64(index) != next {
			return b.errorf(at+4, "list starts at entry %d of the appendix, expected %d", index, next)
		}
		if next += uint64(n); next > entries {
			return b.errorf(at, "list of %d entries exceeds the appendix of %d", n, entries)
		}
		b.bounds = append(double(b.bounds, 1), uint32(next))
		return nil
	}
	err := b.records(int(n), nodeBytes, "an operation", func(at int64, rec []byte) error {
		op := Op{
			Kind: Kind(rec[4]),
			Peer: binary.LittleEndian.Uint32(rec[5:]),
			Size: binary.LittleEndian.Uint64(rec[9:]),
			Tag:  anyTag(binary.LittleEndian.Uint32(rec[17:])),
			CPU:  rec[21],
			NIC:  rec[22],
		}
		if err := b.checkNode(at, &op); err != nil {
			return err
		}
		if err := list(at+23, rec[23:]); err != nil {
			return err
		}
		if err := list(at+31, rec[31:]); err != nil {
			return err
		}
		b.b.add(&op)
		b.deps = append(double(b.deps, 1), binary.LittleEndian.Uint32(rec))
		return nil
	})
	if err == nil && next != entries {
		err = b.errorf(b.at, "appendix of %d entries, expected %d", entries, next)
	}
	return err
}

func (b *binaryReader) checkNode(at int64, op *Op) error {
	n := uint32(len(b.ends))
	switch {
	case op.Kind < Send || op.Kind > Calc:
		return b.errorf(at+4, "kind %d, expected 1 (send), 2 (recv) or 3 (calc)", op.Kind)
	case !op.fits(n):
		return b.errorf(at+5, "peer %d, expected a rank below %d", int32(op.Peer), n)
	case op.CPU > b.b.s.maxCPU:
		return b.errorf(at+21, "cpu %d, expected at most %d as the header says", op.CPU, b.b.s.maxCPU)
	case op.NIC > b.b.s.maxNIC:
		return b.errorf(at+22, "nic %d, expected at most %d as the header says", op.NIC, b.b.s.maxNIC)
	}
	return nil
}

// appendix reads the successor lists of a rank and checks them against the
// numbers of dependencies.
func (b *binaryReader) appendix(opsAt int64, entries uint64) error {
	b.lists = b.lists[:0]
	if err := b.records(int(entries), 4, "the appendix", func(at int64, rec []byte) error {
		x := binary.LittleEndian.Uint32(rec)
		if int(x) >= len(b.deps) {
			return b.errorf(at, "operation %d, expected one below %d", x, len(b.deps))
		}
		b.lists = append(double(b.lists, 1), x)
		return nil
	}); err != nil {
		return err
	}
	// Count each number down to 0 and up again, which saves an array.
	for _, x := range b.lists {
		b.deps[x]--
	}
	for i, d := range b.deps {
		if d != 0 {
			return b.errorf(opsAt+int64(i)*nodeBytes, "operation %d waits for a wrong number of releases", i)
		}
	}
	if entries == 0 {
		return nil
	}
	for _, x := range b.lists {
		b.deps[x]++
	}
	b.b.link(b.b.s.ranks[len(b.b.s.ranks)-1], b.bounds, b.deps, b.lists)
	if b.b.err != nil {
		return b.errorf(opsAt, "%v", b.b.err)
	}
	return nil
}

// checkRoots compares the roots of a rank, already read, with its operations
// without dependencies.
func (b *binaryReader) checkRoots(rootsAt int64) error {
	next := 0
	for i, d := range b.deps {
		if d != 0 {
			continue
		}
		if next == len(b.roots) || b.roots[next] != uint32(i) {
			return b.errorf(rootsAt+4*int64(next), "root %d, expected operation %d", next, i)
		}
		next++
	}
	if next != len(b.roots) {
		return b.errorf(rootsAt+4*int64(next), "%d roots, expected %d", len(b.roots), next)
	}
	return nil
}
