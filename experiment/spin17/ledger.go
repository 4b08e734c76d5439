package spin17

import "github.com/spinsim/spinsim/experiment"

// bothNICs are the points of a claim about the discrete and the integrated
// network interface.
const bothNICs = "profile=spin-dis,spin-int "

// Sizes of claims that name none. §4.4.3 has 8 B for small and 64 KiB for large
// messages. A packet has 4 KiB.
const (
	smallSizes = "size=16,64,256"
	largeSizes = "size=64KiB,256KiB"
)

// significant is a factor for claims in words: "significantly faster".
const significant = 1.25

// below reports whether factor times the value of a mode is below the values of
// other modes, wherever that mode was measured.
func below(m *experiment.Measured, column, mode string, factor float64, others ...string) bool {
	all := true
	for _, r := range m.Results {
		if r.Point.Text("mode") != mode {
			continue
		}
		for _, other := range others {
			all = all && factor*m.Of(r, column) < m.Beside(r, column, "mode="+other)
		}
	}
	return all
}

// moved reports whether the bytes through all host memories are times the size
// of the message, at all points with a mode.
func moved(m *experiment.Measured, mode string, times float64) bool {
	all := true
	for _, r := range m.Results {
		all = all && (r.Point.Text("mode") != mode || m.Of(r, "host_memory") == times*float64(r.Point.Int("size")))
	}
	return all
}
