package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/laws"
	"github.com/spinsim/spinsim/spin"
)

// The module begins with zeros, and its numbers are the law's.
func TestBegins(t *testing.T) {
	list := append(laws.Rates, laws.Ways...)
	begin := spin.Flow{MTU: 1000, MTUTime: 1000, Payload: 900, Base: 10_000, Paths: 8}
	var got, want laws.State
	f := begin
	require.Equal(t, spin.Success, law(&f, &got))
	l := laws.Find(list, "nscc")
	l.Init(&want, nil)
	l.Handle(&begin, &want)
	require.Equal(t, want, got)
	require.Equal(t, begin, f)
}
