package spc

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"errors"
	"io"
)

// Unpack reads what gzip or bzip2 have packed, which the first bytes tell, and
// anything else as it is: traces are kept packed.
func Unpack(r io.Reader) (io.Reader, error) {
	in := bufio.NewReader(r)
	magic, err := in.Peek(3)
	switch {
	case err != nil && !errors.Is(err, io.EOF): // which what is shorter than anything packed ends with
		return nil, err
	case bytes.HasPrefix(magic, []byte("\x1f\x8b")):
		return gzip.NewReader(in)
	case bytes.HasPrefix(magic, []byte("BZh")):
		return bzip2.NewReader(in), nil
	}
	return in, nil
}
