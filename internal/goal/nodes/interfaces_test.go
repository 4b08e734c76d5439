package nodes

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/goal"
	"github.com/spinsim/spinsim/sim"
)

// sides has a ping-pong between two ranks for each cpu and nic.
func sides(tb require.TestingT, size int, at ...string) *goal.Schedule {
	var b strings.Builder
	b.WriteString("num_ranks 2\n")
	for rank := range 2 {
		fmt.Fprintf(&b, "rank %d {\n", rank)
		for n, where := range at {
			for i := range 8 {
				call := fmt.Sprintf("send %db to %d", size, 1-rank)
				if (i+rank)%2 > 0 {
					call = fmt.Sprintf("recv %db from %d", size, 1-rank)
				}
				fmt.Fprintf(&b, "m%d_%d: %s tag %d %s\n", n, i, call, n, where)
				if i > 0 {
					fmt.Fprintf(&b, "m%[1]d_%[2]d requires m%[1]d_%[3]d\n", n, i, i-1)
				}
			}
		}
		b.WriteString("}\n")
	}
	return text(tb, b.String())
}

// Two ping-pongs, each with a core and a NIC of its own, take as long as one, but for
// turns at the memory controller. On one NIC they take longer.
func TestNICsAreIndependent(t *testing.T) {
	for way := range ways[:3] {
		for _, size := range []int{8, 3000, 100_000} {
			name := fmt.Sprintf("%d: %d B", way, size)
			cfg := coresOf(t, way, 2)
			one := ran(t, sides(t, size, "cpu 0 nic 3"), cfg)
			both := ran(t, sides(t, size, "cpu 0 nic 3", "cpu 1 nic 5"), cfg)
			require.InEpsilon(t, float64(one.Max), float64(both.Max), 0.02, name)
			require.GreaterOrEqual(t, both.Max, one.Max, name)
			require.Greater(t, ran(t, sides(t, size, "cpu 0 nic 3", "cpu 1 nic 3"), cfg).Max, one.Max, name)
			require.Equal(t, 2*one.Messages.Received, both.Messages.Received, name)
		}
	}
}

// A single core serves both NICs: long messages go side by side, and what their
// libraries do takes turns.
func TestOneCoreServesNICs(t *testing.T) {
	const size = 1 << 20
	message := func(nics ...int) *goal.Schedule {
		var b strings.Builder
		b.WriteString("num_ranks 2\nrank 0 {\n")
		for i, nic := range nics {
			fmt.Fprintf(&b, "send %db to 1 tag %d nic %d\n", size, i, nic)
		}
		b.WriteString("}\nrank 1 {\n")
		for i, nic := range nics {
			fmt.Fprintf(&b, "recv %db from 0 tag %d nic %d\n", size, i, nic)
		}
		return text(t, b.String()+"}\n")
	}
	for way := range ways {
		cfg := coresOf(t, way, 1)
		one, apart, same := ran(t, message(0), cfg).Max, ran(t, message(0, 1), cfg).Max, ran(t, message(0, 0), cfg).Max
		require.Less(t, float64(apart), 1.3*float64(one), ways[way].device)
		require.Greater(t, float64(same), 1.6*float64(one), ways[way].device)
	}
}

// A receive waits at the NIC of its message, whatever nic it names, as in the model.
// The computation between waits for both NICs, and takes the only core.
func TestReceivesGoToTheNICOfTheirMessage(t *testing.T) {
	s := text(t, `num_ranks 3
rank 0 {
a: send 100b to 2 tag 7 nic 1
b: recv 8b from 2 nic 1
b requires a
}
rank 1 {
send 200b to 2 tag 7
}
rank 2 {
x: recv 200b from -1 tag 7
y: recv 200b from -1 tag 7 nic 1
c: calc 50000
c requires x
c requires y
d: send 8b to 0
d requires c
}
`)
	for way := range ways {
		r := ran(t, s, coresOf(t, way, 1))
		require.EqualValues(t, 3, r.Messages.Received)
		require.Greater(t, r.Finish[0], 50*sim.Microsecond)
		require.Less(t, r.Finish[0], 100*sim.Microsecond, ways[way].device)
		require.Equal(t, 50*sim.Microsecond, r.Computing)
	}
}

// No library gives up while another one handles the last message of its NIC. In a
// ring all ranks send and receive at once on every NIC, with one core and with two.
func TestLastMessageOfAnotherNIC(t *testing.T) {
	for nics := 2; nics <= 4; nics++ {
		for cpus := 1; cpus <= 2; cpus++ {
			var b strings.Builder
			b.WriteString("num_ranks 3\n")
			for rank := range 3 {
				fmt.Fprintf(&b, "rank %d {\n", rank)
				for nic := range nics {
					fmt.Fprintf(&b, "send 1000b to %d tag %d cpu %d nic %d\n", (rank+1)%3, nic, nic%cpus, nic)
					fmt.Fprintf(&b, "recv 1000b from %d tag %d cpu %d nic %d\n", (rank+2)%3, nic, nic%cpus, nic)
				}
				b.WriteString("}\n")
			}
			s := text(t, b.String())
			for way := range ways {
				require.EqualValues(t, 3*nics, ran(t, s, coresOf(t, way, 2)).Messages.Received, ways[way].device)
			}
		}
	}
}
