package chakra

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// notes count what a schedule does not say as its trace does.
type notes struct {
	ctrl       int // dependencies that are no order
	launches   int // communications on the CPU
	broadcasts int
	alone      int  // collectives without a partner
	untimed    int  // nodes that take no time
	operations int  // computations that tell operations instead of a duration
	metadata   int  // metadata that is not understood
	overlap    bool // operations of a rank
	attributes map[string]bool
}

// maxUnused bounds the names that are listed: a file can have any number.
const maxUnused = 32

// unused notes the name of an attribute that has no meaning for a schedule.
func (n *notes) unused(name []byte) {
	if !n.attributes[string(name)] && len(n.attributes) <= maxUnused && len(name) <= maxUnused {
		n.attributes[string(name)] = true
	}
}

// lines are the notes in sentences.
func (n *notes) lines() (list []string) {
	for _, c := range []struct {
		n    int
		text string
	}{
		{n.ctrl, "ctrl_deps ignored: in traces of PyTorch's schema they tell which call contains which; data_deps alone give the order"},
		{n.launches, "communications on the CPU (is_cpu_op) are computations of their duration there: they only launch another node"},
		{n.broadcasts, "broadcasts last their recorded duration, as in ASTRA-sim, and send no messages"},
		{n.alone, "collectives of a group of one NPU send no messages"},
		{n.untimed, "nodes of types INVALID, MEM_LOAD and MEM_STORE take no time"},
		{n.operations, "computations without a duration take 1 ns: their num_ops would need a roofline model"},
		{n.metadata, "METADATA nodes with inputs that list no process groups are ignored"},
	} {
		if c.n > 0 {
			list = append(list, fmt.Sprintf("%d %s", c.n, c.text))
		}
	}
	if n.overlap {
		list = append(list, "operations of a rank overlap, which needs goal run --model atlahs: processors have no common time in LogGOPS'10")
	}
	if names := slices.Sorted(maps.Keys(n.attributes)); len(names) > 0 {
		more := ""
		if len(names) > maxUnused {
			names, more = names[:maxUnused], " and more"
		}
		list = append(list, "attributes of nodes ignored: "+strings.Join(names, ", ")+more)
	}
	return list
}
