package profile

import (
	"strings"

	"github.com/spinsim/spinsim/fabric"
)

// reshape removes fields that describe a network of another kind than the
// present fabric.kind. It is called when a file or overrides set the kind.
// Fields of the shape that they set themselves stay, and are an error if the
// kind does not use them.
func (p *Profile) reshape(said func(path string) bool) {
	if said("fabric.kind") {
		p.Fabric.Reshape(func(field string) bool { return said("fabric." + field) })
	}
	// Where packets have one way, nobody chooses.
	if t := &p.Transport; p.Fabric.Paths != fabric.ByPacket && (said("fabric.kind") || said("fabric.paths")) && !said("transport.way") && !said("transport.paths") {
		t.Way, t.Paths = "", 0
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
