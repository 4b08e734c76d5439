// Package digest adds a SHA-256 of a JSON object to the object itself, as its
// last field, and checks it.
//
// The digest covers every key and every value but itself, in their order:
// numbers as they are written, strings by their content. Layout and the escapes
// of strings do not count, so that jq and other programs may pass an object on.
// The digest shows that somebody has changed a value by mistake. It is no
// protection against somebody who computes it again.
package digest

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
)

// Field is the name of the field at the top of the object; deeper in the object
// it is a field like others.
const Field = "sha256"

// ErrNone is the error of Check for an object without a digest.
var ErrNone = errors.New("no digest (" + Field + ")")

// ChangedError is the error of Check for an object whose digest differs from
// the recorded one.
type ChangedError struct{ Is, Recorded string }

// Error has both digests.
func (e *ChangedError) Error() string {
	return fmt.Sprintf("changed after it was written: the digest of its content is %s, recorded is %q", e.Is, e.Recorded)
}

// Add returns the object with its digest. It fails if the text is not a JSON
// object, or the object is empty or already has a digest.
func Add(object []byte) ([]byte, error) {
	w, err := walk(object)
	if err != nil {
		return nil, err
	}
	if w.fields == 0 || w.recorded != nil {
		return nil, fmt.Errorf("an object of %d fields cannot take a digest, expected at least one and no %s", w.fields, Field)
	}
	end := bytes.LastIndexByte(object, '}')
	body := bytes.TrimRight(object[:end], " \t\r\n")
	space := object[len(body):end] // before the bracket: "\n" of an object with a line for each field
	var out bytes.Buffer
	out.Write(body)
	out.WriteByte(',')
	if out.Write(space); len(space) > 0 {
		out.WriteString(`  "` + Field + `": `)
	} else {
		out.WriteString(`"` + Field + `":`)
	}
	out.WriteString(`"` + w.sum() + `"`)
	out.Write(space)
	out.Write(object[end:])
	return out.Bytes(), nil
}

// Check compares an object with its digest. Its error is ErrNone, a
// *ChangedError, or the reason why the text is not a JSON object.
func Check(object []byte) error {
	w, err := walk(object)
	switch {
	case err != nil:
		return err
	case w.recorded == nil:
		return ErrNone
	case *w.recorded != w.sum():
		return &ChangedError{w.sum(), *w.recorded}
	}
	return nil
}

// walker reads an object token by token into a hash.
type walker struct {
	tokens   *json.Decoder
	hashed   *bufio.Writer
	sum      func() string // hexadecimal
	fields   int           // of the object itself, without its digest
	recorded *string       // nil: it has no digest
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
