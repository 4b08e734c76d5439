package provenance

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
)

// Reader passes on the input and records it, so that an input of any length is
// read once.
type Reader struct {
	from io.Reader
	hash hash.Hash
	kept []byte // the input, as long as it fits into MaxIncluded
	n    int
}

// NewReader returns a reader of from.
func NewReader(from io.Reader) *Reader { return &Reader{from: from, hash: sha256.New()} }

// Read implements io.Reader.
func (r *Reader) Read(b []byte) (int, error) {
	n, err := r.from.Read(b)
	r.hash.Write(b[:n]) // never fails
	r.n += n
	if r.n <= MaxIncluded {
		r.kept = append(r.kept, b[:n]...)
	}
	return n, err
}

// Input reads to the end and returns the record of the whole input.
func (r *Reader) Input(name string) (Input, error) {
	if _, err := io.Copy(io.Discard, r); err != nil {
		return Input{}, err
	}
	if r.n <= MaxIncluded {
		return NewInput(name, r.kept), nil
	}
	return Input{Name: name, Bytes: r.n, SHA256: hex.EncodeToString(r.hash.Sum(nil))}, nil
}

// Included reports whether the record holds the input itself.
func (in *Input) Included() bool { return in.Text != "" || in.Base64 != nil || in.Bytes == 0 }
