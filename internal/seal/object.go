package seal

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/spinsim/spinsim/internal/visible"
)

// Fields of the seal, the last ones at the top of an object. Deeper in the
// object they are fields like others.
const (
	Field         = "sha256"
	fieldComplete = "complete" // true
	fieldCut      = "cut"      // why, and how much of how much
)

// Fields are the names of a seal's fields in an object.
var Fields = []string{fieldComplete, fieldCut, Field}

// ErrNone is the error of an object without a digest.
var ErrNone = errors.New("no digest (" + Field + ")")

// ChangedError is the error of an object whose digest differs from the recorded
// one.
type ChangedError struct{ Is, Recorded string }

// Error has both digests.
func (e *ChangedError) Error() string {
	return "changed after it was written: " + e.differs()
}

func (e *ChangedError) differs() string {
	return fmt.Sprintf("the digest of its content is %s, recorded is %q", e.Is, e.Recorded)
}

// Object returns a JSON object with its seal. cut says why and where what it
// describes has ended early; "": it is complete. The error is for a text that
// is not a JSON object, and for an object that has a field of a seal.
//
// The digest covers every key and every value but itself, in their order:
// numbers as they are written, strings by their content. Layout and the escapes
// of strings do not count, so that jq and other programs may pass an object on.
// Characters that nobody sees become escapes, as on the standard output.
func Object(object []byte, cut string) ([]byte, error) {
	object = []byte(visible.Text(string(object)))
	w, err := walk(object)
	if err != nil {
		return nil, err
	}
	if w.fields == 0 || w.recorded != nil || w.state != nil || w.cut != "" {
		return nil, fmt.Errorf("an object of %d fields cannot be sealed, expected at least one and none of %v", w.fields, Fields)
	}
	state := []byte(`"` + fieldComplete + `":true`)
	if cut != "" {
		text, err := json.Marshal(cut)
		if err != nil {
			return nil, err
		}
		state = append([]byte(`"`+fieldCut+`":`), text...)
	}
	object = withField(object, state)
	if w, err = walk(object); err != nil {
		return nil, err
	}
	return withField(object, []byte(`"`+Field+`":"`+w.sum()+`"`)), nil
}

// withField adds a field to the end of an object, in the layout of the others.
func withField(object, field []byte) []byte {
	end := bytes.LastIndexByte(object, '}')
	body := bytes.TrimRight(object[:end], " \t\r\n")
	space := object[len(body):end] // before the bracket: "\n" of an object with a line for each field
	var out bytes.Buffer
	out.Write(body)
	out.WriteByte(',')
	if out.Write(space); len(space) > 0 {
		out.WriteString("  ")
		field = bytes.Replace(field, []byte(`":`), []byte(`": `), 1)
	}
	out.Write(field)
	out.Write(space)
	out.Write(object[end:])
	return out.Bytes()
}

// CheckObject compares an object with its digest. cut is "" if it is complete,
// or made by a spinsim that did not record that. The error is ErrNone, a
// *ChangedError, or the reason why the text is not a JSON object.
func CheckObject(object []byte) (cut string, err error) {
	w, err := walk(object)
	switch {
	case err != nil:
		return "", err
	case w.recorded == nil:
		return "", ErrNone
	case *w.recorded != w.sum():
		return "", &ChangedError{w.sum(), *w.recorded}
	}
	return w.cut, nil
}

// walker reads an object token by token into a hash.
type walker struct {
	tokens   *json.Decoder
	hashed   *bufio.Writer
	sum      func() string // hexadecimal
	fields   int           // of the object itself, without its digest
	recorded *string       // nil: it has no digest
	state    *bool         // the field complete; nil: it has none
	cut      string        // the field cut
}

// walk reads an object to its end.
func walk(object []byte) (*walker, error) {
	hash := sha256.New()
	w := &walker{tokens: json.NewDecoder(bytes.NewReader(object)), hashed: bufio.NewWriter(hash)}
	w.tokens.UseNumber()
	if t, err := w.tokens.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("no JSON object")
	}
	for w.tokens.More() {
		if err := w.field(); err != nil {
			return nil, err
		}
	}
	if _, err := w.tokens.Token(); err != nil {
		return nil, err
	}
	if _, err := w.tokens.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more follows the JSON object")
	}
	w.sum = func() string {
		_ = w.hashed.Flush() // a hash takes every byte
		return hex.EncodeToString(hash.Sum(nil))
	}
	return w, nil
}

// field reads a field of the object itself.
func (w *walker) field() error {
	key, err := w.tokens.Token()
	if err != nil {
		return err
	}
	if key == Field {
		t, err := w.tokens.Token()
		text, ok := t.(string)
		if err == nil && (!ok || w.recorded != nil) {
			err = errors.New(Field + ": expected one text")
		}
		w.recorded = &text
		return err
	}
	w.fields++
	w.hash(key)
	for depth := 0; ; {
		t, err := w.tokens.Token()
		if err != nil {
			return err
		}
		w.hash(t)
		switch v := t.(type) {
		case bool:
			if depth == 0 && key == fieldComplete {
				w.state = &v
			}
		case string:
			if depth == 0 && key == fieldCut {
				w.cut = v
			}
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
	}
}

// hash adds a token, so that different sequences of tokens are different bytes.
func (w *walker) hash(t json.Token) {
	kind, text := byte('s'), ""
	switch t := t.(type) {
	case string:
		text = t
	case json.Number:
		kind, text = 'n', t.String()
	case json.Delim:
		kind = byte(t) //nolint:gosec // one of four brackets
	case bool:
		kind, text = 'b', strconv.FormatBool(t)
	case nil:
		kind = '0'
	}
	_ = w.hashed.WriteByte(kind) // a hash takes every byte
	_, _ = w.hashed.WriteString(strconv.Itoa(len(text)) + ":" + text)
}
