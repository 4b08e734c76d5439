package profile

import (
	"errors"
	"fmt"
	"os"
	"path"
	"reflect"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/internal/fields"
	"github.com/spinsim/spinsim/internal/file"
	"github.com/spinsim/spinsim/internal/strictyaml"
)

// Load reads an embedded profile by name, or a file if name has a path
// separator or ends in .yaml or .yml. A file may name an embedded profile in
// the key "base"; then it contains only the differences. Each override is
// "path=value", such as "hpu.cores=8". Overrides are applied in order. The
// result is validated. All errors of text, overrides and values are joined;
// each names the file, the line or the field's path.
func Load(name string, overrides ...string) (*Profile, error) {
	return Files(file.Read).Load(name, overrides...)
}

// Files reads a file of at most limit bytes: a profile, or a network that a
// profile or an override names. With it a caller decides which files those may
// be that somebody else has named.
type Files func(name string, limit int64) ([]byte, error)

// Load is [Load] with these files.
func (f Files) Load(name string, overrides ...string) (*Profile, error) {
	p, wrong, err := f.read(name)
	if err != nil {
		if IsFile(name) {
			err = fmt.Errorf("profile %w", err)
		}
		return nil, err
	}
	if p, err = f.finish(name, p, wrong, overrides); err != nil {
		return nil, err
	}
	p.Origin.Embedded = !IsFile(name)
	return p, nil
}

// Parse reads a whole profile, without a base, from YAML or from the result of
// [Profile.Content], and applies overrides as [Load] does. The name is for
// messages.
func Parse(name string, text []byte, overrides ...string) (*Profile, error) {
	return Files(file.Read).Parse(name, text, overrides...)
}

// Parse is [Parse] with these files.
func (f Files) Parse(name string, text []byte, overrides ...string) (*Profile, error) {
	tree, err := strictyaml.Parse(name, text)
	if err != nil {
		return nil, fmt.Errorf("profile %w", err)
	}
	p, r := new(Profile), strictyaml.Reader{File: name, ByName: tables()}
	r.Read(tree, p)
	whole(&r, tree)
	return f.finish(name, p, r.Errors, overrides)
}

// IsFile reports whether name is a file, not an embedded profile.
func IsFile(name string) bool {
	ext := path.Ext(name)
	return strings.ContainsRune(name, os.PathSeparator) || ext == ".yaml" || ext == ".yml"
}

// byName are the types for which a text may have a name instead of the fields.
type byName = map[reflect.Type]func(name string) (*yaml.Node, error)

// tables knows the embedded cost tables.
func tables() byName {
	return byName{reflect.TypeFor[hpu.CostTable](): costTree}
}

// tablesAndShapes also knows networks: files with names relative to dir.
func (f Files) tablesAndShapes(dir string) byName {
	all := tables()
	all[reflect.TypeFor[fabric.Plan]()] = func(name string) (*yaml.Node, error) {
		if !path.IsAbs(name) {
			name = path.Join(dir, name)
		}
		data, err := f(name, file.MaxText)
		if err != nil {
			return nil, err
		}
		tree, err := strictyaml.Parse(name, data)
		if err != nil {
			return nil, err
		}
		r := strictyaml.Reader{File: name} // errors have the lines of this file
		r.Read(tree, new(fabric.Plan))
		return tree, r.Errors.Join()
	}
	return all
}

// read reads the text of a profile and its base. The profile is nil if the base
// does not exist. The last result is an error of the text as a whole.
func (f Files) read(name string) (*Profile, strictyaml.Errors, error) {
	tree, err := f.treeOf(name)
	if err != nil {
		return nil, nil, err
	}
	p, r := new(Profile), strictyaml.Reader{File: name, ByName: f.tablesAndShapes(path.Dir(name))}
	base := strictyaml.Remove(tree, "base")
	if base != nil {
		if name, ok := r.Scalar(base, "base"); ok {
			if err := missing(name, "one"); err != nil {
				r.Fail(base, "base", "%w", err)
			}
		}
		if r.Errors != nil { // the values of the base are unknown
			r.Read(tree, p)
			return nil, r.Errors, nil
		}
		if p, _, err = f.read(base.Value); err != nil {
			return nil, nil, err
		}
		if strictyaml.Child(tree, "name") == nil { // another device must not look like its base
			p.Name = strings.TrimSuffix(path.Base(name), path.Ext(name))
		}
	}
	r.Read(tree, p)
	if base == nil {
		whole(&r, tree)
	}
	p.reshape(func(path string) bool {
		at := tree
		for name := range strings.SplitSeq(path, ".") {
			at = strictyaml.Child(at, name)
		}
		return at != nil
	})
	return p, r.Errors, nil
}

// treeOf returns the text of a profile as a tree. The caller may remove fields.
func (f Files) treeOf(name string) (*yaml.Node, error) {
	if IsFile(name) {
		data, err := f(name, file.MaxText)
		if err != nil {
			return nil, err
		}
		return strictyaml.Parse(name, data)
	}
	known, err := embedded(&profileTrees, name, Source)
	if err != nil {
		return nil, err
	}
	tree := *known
	tree.Content = slices.Clone(tree.Content)
	return &tree, nil
}

// profileTrees and costTrees cache the parsed embedded texts, by name. Parsing
// takes most of the time of loading a profile.
var profileTrees, costTrees sync.Map

// embedded returns an embedded text as a tree, which must not be changed.
func embedded(known *sync.Map, name string, source func(name string) ([]byte, error)) (*yaml.Node, error) {
	if tree, is := known.Load(name); is {
		return tree.(*yaml.Node), nil
	}
	data, err := source(name)
	if err != nil {
		return nil, err
	}
	tree, err := strictyaml.Parse(name, data)
	if err != nil {
		return nil, err
	}
	known.Store(name, tree)
	return tree, nil
}

// finish applies overrides to a profile. It validates the profile if the text
// and the overrides could be read. wrong has the errors of the text. p is nil if
// the base does not exist.
func (f Files) finish(name string, p *Profile, wrong strictyaml.Errors, overrides []string) (*Profile, error) {
	errs := wrong.Each()
	if p == nil {
		p = new(Profile) // still check the overrides
	}
	for _, o := range overrides {
		r := strictyaml.Reader{File: fmt.Sprintf("%s: override %q", name, o), ByName: f.tablesAndShapes("")}
		r.Set(p, o)
		errs = append(errs, r.Errors.Each()...)
	}
	p.reshape(saidBy(overrides))
	if errs == nil {
		for _, err := range fields.Each(p.Validate()) {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	}
	for i, err := range errs {
		errs[i] = fmt.Errorf("profile %w", err)
	}
	if errs != nil {
		return nil, errors.Join(errs...)
	}
	p.Origin = Origin{Name: name, Overrides: slices.Clone(overrides)}
	return p, nil
}
