package profile

import (
	"strings"

	"github.com/spinsim/spinsim/fabric"
)

// reshape removes fields that describe a network of another kind than the
// present fabric.kind. It is called when a file or overrides set the kind.
// Fields of the shape that they set themselves stay, and are an error if the
// kind does not use them. A radix stays, too: every embedded profile has one,
// and a change back to a fat tree needs it.
func (p *Profile) reshape(said func(path string) bool) {
	f := &p.Fabric
	if !said("fabric.kind") {
		return
	}
	if f.Kind != fabric.Torus && f.Kind != fabric.ExaNeSt && !said("fabric.dims") {
		f.Dims = nil
	}
	if f.Kind != fabric.ExaNeSt && !said("fabric.exanest") {
		f.Exanest = fabric.ExanestSpec{}
	}
	if f.Kind != fabric.File && !said("fabric.topology") {
		f.Topology = fabric.Plan{}
	}
}

// saidBy returns a function that reports whether overrides set a field, or one
// below it.
func saidBy(overrides []string) func(path string) bool {
	return func(path string) bool {
		for _, o := range overrides {
			field, _, _ := strings.Cut(o, "=")
			if field = strings.TrimSpace(field); field == path || strings.HasPrefix(field, path+".") {
				return true
			}
		}
		return false
	}
}
