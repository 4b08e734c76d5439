package proxy

import (
	"embed"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"github.com/spinsim/spinsim/internal/fields"
	"github.com/spinsim/spinsim/internal/file"
	"github.com/spinsim/spinsim/internal/strictyaml"
)

// Proxy describes the communication of an application.
type Proxy struct {
	Name        string  `yaml:"name"`
	Description string  `yaml:"description"`
	Source      string  `yaml:"source"`   // of sizes and counts
	Periodic    []bool  `yaml:"periodic"` // for each dimension
	Global      []int   `yaml:"global"`   // points in each dimension, of all ranks
	Local       []int   `yaml:"local"`    // or of each rank
	Phases      []Phase `yaml:"phases"`   // of an iteration
}

// Phase is an exchange, and computation during and after it.
type Phase struct {
	Messages []Message `yaml:"messages"`
	During   int       `yaml:"during"` // share of computation between sending and waiting
	After    int       `yaml:"after"`  // share of computation after it
}

// Message is a message to the neighbours in a dimension.
type Message struct {
	Dim  int    `yaml:"dim"`
	Side string `yaml:"side"` // Up, Down or, for both, ""
	Unit int    `yaml:"unit"` // bytes for each point of the face
	Pad  []int  `yaml:"pad"`  // points added in each dimension; absent: none
}

// Sides to which a message goes.
const (
	Up   = "up"
	Down = "down"
)

//go:embed apps/*.yaml
var apps embed.FS

const appFolder = "apps"

// Names lists the embedded proxies in alphabetical order.
func Names() []string {
	files, err := apps.ReadDir(appFolder)
	if err != nil {
		panic(err) // programmer's mistake: the folder is embedded
	}
	var names []string
	for _, f := range files {
		names = append(names, strings.TrimSuffix(f.Name(), ".yaml"))
	}
	return names
}

// Load reads an embedded proxy by name, or a file if name has a path separator
// or ends in .yaml or .yml. It joins all errors; each names file, line and
// field, or file and field.
func Load(name string) (*Proxy, error) {
	var text []byte
	var err error
	if ext := filepath.Ext(name); strings.ContainsRune(name, filepath.Separator) || ext == ".yaml" || ext == ".yml" {
		text, err = file.Read(name, file.MaxText)
	} else {
		text, err = apps.ReadFile(path.Join(appFolder, name+".yaml"))
		if err != nil {
			return nil, fmt.Errorf("proxy: no application %q, expected one of %s, or a .yaml file%s", name, strings.Join(Names(), ", "), fields.DidYouMean(name, Names()))
		}
	}
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	tree, err := strictyaml.Parse(name, text)
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	p, r := new(Proxy), strictyaml.Reader{File: name}
	r.Read(tree, p)
	var errs []error
	for _, err := range r.Errors {
		errs = append(errs, fmt.Errorf("proxy: %w", err))
	}
	if errs == nil {
		for _, err := range fields.Each(p.Validate()) {
			errs = append(errs, fmt.Errorf("proxy: %s: %w", name, err))
		}
	}
	if errs != nil {
		return nil, errors.Join(errs...)
	}
	return p, nil
}

// Validate checks every field and returns all violations joined, each with the field's path.
func (p *Proxy) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	dims := len(p.Periodic)
	if dims == 0 {
		bad("periodic: expected a value for each dimension")
	}
	if len(p.Global)+len(p.Local) != dims || len(p.Global) > 0 && len(p.Local) > 0 {
		bad("global, local: expected one of them, with %d numbers", dims)
	}
	points := func(field string, list []int) {
		for i, n := range list {
			if n < 1 || n > maxPoints {
				bad("%s[%d]: %d points, expected 1 to %d", field, i, n, maxPoints)
			}
		}
	}
	points("global", p.Global)
	points("local", p.Local)
	if len(p.Phases) == 0 {
		bad("phases: expected at least one")
	}
	for i, ph := range p.Phases {
		if ph.During < 0 || ph.After < 0 || ph.During > maxShare || ph.After > maxShare {
			bad("phases[%d]: shares of computation are %d and %d, expected 0 to %d", i, ph.During, ph.After, maxShare)
		}
		for k, m := range ph.Messages {
			if err := m.validate(dims); err != nil {
				bad("phases[%d].messages[%d].%w", i, k, err)
			}
		}
	}
	return errors.Join(errs...)
}

const (
	maxPoints = 1 << 24
	maxShare  = 1 << 20
	maxUnit   = 1 << 24
)

func (m *Message) validate(dims int) error {
	switch {
	case m.Dim < 0 || m.Dim >= dims:
		return fmt.Errorf("dim: %d, expected 0 to %d", m.Dim, dims-1)
	case m.Side != "" && m.Side != Up && m.Side != Down:
		return fmt.Errorf("side: %q, expected %s, %s or nothing", m.Side, Up, Down)
	case m.Unit < 0 || m.Unit > maxUnit:
		return fmt.Errorf("unit: %d bytes, expected 0 to %d", m.Unit, maxUnit)
	case len(m.Pad) != 0 && len(m.Pad) != dims:
		return fmt.Errorf("pad: %d numbers, expected %d or none", len(m.Pad), dims)
	}
	for _, n := range m.Pad {
		if n < 0 || n > maxPoints {
			return fmt.Errorf("pad: %d points, expected 0 to %d", n, maxPoints)
		}
	}
	return nil
}
