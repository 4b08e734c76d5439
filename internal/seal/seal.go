// Package seal makes files prove themselves: which program has written a file,
// from which record, whether it is complete, and that nobody has changed it.
//
// A JSON object is sealed by its last fields ([Object]). Every other file has a
// mark, a line of plain text in the place that its format has for remarks:
//
//	sealed by spinsim VERSION, KIND, record HASH, complete, sha256 DIGITS
//	sealed by spinsim VERSION, KIND, record HASH, cut: WHY, sha256 DIGITS
//
// HASH is the SHA-256 of the provenance record in compact JSON, or none.
// Everything that one run has made has the same. DIGITS are the SHA-256 of all
// bytes before and behind them.
//
// A seal shows that somebody has changed a file by mistake, or that its end is
// missing. It is no protection against somebody who seals it again.
package seal

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"hash"
	"hash/crc32"
	"io"
	"strings"
)

// Kind is a kind of file with a mark.
type Kind string

// Kinds of files. JSON and Kept have no mark, but sealed objects.
const (
	JSON     Kind = "JSON"
	Kept     Kind = "kept results"
	NDJSON   Kind = "NDJSON"
	CSV      Kind = "CSV"
	Parquet  Kind = "Parquet"
	SVG      Kind = "SVG"
	PNG      Kind = "PNG"
	HTML     Kind = "HTML"
	Capture  Kind = "pcapng"
	Perfetto Kind = "Perfetto timeline"
	Chrome   Kind = "Chrome timeline"
	Pprof    Kind = "pprof profile"
	GOAL     Kind = "GOAL schedule"
	Storage  Kind = "storage trace"
)

// Kinds are all kinds.
var Kinds = []Kind{JSON, Kept, NDJSON, CSV, Parquet, SVG, PNG, HTML, Capture, Perfetto, Chrome, Pprof, GOAL, Storage}

// Mark is what the seal of a file contains besides its digest.
type Mark struct {
	Kind    Kind
	Program string // version of spinsim
	Record  string // hash of the provenance record; "": there is none
	Cut     string // why and where the run has ended early; "": complete
}

// Sealer is the origin of a file: a provenance record.
type Sealer interface {
	// Seal returns Program and Record of a mark.
	Seal() (program, record string, err error)
}

// Of returns the mark of a file with that origin.
func Of(from Sealer, kind Kind, cut string) (Mark, error) {
	program, record, err := from.Seal()
	return Mark{Kind: kind, Program: program, Record: record, Cut: cut}, err
}

// zeros stand for the digest in a mark until it is known.
var zeros = strings.Repeat("0", 2*sha256.Size)

// mostCut keeps a mark short enough for every place, bytes.
const mostCut = 300

// String returns the mark with zeros for the digest.
func (m Mark) String() string {
	state := "complete"
	if m.Cut != "" {
		state = "cut: " + clean(m.Cut)
	}
	return "sealed by spinsim " + strings.ReplaceAll(clean(m.Program), ",", ";") + ", " + string(m.Kind) + ", record " + cmp.Or(m.Record, "none") + ", " + state + ", sha256 " + zeros
}

// clean replaces what ends or spoils a comment in one of the formats.
func clean(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case r == 'µ': // of a time
			return 'u'
		case r < ' ' || r > '~' || strings.ContainsRune("<>&\"\\", r):
			return '?'
		}
		return r
	}, text)
	for strings.Contains(text, "--") { // it ends a comment of XML
		text = strings.ReplaceAll(text, "--", "-")
	}
	return text[:min(len(text), mostCut)]
}

// Hash returns the SHA-256 of a provenance record.
func Hash(record any) (string, error) {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(record); err != nil {
		return "", err
	}
	return hashOf(text.Bytes())
}

// hashOf is Hash of a record's text.
func hashOf(record []byte) (string, error) {
	var text bytes.Buffer
	if err := json.Compact(&text, record); err != nil {
		return "", err
	}
	sum := sha256.Sum256(text.Bytes())
	return hex.EncodeToString(sum[:]), nil
}

// Fill sets the digest in the mark of a whole file.
func (m Mark) Fill(data []byte) []byte { return m.fill(sha256.New(), data) }

// fill sets the digest in the last block of a file. seen has the bytes before.
func (m Mark) fill(seen hash.Hash, block []byte) []byte {
	behind := bytes.LastIndex(block, []byte(m.String())) + len(m.String())
	digits := block[behind-len(zeros) : behind]
	seen.Write(block[:behind-len(zeros)]) // a hash takes every byte
	seen.Write(m.covered(block[behind:]))
	hex.Encode(digits, seen.Sum(nil))
	return block
}

// covered returns what the digest covers of the bytes behind it. In a PNG file
// the checksum of the mark's own chunk comes first. It depends on the digest.
func (m Mark) covered(behind []byte) []byte {
	if m.Kind == PNG {
		return behind[min(len(behind), crc32.Size):]
	}
	return behind
}

// Below seals a file whose format allows a comment at its end. before and after
// are the signs of the comment.
func (m Mark) Below(data []byte, before, after string) []byte {
	return m.Fill(append(bytes.Clone(data), before+m.String()+after...))
}

// chunkEnd is the length of the last chunk of a PNG file.
const chunkEnd = 12

// Picture seals a picture: SVG, or PNG.
func (m Mark) Picture(data []byte) []byte {
	if m.Kind != PNG {
		return m.Below(data, "<!-- ", " -->\n")
	}
	const keyword = "tEXtComment\x00"
	end := len(data) - chunkEnd
	text := keyword + m.String()
	out := binary.BigEndian.AppendUint32(bytes.Clone(data[:end]), uint32(len(text)-4)) //nolint:gosec // a line
	out = append(out, text...)
	out = append(out, make([]byte, crc32.Size)...)
	out = m.Fill(append(out, data[end:]...))
	chunk := out[end+4:][:len(text)]
	binary.BigEndian.PutUint32(out[end+4+len(text):], crc32.ChecksumIEEE(chunk))
	return out
}

// Writer hashes what it passes on, for a file that is not held in memory.
type Writer struct {
	to   io.Writer
	seen hash.Hash
}

// NewWriter returns a writer onto to.
func NewWriter(to io.Writer) *Writer { return &Writer{to, sha256.New()} }

// Write implements io.Writer.
func (w *Writer) Write(b []byte) (int, error) {
	n, err := w.to.Write(b)
	w.seen.Write(b[:n]) // a hash takes every byte
	return n, err
}

// Seal writes the last block, which has the text of the mark in it.
func (w *Writer) Seal(m Mark, block []byte) error {
	_, err := w.to.Write(m.fill(w.seen, block))
	return err
}

// Announcement belongs into the first line of a text that people and other
// programs may also write without a seal. It makes a missing end visible.
const Announcement = " a seal of spinsim ends this file: spinsim verify checks it"
