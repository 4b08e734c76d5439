package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// content is a manifest without methods.
type content Manifest

// form is the JSON of a manifest, in the order of docs/abi.md.
type form struct {
	Format int64 `json:"manifest"`
	*content
}

// Encode writes the manifest as JSON, always in the same form. It returns an
// error if Check does.
func (m *Manifest) Encode() ([]byte, error) {
	if err := m.Check(); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(form{Format, (*content)(m)}); err != nil {
		return nil, err
	}
	text := bytes.TrimSpace(b.Bytes())
	if len(text) > MaxBytes {
		return nil, &Error{Offset: -1, Cause: fmt.Sprintf("%d bytes, expected at most %d", len(text), MaxBytes)}
	}
	return text, nil
}

// MarshalJSON is Encode.
func (m *Manifest) MarshalJSON() ([]byte, error) { return m.Encode() }
