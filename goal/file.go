package goal

import (
	"bufio"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"

	"github.com/spinsim/spinsim/internal/file"
	"github.com/spinsim/spinsim/internal/seal"
)

// ReadFile reads a schedule from a file, text or binary. If the name ends in
// .gz, .xz or .zst, it unpacks the file. It ignores opt.File.
func ReadFile(path string, opt ReadOptions) (s *Schedule, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = closing(f, err) }()
	return ReadPacked(f, path, opt)
}

// ReadPacked reads a schedule from the contents of a file with the given name,
// like ReadFile.
func ReadPacked(f io.Reader, path string, opt ReadOptions) (*Schedule, error) {
	opt.File = path
	in, err := Unpack(f, filepath.Ext(path))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	s, err := Read(in, opt)
	return s, closing(in, err)
}

// Read reads a schedule, text or binary. It detects the binary format by its
// magic number. It refuses a text that spinsim has sealed and somebody has
// changed.
func Read(r io.Reader, opt ReadOptions) (*Schedule, error) {
	in := bufio.NewReaderSize(r, readBufferLen)
	if magic, err := in.Peek(magicBytes); err == nil && binary.LittleEndian.Uint64(magic) == binaryMagic {
		return ReadBinary(in, opt)
	}
	text, check := seal.Reader(in)
	s, err := ReadText(text, opt)
	if changed := check(err); changed != nil {
		return nil, fmt.Errorf("%s: %w", opt.File, changed)
	}
	return s, err
}

// WriteFile writes a schedule to a file: in binary form if its name ends in
// .bin, else as text, and packed if .gz, .xz or .zst follows. If that fails, an
// older file of that name does not change.
func WriteFile(path string, s *Schedule) error {
	f, err := file.Create(path)
	if err != nil {
		return err
	}
	if err = WritePacked(f, path, func(w io.Writer) error { return Write(w, s, FormOf(path)) }); err != nil {
		return errors.Join(err, f.Discard())
	}
	return f.Commit()
}

// Form is the form of a schedule in a file.
type Form string

// The forms of schedules.
const (
	Text   Form = "text"
	Binary Form = "binary"
)

// FormOf returns the form for the name of a file: binary if the name ends in
// .bin, also before the ending of a packed file; else text.
func FormOf(path string) Form {
	ext := filepath.Ext(path)
	if ext == ".gz" || ext == ".xz" || ext == ".zst" {
		ext = filepath.Ext(strings.TrimSuffix(path, ext))
	}
	if ext == ".bin" {
		return Binary
	}
	return Text
}

// Write writes a schedule in the given form.
func Write(w io.Writer, s *Schedule, form Form) error {
	switch form {
	case Text:
		return WriteText(w, s)
	case Binary:
		return WriteBinary(w, s)
	}
	return fmt.Errorf("goal: form %q, expected %s or %s", form, Text, Binary)
}

// WritePacked passes write a writer onto f. If name ends in .gz, .xz or .zst,
// the writer packs the output.
func WritePacked(f io.Writer, name string, write func(w io.Writer) error) error {
	buffer := bufio.NewWriterSize(f, readBufferLen)
	out, err := pack(buffer, filepath.Ext(name))
	switch {
	case err != nil:
	case out == nil:
		err = write(buffer)
	default:
		err = closing(out, write(out))
	}
	if err == nil {
		err = buffer.Flush()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// pack returns a packer for the extension, or nil.
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

// Unpack returns the contents of a file with the extension .gz, .xz or .zst, and
// with any other the file itself.
func Unpack(r io.Reader, ext string) (io.ReadCloser, error) {
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

// closing closes c. It returns err, or the error of closing if err is nil.
func closing(c io.Closer, err error) error {
	if e := c.Close(); err == nil {
		return e
	}
	return err
}
