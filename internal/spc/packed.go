package spc

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"errors"
	"io"
)

// Unpack decompresses gzip and bzip2, which it recognises by the first bytes,
// and leaves other content as it is. Traces are usually stored compressed.
func Unpack(r io.Reader) (io.Reader, error) {
	in := bufio.NewReader(r)
	magic, err := in.Peek(3)
	switch {
	case err != nil && !errors.Is(err, io.EOF): // the error for a text shorter than any compressed one
		return nil, err
	case bytes.HasPrefix(magic, []byte("\x1f\x8b")):
		return gzip.NewReader(in)
	case bytes.HasPrefix(magic, []byte("BZh")):
		return bzip2.NewReader(in), nil
	}
	return in, nil
}
