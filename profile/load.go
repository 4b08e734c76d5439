package profile

import (
	"errors"
	"fmt"
	"os"
	"path"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/internal/file"
	"github.com/spinsim/spinsim/internal/yamltree"
)

// Load reads an embedded profile by name, or a file if name has a path separator or ends in .yaml or .yml. A file
// may name an embedded profile in the key "base" and then holds only what differs. Each override is "path=value", such as
// "hpu.cores=8", applied in order. The result is validated. All errors of text, overrides and values are joined; each names the file, the line or
// the field's path.
func Load(name string, overrides ...string) (*Profile, error) {
	tree, found, err := treeOf(name)
	if err != nil {
		if isFile(name) {
			err = fmt.Errorf("profile %w", err)
		}
		return nil, err
	}
	p, err := build(tree, found, overrides)
	if err != nil {
		return nil, err
	}
	p.Origin.Embedded = !isFile(name)
	return p, nil
}

// Parse reads a whole profile, without a base, from YAML or from what Profile.Content returns, and applies overrides as
// Load does. The name is for messages.
func Parse(name string, text []byte, overrides ...string) (*Profile, error) {
	tree, err := yamltree.ParseMapping(name, text)
	if err != nil {
		return nil, fmt.Errorf("profile %w", err)
	}
	return build(tree, &yamltree.Strict{Name: name}, overrides)
}

// isFile tells a profile's file from the name of an embedded profile.
func isFile(name string) bool {
	ext := path.Ext(name)
	return strings.ContainsRune(name, os.PathSeparator) || ext == ".yaml" || ext == ".yml"
}

// names are the types of which a text may have a name in the place of the fields.
type names = map[reflect.Type]func(name string) (*yaml.Node, error)

// tables has embedded cost tables.
func tables() names {
	return names{reflect.TypeFor[hpu.CostTable](): costTree}
}

// shapes has networks, which are files whose names are relative to dir.
func shapes(dir string) names {
	return names{reflect.TypeFor[fabric.Plan](): func(name string) (*yaml.Node, error) {
		if !path.IsAbs(name) {
			name = path.Join(dir, name)
		}
		data, err := file.Read(name, file.MaxText)
		if err != nil {
			return nil, err
		}
		shape, err := yamltree.ParseMapping(name, data)
		if err != nil {
			return nil, err
		}
		return shape, yamltree.Decode(name, shape, new(fabric.Plan))
	}}
}

// treeOf reads the text of a profile and, below it, of its base. What is wrong with the text is cut out of it and noted. Cost tables keep
// their names: one that a text writes out takes the place of the whole table of its base.
func treeOf(name string) (*yaml.Node, *yamltree.Strict, error) {
	read := Source
	if isFile(name) {
		read = func(name string) ([]byte, error) { return file.Read(name, file.MaxText) }
	}
	data, err := read(name)
	if err != nil {
		return nil, nil, err
	}
	tree, err := yamltree.ParseMapping(name, data)
	if err != nil {
		return nil, nil, err
	}
	base := yamltree.Remove(tree, "base")
	wrong := &yamltree.Strict{Name: name, ByName: shapes(path.Dir(name))}
	wrong.ByName[reflect.TypeFor[hpu.CostTable]()] = func(name string) (*yaml.Node, error) {
		_, err := costTree(name)
		return nil, err
	}
	wrong.Check(tree, reflect.TypeFor[Profile]()) // with the file's own lines
	if base == nil {
		return tree, wrong, nil
	}
	if !slices.Contains(Names(), base.Value) {
		return nil, nil, fmt.Errorf("%s:%d: base: no profile %q, expected one of %s", name, base.Line, base.Value, strings.Join(Names(), ", "))
	}
	root, _, err := treeOf(base.Value)
	if err != nil {
		return nil, nil, err
	}
	if yamltree.Child(tree, "name") == nil { // another device must not pass for its base
		yamltree.Child(root, "name").Value = strings.TrimSuffix(path.Base(name), path.Ext(name))
	}
	yamltree.Merge(root, tree)
	return root, wrong, nil
}

// build makes a profile of its text and the overrides. What has been found to be wrong with the text is no longer in it.
func build(tree *yaml.Node, wrong *yamltree.Strict, overrides []string) (*Profile, error) {
	wrong.ByName = tables()
	wrong.Check(tree, reflect.TypeFor[Profile]())
	errs := wrong.Errors()
	for _, o := range overrides {
		own := yamltree.Strict{Name: fmt.Sprintf("%s: override %q", wrong.Name, o), Lineless: true, ByName: shapes("")}
		own.ByName[reflect.TypeFor[hpu.CostTable]()] = costTree
		next := yamltree.Clone(tree)
		if err := yamltree.Override(next, reflect.TypeFor[Profile](), o); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", own.Name, err))
			continue
		}
		own.Check(next, reflect.TypeFor[Profile]())
		if own.Errors() == nil {
			tree = next // else the old value stays, so that nothing follows from a missing one
		}
		errs = append(errs, own.Errors()...)
		wrong.Add(&own)
	}
	p := new(Profile)
	if err := tree.Decode(p); err != nil {
		errs = append(errs, fmt.Errorf("%s: %w", wrong.Name, err))
	} else {
		for _, err := range wrong.Beside(p.Validate()) {
			errs = append(errs, fmt.Errorf("%s: %w", wrong.Name, err))
		}
	}
	for i, err := range errs {
		errs[i] = fmt.Errorf("profile %w", err)
	}
	if errs != nil {
		return nil, errors.Join(errs...)
	}
	p.Origin = Origin{Name: wrong.Name, Overrides: slices.Clone(overrides)}
	return p, nil
}
