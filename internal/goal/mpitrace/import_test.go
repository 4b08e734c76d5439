package mpitrace

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/goal"
	"github.com/spinsim/spinsim/internal/goal/collective"
)

// imported makes the schedule of the files of ranks 0, 1, and so on.
func imported(library string, files ...string) (*goal.Schedule, []string, error) {
	im := New(len(files), Libraries()[library])
	for r, text := range files {
		if err := im.Rank(fmt.Sprintf("t-%d.txt", r), strings.NewReader(text)); err != nil {
			return nil, nil, err
		}
	}
	s, err := im.Schedule()
	return s, im.Notes(), err
}

// clock writes calls one after the other: each begins 1 us after the one before
// and lasts 2 us.
type clock struct {
	strings.Builder

	now int
}

func newClock() *clock {
	c := &clock{now: 10}
	c.WriteString("# collprof 0.9 output file\n\nMPI_Init:-:1:2:10.000000\n")
	return c
}

// call writes a call with its arguments.
func (c *clock) call(name, format string, args ...any) *clock {
	if arguments := fmt.Sprintf(format, args...); arguments != "" {
		name += fmt.Sprintf(":%d.000000:%s", c.now+1, arguments)
	} else {
		name += fmt.Sprintf(":%d.000000", c.now+1)
	}
	c.now += 3
	fmt.Fprintf(c, "%s:%d.000000\n", name, c.now)
	return c
}

func (c *clock) end() string {
	fmt.Fprintf(c, "# Finalize clockdiff: 0.000000\nMPI_Finalize:%d.000000:-\n", c.now+1)
	return c.String()
}

// text is the schedule as text, without names of operations.
func operations(t testing.TB, s *goal.Schedule) (lines []string) {
	for rank, ops := range s.All() {
		for i := range ops.Len() {
			op := ops.Op(i)
			line := fmt.Sprintf("%d: %v %d", rank, op.Kind, op.Size)
			if op.Kind != goal.Calc {
				line += fmt.Sprintf(" peer %d tag %d", int32(op.Peer), int64(op.Tag))
			}
			lines = append(lines, line)
		}
	}
	r, err := goal.NewSimulator(s).Run(goal.DefaultParams())
	require.NoError(t, err)
	require.Zero(t, r.Mismatched)
	return lines
}

// everything is a trace of four ranks that Schedgen understands whole.
func everything() (files []string) {
	for r := range 4 {
		c, next, last := newClock(), (r+1)%4, (r+3)%4
		world := fmt.Sprintf("0,%d,4", r)
		c.call("MPI_Comm_rank", "%s:99", world)
		c.call("MPI_Irecv", "1:100:11,8,8:%d:7:%s:5000", last, world)
		c.call("MPI_Isend", "1:100:11,8,46909632806920:%d:7:%s:5008", next, world)
		c.call("MPI_Waitall", "2:5000:0")
		c.call("MPI_Bcast", "1:12:13,1,1:2:%s", world)
		c.call("MPI_Reduce", "1:2:3:10,8,8:3:1:%s", world)
		c.call("MPI_Allreduce", "1:2:5:10,8,8:3:%s", world)
		c.call("MPI_Alltoall", "1:2:10,8,8:1:2:10,8,8:%s", world)
		c.call("MPI_Barrier", "%s", world)
		c.call("MPI_Sendrecv", "1:3:2,4,4:%d:4:1:3:2,4,4:%d:4:%s:9", next, last, world)
		if r%2 == 0 {
			c.call("MPI_Send", "1:77:13,1,1:%d:23:%s", r+1, world)
		} else {
			c.call("MPI_Recv", "1:77:13,1,1:%d:23:%s:4", r-1, world)
		}
		c.call("MPI_Send_init", "1:9:13,1,1:%d:11:%s:7000", next, world)
		c.call("MPI_Recv_init", "1:9:13,1,1:%d:11:%s:7008", last, world)
		c.call("MPI_Start", "7008").call("MPI_Start", "7000")
		c.call("MPI_Wait", "7000:0").call("MPI_Wait", "7008:0")
		files = append(files, c.end())
	}
	return files
}

// The totals are Schedgen's (spcl/atlahs 8837294, --ptrn trace), but for the bytes
// of a barrier, 8 messages of 1 byte there, and for the 2 us of each init of a
// persistent request, of which it takes off 90%.
func TestTotalsAreSchedgens(t *testing.T) {
	s, notes, err := imported("openmpi", everything()...)
	require.NoError(t, err)
	require.Equal(t, []string{"calls whose time is a computation: 4 MPI_Comm_rank"}, notes)
	st := goal.Stat(s)
	require.Equal(t, 48, st.Sends)
	require.Equal(t, 48, st.Recvs)
	require.EqualValues(t, 4066-8, st.Bytes)
	require.EqualValues(t, 81_600+4*2*2_000*9/10, st.CalcNS)
	operations(t, s)
}

// Computations are between calls. What does not block goes on at its start; a
// wait, and what blocks, holds up what comes later.
func TestOrder(t *testing.T) {
	a := newClock().call("MPI_Isend", "1:8:13,1,1:1:0:0,0,2:5000").call("MPI_Get_count", "1:2:3").call("MPI_Wait", "5000:0").call("MPI_Recv", "1:8:13,1,1:1:0:0,0,2:4")
	b := newClock().call("MPI_Recv", "1:8:13,1,1:0:0:0,1,2:4").call("MPI_Send", "1:8:13,1,1:0:0:0,1,2")
	s, _, err := imported("openmpi", a.end(), b.end())
	require.NoError(t, err)
	require.Equal(t, []string{
		"0: calc 1000", "0: send 8 peer 1 tag 0", "0: calc 4000", "0: calc 1000", "0: recv 8 peer 1 tag 0", "0: calc 1000",
		"1: calc 1000", "1: recv 8 peer 0 tag 0", "1: calc 1000", "1: send 8 peer 0 tag 0", "1: calc 1000",
	}, operations(t, s))
	ops := s.Rank(0)
	require.Equal(t, []int{2}, slices.Collect(ops.AfterStart(1)))
	require.Equal(t, []int{3}, slices.Collect(ops.AfterDone(1)))
	require.Equal(t, []int{3}, slices.Collect(ops.AfterDone(2)))
	require.Equal(t, []int{5}, slices.Collect(ops.AfterDone(4)))
}

// Ranks of communicators become ranks of the world. Rows of a split have the same
// numbers for their tags; a copy of the world has others.
func TestCommunicators(t *testing.T) {
	var files []string
	for r := range 4 {
		c := newClock()
		c.call("MPI_Comm_dup", "0,%d,4:77", r)
		c.call("MPI_Comm_split", "0,%d,4:%d:%d:78", r, r%2, -r) // backwards: 2, 0 and 3, 1
		inRow := 1 - r/2
		c.call("MPI_Sendrecv", "1:8:13,1,1:%d:5:1:8:13,1,1:%d:5:%d,%d,2:9", 1-inRow, 1-inRow, 500+r, inRow)
		c.call("MPI_Sendrecv", "1:8:13,1,1:%d:5:1:8:13,1,1:%d:5:%d,%d,4:9", (r+1)%4, (r+3)%4, 600+r, r)
		c.call("MPI_Sendrecv", "1:8:13,1,1:%d:5:1:8:13,1,1:%d:5:%d,%d,4:9", (r+1)%4, (r+3)%4, 0, r)
		c.call("MPI_Barrier", "%d,%d,2", 500+r, inRow)
		files = append(files, c.end())
	}
	s, notes, err := imported("mpich", files...)
	require.NoError(t, err)
	require.Empty(t, notes)
	var messages []string
	for _, line := range operations(t, s) {
		if strings.HasPrefix(line, "0: send") {
			messages = append(messages, line)
		}
	}
	require.Equal(t, []string{
		"0: send 8 peer 2 tag 16777221", "0: send 8 peer 1 tag 33554437", "0: send 8 peer 1 tag 5", "0: send 0 peer 2 tag 0",
	}, messages)
	require.Equal(t, []string{"c2_0", "c3_0"}, []string{s.Collectives()[0].Name, s.Collectives()[1].Name})
}

// Collectives with blocks for each member, or from and to a root, send them
// directly.
func TestBlocks(t *testing.T) {
	var files []string
	for r := range 3 {
		c, world := newClock(), fmt.Sprintf("0,%d,3", r)
		c.call("MPI_Gather", "1:%d:10,8,8:1:2:10,8,8:1:%s", 2, world)
		c.call("MPI_Scatterv", "1:2:4,5,6:3:0,0,0:10,8,8:1:%d:10,8,8:0:%s", 4+r, world)
		counts := func(f func(m int) int) string { return fmt.Sprintf("%d,%d,%d", f(0), f(1), f(2)) }
		c.call("MPI_Alltoallv", "1:2:%s:3:0,0,0:13,1,1:1:2:%s:3:0,0,0:13,1,1:%s",
			counts(func(m int) int { return 10*r + m }), counts(func(m int) int { return 10*m + r }), world)
		c.call("MPI_Iallgatherv", "1:%d:13,1,1:1:2:1,2,3:3:0,0,0:13,1,1:%s:5000", r+1, world).call("MPI_Wait", "5000:0")
		files = append(files, c.end())
	}
	s, _, err := imported("openmpi", files...)
	require.NoError(t, err)
	var sends []string
	for _, line := range operations(t, s) {
		if strings.Contains(line, "send") {
			sends = append(sends, strings.TrimSuffix(strings.ReplaceAll(line, "tag 21474836", ""), " "))
		}
	}
	require.Equal(t, []string{
		"0: send 16 peer 1 48", "0: send 40 peer 1 49", "0: send 48 peer 2 49",
		"0: send 1 peer 1 50", "0: send 2 peer 2 50", "0: send 1 peer 1 51", "0: send 1 peer 2 51",
		"1: send 12 peer 2 50", "1: send 10 peer 0 50", "1: send 2 peer 2 51", "1: send 2 peer 0 51",
		"2: send 16 peer 1 48", "2: send 20 peer 0 50", "2: send 21 peer 1 50", "2: send 3 peer 0 51", "2: send 3 peer 1 51",
	}, sends)
}

// A receive with any tag takes the tag of the messages; if nobody asks for tags,
// there are none.
func TestAnyTag(t *testing.T) {
	trace := func(first, second int, more string, receives ...int) (files []string) {
		a, b := newClock(), newClock()
		for _, tag := range []int{first, second} {
			b.call("MPI_Send", "1:8:13,1,1:0:%d:0,1,2", tag)
		}
		for _, tag := range receives {
			a.call("MPI_Recv", "1:8:13,1,1:-1:%d:0,0,2:4", tag)
		}
		if more != "" {
			a.call(more, "0,0,2")
			b.call(more, "0,1,2")
		}
		return []string{a.end(), b.end()}
	}
	for _, c := range []struct {
		files []string
		want  string // a tag, or an error
	}{
		{trace(6, 6, "MPI_Barrier", -1, 6), "tag 6"},
		{trace(6, 7, "MPI_Barrier", -1, -1), "tag 0"},
		{trace(6, 7, "", -1, 7), "tag -1"},
		{trace(6, 7, "MPI_Barrier", -1, 7), "t-0.txt: line 4: MPI_ANY_TAG, while other receives of the rank ask for one of several tags"},
	} {
		s, _, err := imported("openmpi", c.files...)
		if !strings.HasPrefix(c.want, "tag") {
			require.ErrorContains(t, err, c.want)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, "0: recv 8 peer -1 "+c.want, operations(t, s)[1])
	}
}

// What a trace has that the schedule has not is counted.
func TestNotes(t *testing.T) {
	c := newClock()
	c.call("MPI_Test", "5000:1:2").call("MPI_Barrier", "1,0,1").call("MPI_Isend", "1:8:13,1,1:-2:0:0,0,1:5000").call("MPI_Isend", "1:8:13,1,1:0:0:0,0,1:5000")
	c.call("MPI_Irecv", "1:8:13,1,1:0:0:0,0,1:5004").call("MPI_Waitany", "2:5000:1:2").call("MPI_Test", "5004:1:2")
	s, notes, err := imported("openmpi", strings.TrimSuffix(c.end(), fmt.Sprintf("MPI_Finalize:%d.000000:-\n", c.now+1)))
	require.NoError(t, err)
	require.Equal(t, 1, goal.Stat(s).Sends)
	require.Equal(t, []string{
		"1 collectives of a communicator of one rank send no messages",
		"1 calls of MPI_Waitany and MPI_Waitsome wait for the first request under way: the trace does not tell which was done",
		"1 requests are never waited for: MPI_Test and the like are computations",
		"1 files end without MPI_Finalize",
		"calls whose time is a computation: 2 MPI_Test",
	}, notes)
}

// Each error names the file, the line and what was expected.
func TestErrors(t *testing.T) {
	one := func(name, arguments string) []string { return []string{newClock().call(name, "%s", arguments).end()} }
	two := func(a, b *clock) []string { return []string{a.end(), b.end()} }
	for _, c := range []struct {
		files []string
		want  string
	}{
		{[]string{"hello\n"}, `t-0.txt: line 1: "hello", expected a call such as MPI_Send:START:...:END`},
		{[]string{"# nothing\n"}, "expected a call of MPI_Init: this is no trace of liballprof"},
		{[]string{"MPI_Barrier:1:0,0,1:2\n"}, "line 1: expected MPI_Init before all other calls"},
		{one("MPI_Send", "1:2"), "line 4: MPI_Send has 4 fields behind its name, expected 8"},
		{one("MPI_Send", "1:-2:13,1,1:0:0:0,0,1"), "MPI_Send: field 3: a count of -2"},
		{one("MPI_Send", "1:2:13:0:0:0,0,1"), `field 4: "13", expected a datatype: NAME,SIZE,EXTENT`},
		{one("MPI_Send", "1:2000000000:13,2000000000,1:0:0:0,0,1"), "expected at most 1099511627776"},
		{one("MPI_Send", "1:2:13,1,1:-1:0:0,0,1"), "field 5: rank -1"},
		{one("MPI_Send", "1:2:13,1,1:3:0:0,0,1"), "rank 3 of a communicator of 1"},
		{one("MPI_Send", "1:2:13,1,1:0:-1:0,0,1"), "field 6: tag -1"},
		{one("MPI_Send", "1:2:13,1,1:0:0:0,0,2"), "expected a communicator: HANDLE,RANK,SIZE, of at most 1 ranks, the files"},
		{one("MPI_Bcast", "1:2:13,1,1:1:0,0,1"), "root 1 of 1 members"},
		{one("MPI_Wait", "x:0"), `field 2: "x", expected an address`},
		{[]string{"MPI_Init:-:1:2:9\nMPI_Barrier:12:0,0,1:11\n"}, "line 2: MPI_Barrier ends at 11, before its start at 12"},
		{[]string{"MPI_Init:-:1:2:9\nMPI_Barrier:1e9:0,0,1:11\n"}, `field 1: "1e9", expected a time in microseconds`},
		{two(newClock().call("MPI_Barrier", "0,0,2"), newClock().call("MPI_Bcast", "1:2:13,1,1:0:0,1,2")), "t-1.txt: line 4: MPI_Bcast, where another member of the communicator has MPI_Barrier"},
		{two(newClock().call("MPI_Bcast", "1:3:13,1,1:0:0,0,2"), newClock().call("MPI_Bcast", "1:2:13,1,1:0:0,1,2")), "MPI_Bcast of 2 bytes, and another member has 3"},
		{two(newClock().call("MPI_Bcast", "1:2:13,1,1:1:0,0,2"), newClock().call("MPI_Bcast", "1:2:13,1,1:0:0,1,2")), "root 0, which is rank 0, and another member has rank 1"},
		{two(newClock().call("MPI_Barrier", "0,0,2"), newClock().call("MPI_Barrier", "0,1,2").call("MPI_Barrier", "0,1,2")), "t-1.txt: line 5: MPI_Barrier by 1 of the 2 members of the communicator, expected all"},
		{two(newClock().call("MPI_Alltoallv", "1:2:1:3:0:13,1,1:1:2:1:3:0:13,1,1:0,0,2"), newClock()), "1 counts, expected one for each of 2 members"},
		{two(newClock().call("MPI_Barrier", "0,1,2"), newClock()), "the trace does not tell the members of communicator 0, in which rank 0 is 1 of 2"},
		{two(newClock().call("MPI_Comm_split", "0,0,2:0:0:9").call("MPI_Barrier", "9,1,2"), newClock()), "not all members of a communicator have created it"},
		{two(newClock().call("MPI_Comm_split", "0,0,2:0:0:9"), newClock().call("MPI_Comm_dup", "0,1,2:9")), "MPI_Comm_dup, where another member of the communicator makes others in another way"},
	} {
		_, _, err := imported("openmpi", c.files...)
		require.ErrorContains(t, err, c.want)
		place := new(Error)
		require.ErrorAs(t, err, &place, c.want)
	}
}

func TestFiles(t *testing.T) {
	sorted, err := Files([]string{"d/t-rank-1.txt", "d/t-rank-0.txt"})
	require.NoError(t, err)
	require.Equal(t, []string{"d/t-rank-0.txt", "d/t-rank-1.txt"}, sorted)
	for want, names := range map[string][]string{
		"expected a name like trace-0.txt":      {"t.txt"},
		"are files of two traces":               {"t-0.txt", "u-1.txt"},
		"a file is missing":                     {"t-0.txt", "t-2.txt"},
		"t-0.txt and t-00.txt are both of rank": {"t-0.txt", "t-00.txt"},
	} {
		_, err := Files(names)
		require.ErrorContains(t, err, want)
	}
}

// Every kind of collective that a trace has is imported, and finishes.
func TestEveryCollectiveFinishes(t *testing.T) {
	for kind, by := range Algorithms() {
		require.Contains(t, collective.For(kind), by)
	}
	s, _, err := imported("openmpi", everything()...)
	require.NoError(t, err)
	for _, c := range s.Collectives() {
		require.NotEmpty(t, Algorithms()[c.Kind])
	}
}

func FuzzImport(f *testing.F) {
	for _, files := range [][]string{everything()[:2], everything()[2:]} {
		f.Add([]byte(files[0]), []byte(files[1]))
	}
	f.Add([]byte(newClock().call("MPI_Comm_split", "0,0,2:0:0:9").call("MPI_Barrier", "9,1,2").end()), []byte(newClock().call("MPI_Comm_split", "0,1,2:0:-1:9").call("MPI_Barrier", "9,0,2").end()))
	f.Add([]byte(newClock().call("MPI_Alltoallv", "1:2:1,2:3:0,0:13,1,1:1:2:1,2:3:0,0:13,1,1:0,0,2").end()), []byte(newClock().call("MPI_Waitall", "2147483647:5000:0").end()))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		s, notes, err := imported("openmpi", string(a), string(b))
		if err != nil {
			if wrong, ok := errors.AsType[*Error](err); ok {
				require.Contains(t, []string{"t-0.txt", "t-1.txt"}, wrong.File)
			}
			return
		}
		require.Less(t, len(notes), 8)
		var out bytes.Buffer
		require.NoError(t, goal.WriteText(&out, s))
		_, err = goal.NewSimulator(s).Run(goal.DefaultParams())
		_, unfinished := errors.AsType[*goal.UnfinishedError](err)
		require.True(t, err == nil || unfinished || errors.Is(err, goal.ErrOverflow), err)
	})
}
