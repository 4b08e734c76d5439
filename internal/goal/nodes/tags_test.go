package nodes_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/goal"
	"github.com/spinsim/spinsim/internal/goal/nodes"
	"github.com/spinsim/spinsim/mpi"
)

func TestWideTagsAreRefused(t *testing.T) {
	t.Parallel()
	text := "num_ranks 2\nrank 0 {\nsend 8b to 1 tag 4294967296\n}\nrank 1 {\nrecv 8b from 0 tag 4294967296\n}\n"
	s, err := goal.ReadText(strings.NewReader(text), goal.ReadOptions{})
	require.NoError(t, err)
	var input nodes.InputError
	err = nodes.Check(s, mpi.DefaultOptions(mpi.Host))
	require.ErrorAs(t, err, &input)
	require.ErrorContains(t, err, "tag 4294967296: a message on nodes has a tag of 32 bits, up to 4294967294")
}
