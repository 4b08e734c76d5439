package fabric

import (
	"fmt"
	"slices"
	"strings"
)

// kinds are the shapes of networks, in the order in which errors name them.
var kinds = []*kind{
	fatTreeKind,
	crossbarKind,
	torusKind,
	exanestKind,
	fileKind,
	leafSpineKind,
	dragonflyKind,
}

// kind is a shape that [Spec.Kind] names. All that depends on the kind is here:
// a new one is a file with a value of this type, and a line in kinds.
type kind struct {
	name   string
	fields []*field // of Spec, which other kinds may lack
	// whole makes the network have all its switches, however few nodes a run has
	whole bool

	check func(s *Spec) []error                          // nil: nothing can be wrong
	most  func(s *Spec) int                              // places for nodes; nil: MaxNodes
	build func(s *Spec, nodes int) (t Topology, e error) // of a valid s
}

// field is a field of Spec that only some kinds have. For example, dims belongs
// to kinds torus and exanest.
type field struct {
	name  string                 // in a profile
	set   func(s *Spec) []string // beginnings of errors, one for each value that is set
	clear func(s *Spec)          // nil: other kinds ignore the field
}

// shape returns the kind of s, nil if its name is unknown.
func (s *Spec) shape() *kind {
	i := slices.IndexFunc(kinds, func(k *kind) bool { return k.name == s.Kind })
	if i < 0 {
		return nil
	}
	return kinds[i]
}

func (k *kind) has(f *field) bool { return k != nil && slices.Contains(k.fields, f) }

// strange returns the fields that k does not have, in the order of kinds. k may
// be nil.
func (k *kind) strange() (list []*field) {
	for _, other := range kinds {
		for _, f := range other.fields {
			if f.clear != nil && !k.has(f) && !slices.Contains(list, f) {
				list = append(list, f)
			}
		}
	}
	return list
}

// names returns the names of the kinds that have a field, or of all if f is nil:
// "a, b or c".
func names(f *field) string {
	var list []string
	for _, k := range kinds {
		if f == nil || k.has(f) {
			list = append(list, k.name)
		}
	}
	last := len(list) - 1
	return strings.Join(append(list[:max(0, last-1)], strings.Join(list[max(0, last-1):], " or ")), ", ")
}

// checkShape checks the kind and the fields that depend on it.
func (s *Spec) checkShape() (errs []error) {
	k := s.shape()
	if !k.has(radixField) && (s.Radix < 0 || s.Radix > MaxNodes) {
		errs = append(errs, fmt.Errorf("radix: want 0 to %d ports, got %d", MaxNodes, s.Radix))
	}
	if k == nil {
		return append(errs, fmt.Errorf("kind: want %s, got %q", names(nil), s.Kind))
	}
	if k.check != nil {
		errs = append(errs, k.check(s)...)
	}
	for _, f := range k.strange() {
		for _, set := range f.set(s) {
			errs = append(errs, fmt.Errorf("%s has no meaning with kind %s, want kind %s", set, s.Kind, names(f)))
		}
	}
	return errs
}

// Reshape clears the fields that the kind of s does not have, but for those
// that keep returns true for. It is for those who change the kind of a network
// whose other fields they did not write. Radix stays: kinds that do not need it
// ignore it, and a change back to a fat tree needs it.
func (s *Spec) Reshape(keep func(field string) bool) {
	for _, f := range s.shape().strange() {
		if !keep(f.name) {
			f.clear(s)
		}
	}
}

// Most returns the largest number of nodes of the topology. s must be valid.
func (s *Spec) Most() int {
	if most := s.shape().most; most != nil {
		return most(s)
	}
	return MaxNodes
}
