package manifest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// needs draws possible needs of a handler of a kind, "": of the library.
func needs(r *rapid.T, k Kind, label string) (n Needs) {
	size := func(what string) (e Expr) {
		if rapid.Bool().Draw(r, label+" has "+what) {
			e = rapid.SampledFrom([]Expr{Const(0), Const(8), Const(4096), must("mtu"), must("16*hpus")}).Draw(r, label+" "+what)
		}
		return e
	}
	n.Memory, n.HostMemory, n.Scratchpad, n.MessageMemory = size("memory"), size("host memory"), size("scratchpad"), size("message memory")
	if n.MessageMemory.IsSet() {
		n.Messages = size("messages")
	}
	if k == "" || k == Header {
		n.UserHeader = rapid.Int64Range(0, 64).Draw(r, label+" user header")
	}
	for _, p := range []Packet{FirstPacket, LastPacket} {
		if (k == "" || p == seen(k)) && rapid.Bool().Draw(r, label+" "+string(p)) {
			n.Packets = append(n.Packets, p)
		}
	}
	n.EntryOptions = rapid.SliceOfDistinct(rapid.SampledFrom([]string{"op_put", "op_get", "use_once"}), rapid.ID).Draw(r, label+" options")
	return n
}

// TestNeedsOfEntries: an entry has the needs of the library and of each of its
// handlers, except for bytes that no handler of it can see. In old manifests
// all needs are the library's. Then an entry with all kinds of handlers has all
// of them, as before.
func TestNeedsOfEntries(t *testing.T) {
	d := &Device{MTU: 1024, HPUs: 4, Contexts: 2, Ranks: 3, Clusters: 1}
	rapid.Check(t, func(r *rapid.T) {
		m := &Manifest{Needs: needs(r, "", "library")}
		var entry [3]string
		of := []Needs{m.Needs}
		for i, k := range Kinds() {
			h := Handler{Export: string(k), Kind: k, Needs: needs(r, k, string(k))}
			m.Handlers = append(m.Handlers, h)
			if rapid.Bool().Draw(r, "with "+string(k)) {
				entry[i] = h.Export
				of = append(of, h.Needs)
			}
		}
		got, err := m.NeedsOf(entry)
		require.NoError(r, err)
		if entry[0] == "" {
			require.Zero(r, got.UserHeader)
		}
		for i, k := range Kinds() {
			for _, p := range got.Packets {
				require.False(r, p == seen(k) && entry[i] == "", "%s", p)
			}
		}
		most := func(e func(n *Needs) Expr) (v int64) {
			for i := range of {
				x, err := e(&of[i]).Between(d, 0, maxState)
				require.NoError(r, err)
				v = max(v, x)
			}
			return v
		}
		for what, e := range map[string]func(n *Needs) Expr{ //lint:maporder each by itself
			"memory":         func(n *Needs) Expr { return n.Memory },
			"host memory":    func(n *Needs) Expr { return n.HostMemory },
			"scratchpad":     func(n *Needs) Expr { return n.Scratchpad },
			"message memory": func(n *Needs) Expr { return n.MessageMemory },
			"messages": func(n *Needs) Expr {
				if n.MessageMemory.IsSet() && !n.Messages.IsSet() {
					return Const(d.HPUs * d.Contexts)
				}
				return n.Messages
			},
		} {
			v, err := e(&got).Between(d, 0, maxState)
			require.NoError(r, err)
			require.Equal(r, most(e), v, what)
		}
		for _, n := range of {
			for _, o := range n.EntryOptions {
				require.Contains(r, got.EntryOptions, o)
			}
			if entry[0] != "" {
				require.GreaterOrEqual(r, got.UserHeader, n.UserHeader)
			}
		}
		require.Equal(r, slices.Compact(slices.Sorted(slices.Values(got.EntryOptions))), slices.Sorted(slices.Values(got.EntryOptions)), "each once")
	})
}

// A handler of any kind is refused where nobody would see the bytes that it
// needs.
func TestNeedsOfAnyKind(t *testing.T) {
	for _, x := range []struct {
		needs Needs
		of    [3]bool // kinds as which it may be installed
		what  string
	}{
		{Needs{UserHeader: 8}, [3]bool{true, false, false}, "a user header of 8 bytes, which only a header handler sees"},
		{Needs{Packets: []Packet{FirstPacket}}, [3]bool{true, false, false}, "the whole first packet, which only a header handler sees"},
		{Needs{Packets: []Packet{LastPacket}}, [3]bool{false, false, true}, "the whole last packet, which only a completion handler sees"},
		{Needs{Memory: Const(8)}, [3]bool{true, true, true}, ""},
	} {
		m := &Manifest{Handlers: []Handler{{Export: "any", Needs: x.needs}}}
		require.NoError(t, m.Check())
		for i, k := range Kinds() {
			var entry [3]string
			entry[i] = "any"
			_, err := m.NeedsOf(entry)
			if x.of[i] {
				require.NoError(t, err, k)
				continue
			}
			require.EqualError(t, err, fmt.Sprintf("handler any needs %s: it cannot be the %s handler of an entry", x.what, k))
		}
	}
}
