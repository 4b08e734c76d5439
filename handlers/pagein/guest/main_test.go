package main

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/handlers/internal/wasmtest"
	"github.com/spinsim/spinsim/handlers/pagein"
	"github.com/spinsim/spinsim/spin"
	"github.com/spinsim/spinsim/spin/spintest"
)

// The answer begins with the page and has as many as the state says, or all of
// the mapping's.
func TestPolicy(t *testing.T) {
	d := spintest.New(t, spintest.Config{HPUs: 1, HostMem: 64})
	wasm := wasmtest.Handlers[pagein.State](t, d, pagein.Library.Wasm, wasmtest.Names{Header: pagein.Policy}, 0)
	native := spintest.Handlers[pagein.State]{Header: policy}
	rapid.Check(t, func(r *rapid.T) {
		page := rapid.Uint64Range(0, 1<<26).Draw(r, "page") * pagein.PageBytes
		f := pagein.Fault{Page: page, Start: page, End: page + rapid.Uint64Range(1, 1<<40).Draw(r, "behind"), Source: rapid.Uint32Range(0, 1).Draw(r, "source")}
		pages := rapid.Uint32().Draw(r, "pages")
		want := pagein.Plan{First: pagein.Range{Start: page, End: page + uint64(pages)*pagein.PageBytes}}
		if pages == 0 {
			want = pagein.Plan{First: pagein.Range{Start: page, End: f.End}, Search: 1}
		}
		for _, h := range []spintest.Handlers[pagein.State]{native, wasm} {
			s := pagein.State{Pages: pages}
			out := spintest.Deliver(d, h, &s, spintest.Message{Data: spin.EncodeState(&f), UserHdrLen: 64})
			require.Equal(t, spin.Proceed, out.Header)
			require.Equal(t, pagein.State{Pages: pages, Plan: want}, s)
		}
	})
}
