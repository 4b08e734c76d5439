package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/internal/lab/handlerlab"
	"github.com/spinsim/spinsim/profile"
)

// For handlers of the library work, advice agrees with compare hpus of handlers
// that take as long. With the advised number of HPUs they hold line rate, with
// one less they do not. With either number they handle as many packets as the
// advice simulates, within two percent.
func TestAdviceIsWhatHPUsMeasures(t *testing.T) {
	const size = 2048
	p, err := profile.Load("spin-int", fmt.Sprint("fabric.mtu=", size))
	require.NoError(t, err)
	cfg := &handlerlab.Config{Module: handlers.Must("work"), Profile: p, Nodes: 1}
	require.NoError(t, cfg.SetState("iterations=60"))
	a, err := handlerlab.Advise(context.Background(), cfg, make([]byte, size))
	require.NoError(t, err)
	require.Greater(t, a.Advised, 3)
	e, err := experiment.Find("hpus")
	require.NoError(t, err)
	for _, hpus := range []int{a.Advised, a.Advised - 1} {
		at, err := e.At(p, experiment.Values{"handler-time": a.Computes, "hpus": hpus, "size": size})
		require.NoError(t, err)
		r, err := e.Measure(context.Background(), at)
		require.NoError(t, err)
		require.InEpsilon(t, float64(a.Computes), float64(r.Time("handler")), 0.02)
		share := r.Float("rate") * a.Line.Microseconds()
		require.Equal(t, hpus == a.Advised, share >= handlerlab.LineRate, "%d HPUs reach %.3f", hpus, share)
		if hpus == a.Advised {
			require.InEpsilon(t, share, a.AtAdvised.Share, 0.02)
		}
	}
}

// Advice works on every library and on every kind of device. It is three
// sentences without contradiction.
func TestAdviceOnEveryLibrary(t *testing.T) {
	devices := []string{"exanest-qfdb", "spin-int", "ib-npf"}
	for i, library := range handlers.Names() {
		device := devices[i%len(devices)] // raid5 takes 8 s on exanest-qfdb
		t.Run(library+" "+device, func(t *testing.T) {
			var table struct {
				Answer []string `json:"answer"`
				Rows   []struct {
					Load   float64 `json:"at_line_rate"`
					Enough bool    `json:"enough"`
				} `json:"rows"`
			}
			require.NoError(t, json.Unmarshal(output(t, "advise", library, "--profile", device, "--format", "json"), &table))
			text := table.Answer
			require.Len(t, text, 3)
			require.Contains(t, text[0], device+": handlers of "+library)
			holds := !strings.Contains(text[0], "do not hold line rate")
			require.Equal(t, holds, strings.Contains(text[1], "used most"), text)
			require.Regexp(t, `^(The least that holds it as simulated is|By Little's law it (takes|needs no more than)) --set [a-z0-9.]+=[1-9][0-9]*|^No number of `, text[2])
			require.NotEmpty(t, table.Rows)
			for _, r := range table.Rows {
				require.Equal(t, r.Load <= 1, r.Enough)
				require.True(t, !holds || r.Enough || r.Load < 1/handlerlab.LineRate, "what does not suffice does not hold line rate: %v", text)
			}
		})
	}
}

// For people the sentences come first, and a note names the handlers if they
// were chosen.
func TestAdviceNamesChosenHandlers(t *testing.T) {
	for _, library := range append(slices.Sorted(maps.Keys(usual)), "count") {
		text := string(output(t, "advise", library, "--profile", "spin-int"))
		require.Equal(t, 3, slices.Index(strings.Split(text, "\n"), ""), text)
		_, several := usual[library]
		require.Equal(t, several, strings.Contains(text, "Of the handlers of "+library+" these ran"), text)
	}
}

// By default, advice does not use a packet with a part of an element.
func TestAdviceOnElementsOfAnOddLength(t *testing.T) {
	require.Contains(t, string(output(t, "advise", "accumulate", "--profile", "eth-npf")), "messages of 1488 B on eth-npf")
	require.Contains(t, string(output(t, "advise", "count", "--profile", "eth-npf")), "messages of 1500 B on eth-npf")
}
