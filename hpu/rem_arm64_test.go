package hpu

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The engine needs remByDivision: as soon as a version does not, this fails, and rem.go can go.
func TestEngineIsWrongAboutRemainders(t *testing.T) {
	e, err := NewEngine("wazero")
	require.NoError(t, err)
	wrong, _ := remaindersOf(t, e, false)
	require.NotEmpty(t, wrong)
	require.NoError(t, e.Close())
}
