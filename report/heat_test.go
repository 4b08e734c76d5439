package report

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func heat() *Heat {
	return &Heat{
		Title: "what moves what", Columns: []string{"short", "a longer name of a row"}, Groups: []string{"a", "b"}, Aside: "mean 10%",
		Scale: strings.Repeat("a long explanation ", 6), Signs: "+ nearer", Caption: []string{"grey names: excluded"},
		Lines: []HeatLine{
			{Name: "first answer", Aside: "5%", Cells: []HeatCell{{Factor: 2, Sign: "+"}, {}}},
			{Name: "second answer", Aside: "20%", Faint: true, Rule: true, Cells: []HeatCell{{}, {Factor: math.NaN(), Sign: "-"}}},
		},
	}
}

// A picture has every name, and room for all of them: nothing ends beyond its
// edge, also if a reader's font is wider.
func TestHeatHasItsNames(t *testing.T) {
	h := heat()
	picture, err := h.picture(".svg")
	require.NoError(t, err)
	for _, text := range []string{h.Title, "short", "a longer name of a row", "mean 10%", "first answer", "second answer", "5%", "20%", "+ nearer", "grey names: excluded", "1/2"} {
		require.Contains(t, string(picture), ">"+strings.TrimSpace(text), text)
	}
	l := h.layout()
	require.GreaterOrEqual(t, l.width, 2*edge+labelStyle.Width("1/2 ")+scaleWidth+labelStyle.Width(scaleEnd+h.Scale))
	require.GreaterOrEqual(t, l.top, tickStyle.Width("a longer name of a row"))
	file := filepath.Join(t.TempDir(), "heat.png")
	require.NoError(t, h.DrawFile(file))
	png, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "\x89PNG", string(png[:4]))
	require.ErrorContains(t, h.DrawFile("heat.pdf"), "heat.pdf")
	for range 1000 {
		h.Lines = append(h.Lines, h.Lines[0])
	}
	_, err = h.picture(".svg")
	require.ErrorContains(t, err, "points, more than 14000 either way")
}

// The farther a factor is from 1, the darker its colour; more and less have
// different ones; half and twice are as dark as a factor of 100.
func TestFactorColours(t *testing.T) {
	light := func(f float64) int { c := factorColour(f); return int(c.R) + int(c.G) + int(c.B) }
	require.Equal(t, 3*255, light(1))
	require.Equal(t, more, factorColour(2))
	require.Equal(t, more, factorColour(100))
	require.Equal(t, less, factorColour(0.5))
	require.Equal(t, unsure, factorColour(math.NaN()))
	rapid.Check(t, func(r *rapid.T) {
		f := rapid.Float64Range(1.04, 2).Draw(r, "factor")
		require.Less(r, light(f), light(1+(f-1)*0.7))
		require.Less(r, light(1/f), light(1/(1+(f-1)*0.7)))
		require.Greater(r, factorColour(f).R, factorColour(f).B)
		require.Less(r, factorColour(1/f).R, factorColour(1/f).B)
	})
}
