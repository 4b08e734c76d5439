package profile

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/spinsim/spinsim/internal/strictyaml"
)

// CheckServe reports overrides that choose a pool for libraries whose handlers
// do not run. Otherwise a misspelt name would go unnoticed. running are the
// libraries whose handlers run. A profile's own text may name libraries that a
// run does not use; see nic.Serve.Idle.
func CheckServe(overrides, running []string) error {
	var errs []error
	for _, o := range overrides {
		for _, library := range served(o) {
			switch {
			case slices.Contains(running, library):
			case len(running) == 0:
				errs = append(errs, fmt.Errorf("serve.%s: no handlers of library %s in this run, in which none run at all", library, library))
			default:
				errs = append(errs, fmt.Errorf("serve.%s: no handlers of library %s in this run; there are %s", library, library, strings.Join(running, ", ")))
			}
		}
	}
	return errors.Join(errs...)
}

// served lists the libraries for which an override chooses pools.
func served(override string) (libraries []string) {
	path, value, _ := strings.Cut(override, "=")
	path = strings.TrimSpace(path)
	if rest, is := strings.CutPrefix(path, "serve."); is {
		library, _, _ := strings.Cut(rest, ".")
		return []string{library}
	}
	if path != "serve" {
		return nil
	}
	tree, err := strictyaml.Parse("", []byte(value))
	if err != nil {
		return nil // Load has reported it
	}
	r := strictyaml.Reader{}
	return r.Mapping(tree, "", func(_, _ *yaml.Node, _ string) {})
}
