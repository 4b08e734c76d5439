package scenario

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	input "github.com/spinsim/spinsim/internal/file"
	"github.com/spinsim/spinsim/profile"
)

// device returns the name of the profile, and the scenario's values of its
// fields. chosen is a profile instead of the scenario's; "": none.
func (s *Spec) device(chosen string) (name string, own []override) {
	if name = chosen; name == "" {
		name = s.Profile
		if ext := filepath.Ext(name); ext == ".yaml" || ext == ".yml" || strings.ContainsRune(name, '/') {
			if name = beside(s.file, name); !strings.ContainsRune(name, os.PathSeparator) {
				name = "." + string(os.PathSeparator) + name
			}
		}
	}
	for _, x := range s.Set {
		own = append(own, override{x.Path + "=" + s.value(x.Path, x.Value), x.where})
	}
	for _, x := range s.Topology {
		path := "fabric." + x.Path
		own = append(own, override{path + "=" + s.value(path, x.Value), x.where})
	}
	return name, own
}

// override is a replacement of a profile value.
type override struct {
	text  string // path=value
	where string // path in the scenario
}

// loadProfile reads the profile with all replacements. more are the caller's.
func (p *planner) loadProfile(more []string) {
	if p.options.Profile != nil {
		p.profile = p.options.Profile
		return
	}
	name, own := p.spec.device(p.options.Chosen)
	var all []string
	for _, o := range own {
		all = append(all, o.text)
	}
	files := profile.Files(func(name string, limit int64) ([]byte, error) {
		its := func(o override) bool { return strings.HasSuffix(o.text, "="+name) }
		if slices.ContainsFunc(more, func(o string) bool { return strings.Contains(o, name) }) || p.options.Chosen != "" && !slices.ContainsFunc(own, its) {
			return input.Read(name, limit) // the user has named it, or the profile has that he has chosen
		}
		return p.options.read(p.spec.file, name, limit, input.Read)
	})
	asSaid, err := files.Load(name, all...)
	if _, wrong := files.Load(name); wrong != nil && p.options.Chosen != "" {
		p.errs = append(p.errs, fmt.Errorf("--profile: %w", wrong))
		return
	}
	if err != nil {
		p.blame(files, name, own, err)
		return
	}
	if otherKind(asSaid, more) {
		all = slices.DeleteFunc(all, ofShape)
	}
	if p.profile, err = files.Load(name, append(all, more...)...); err != nil {
		p.errs = append(p.errs, err)
		p.profile = asSaid // for the other checks
	}
}

// otherKind reports whether overrides choose another kind of network than the
// profile. Then the scenario's values for the shape of its own kind are
// meaningless.
func otherKind(p *profile.Profile, overrides []string) bool {
	kind := p.Fabric.Kind
	for _, o := range overrides {
		if path, value, _ := strings.Cut(o, "="); strings.TrimSpace(path) == "fabric.kind" {
			kind = strings.TrimSpace(value)
		}
	}
	return kind != p.Fabric.Kind
}

// ofShape reports whether an override chooses or describes a kind of network.
func ofShape(override string) bool {
	path, _, _ := strings.Cut(override, "=")
	path = strings.TrimSpace(path)
	return slices.ContainsFunc([]string{"fabric.kind", "fabric.radix", "fabric.dims", "fabric.topology", "fabric.exanest"}, func(field string) bool {
		return path == field || strings.HasPrefix(path, field+".")
	})
}

// blame finds the replacements of the scenario that cause the errors of a
// profile.
func (p *planner) blame(files profile.Files, name string, own []override, err error) {
	all := []error{err}
	if several, are := err.(interface{ Unwrap() []error }); are {
		all = several.Unwrap()
	}
	for _, err := range all {
		where := ""
		for _, o := range own {
			field, _, _ := strings.Cut(o.text, "=")
			if strings.Contains(err.Error(), fmt.Sprintf("override %q", o.text)) || strings.Contains(err.Error(), ": "+field+": ") {
				where = o.where
			}
		}
		if where == "" {
			where = guilty(files, name, own)
		}
		p.fail(where, "%w", err)
	}
	if p.profile, err = files.Load(name); err != nil {
		p.profile = nil // no further checks are possible
	}
}

// guilty returns the path of the replacement without which a profile would be
// valid, else the path of the profile.
func guilty(files profile.Files, name string, own []override) string {
	for i := range own {
		var others []string
		for k, o := range own {
			if k != i {
				others = append(others, o.text)
			}
		}
		if _, err := files.Load(name, others...); err == nil {
			return own[i].where
		}
	}
	return "profile"
}
