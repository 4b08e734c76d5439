package manifest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A set has at most one handler of a kind, and is found by its name.
func TestSets(t *testing.T) {
	m, err := Parse([]byte(`{"manifest":1,"handlers":[{"export":"a","kind":"payload","set":"insert"},{"export":"b","kind":"completion","set":"insert"},{"export":"c","kind":"payload","set":"read"},{"export":"d","kind":"header"}]}`))
	require.NoError(t, err)
	insert, err := m.OfSet("insert")
	require.NoError(t, err)
	require.Equal(t, [3]string{"", "a", "b"}, insert)
	read, err := m.OfSet("read")
	require.NoError(t, err)
	require.Equal(t, [3]string{"", "c", ""}, read)
	for name, want := range map[string]string{
		"reed": "no set of handlers reed, expected one of insert, read",
		"":     "no set of handlers , expected one of insert, read",
	} {
		_, err := m.OfSet(name)
		require.EqualError(t, err, want)
	}
	_, err = (&Manifest{Handlers: []Handler{{Export: "a", Kind: Payload}}}).OfSet("x")
	require.EqualError(t, err, "no set of handlers x: the module has none")
	for text, want := range map[string]string{
		`{"export":"a","kind":"payload","set":"s"},{"export":"b","kind":"payload","set":"s"}`: "handlers[1].set: s has two payload handlers",
		`{"export":"a","set":"s"}`:                    "handlers[0].kind: expected one of",
		`{"export":"a","kind":"payload","set":"s/t"}`: `handlers[0].set: "s/t", expected 1 to 64 letters`,
	} {
		_, err := Parse([]byte(`{"manifest":1,"handlers":[` + text + `]}`))
		require.ErrorContains(t, err, want)
	}
	text, err := m.Encode()
	require.NoError(t, err)
	again, err := Parse(text)
	require.NoError(t, err)
	require.Equal(t, m, again)
}
