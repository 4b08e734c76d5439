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

// What the help of an axis says its values are, from least to most or of a list, there are points of: with the values that other axes have by default, or with what the
// error names, a flag or a field of the profile. Otherwise a user types what help has promised, and is refused for good.
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

// wayOut is of an error that names what else would have to be another value.
var wayOut = regexp.MustCompile(`--[a-z]|profile .* [a-z]+\.[a-z_]+`)

// hasOther reports whether there is a point with a value of an axis and some value of another one.
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
