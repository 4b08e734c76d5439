package goal

import (
	"bufio"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
)

// ReadFile reads a schedule from a file, text or binary, and unpacks it if its name ends in .gz, .xz or .zst.
// opt.File is not used.
func ReadFile(path string, opt ReadOptions) (s *Schedule, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = closing(f, err) }()
	opt.File = path
	in, err := unpack(f, filepath.Ext(path))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	s, err = Read(in, opt)
	return s, closing(in, err)
}

// Read reads a schedule, text or binary; the magic number of the binary format tells.
func Read(r io.Reader, opt ReadOptions) (*Schedule, error) {
	in := bufio.NewReaderSize(r, readBufferLen)
	if magic, err := in.Peek(magicBytes); err == nil && binary.LittleEndian.Uint64(magic) == binaryMagic {
		return ReadBinary(in, opt)
	}
	return ReadText(in, opt)
}

// WriteFile writes a schedule to a file: in binary form if its name ends in .bin, else as text, and packed if .gz, .xz
// or .zst follows that.
func WriteFile(path string, s *Schedule) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = closing(f, err) }()
	ext := filepath.Ext(path)
	out, err := pack(f, ext)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	write := WriteText
	if ext == ".bin" || out != nil && filepath.Ext(strings.TrimSuffix(path, ext)) == ".bin" {
		write = WriteBinary
	}
	if out == nil {
		return write(f, s)
	}
	return closing(out, write(out, s))
}

// pack returns a packer for the given extension, or nil.
func pack(w io.Writer, ext string) (io.WriteCloser, error) {
	switch ext {
	case ".gz":
		return gzip.NewWriter(w), nil
	case ".xz":
		return xz.NewWriter(w)
	case ".zst":
		return zstd.NewWriter(w, zstd.WithEncoderConcurrency(1))
	}
	return nil, nil
}

// unpack returns what a file with the given extension contains.
func unpack(r io.Reader, ext string) (io.ReadCloser, error) {
	switch ext {
	case ".gz":
		return gzip.NewReader(bufio.NewReaderSize(r, readBufferLen))
	case ".xz":
		x, err := xz.NewReader(bufio.NewReaderSize(r, readBufferLen))
		return io.NopCloser(x), err
	case ".zst":
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, err
		}
		return z.IOReadCloser(), nil
	}
	return io.NopCloser(r), nil
}

// closing closes c and returns its error unless there is one already.
func closing(c io.Closer, err error) error {
	if e := c.Close(); err == nil {
		return e
	}
	return err
}
