package checkpoint

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/sim"
)

func toAny[T any](v T) any { return v }

// Values are read back from a file unchanged, with their types.
func TestValuesComeBack(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		want := Value{rapid.OneOf(
			rapid.Just(any(nil)), rapid.Map(rapid.String(), toAny), rapid.Map(rapid.Bool(), toAny), rapid.Map(rapid.Int(), toAny), rapid.Map(rapid.Int64(), toAny),
			rapid.Map(rapid.Uint64(), toAny), rapid.Map(rapid.Float64(), toAny), rapid.Map(rapid.Int64(), func(x int64) any { return sim.Time(x) }),
		).Draw(r, "value")}
		text, err := json.Marshal(want)
		require.NoError(t, err)
		var back Value
		require.NoError(t, json.Unmarshal(text, &back))
		require.Equal(t, want, back)
	})
	_, err := json.Marshal(Value{struct{}{}})
	require.ErrorContains(t, err, "a struct {} cannot be kept")
	for text, wrong := range map[string]string{
		`{"int":"a"}`: "invalid syntax", `{"real":"1"}`: "no type of numbers", `{}`: "no value", `[]`: "no value", `1`: "no value", `{"int":"1","ps":"2"}`: "no value", `{"int":1}`: "no value",
	} {
		require.ErrorContains(t, json.Unmarshal([]byte(text), &Value{}), wrong, text)
	}
}
