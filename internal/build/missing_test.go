package build

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// In a listing of clang, the place of a call is the last source line before it.
func TestCallsIn(t *testing.T) {
	const listing = `	.globl	payload                         # -- Begin function payload
payload:                                # @payload
.Lfunc_begin0:
	.loc	1 6 23 prologue_end             # ./h/m.c:6:23
	local.get	0
	call	known
.Ltmp1:
	.loc	1 0 34 is_stmt 0                # ./h/m.c:0:34
	call	elsewhere
	call	elsewhere
	.loc	1 9 2                           # ./h/m.c:9:2
	call	elsewhere
	end_function
other:                                  # @other
	call	__floattidf
`
	require.Equal(t, []string{
		"m.c:6: function payload calls elsewhere, which is nowhere\n",
		"m.c:9: function payload calls elsewhere, which is nowhere\n",
		"function other calls __floattidf, which is nowhere\n",
	}, callsIn(listing, map[string]bool{"elsewhere": true, "__floattidf": true}))
}

// The compiler reports an error in a definition once for each of its files.
func TestDefinitions(t *testing.T) {
	for name, right := range map[string]bool{"A": true, "_a1=": true, "F(x)=x+1": true, "": false, "1x": false, "a-b": false, "a b=1": false, "=1": false} {
		_, err := (&Options{Define: []string{name}}).clangArgs(&cLibrary{})
		require.Equal(t, right, err == nil, "%q: %v", name, err)
	}
}
