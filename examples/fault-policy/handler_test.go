package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/handlers/pagein"
	_ "github.com/spinsim/spinsim/internal/wings"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/sim"
	"github.com/spinsim/spinsim/spin"
	"github.com/spinsim/spinsim/spin/spintest"
)

// The README shows the handler, and the numbers of its table.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	source, err := os.ReadFile("handler.go")
	require.NoError(t, err)
	_, handler, found := strings.Cut(string(source), "//go:wasmexport policy\n")
	require.True(t, found)
	handler, _, _ = strings.Cut(handler, "\nfunc main")
	require.Contains(t, string(text), "```go\n"+strings.TrimRight(handler, "\n")+"\n```\n")

	l, err := handlers.Open("early.wasm")
	require.NoError(t, err)
	e, err := experiment.Find("pagefault")
	require.NoError(t, err)
	device, err := profile.Load("exanest-qfdb")
	require.NoError(t, err)
	rows := regexp.MustCompile(`(?m)^exanest-qfdb +(\d+ \wiB) +(\d+) +(\d+)$`).FindAllStringSubmatch(string(text), -1)
	require.Len(t, rows, 3)
	for _, row := range rows {
		var size sim.Size
		require.NoError(t, size.UnmarshalText([]byte(strings.ReplaceAll(row[1], " ", ""))))
		for i, policy := range []string{"pia", "handler"} {
			p, err := e.At(device, experiment.Values{"policy": policy, "size": int(size)})
			require.NoError(t, err)
			p.Handlers = map[string]*handlers.Library{pagein.PolicySlot.Name: l}
			r, err := e.Measure(t.Context(), p)
			require.NoError(t, err)
			require.Equal(t, row[2+i], fmt.Sprintf("%.0f", r.Time(experiment.LatencyColumn).Microseconds()), "%s, %s", row[1], policy)
		}
	}
}

// The source, as native Go: the rest of the mapping comes behind the request.
func TestPolicy(t *testing.T) {
	d := spintest.New(t, spintest.Config{HostMem: 64})
	var s pagein.State
	f := pagein.Fault{Page: 1 << 20, Start: 0, End: 4 << 20}
	out := spintest.Deliver(d, spintest.Handlers[pagein.State]{Header: policy}, &s, spintest.Message{Data: spin.EncodeState(&f), UserHdrLen: 64})
	require.Equal(t, spin.Proceed, out.Header)
	require.Equal(t, pagein.Plan{First: pagein.Range{Start: 1 << 20, End: 1<<20 + 64<<10}, Then: pagein.Range{Start: 1<<20 + 64<<10, End: 4 << 20}}, s.Plan)
}
