package goal_test

import (
	"fmt"
	"os"
	"strings"

	"github.com/spinsim/spinsim/goal"
)

// The example reads a schedule from text and runs it with its own parameters.
func Example() {
	s, err := goal.ReadText(strings.NewReader(`
num_ranks 2
rank 0 {
  work: calc 500
  hand: send 8b to 1 tag 7
  hand requires work
}
rank 1 {
  recv 8b from 0 tag 7
}`), goal.ReadOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	p := goal.DefaultParams()
	p.L = 1000
	res, err := goal.NewSimulator(s).Run(p)
	fmt.Println(res.FinishNS, err)
	// Output: [2000 4542] <nil>
}

// Generate makes the schedules of well-known algorithms. CriticalPath returns
// the steps that determine their time.
func ExampleSimulator_CriticalPath() {
	s, err := goal.Generate("bcast-binomial", goal.GenParams{Ranks: 8, Size: 8})
	if err != nil {
		fmt.Println(err)
		return
	}
	path, res, err := goal.NewSimulator(s).CriticalPath(goal.DefaultParams())
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, step := range path.Steps {
		fmt.Printf("%5d to %5d ns: rank %d %v\n", step.Start, step.End, step.Rank, step.Kind)
	}
	fmt.Println(res.MaxNS, "ns, of which latency", path.LatencyNS)
	// Output:
	//     0 to  1500 ns: rank 0 send
	//  4000 to  5542 ns: rank 1 recv
	//  5542 to  7042 ns: rank 1 send
	//  9542 to 11084 ns: rank 3 recv
	// 11084 to 12584 ns: rank 3 send
	// 15084 to 16626 ns: rank 7 recv
	// 16626 ns, of which latency 7500
}

// The error explains why a schedule cannot finish.
func ExampleUnfinishedError() {
	s, err := goal.ReadText(strings.NewReader(`
num_ranks 2
rank 0 {
  a: recv 8b from 1
  b: send 8b to 1
  b requires a
}
rank 1 {
  a: recv 8b from 0
  b: send 8b to 0
  b requires a
}`), goal.ReadOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = goal.NewSimulator(s).Run(goal.DefaultParams())
	fmt.Println(err)
	// Output:
	// goal: the schedule does not finish: 2 operations never started, 2 receives found no message, 0 messages found no receive
	//   cycle: rank 0 a (line 4): recv 8b from 1
	//     waits for rank 1 b (line 10): send 8b to 0
	//     waits for rank 1 a (line 9): recv 8b from 0
	//     waits for rank 0 b (line 5): send 8b to 1
	//     waits for the first
	//   no message for rank 0 a (line 4): recv 8b from 1
	//   no message for rank 1 a (line 9): recv 8b from 0
}

// WithTrace feeds a timeline.
func ExampleWithTrace() {
	s, err := goal.Generate("gather", goal.GenParams{Ranks: 2, Size: 8})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = goal.NewSimulator(s).Run(goal.DefaultParams(), goal.WithTrace(func(sp goal.Span) {
		fmt.Printf("rank %d %v %d: %v from %d to %d, flow %d\n", sp.Rank, sp.Unit, sp.Index, sp.Kind, sp.Start, sp.End, sp.Flow)
	}))
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// rank 1 cpu 0: send from 0 to 1500, flow 2
	// rank 1 nic-send 0: send from 0 to 1042, flow 2
	// rank 0 cpu 0: recv from 4000 to 5542, flow 2
	// rank 0 nic-recv 0: recv from 4000 to 5042, flow 2
}

// A Builder makes a schedule without a text.
func ExampleBuilder() {
	b := goal.NewBuilder()
	b.Rank(0)
	work := b.Calc(500)
	b.Requires(b.Send(8, 1, 7), work)
	b.Rank(1)
	b.Recv(8, 0, 7)
	s, err := b.Schedule()
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := goal.WriteText(os.Stdout, s); err != nil {
		fmt.Println(err)
	}
	// Output:
	// num_ranks 2
	//
	// rank 0 {
	// l1: calc 500
	// l2: send 8b to 1 tag 7
	// l2 requires l1
	// }
	//
	// rank 1 {
	// recv 8b from 0 tag 7
	// }
}
