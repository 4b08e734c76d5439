package report

import (
	"fmt"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
)

// place returns the place of a name on the axis. Names are one step apart, in
// the order of their appearance.
func (a *axis) place(name string) float64 {
	i := slices.Index(a.names, name)
	if i < 0 {
		i = len(a.names)
		a.names = append(a.names, name)
	}
	return float64(i)
}

// nameTicks labels each name. If labels would touch, every second one is a line
// lower.
func (a *axis) nameTicks() []plot.Tick {
	width := vg.Length(0)
	for _, name := range a.names {
		width = max(width, tickStyle.Width(name)+tickStyle.Font.Size)
	}
	ticks := make([]plot.Tick, len(a.names))
	for i, name := range a.names {
		if i%2 == 1 && width*vg.Length(len(a.names)) > a.length {
			name = "\n" + name
		}
		ticks[i] = plot.Tick{Value: float64(i), Label: name}
	}
	return ticks
}

// said returns a value of the axis for an error.
func (a *axis) said(f float64) string {
	if a.named && f >= 0 && int(f) < len(a.names) {
		return a.names[int(f)]
	}
	return fmt.Sprintf("%g", f)
}
