package experiment

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/profile"
)

// Help promises values of each axis: a list, or a smallest and a largest value.
// Each must have a point, with the other axes at their defaults or one of them
// changed. Else its error must name the flag or the profile field to change.
// Otherwise a user types a promised value and is always refused.
func TestHelpPromisesWhatThereIs(t *testing.T) {
	for _, e := range All() {
		device, err := profile.Load(e.DefaultProfiles()[0])
		require.NoError(t, err)
		for i := range e.Axes {
			a := &e.Axes[i]
			ends := a.Of
			if len(ends) == 0 {
				ends = []string{a.Least, a.Most}
			}
			for _, end := range ends {
				if end == "" {
					continue
				}
				_, err := e.At(device, Values{a.Name: end})
				if err == nil || wayOut.MatchString(err.Error()) || hasOther(e, device, a.Name, end) {
					continue
				}
				assert.NoError(t, err, "%s --%s %s", e.Name, a.Name, end)
			}
		}
	}
}

// wayOut matches an error that names what else to change.
var wayOut = regexp.MustCompile(`--[a-z]|profile .* [a-z]+\.[a-z_]+`)

// hasOther reports whether there is a point with a value of an axis and any
// value of another axis.
func hasOther(e *Experiment, device *profile.Profile, axis, value string) bool {
	for i := range e.Axes {
		other := &e.Axes[i]
		for _, v := range slices.Concat(other.Of, strings.Split(other.DefaultList(), ","), []string{other.Least, other.Most}) {
			if v == "" || other.Name == axis {
				continue
			}
			if _, err := e.At(device, Values{axis: value, other.Name: v}); err == nil {
				return true
			}
		}
	}
	return false
}
