package seal

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"regexp"
	"slices"

	"github.com/spinsim/spinsim/internal/file"
)

// Verdict is what a seal says of a file.
type Verdict struct {
	Mark  // of an object Program is "": its provenance has the build
	State State
	Wrong string // what differs, if it was changed

	Provenance json.RawMessage // of an object; nil: there is none
}

// State is whether a file agrees with its seal.
type State int

// States of a file.
const (
	Unsealed State = iota // no seal: not made by spinsim, or its end is missing
	Whole                 // unchanged and complete
	Cut                   // unchanged; what made it has ended early
	Unstated              // unchanged, but an older spinsim did not record whether it was complete
	Changed
)

// tail is how many bytes at the end of a file may have its mark. Behind that of
// a Parquet file is the title of its table.
const tail = 1 << 16

// mostJSON is the most bytes of JSON, which is held in memory.
const mostJSON = 1 << 30

var (
	marks = regexp.MustCompile(`sealed by spinsim ([^,\n]*), ([^,\n]+), record (none|[0-9a-f]{64}), (complete|cut: [^\n"]*?), sha256 ([0-9a-f]{64})`)
	// atEnd is the end of an object with a mark: NDJSON, and Chrome's JSON
	atEnd = regexp.MustCompile(`"seal": ?"sealed by spinsim [^"]*"\}+\n$`)
)

// Checker is a writer that takes the bytes of a file with a mark.
type Checker struct {
	seen hash.Hash
	last []byte // up to two tails
	head []byte // the first line, as far as Announcement needs it
}

// begin is how many bytes at the beginning may have an announcement.
const begin = 256

// NewChecker returns a checker.
func NewChecker() *Checker { return &Checker{seen: sha256.New()} }

// Write implements io.Writer.
func (c *Checker) Write(b []byte) (int, error) {
	if room := begin - len(c.head); room > 0 {
		c.head = append(c.head, b[:min(room, len(b))]...)
	}
	c.last = append(c.last, b...)
	if extra := len(c.last) - tail; extra > tail {
		c.seen.Write(c.last[:extra]) // a hash takes every byte
		c.last = append(c.last[:0], c.last[extra:]...)
	}
	return len(b), nil
}

// Verdict compares the bytes with the mark. The last mark that agrees counts,
// because a title may contain something like one.
func (c *Checker) Verdict() (*Verdict, error) {
	state, err := c.seen.(interface{ MarshalBinary() ([]byte, error) }).MarshalBinary()
	if err != nil {
		return nil, err
	}
	all := marks.FindAllSubmatchIndex(c.last, -1)
	var v *Verdict
	for _, at := range slices.Backward(all) {
		part := func(n int) string { return string(c.last[at[2*n]:at[2*n+1]]) }
		m := Mark{Kind: Kind(part(2)), Program: part(1), Record: part(3), Cut: part(4)}
		if m.Record == "none" {
			m.Record = ""
		}
		one := &Verdict{Mark: m, State: Cut}
		if one.Cut = trimCut(m.Cut); one.Cut == "" {
			one.State = Whole
		}
		sum := sha256.New()
		if err := sum.(interface{ UnmarshalBinary([]byte) error }).UnmarshalBinary(state); err != nil {
			return nil, err
		}
		sum.Write(c.last[:at[10]])
		sum.Write(m.covered(c.last[at[11]:]))
		if is := hex.EncodeToString(sum.Sum(nil)); is != part(5) {
			one.State, one.Wrong = Changed, (&ChangedError{is, part(5)}).differs()
			if bytes.HasSuffix(c.last, []byte("\r\n")) {
				one.Wrong += "; its lines end with CR and LF now, as git for Windows makes them: spinsim writes LF"
			}
		} else if m.Kind == PNG && !c.chunk(at[0], at[11]) {
			one.State, one.Wrong = Changed, "the checksum of its last text is wrong"
		}
		if v == nil || one.State != Changed {
			v = one
		}
		if v.State != Changed {
			break
		}
	}
	if v == nil {
		v = &Verdict{}
		if bytes.Contains(c.head, []byte(Announcement)) {
			v.State, v.Wrong = Changed, "its end with the seal is missing"
		}
	}
	return v, nil
}

func trimCut(state string) string {
	if state == "complete" {
		return ""
	}
	return state[len("cut: "):]
}

// chunk checks the checksum behind the mark of a PNG file.
func (c *Checker) chunk(from, to int) bool {
	const keyword = "tEXtComment\x00"
	from -= len(keyword)
	return from >= 0 && to+crc32.Size <= len(c.last) && crc32.ChecksumIEEE(c.last[from:to]) == binary.BigEndian.Uint32(c.last[to:])
}

// Check reads a file and compares it with its seal. It recognises all kinds by
// their content, also if they are packed with gzip. The error is for a file
// that cannot be read.
func Check(r io.Reader) (*Verdict, error) {
	in := bufio.NewReader(r)
	head, err := in.Peek(64)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if bytes.HasPrefix(head, []byte{0x1f, 0x8b}) {
		return CheckPacked(in, func(r io.Reader) (io.ReadCloser, error) { return gzip.NewReader(r) })
	}
	if bytes.HasPrefix(bytes.TrimLeft(head, " \t\r\n"), []byte("{")) && !bytes.HasPrefix(head, []byte(`{"displayTimeUnit"`)) {
		text, err := file.ReadFrom(in, "JSON", mostJSON)
		if err != nil {
			return nil, err
		}
		if !atEnd.Match(text) {
			if v := objects(text); v.State != Unsealed {
				return v, nil
			} // a table of CSV may begin like an object
		}
		in = bufio.NewReader(bytes.NewReader(text))
	}
	c := NewChecker()
	if _, err := io.Copy(c, in); err != nil {
		return nil, err
	}
	return c.Verdict()
}

// Reader returns a reader of a text that people and other programs may also
// write. After reading, check returns an error if the text has a seal, or
// announces one, and does not agree with it. ended is the error of reading: the
// rest of a wrong text that announces no seal is not read, as it may be endless.
func Reader(r io.Reader) (text io.Reader, check func(ended error) error) {
	c := NewChecker()
	text = io.TeeReader(r, c)
	return text, func(ended error) error {
		if ended != nil && !bytes.Contains(c.head, []byte(Announcement)) {
			return nil
		}
		if _, err := io.Copy(io.Discard, text); err != nil {
			return err
		}
		v, err := c.Verdict()
		if err == nil && v.State == Changed {
			err = fmt.Errorf("changed after it was written: %s; if that is meant, remove %q from its first line and %q from its last", v.Wrong, Announcement, "sealed by ...")
		}
		return err
	}
}

// CheckPacked is [Check] for a packed file, other than of JSON objects. Data
// that cannot be unpacked to its end has changed.
func CheckPacked(in io.Reader, unpack func(io.Reader) (io.ReadCloser, error)) (*Verdict, error) {
	content, err := unpack(in)
	if err == nil {
		c := NewChecker()
		_, err = io.Copy(c, content) //nolint:gosec // nothing is kept
		if err = errors.Join(err, content.Close()); err == nil {
			return c.Verdict()
		}
	}
	var path interface{ Timeout() bool }
	if errors.As(err, &path) { // an error of the file, not of its content
		return nil, err
	}
	return &Verdict{State: Changed, Wrong: err.Error()}, nil
}

// objects checks a JSON object, or lines of them.
func objects(text []byte) *Verdict {
	w, err := walk(text)
	if err == nil {
		return ofObject(text, w)
	}
	v := &Verdict{State: Whole}
	var wrong error
	whole, number := 0, 0
	for line := range bytes.Lines(text) {
		number++
		w, err := walk(line)
		switch {
		case !bytes.HasSuffix(line, []byte("\n")):
			v.State, v.Cut = Cut, fmt.Sprintf("line %d is not whole", number)
			continue
		case err == nil && w.recorded == nil:
			err = ErrNone
		case err == nil:
			if one := ofObject(line, w); one.State == Changed {
				err = errors.New(one.Wrong)
			} else if one.Kind != Kept {
				err = errors.New("no kept result")
			}
		}
		if err == nil {
			whole++
		} else if wrong == nil {
			wrong = fmt.Errorf("line %d: %w", number, err)
		}
	}
	if whole == 0 {
		return &Verdict{}
	}
	v.Kind = Kept
	if wrong != nil {
		v.State, v.Wrong = Changed, wrong.Error()
	}
	return v
}

// ofObject is the verdict for an object.
func ofObject(text []byte, w *walker) *Verdict {
	var x struct {
		Key        string
		Result     json.RawMessage
		Provenance json.RawMessage
	}
	v := &Verdict{Mark: Mark{Kind: JSON, Cut: w.cut}}
	if json.Unmarshal(text, &x) == nil && x.Key != "" && x.Result != nil {
		v.Kind = Kept
	}
	if v.Provenance = x.Provenance; x.Provenance != nil {
		v.Record, _ = hashOf(x.Provenance) // it was just read
	}
	switch {
	case w.recorded == nil:
		return &Verdict{}
	case *w.recorded != w.sum():
		v.State, v.Wrong = Changed, (&ChangedError{w.sum(), *w.recorded}).differs()
	case w.cut != "":
		v.State = Cut
	case w.state != nil && *w.state:
		v.State = Whole
	default:
		v.State = Unstated
	}
	return v
}
