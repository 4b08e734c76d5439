// Package hosttest has what tests of an operating system need around it: the parameters of a node, and a device.
package hosttest

import (
	_ "embed"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/internal/strictyaml"
)

//go:embed qfdb.yaml
var qfdb []byte

// Cores is how many cores the node has.
const Cores = 4

// Spec returns the operating system of an ExaNeSt node with some fields changed, each "field=value" as in a profile. All that is wrong is one error.
func Spec(overrides ...string) (*host.OSSpec, error) {
	spec := new(host.OSSpec)
	r := strictyaml.Reader{File: "qfdb.yaml"}
	tree, err := strictyaml.Parse(r.File, qfdb)
	if err != nil {
		return nil, err
	}
	r.Read(tree, spec)
	r.File = ""
	for _, o := range overrides {
		r.Set(spec, o)
	}
	if err := r.Errors.Join(); err != nil {
		return nil, err
	}
	return spec, spec.Validate(Cores)
}
