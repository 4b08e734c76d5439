package mpitrace

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/goal"
)

// pair writes the calls of a rank as liballprof does, and as dumpi2ascii does.
type pair struct {
	all  *clock
	text *ascii
	comm int // the last handle, of both
}

func newPair() *pair {
	p := &pair{all: newClock(), text: newASCII(), comm: 100}
	p.text.call("MPI_Type_contiguous", "int count=3", "MPI_Datatype oldtype=14 (MPI_DOUBLE)", "MPI_Datatype newtype=28 (user-defined-datatype)")
	p.all.call("MPI_Type_contiguous", "3:1:2")
	return p
}

func (p *pair) call(name, all string, text ...string) {
	p.all.call(name, "%s", all)
	p.text.call(name, text...)
}

// item is a datatype in both formats.
type item struct {
	all, text string
	size      int
}

var items = []item{{"1,1,1", "2 (MPI_CHAR)", 1}, {"2,4,4", "9 (MPI_INT)", 4}, {"99,24,24", "28 (user-defined-datatype)", 24}}

// seat is where a rank is in a communicator.
type seat struct {
	handle  int // 0: nowhere
	members []int
	me      int
}

func (s seat) all() string { return fmt.Sprintf("%d,%d,%d", s.handle, s.me, len(s.members)) }

func (s seat) text(name string) string {
	if s.handle == 0 {
		return "MPI_Comm " + name + "=1 (MPI_COMM_NULL)"
	}
	return fmt.Sprintf("MPI_Comm %s=%d (some name)", name, s.handle)
}

func brackets(list []int) string { return strings.ReplaceAll(fmt.Sprint(list), " ", ", ") }
func commas(list []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(list), " ", ","), "[]")
}

// model draws calls of all ranks.
type model struct {
	*rapid.T

	ranks  []*pair
	places [][]seat // of communicators, of each rank
}

func (m *model) each(in []seat, do func(p *pair, r int, s seat)) {
	for r, s := range in {
		if s.handle != 0 {
			m.ranks[r].all.now += rapid.IntRange(0, 9).Draw(m.T, "work")
			m.ranks[r].text.now = m.ranks[r].all.now
			do(m.ranks[r], r, s)
		}
	}
}

func (m *model) number(most int, what string) int { return rapid.IntRange(0, most).Draw(m.T, what) }

// split makes communicators, whose members use them at once, so that a reader of
// liballprof's need not guess.
func (m *model) split(in []seat) {
	made := make([]seat, len(in))
	dup := rapid.Bool().Draw(m.T, "dup")
	color, key := make([]int, len(in)), make([]int, len(in))
	for r := range in {
		color[r], key[r] = rapid.SampledFrom([]int{0, 1, undefined}).Draw(m.T, "color"), m.number(2, "key")
	}
	m.each(in, func(p *pair, r int, s seat) {
		made[r] = s
		if !dup {
			made[r].members = slices.DeleteFunc(slices.Clone(s.members), func(o int) bool { return color[o] != color[r] })
			slices.SortStableFunc(made[r].members, func(a, b int) int { return key[a] - key[b] })
		}
		if made[r].me = slices.Index(made[r].members, r); color[r] == undefined && !dup {
			made[r] = seat{}
		} else {
			p.comm++
			made[r].handle = p.comm
		}
		if dup {
			p.call("MPI_Comm_dup", s.all()+":9", s.text("oldcomm"), made[r].text("newcomm"))
		} else {
			p.call("MPI_Comm_split", fmt.Sprintf("%s:%d:%d:9", s.all(), color[r], key[r]), s.text("oldcomm"), fmt.Sprintf("int color=%d", color[r]), fmt.Sprintf("int key=%d", key[r]), made[r].text("newcomm"))
		}
	})
	m.each(made, func(p *pair, _ int, s seat) { p.call("MPI_Barrier", s.all(), s.text("comm")) })
	m.places = append(m.places, made)
}

// messages sends to the next member from each one.
func (m *model) messages(in []seat) {
	how, tag, count, of := m.number(4, "how"), m.number(9, "tag"), m.number(999, "count"), rapid.SampledFrom(items).Draw(m.T, "type")
	anyone := rapid.Bool().Draw(m.T, "any")
	m.each(in, func(p *pair, _ int, s seat) {
		n := len(s.members)
		next, last := (s.me+1)%n, (s.me+n-1)%n
		lastAll := last
		source := fmt.Sprintf("int source=%d", last)
		if anyone {
			lastAll, source = -1, "int source=-1 (MPI_ANY_SOURCE)"
		}
		request := func(i int) string { return fmt.Sprintf("MPI_Request request=[%d]", i) }
		head := []string{fmt.Sprintf("int count=%d", count), "MPI_Datatype datatype=" + of.text}
		to, from := slices.Concat(head, []string{fmt.Sprintf("int dest=%d", next), fmt.Sprintf("int tag=%d", tag), s.text("comm")}), slices.Concat(head, []string{source, fmt.Sprintf("int tag=%d", tag), s.text("comm")})
		all := func(peer int) string { return fmt.Sprintf("1:%d:%s:%d:%d:%s", count, of.all, peer, tag, s.all()) }
		switch how {
		case 0:
			p.call("MPI_Irecv", all(lastAll)+":5000", append(from, request(2))...)
			p.call("MPI_Send", all(next), to...)
			p.call("MPI_Wait", "5000:0", request(2), ignoredStatus)
		case 1:
			p.call("MPI_Issend", all(next)+":5004", append(to, request(3))...)
			p.call("MPI_Recv", all(lastAll)+":4", append(from, ignoredStatus)...)
			p.call("MPI_Waitany", "1:5004:0:0", "int count=1", "MPI_Request requests[1]=[3]", "int index=0", ignoredStatus)
		case 2:
			p.call("MPI_Sendrecv", fmt.Sprintf("1:%d:%s:%d:%d:1:%d:%s:%d:%d:%s:9", count, of.all, next, tag, count, of.all, lastAll, tag, s.all()),
				fmt.Sprintf("int sendcount=%d", count), "MPI_Datatype sendtype="+of.text, fmt.Sprintf("int dest=%d", next), fmt.Sprintf("int sendtag=%d", tag),
				fmt.Sprintf("int recvcount=%d", count), "MPI_Datatype recvtype="+of.text, source, fmt.Sprintf("int recvtag=%d", tag), s.text("comm"), ignoredStatus)
		case 3:
			p.call("MPI_Sendrecv_replace", fmt.Sprintf("1:%d:%s:%d:%d:%d:%d:%s:9", count, of.all, next, tag, lastAll, tag, s.all()),
				head[0], head[1], fmt.Sprintf("int dest=%d", next), fmt.Sprintf("int sendtag=%d", tag), source, fmt.Sprintf("int recvtag=%d", tag), s.text("comm"), ignoredStatus)
		default:
			p.call("MPI_Send_init", all(next)+":7004", append(to, request(4))...)
			p.call("MPI_Recv_init", all(lastAll)+":7000", append(from, request(5))...)
			p.call("MPI_Start", "7000", request(5))
			p.call("MPI_Startall", "1:7004", "int count=1", "MPI_Request requests[1]=[4]")
			p.call("MPI_Waitall", "2:7000:0", "int count=2", "MPI_Request requests[2]=[5, 4]", "MPI_Status statuses[2]="+ignored)
		}
	})
}

// collective draws one of a communicator.
func (m *model) collective(in []seat) {
	how, count, of, draw := m.number(11, "how"), m.number(999, "count"), rapid.SampledFrom(items).Draw(m.T, "type"), m.number(99, "root")
	counts := func(n int, f func(i int) int) (list []int) {
		for i := range n {
			list = append(list, f(i))
		}
		return list
	}
	m.each(in, func(p *pair, _ int, s seat) {
		n := len(s.members)
		root := draw % n
		number := fmt.Sprintf("int count=%d", count)
		datatype, rooted, me, comm := "MPI_Datatype datatype="+of.text, fmt.Sprintf("int root=%d", root), fmt.Sprintf("int commrank=%d", s.me), s.text("comm")
		sendtype, recvtype := "MPI_Datatype sendtype="+of.text, "MPI_Datatype recvtype="+of.text
		half := func(x int) string { return fmt.Sprintf("1:%d:%s", x, of.all) }
		one := half(count)
		ints := func(name string, list []int) string {
			return fmt.Sprintf("int %s[%d]=%s", name, len(list), brackets(list))
		}
		many := func(list []int) string {
			return fmt.Sprintf("1:2:%s:3:%s:%s", commas(list), commas(make([]int, n)), of.all)
		}
		send, recv := fmt.Sprintf("int sendcount=%d", count), fmt.Sprintf("int recvcount=%d", count)
		differ := func(i int) int { return count + i }
		switch how {
		case 0:
			p.call("MPI_Barrier", s.all(), comm)
		case 1:
			p.call("MPI_Bcast", fmt.Sprintf("%s:%d:%s", one, root, s.all()), number, datatype, rooted, comm)
		case 2:
			p.call("MPI_Reduce", fmt.Sprintf("1:%s:3:%d:%s", one, root, s.all()), number, datatype, "MPI_Op op=3 (MPI_SUM)", rooted, comm)
		case 3:
			p.call("MPI_Allreduce", fmt.Sprintf("1:%s:3:%s", one, s.all()), number, datatype, "MPI_Op op=3 (MPI_SUM)", comm)
		case 4:
			p.call("MPI_Alltoall", fmt.Sprintf("%s:%s:%s", one, one, s.all()), send, sendtype, recv, recvtype, comm)
		case 5:
			p.call("MPI_Allgather", fmt.Sprintf("%s:%s:%s", one, one, s.all()), send, sendtype, recv, recvtype, comm)
		case 6:
			p.call("MPI_Gather", fmt.Sprintf("%s:%s:%d:%s", one, one, root, s.all()), me, send, sendtype, recv, recvtype, rooted, comm)
		case 7:
			p.call("MPI_Scatter", fmt.Sprintf("%s:%s:%d:%s", one, one, root, s.all()), me, send, sendtype, recv, recvtype, rooted, comm)
		case 8:
			mine := differ(s.me)
			p.call("MPI_Gatherv", fmt.Sprintf("%s:%s:%d:%s", half(mine), many(counts(n, differ)), root, s.all()), me, fmt.Sprintf("int sendcount=%d", mine), sendtype, ints("recvcounts", counts(n, differ)), recvtype, rooted, comm)
		case 9:
			mine := differ(s.me)
			p.call("MPI_Scatterv", fmt.Sprintf("%s:%s:%d:%s", many(counts(n, differ)), half(mine), root, s.all()), me, ints("sendcounts", counts(n, differ)), sendtype, fmt.Sprintf("int recvcount=%d", mine), recvtype, rooted, comm)
		case 10:
			p.call("MPI_Allgatherv", fmt.Sprintf("%s:%s:%s", half(differ(s.me)), many(counts(n, differ)), s.all()), ints("recvcounts", counts(n, differ)), recvtype, comm)
		default:
			to, by := counts(n, func(i int) int { return count + n*s.me + i }), counts(n, func(i int) int { return count + n*i + s.me })
			p.call("MPI_Alltoallv", fmt.Sprintf("%s:%s:%s", many(to), many(by), s.all()), ints("sendcounts", to), sendtype, ints("recvcounts", by), recvtype, comm)
		}
	})
}

// The same calls in both formats become the same schedule, with the same notes,
// and it finishes.
func TestFormatsAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &model{T: t, places: make([][]seat, 1)}
		n := rapid.IntRange(1, 6).Draw(t, "ranks")
		members := make([]int, n)
		for r := range members {
			members[r] = r
			m.ranks = append(m.ranks, newPair())
			m.places[0] = append(m.places[0], seat{handle: worldHandle, members: members, me: r})
		}
		m.each(m.places[0], func(p *pair, _ int, s seat) {
			p.call("MPI_Comm_rank", s.all()+":99", s.text("comm"), fmt.Sprintf("int rank=%d", s.me))
		})
		for range m.number(12, "calls") {
			in := rapid.SampledFrom(m.places).Draw(t, "communicator")
			switch m.number(3, "what") {
			case 0:
				m.split(in)
			case 1:
				m.messages(in)
			default:
				m.collective(in)
			}
		}
		var all, text []string
		for _, p := range m.ranks {
			all, text = append(all, p.all.end()), append(text, p.text.end())
		}
		want, notes, err := imported("openmpi", all...)
		require.NoError(t, err)
		got, more, err := importedDumpi(text...)
		require.NoError(t, err)
		var a, b strings.Builder
		require.NoError(t, goal.WriteText(&a, want))
		require.NoError(t, goal.WriteText(&b, got))
		require.Equal(t, a.String(), b.String())
		more = slices.DeleteFunc(more, func(line string) bool { return strings.Contains(line, "receives from -1") })
		notes = slices.DeleteFunc(notes, func(line string) bool { return strings.Contains(line, "MPI_Waitany") })
		require.Equal(t, notes, more)
		_, err = goal.NewSimulator(got).Run(goal.DefaultParams())
		require.NoError(t, err)
	})
}
