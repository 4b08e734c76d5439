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
)

// ascii writes calls as dumpi2ascii does: each begins 1 us after the one before
// and lasts 2 us.
type ascii struct {
	strings.Builder

	now int
}

func newASCII() *ascii {
	a := new(ascii)
	a.WriteString("version=1.0.0\nmeshsize=[]\n")
	a.now = 7
	return a.call("MPI_Init", "int argc=1", `string argv[1]=["./mpi"]`)
}

// call writes a call with a line for each argument.
func (a *ascii) call(name string, arguments ...string) *ascii {
	line := func(what string, us int) {
		fmt.Fprintf(a, "%s %s at walltime %d.%09d, cputime 0.007712000 seconds in thread 0.\n", name, what, us/1_000_000, us%1_000_000*1000)
	}
	line("entering", a.now+1)
	for _, argument := range arguments {
		a.WriteString(argument + "\n")
	}
	a.now += 3
	line("returning", a.now)
	return a
}

func (a *ascii) end() string { return a.call("MPI_Finalize").String() }

// Arguments of calls.
const world = "MPI_Comm comm=2 (MPI_COMM_WORLD)"

func (a *ascii) send(name string, count int, datatype string, peer, tag int, comm string, more ...string) *ascii {
	return a.call(name, append([]string{fmt.Sprintf("int count=%d", count), "MPI_Datatype datatype=" + datatype, fmt.Sprintf("int dest=%d", peer), fmt.Sprintf("int tag=%d", tag), comm}, more...)...)
}

func (a *ascii) recv(name string, count int, datatype string, peer, tag int, comm, more string) *ascii {
	source, wild := fmt.Sprintf("int source=%d", peer), fmt.Sprintf("int tag=%d", tag)
	if peer == -1 {
		source += " (MPI_ANY_SOURCE)"
	}
	if tag == -1 {
		wild += " (MPI_ANY_TAG)"
	}
	return a.call(name, fmt.Sprintf("int count=%d", count), "MPI_Datatype datatype="+datatype, source, wild, comm, more)
}

// importedDumpi makes the schedule of the files of ranks 0, 1, and so on.
func importedDumpi(files ...string) (*goal.Schedule, []string, error) {
	im := NewDumpi(len(files))
	for r, text := range files {
		if err := im.Rank(fmt.Sprintf("t-%d.txt", r), strings.NewReader(text)); err != nil {
			return nil, nil, err
		}
	}
	s, err := im.Schedule()
	return s, im.Notes(), err
}

// only lists the operations of a rank that have a kind.
func only(t testing.TB, s *goal.Schedule, what string) (list []string) {
	for _, line := range operations(t, s) {
		if strings.HasPrefix(line, what) {
			list = append(list, strings.TrimPrefix(line, what+" "))
		}
	}
	return list
}

const ignoredStatus = "MPI_Status status=" + ignored

// Basic types have sizes, calls that make types tell them, and so do MPI_Type_size
// and the end of the file.
func TestDatatypes(t *testing.T) {
	a, b := newASCII(), newASCII()
	old, fresh := "MPI_Datatype oldtype=14 (MPI_DOUBLE)", func(id int) string { return fmt.Sprintf("MPI_Datatype newtype=%d (user-defined-datatype)", id) }
	a.call("MPI_Type_contiguous", "int count=3", old, fresh(28))
	a.call("MPI_Type_vector", "int count=3", "int blocklength=2", "int stride=9", old, fresh(29))
	a.call("MPI_Type_hvector", "int count=1", "int blocklength=2", "int stride=9", old, fresh(30))
	a.call("MPI_Type_create_hvector", "int count=1", "int blocklength=3", "int stride=9", old, fresh(31))
	a.call("MPI_Type_create_indexed_block", "int count=2", "int blocklength=2", "int displacments[2]=[0, 9]", old, fresh(32))
	a.call("MPI_Type_indexed", "int count=2", "int lengths[2]=[3, 4]", "int indices[2]=[0, 9]", old, fresh(33))
	a.call("MPI_Type_hindexed", "int count=1", "int lengths[1]=[3]", "int indices[1]=[0]", old, fresh(34))
	a.call("MPI_Type_create_hindexed", "int count=1", "int blocklengths[1]=[2]", "int displacements[1]=[0]", old, fresh(35))
	a.call("MPI_Type_struct", "int count=2", "int lengths[2]=[1, 2]", "int indices[2]=[0, 9]", "MPI_Datatype oldtypes[2]=[9, 28]", fresh(36))
	a.call("MPI_Type_create_struct", "int count=1", "int blocklengths[1]=[3]", "int displacements[1]=[0]", "MPI_Datatype oldtypes[1]=[2]", fresh(37))
	a.call("MPI_Type_create_subarray", "int ndims=2", "int sizes[2]=[8, 8]", "int subsizes[2]=[2, 3]", "int starts[2]=[0, 0]", "int order=1 (MPI_ORDER_C)", old, fresh(38))
	a.call("MPI_Type_dup", "MPI_Datatype oldtype=29 (user-defined-datatype)", fresh(39))
	a.call("MPI_Type_create_resized", "MPI_Datatype oldtype=28 (user-defined-datatype)", "int lb=0", "int extent=99", fresh(40))
	a.call("MPI_Type_size", "MPI_Datatype datatype=41 (user-defined-datatype)", "int size=5")
	a.call("MPI_Type_match_size", "int typeclass=1 (MPI_TYPECLASS_REAL)", "int size=7", "MPI_Datatype datatype=42 (user-defined-datatype)")
	a.call("MPI_Type_create_darray", old, fresh(43))
	want := []int{24, 48, 16, 24, 32, 56, 24, 16, 52, 3, 48, 48, 24, 5, 7, 11}
	for i := range want {
		a.send("MPI_Send", 2, fmt.Sprintf("%d (user-defined-datatype)", 28+i), 1, 0, world)
		b.recv("MPI_Recv", 2*want[i], "5 (MPI_BYTE)", 0, 0, world, ignoredStatus)
	}
	a.end()
	b.end()
	a.WriteString("Datatype 16 (MPI_LONG_LONG_INT) has size 0\nDatatype 43 (user-defined-datatype) has size 11\n")
	s, _, err := importedDumpi(a.String(), b.String())
	require.NoError(t, err)
	for i, line := range only(t, s, "0: send") {
		require.Equal(t, fmt.Sprintf("%d peer 1 tag 0", 2*want[i]), line, "datatype %d", 28+i)
	}
	for name := range typeCalls {
		require.Contains(t, a.String(), "MPI_"+name+" entering")
	}
}

// teller writes the calls of a rank that make communicators and groups.
type teller struct {
	*ascii

	rank, comm int // the last handle
}

const oldWorld = "MPI_Comm oldcomm=2 (MPI_COMM_WORLD)"

func ofGroupNamed(n int) string { return fmt.Sprintf("MPI_Group group=%d (user-defined-group)", n) }

// group makes a group.
func (w *teller) group(name string, made int, arguments ...string) {
	w.call(name, append(arguments, fmt.Sprintf("MPI_Group newgroup=%d (user-defined-group)", made))...)
}

// made is the new communicator of some ranks.
func (w *teller) made(members ...int) string {
	if w.comm++; !slices.Contains(members, w.rank) {
		return "MPI_Comm newcomm=1 (MPI_COMM_NULL)"
	}
	return fmt.Sprintf("MPI_Comm newcomm=%d (user-defined-comm)", w.comm)
}

// check has members ask who they are in the last communicator.
func (w *teller) check(members ...int) {
	if me := slices.Index(members, w.rank); me >= 0 {
		c := fmt.Sprintf("MPI_Comm comm=%d (user-defined-comm)", w.comm)
		w.call("MPI_Comm_rank", c, fmt.Sprintf("int rank=%d", me))
		w.call("MPI_Comm_size", c, fmt.Sprintf("int size=%d", len(members)))
	}
}

// groups makes groups and communicators of them.
func (w *teller) groups() {
	two := func(x, y int) []string {
		return []string{fmt.Sprintf("MPI_Group group1=%d (user-defined-group)", x), fmt.Sprintf("MPI_Group group2=%d (user-defined-group)", y)}
	}
	of := ofGroupNamed
	w.call("MPI_Comm_group", world, of(3))
	w.group("MPI_Group_incl", 4, of(3), "int count=3", "int ranks[3]=[5, 0, 2]")
	w.group("MPI_Group_excl", 5, of(3), "int count=2", "int ranks[2]=[5, 0]")
	w.call("MPI_Group_range_incl", of(3), "int count=2", "int ranges[2][3]=[[4, 0, -2]", ", [5, 5, 1]", "]MPI_Group newgroup=6 (user-defined-group)")
	w.call("MPI_Group_range_excl", of(3), "int count=1", "int ranges[1][3]=[[0, 3, 1]", "]MPI_Group newgroup=7 (user-defined-group)")
	w.group("MPI_Group_union", 8, two(4, 7)...)
	w.group("MPI_Group_intersection", 9, two(4, 6)...)
	w.group("MPI_Group_difference", 10, two(5, 6)...)
	for g, members := range [][]int{4: {5, 0, 2}, 5: {1, 2, 3, 4}, 6: {4, 2, 0, 5}, 7: {4, 5}, 8: {5, 0, 2, 4}, 9: {5, 0, 2}, 10: {1, 3}} {
		if members != nil {
			w.call("MPI_Comm_create", oldWorld, of(g), w.made(members...))
			w.check(members...)
		}
	}
	// Two groups that have nobody in common, in one call.
	mine, handle := []int{5, 0, 2}, 4
	if w.rank == 1 || w.rank == 3 {
		mine, handle = []int{1, 3}, 10
	}
	w.call("MPI_Comm_create", oldWorld, of(handle), w.made(mine...))
	w.check(mine...)
}

// comms makes communicators without groups.
func (w *teller) comms() {
	all, r := []int{0, 1, 2, 3, 4, 5}, w.rank
	rows := [][]int{{4, 2, 0}, {5, 3, 1}}[r%2]
	w.call("MPI_Comm_split", oldWorld, fmt.Sprintf("int color=%d", r%2), fmt.Sprintf("int key=%d", -r), w.made(all...))
	w.check(rows...)
	w.call("MPI_Comm_dup", fmt.Sprintf("MPI_Comm oldcomm=%d (user-defined-comm)", w.comm), w.made(all...))
	w.check(rows...)
	w.call("MPI_Cart_create", oldWorld, "int ndim=2", "int dims[2]=[2, 2]", "int periods[2]=[0, 0]", "int reorder=0", w.made(0, 1, 2, 3))
	w.check(0, 1, 2, 3)
	if cart := fmt.Sprintf("MPI_Comm oldcomm=%d (user-defined-comm)", w.comm); r < 4 {
		w.call("MPI_Cart_sub", "int ndim=2", cart, "int remain_dims[2]=[1, 0]", w.made(all...))
		w.check(r%2, r%2+2)
		w.call("MPI_Cart_sub", "int ndim=2", cart, "int remain_dims[2]=[0, 1]", w.made(all...))
		w.check(r/2*2, r/2*2+1)
	}
	w.call("MPI_Cart_create", oldWorld, "int ndim=3", "int dims[3]=[2, 1, 2]", "int periods[3]=[0, 0, 0]", "int reorder=0", w.made(0, 1, 2, 3))
	if cart := fmt.Sprintf("MPI_Comm oldcomm=%d (user-defined-comm)", w.comm); r < 4 {
		w.call("MPI_Cart_sub", "int ndim=3", cart, "int remain_dims[3]=[0, 1, 0]", w.made(all...))
		w.check(r)
		w.call("MPI_Cart_sub", "int ndim=3", cart, "int remain_dims[3]=[1, 0, 1]", w.made(all...))
		w.check(0, 1, 2, 3)
	}
	w.call("MPI_Graph_create", "int numedges=0", oldWorld, "int nodes=4", "int index[4]=[0, 0, 0, 0]", "int edges[0]="+ignored, "int reorder=1", w.made(0, 1, 2, 3))
	w.check(0, 1, 2, 3)
	w.call("MPI_Barrier", "MPI_Comm comm=3 (MPI_COMM_SELF)")
}

// Groups and communicators, Cartesian ones, too, have the members that the calls
// say: the answers of MPI_Comm_rank and MPI_Comm_size are compared.
func TestToldCommunicators(t *testing.T) {
	var files []string
	for r := range 6 {
		w := teller{ascii: newASCII(), rank: r, comm: 10}
		w.groups()
		w.comms()
		files = append(files, w.end())
	}
	_, notes, err := importedDumpi(files...)
	require.NoError(t, err)
	require.Equal(t, "6 collectives of a communicator of one rank send no messages", notes[0])
	require.Equal(t, "6 calls of MPI_Cart_create and MPI_Graph_create could give ranks another order: they keep it", notes[1])
	for name := range commCalls {
		require.Contains(t, files[0], "MPI_"+name+" entering")
	}
	files[5] = strings.Replace(files[5], "int ranks[3]=[5, 0, 2]", "int ranks[3]=[5, 1, 2]", 1)
	_, _, err = importedDumpi(files...)
	require.ErrorContains(t, err, "MPI_Comm_create: rank")
}

// Calls wait for the requests that were done; a test is a wait if they were.
func TestRequests(t *testing.T) {
	a, b := newASCII(), newASCII()
	for i := range 8 {
		a.send("MPI_Isend", 1, "9 (MPI_INT)", 1, i, world, fmt.Sprintf("MPI_Request request=[%d]", 2+i))
		b.recv("MPI_Recv", 1, "9 (MPI_INT)", 0, i, world, ignoredStatus)
	}
	list := "MPI_Request requests[3]=[4, 5, 6]"
	a.call("MPI_Test", "MPI_Request request=[2]", "int flag=0", ignoredStatus)
	a.call("MPI_Test", "MPI_Request request=[2]", "int flag=1", ignoredStatus)
	a.call("MPI_Waitany", "int count=3", list, "int index=2", ignoredStatus)
	a.call("MPI_Waitsome", "int count=3", list, "int outcount=1", "int indices[1]=[1]", "MPI_Status statuses[1]="+ignored)
	a.call("MPI_Testsome", "int count=3", list, "int outcount=0", "int indices[0]="+ignored, "MPI_Status statuses[0]="+ignored)
	a.call("MPI_Testany", "int count=3", list, "int index=-32766", "int flag=1", ignoredStatus)
	a.call("MPI_Testall", "int count=2", "MPI_Request requests[2]=[1, 4]", "int flag=1", "MPI_Status statuses[2]="+ignored)
	a.call("MPI_Request_free", "MPI_Request request=[7]")
	s, notes, err := importedDumpi(a.end(), b.end())
	require.NoError(t, err)
	require.Equal(t, []string{"4 requests are never waited for: MPI_Test and the like are computations", "calls whose time is a computation: 1 MPI_Test, 1 MPI_Testsome"}, notes)
	ops, waits := s.Rank(0), map[string][]int{}
	for i := range ops.Len() {
		if op := ops.Op(i); op.Kind == goal.Send {
			waits[fmt.Sprint(op.Tag)] = slices.Collect(ops.AfterDone(i))
		}
	}
	for tag, after := range map[string]bool{"0": true, "1": false, "2": true, "3": true, "4": true, "5": false, "6": false, "7": false} {
		require.Equal(t, after, len(waits[tag]) > 0, "message %s", tag)
	}
	require.Less(t, waits["0"][0], waits["4"][0])
	require.Less(t, waits["4"][0], waits["3"][0])
	require.Less(t, waits["3"][0], waits["2"][0])
}

// Small sends may have the same handle; a persistent request many starts.
func TestSharedHandles(t *testing.T) {
	a, b := newASCII(), newASCII()
	for range 2 {
		a.send("MPI_Isend", 1, "9 (MPI_INT)", 1, 0, world, "MPI_Request request=[2]")
	}
	a.call("MPI_Waitall", "int count=2", "MPI_Request requests[2]=[2, 2]", "MPI_Status statuses[2]="+ignored)
	a.send("MPI_Send_init", 1, "9 (MPI_INT)", 1, 0, world, "MPI_Request request=[3]")
	for range 2 {
		a.call("MPI_Startall", "int count=1", "MPI_Request requests[1]=[3]").call("MPI_Wait", "MPI_Request request=[3]", ignoredStatus)
	}
	a.call("MPI_Wait", "MPI_Request request=[3]", ignoredStatus) // it is not active
	b.recv("MPI_Recv_init", 1, "9 (MPI_INT)", 0, 0, world, "MPI_Request request=[2]")
	for range 4 {
		b.call("MPI_Start", "MPI_Request request=[2]").call("MPI_Wait", "MPI_Request request=[2]", ignoredStatus)
	}
	s, notes, err := importedDumpi(a.end(), b.end())
	require.NoError(t, err)
	require.Empty(t, notes)
	require.Len(t, only(t, s, "0: send"), 4)
	ops := s.Rank(0)
	for i := range ops.Len() {
		if ops.Op(i).Kind == goal.Send {
			require.NotEmpty(t, slices.Collect(ops.AfterDone(i)), "a send that no wait is for")
		}
	}
	require.Len(t, only(t, s, "1: recv"), 4)
}

// A receive is what its status says.
func TestStatuses(t *testing.T) {
	said := func(bytes, cancelled, source int) string {
		return fmt.Sprintf("{bytes=%d, cancelled=%d, source=%d, tag=3, error=0}", bytes, cancelled, source)
	}
	a, b := newASCII(), newASCII()
	for range 4 {
		a.send("MPI_Send", 1, "9 (MPI_INT)", 1, 3, world)
	}
	a.send("MPI_Send", 1, "9 (MPI_INT)", -1, 3, world).send("MPI_Send", 1, "9 (MPI_INT)", -2, 3, world)
	b.recv("MPI_Recv", 9, "9 (MPI_INT)", -1, -1, world, "MPI_Status status=["+said(4, 0, 0)+"]")
	b.recv("MPI_Recv", 9, "9 (MPI_INT)", -1, -1, world, "MPI_Status status=["+said(0, 0, -1)+"]")
	b.recv("MPI_Irecv", 9, "9 (MPI_INT)", 0, 3, world, "MPI_Request request=[2]")
	b.recv("MPI_Irecv", 9, "9 (MPI_INT)", 0, 3, world, "MPI_Request request=[3]")
	b.recv("MPI_Irecv", 9, "9 (MPI_INT)", -1, 3, world, "MPI_Request request=[4]")
	b.call("MPI_Cancel", "MPI_Request request=[3]")
	b.call("MPI_Waitall", "int count=3", "MPI_Request requests[3]=[2, 3, 4]", "MPI_Status statuses[3]=["+said(4, 0, 0)+", "+said(0, 1, 0)+", "+said(4, 0, 0)+"]")
	b.recv("MPI_Recv", 1, "9 (MPI_INT)", -1, 3, world, ignoredStatus)
	a.send("MPI_Send", 18, "5 (MPI_BYTE)", 1, 3, world)
	b.recv("MPI_Recv", 9, "28 (user-defined-datatype)", 0, 3, world, "MPI_Status status=["+said(4, 0, 0)+"]")
	s, notes, err := importedDumpi(a.end(), b.end()+"Datatype 28 (user-defined-datatype) has size 2\n")
	require.NoError(t, err)
	require.Equal(t, []string{
		"1 receives from -1 have no status: they are from any rank, though -1 is MPI_PROC_NULL of MPICH, too",
		"1 receives are left out, since they were cancelled", "calls whose time is a computation: 1 MPI_Cancel",
	}, notes)
	require.Equal(t, []string{"4 peer -1 tag 3", "4 peer 0 tag 3", "4 peer -1 tag 3", "4 peer -1 tag 3", "18 peer 0 tag 3"}, only(t, s, "1: recv"))
}

// Each error names the file, the line and what was expected.
func TestDumpiErrors(t *testing.T) {
	one := func(a *ascii) []string { return []string{a.end()} }
	call := func(name string, arguments ...string) []string { return one(newASCII().call(name, arguments...)) }
	with := func(more string) []string { return []string{newASCII().end() + more} }
	edited := func(old, fresh string) []string {
		return []string{strings.Replace(newASCII().call("MPI_Barrier", world).end(), old, fresh, 1)}
	}
	user := "28 (user-defined-datatype)"
	for want, files := range map[string][]string{
		"line 1: the binary form of dumpi, expected text: dumpi2ascii":                         {"\xff\xaa\xdd\x44DUMPI\x00\x00"},
		`line 1: "hello", expected a line of dumpi2ascii`:                                      {"hello\n"},
		"expected a call of MPI_Init: this is no trace of dumpi":                               {"version=1.0.0\n"},
		"line 7: MPI_Barrier does not return: the file ends at line 8":                         {strings.Join(strings.SplitAfter(edited("", "")[0], "\n")[:8], "")},
		"line 9: MPI_Finalize begins, and MPI_Barrier of line 7 has not returned":              {strings.Join(slices.Delete(strings.SplitAfter(edited("", "")[0], "\n"), 8, 9), "")},
		"line 8: MPI_Barrier returns, and has not begun":                                       {strings.Join(slices.Delete(strings.SplitAfter(edited("", "")[0], "\n"), 6, 7), "")},
		"line 9: MPI_Bcast returns, expected MPI_Barrier, which began on line 7":               edited("MPI_Barrier returning", "MPI_Bcast returning"),
		"line 9: MPI_Barrier returns before its entering on line 7":                            edited("walltime 0.000013000", "walltime 0.000010000"),
		`line 7: "x, cputime 0.007712000 seconds in thread 0.", expected SECONDS.NANOSECONDS`:  edited("0.000011000", "x"),
		`line 8: "comm", expected an argument of MPI_Barrier such as int count=1`:              edited("MPI_Comm comm=2 (MPI_COMM_WORLD)", "comm"),
		"line 8: MPI_Barrier: comm=\"x\", expected a whole number of 32 bits":                  edited("comm=2 (MPI_COMM_WORLD)", "comm=x"),
		"line 8: MPI_Barrier returns without an argument comm":                                 call("MPI_Barrier"),
		"line 7: communicator 9 is made by no call before":                                     call("MPI_Barrier", "MPI_Comm comm=9 (user-defined-comm)"),
		"line 7: MPI_Wait: no call before makes request 2":                                     call("MPI_Wait", "MPI_Request request=[2]", ignoredStatus),
		"line 7: MPI_Request_free: no call before makes request 2":                             call("MPI_Request_free", "MPI_Request request=[2]"),
		"line 7: MPI_Start: request 2 is no persistent one":                                    call("MPI_Start", "MPI_Request request=[2]"),
		"line 9: MPI_Waitall: requests[2] has 1 values":                                        call("MPI_Waitall", "int count=2", "MPI_Request requests[2]=[1]", "MPI_Status statuses[2]="+ignored),
		`line 9: MPI_Waitall: requests="<IGNORED>", expected an array`:                         call("MPI_Waitall", "int count=2", "MPI_Request requests[2]="+ignored, "MPI_Status statuses[2]="+ignored),
		"line 7: MPI_Waitany: index 2, expected that of one of 1 requests":                     call("MPI_Waitany", "MPI_Request requests[1]=[1]", "int index=2", ignoredStatus),
		`status="none", expected an array of statuses`:                                         one(newASCII().recv("MPI_Recv", 1, "9 (MPI_INT)", 0, 0, world, "MPI_Status status=none")),
		"line 8: MPI_Send: a count of -1":                                                      one(newASCII().send("MPI_Send", -1, "9 (MPI_INT)", 0, 0, world)),
		"line 14: expected at most 1099511627776 bytes":                                        one(newASCII().call("MPI_Type_contiguous", "int count=2000000000", "MPI_Datatype oldtype=14 (MPI_DOUBLE)", "MPI_Datatype newtype="+user).send("MPI_Send", 2000, user, 0, 0, world)),
		"line 10: MPI_Send: dest=-3, expected a rank":                                          one(newASCII().send("MPI_Send", 1, "9 (MPI_INT)", -3, 0, world)),
		"line 7: rank 3 of a communicator of 1":                                                one(newASCII().send("MPI_Send", 1, "9 (MPI_INT)", 3, 0, world)),
		"line 11: MPI_Send: tag=-1, expected a tag":                                            one(newASCII().send("MPI_Send", 1, "9 (MPI_INT)", 0, -1, world)),
		"line 9: MPI_Send: datatype 9 (MPI_LONG), expected 9 to be MPI_INT":                    one(newASCII().send("MPI_Send", 1, "9 (MPI_LONG)", 0, 0, world)),
		"line 9: the trace does not tell the size of datatype 28":                              one(newASCII().send("MPI_Send", 1, user, 0, 0, world)),
		"MPI_Type_struct: 1 oldtypes, expected 2, as there are lengths":                        call("MPI_Type_struct", "int lengths[2]=[1, 2]", "MPI_Datatype oldtypes[1]=[9]", "MPI_Datatype newtype="+user),
		"line 7: MPI_Bcast: root 1 of 1 members":                                               call("MPI_Bcast", "int count=1", "MPI_Datatype datatype=9 (MPI_INT)", "int root=1", world),
		"line 7: MPI_Allgatherv: 2 counts, expected one for each of 1 members":                 call("MPI_Allgatherv", "int recvcounts[2]=[1, 2]", "MPI_Datatype recvtype=9 (MPI_INT)", world),
		"line 7: MPI_Comm_size says 4, and the trace has 1 files":                              call("MPI_Comm_size", world, "int size=4"),
		"line 7: MPI_Comm_rank says 3, and the file belongs to rank 0":                         call("MPI_Comm_rank", world, "int rank=3"),
		"line 7: group 9 is made by no call before":                                            call("MPI_Comm_create", "MPI_Comm oldcomm=2", "MPI_Group group=9", "MPI_Comm newcomm=4"),
		"line 7: MPI_Cart_create of 4 ranks, and the communicator has 1":                       call("MPI_Cart_create", "MPI_Comm oldcomm=2", "int dims[2]=[2, 2]", "int reorder=0", "MPI_Comm newcomm=4"),
		"line 7: MPI_Cart_sub of 1 dimensions, and the communicator has 0":                     call("MPI_Cart_sub", "MPI_Comm oldcomm=2", "int remain_dims[1]=[1]", "MPI_Comm newcomm=4"),
		"line 11: rank 5, expected different ranks of a group of 1":                            one(newASCII().call("MPI_Comm_group", world, "MPI_Group group=3").call("MPI_Group_incl", "MPI_Group group=3", "int ranks[1]=[5]", "MPI_Group newgroup=4")),
		"line 11: a stride of 0":                                                               one(newASCII().call("MPI_Comm_group", world, "MPI_Group group=3").call("MPI_Group_range_incl", "MPI_Group group=3", "int ranges[1][3]=[[0, 0, 0]]", "MPI_Group newgroup=4")),
		"line 13: not all members of a communicator have created it":                           {newASCII().call("MPI_Comm_split", "MPI_Comm oldcomm=2", "int color=0", "int key=0", "MPI_Comm newcomm=4").call("MPI_Barrier", "MPI_Comm comm=4").end(), newASCII().end()},
		"t-1.txt: line 7: MPI_Comm_dup, where another member of the communicator makes others": {newASCII().call("MPI_Comm_split", "MPI_Comm oldcomm=2", "int color=0", "int key=0", "MPI_Comm newcomm=4").end(), newASCII().call("MPI_Comm_dup", "MPI_Comm oldcomm=2", "MPI_Comm newcomm=4").end()},
		"t-1.txt: line 7: MPI_Cart_create, where another member of the communicator":           {newASCII().call("MPI_Cart_create", "MPI_Comm oldcomm=2", "int dims[2]=[2, 1]", "int reorder=0", "MPI_Comm newcomm=4").end(), newASCII().call("MPI_Cart_create", "MPI_Comm oldcomm=2", "int dims[2]=[1, 2]", "int reorder=0", "MPI_Comm newcomm=4").end()},
		"line 9: 2 calls of MPI_Init, of which 0 are not in the trace, and 1 are":              with("MPI_Init called 2 times and ignored 0 times\n"),
		"expected NAME called N times and ignored N times":                                     with("MPI_Init called x\n"),
		"expected Datatype N (NAME) has size N":                                                with("Datatype x\n"),
		"line 16: MPI_INT has 2 bytes, expected 4: this trace is of another kind of machine":   {one(newASCII().send("MPI_Send", 1, "9 (MPI_INT)", -1, 0, world))[0] + "Datatype 9 (MPI_INT) has size 2\n"},
	} {
		_, _, err := importedDumpi(files...)
		require.ErrorContains(t, err, want)
		place := new(Error)
		require.ErrorAs(t, err, &place, want)
	}
}

// What the trace says that it leaves out is counted.
func TestDumpiNotes(t *testing.T) {
	reduce := newASCII().call("MPI_Reduce_scatter", "int commsize=2", "int recvcounts[2]=[1, 3]", "MPI_Datatype datatype=9 (MPI_INT)", "MPI_Op op=3 (MPI_SUM)", world).end()
	other := strings.ReplaceAll(reduce, "thread 0.", "thread 1.") + "MPI_Send called 3 times and ignored 3 times\nMPI_ALL_FUNCTIONS called 6 times and ignored 3 times\n"
	s, notes, err := importedDumpi(reduce, other)
	require.NoError(t, err)
	require.EqualValues(t, 16, s.Collectives()[0].Bytes)
	require.Equal(t, []string{
		"2 calls of MPI_Reduce_scatter have different counts: each member gets as much of their sum",
		"3 calls are not in the trace, as its end says: within others, or while it was switched off",
		"1 threads call beside the first: what they call is in the order of the file",
	}, notes)
}

func FuzzDumpi(f *testing.F) {
	var files []string
	for r := range 2 {
		a := newASCII()
		a.send("MPI_Isend", 1, "9 (MPI_INT)", 1-r, 1, world, "MPI_Request request=[2]")
		a.recv("MPI_Irecv", 1, "9 (MPI_INT)", -1, -1, world, "MPI_Request request=[3]")
		a.call("MPI_Waitall", "int count=2", "MPI_Request requests[2]=[2, 3]", "MPI_Status statuses[2]=[{bytes=4, cancelled=0, source=0, tag=1, error=0}, {bytes=4, cancelled=0, source=0, tag=1, error=0}]")
		a.call("MPI_Comm_group", world, "MPI_Group group=3")
		a.call("MPI_Group_range_incl", "MPI_Group group=3", "int ranges[1][3]=[[0, 1, 1]", "]MPI_Group newgroup=4 (user-defined-group)")
		a.call("MPI_Comm_create", "MPI_Comm oldcomm=2", "MPI_Group group=4", "MPI_Comm newcomm=4")
		a.call("MPI_Cart_create", "MPI_Comm oldcomm=4", "int dims[2]=[2, 1]", "int reorder=0", "MPI_Comm newcomm=5")
		a.call("MPI_Cart_sub", "MPI_Comm oldcomm=5", "int remain_dims[2]=[1, 0]", "MPI_Comm newcomm=6")
		a.call("MPI_Comm_split", "MPI_Comm oldcomm=6", "int color=0", fmt.Sprintf("int key=%d", r), "MPI_Comm newcomm=7")
		a.call("MPI_Type_create_struct", "int blocklengths[1]=[3]", "MPI_Datatype oldtypes[1]=[2]", "MPI_Datatype newtype=28")
		a.call("MPI_Alltoallv", "int sendcounts[2]=[1, 1]", "MPI_Datatype sendtype=28", "int recvcounts[2]=[1, 1]", "MPI_Datatype recvtype=28", "MPI_Comm comm=7")
		a.call("MPI_Gatherv", fmt.Sprintf("int commrank=%d", r), "int sendcount=1", "MPI_Datatype sendtype=29", "int recvcounts[2]=[1, 1]", "MPI_Datatype recvtype=29", "int root=0", "MPI_Comm comm=6")
		files = append(files, a.end()+"MPI_Send called 0 times and ignored 0 times\nDatatype 29 (user-defined-datatype) has size 3\n")
	}
	_, _, err := importedDumpi(files...)
	require.NoError(f, err)
	f.Add([]byte(files[0]), []byte(files[1]))
	f.Add([]byte(files[0][:400]), []byte(files[1]))
	f.Add([]byte("\xff\xaa\xdd\x44DUMPI"), []byte(files[1]))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		s, notes, err := importedDumpi(string(a), string(b))
		if err != nil {
			if wrong, ok := errors.AsType[*Error](err); ok {
				require.Contains(t, []string{"t-0.txt", "t-1.txt"}, wrong.File)
			}
			return
		}
		require.Less(t, len(notes), 14)
		var out bytes.Buffer
		require.NoError(t, goal.WriteText(&out, s))
		_, err = goal.NewSimulator(s).Run(goal.DefaultParams())
		_, unfinished := errors.AsType[*goal.UnfinishedError](err)
		require.True(t, err == nil || unfinished || errors.Is(err, goal.ErrOverflow), err)
	})
}
