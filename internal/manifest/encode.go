package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// The forms that Encode writes, in the order of docs/abi.md.
type (
	manifestJSON struct {
		Manifest    int           `json:"manifest"`
		Name        string        `json:"name,omitempty"`
		Version     string        `json:"version,omitempty"`
		Description string        `json:"description,omitempty"`
		Handlers    []handlerJSON `json:"handlers,omitempty"`
		States      []stateJSON   `json:"states,omitempty"`
		Needs       needsJSON     `json:"needs,omitzero"`
	}
	handlerJSON struct {
		Export      string    `json:"export"`
		Kind        Kind      `json:"kind,omitempty"`
		State       string    `json:"state,omitempty"`
		Description string    `json:"description,omitempty"`
		Needs       needsJSON `json:"needs,omitzero"`
	}
	stateJSON struct {
		Name        string      `json:"name"`
		Description string      `json:"description,omitempty"`
		Size        int64       `json:"size"`
		Fields      []fieldJSON `json:"fields,omitempty"`
	}
	fieldJSON struct {
		Name        string      `json:"name"`
		Offset      int64       `json:"offset"`
		Type        Type        `json:"type,omitempty"`
		Array       []int64     `json:"array,omitempty"`
		Unit        string      `json:"unit,omitempty"`
		Default     string      `json:"default,omitempty"`
		Min         string      `json:"min,omitempty"`
		Max         string      `json:"max,omitempty"`
		Size        int64       `json:"size,omitempty"`
		Fields      []fieldJSON `json:"fields,omitempty"`
		Description string      `json:"description,omitempty"`
	}
	needsJSON struct {
		Memory        string   `json:"memory,omitempty"`
		UserHeader    int64    `json:"user_header,omitempty"`
		Spaces        []Space  `json:"spaces,omitempty"`
		HostMemory    string   `json:"host_memory,omitempty"`
		Scratchpad    string   `json:"scratchpad,omitempty"`
		MessageMemory string   `json:"message_memory,omitempty"`
		Messages      string   `json:"messages,omitempty"`
		EntryOptions  []string `json:"entry_options,omitempty"`
		PTOptions     []string `json:"pt_options,omitempty"`
		Packets       []Packet `json:"packets,omitempty"`
		Pool          Pool     `json:"pool,omitempty"`
	}
)

// Encode writes the manifest as JSON, always in the same form. It returns an
// error if Check does.
func (m *Manifest) Encode() ([]byte, error) {
	if err := m.Check(); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(m.form()); err != nil {
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

func (m *Manifest) form() manifestJSON {
	out := manifestJSON{Manifest: Format, Name: m.Name, Version: m.Version, Description: m.Description, Needs: m.Needs.form()}
	for i := range m.Handlers {
		h := &m.Handlers[i]
		out.Handlers = append(out.Handlers, handlerJSON{h.Export, h.Kind, h.State, h.Description, h.Needs.form()})
	}
	for _, s := range m.States {
		out.States = append(out.States, stateJSON{s.Name, s.Description, s.Size, fieldForms(s.Fields)})
	}
	return out
}

func (n *Needs) form() needsJSON {
	return needsJSON{
		n.Memory.String(), n.UserHeader, n.Spaces, n.HostMemory.String(), n.Scratchpad.String(), n.MessageMemory.String(), n.Messages.String(),
		n.EntryOptions, n.PTOptions, n.Packets, n.Pool,
	}
}

func fieldForms(fields []Field) (out []fieldJSON) {
	for i := range fields {
		f := &fields[i]
		out = append(out, fieldJSON{
			f.Name, f.Offset, f.Type, f.Dims, f.Unit, f.Default.String(), f.Min.String(), f.Max.String(), f.Size, fieldForms(f.Fields), f.Description,
		})
	}
	return out
}
