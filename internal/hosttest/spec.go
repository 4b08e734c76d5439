// Package hosttest has what tests of an operating system need around it: the
// parameters of a node, cores and a kernel, and a walk of tables like a
// device's.
package hosttest

import (
	_ "embed"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/internal/strictyaml"
)

//go:embed qfdb.yaml
var qfdb []byte

//go:embed storage.yaml
var storage []byte

// Cores is how many cores the node has.
const Cores = 4

// Spec returns the operating system of an ExaNeSt node with some fields
// changed, each "field=value" as in a profile. One error lists all mistakes.
func Spec(overrides ...string) (*host.OSSpec, error) {
	spec := new(host.OSSpec)
	if err := strictyaml.Load("qfdb.yaml", qfdb, spec, "", overrides); err != nil {
		return nil, err
	}
	return spec, spec.Validate(Cores)
}

// Storage returns the storage device of an ExaNeSt node, with fields changed in
// the same way.
func Storage(overrides ...string) (*host.StorageSpec, error) {
	spec := new(host.StorageSpec)
	if err := strictyaml.Load("storage.yaml", storage, spec, "", overrides); err != nil {
		return nil, err
	}
	return spec, spec.Validate()
}
