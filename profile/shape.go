package profile

import (
	"strings"

	"github.com/spinsim/spinsim/fabric"
)

// reshape takes away what describes a network of another kind than fabric.kind
// now says. It is called when a file or overrides have said the kind anew; what
// they say of the shape themselves stays, and is an error if the kind has no
// use for it. A radix stays: every embedded profile has one, and a way back to
// a fat tree needs it.
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

// saidBy reports what overrides say: a field, or one below it.
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
