// Package laws has the rate laws and path choices of a transport: how many bytes
// may be on their way to a node (congestion control), and which way each packet
// takes. A law is one function of a record, [spin.Flow], and of its state. So the
// same source runs in Go, in the simulator, and as a WebAssembly module in a
// device. Numbers are integers: results are the same everywhere.
package laws

import (
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/spin"
)

// Law is a rate law or a path choice.
type Law struct {
	Name    string // in a profile
	Short   string // what it does, and the publication
	Numbers []Number
	// Grants: a rate law whose receivers say how many bytes may fly, by FlowGranted.
	Grants bool
	// Rated: a rate law that keeps to the rates of links, by LeastPause.
	Rated bool
	// Handle handles one event of a flow: it reads the record, changes its state,
	// and sets the results. The first words of the state are Numbers.
	Handle func(f *spin.Flow, s *State)
}

// State is what a law remembers of a flow. It begins as zeros but for its
// numbers.
type State [Words]uint64

// Words is how many words of state a flow has for each of its laws: what a
// network interface could keep for each of many flows.
const Words = 64

// Number is a parameter of a law, which a profile may set (transport.numbers).
type Number struct {
	Name           string
	Default, Least uint64 // Least: 1 where it divides; the most is 10^12
	Help           string
}

// mostNumber bounds every number.
const mostNumber = 1_000_000_000_000

// Rates are the rate laws, by name.
var Rates = []*Law{dcqcn, dctcp, maxmin, nscc, rccc, swift}

// Ways are the path choices, by name.
var Ways = []*Law{recycle, spray}

// Find returns the law of a list with a name, nil if there is none.
func Find(list []*Law, name string) *Law {
	i := slices.IndexFunc(list, func(l *Law) bool { return l.Name == name })
	if i < 0 {
		return nil
	}
	return list[i]
}

// Names returns the names of a list.
func Names(list []*Law) (names []string) {
	for _, l := range list {
		names = append(names, l.Name)
	}
	return names
}

// Init writes the numbers into the first words of a state. given has other
// values of some of them, by their names.
func (l *Law) Init(state *State, given map[string]uint64) {
	for i, n := range l.Numbers {
		state[i] = n.Default
		if v, is := given[n.Name]; is {
			state[i] = v
		}
	}
}

// Check returns an error if a law cannot have a number of a name, or with a
// value. known: it has a number of the name.
func (l *Law) Check(name string, value uint64) (known bool, err error) {
	for _, n := range l.Numbers {
		if n.Name != name {
			continue
		}
		if value < n.Least || value > mostNumber {
			return true, fmt.Errorf("%d, expected %d to %d", value, n.Least, uint64(mostNumber))
		}
		return true, nil
	}
	return false, nil
}
