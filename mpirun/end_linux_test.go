package mpirun

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// Open MPI's warning about its launch agent comes or not, alone or with other
// lines: none of them is lost, and it never shows.
func TestWarningsOfTheLaunchAgentAreNotShown(t *testing.T) {
	const warning = "[vm:1] plm:rsh: Warning: setpgid(2,2) failed in parent with errno=Permission denied(13)\n"
	for text, want := range map[string]string{
		"":                                 "",
		warning:                            "",
		warning + warning:                  "",
		"rank 0\n" + warning + "rank 1: 3": "rank 0\nrank 1: 3",
		"without an end":                   "without an end",
	} {
		var shown bytes.Buffer
		n, err := (&without{&shown}).Write([]byte(text))
		require.NoError(t, err)
		require.Equal(t, len(text), n)
		require.Equal(t, want, shown.String())
	}
}
