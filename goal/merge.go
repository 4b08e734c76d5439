package goal

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
)

// MaxNodes is the most ranks of a merged schedule.
const MaxNodes = 1 << 24

// Packed places the ranks of the first job on the first nodes, those of the next
// behind them, and so on.
func Packed(jobs []*Schedule) [][]int {
	places, node := make([][]int, len(jobs)), 0
	for j, s := range jobs {
		for range s.Ranks() {
			places[j] = append(places[j], node)
			node++
		}
	}
	return places
}

// Strided gives nodes to the jobs in turn, while they have ranks.
func Strided(jobs []*Schedule) [][]int {
	places, node := make([][]int, len(jobs)), 0
	for rank, left := 0, true; left; rank++ {
		left = false
		for j, s := range jobs {
			if rank < s.Ranks() {
				places[j] = append(places[j], node)
				node++
				left = true
			}
		}
	}
	return places
}

// Merge makes one schedule of several jobs on one machine: rank r of job j is on
// node places[j][r], a rank of the result. Nodes without a rank do nothing.
//
// Jobs may share a node. Each has its own processors there, in the order of the
// jobs, and they share its network interfaces. Labels then begin with j and the
// number of the job, from 1, and the tags of each job come behind those of the
// jobs before: so nothing of one job matches another's. Names of collectives of
// several jobs begin in the same way, on any nodes.
func Merge(jobs []*Schedule, places [][]int) (*Schedule, error) {
	m := merger{jobs: jobs, places: places, b: NewBuilder(), shift: make([]uint64, len(jobs))}
	if err := m.place(); err != nil {
		return nil, err
	}
	if err := m.separate(); err != nil {
		return nil, err
	}
	for _, s := range jobs {
		m.b.s.names = m.b.s.names || s.Named()
	}
	for j, s := range jobs {
		colls := make([]Collective, len(s.colls))
		for i, c := range s.colls {
			if len(jobs) > 1 {
				c.Name = "j" + strconv.Itoa(j+1) + "_" + c.Name
			}
			if c.Kind.Rooted() {
				c.Root = places[j][c.Root]
			}
			colls[i] = c
		}
		m.colls = append(m.colls, colls)
	}
	for node, residents := range m.nodes {
		m.b.Rank(node)
		cpus, first := 0, 0
		for _, at := range residents {
			v := jobs[at.job].Rank(at.rank)
			used, err := m.add(at, v, first, cpus, len(residents) > 1)
			if err != nil {
				return nil, err
			}
			first += v.Len()
			cpus += used
		}
	}
	return m.b.Schedule()
}

// resident is a rank of a job on a node.
type resident struct{ job, rank int }

type merger struct {
	jobs   []*Schedule
	places [][]int
	b      *Builder
	nodes  [][]resident
	colls  [][]Collective
	shift  []uint64 // what is added to the tags of each job
}

// place finds the ranks of each node.
func (m *merger) place() error {
	if len(m.places) != len(m.jobs) {
		return fmt.Errorf("goal: places for %d jobs, expected %d", len(m.places), len(m.jobs))
	}
	for j, nodes := range m.places {
		if len(nodes) != m.jobs[j].Ranks() {
			return fmt.Errorf("goal: %d nodes for job %d, expected %d, one for each of its ranks", len(nodes), j+1, m.jobs[j].Ranks())
		}
		for rank, node := range nodes {
			if node < 0 || node >= MaxNodes {
				return fmt.Errorf("goal: node %d for job %d, expected 0 to %d", node, j+1, MaxNodes-1)
			}
			if node >= len(m.nodes) {
				m.nodes = append(m.nodes, make([][]resident, node+1-len(m.nodes))...)
			}
			on := m.nodes[node]
			if i := slices.IndexFunc(on, func(at resident) bool { return at.job == j }); i >= 0 {
				return fmt.Errorf("goal: node %d for the ranks %d and %d of job %d, expected one rank of each job at most", node, on[i].rank, rank, j+1)
			}
			m.nodes[node] = append(on, resident{j, rank})
		}
	}
	return nil
}

// separate makes the tags of jobs differ if any of them share a node.
func (m *merger) separate() error {
	shares := make([]bool, len(m.jobs))
	shared := false
	for _, on := range m.nodes {
		for _, at := range on {
			shares[at.job] = shares[at.job] || len(on) > 1
			shared = shared || len(on) > 1
		}
	}
	next := uint64(0)
	for j, s := range m.jobs {
		if !shared {
			return nil
		}
		most := uint64(0)
		for rank, v := range s.All() {
			for i := range v.Len() {
				switch tag := s.tag(v.id(i)); {
				case tag != AnyTag:
					most = max(most, tag)
				case shares[j]:
					return fmt.Errorf("goal: job %d, %v: a job with the tag -1 cannot share a node", j+1, s.Ref(rank, i))
				}
			}
		}
		m.shift[j] = next
		if next > AnyTag-2-most {
			return errors.New("goal: the tags of jobs that share nodes need more than 64 bits")
		}
		next += most + 1
	}
	return nil
}

// add adds the operations of a rank behind the first ones of its node. It
// returns how many processors they use, from number cpus on.
func (m *merger) add(at resident, v Rank, first, cpus int, shared bool) (used int, err error) {
	for i := range v.Len() {
		op := v.Op(i)
		used = max(used, int(op.CPU)+1)
		if cpus+int(op.CPU) > 255 {
			return 0, fmt.Errorf("goal: job %d, %v: the jobs on node %d use more than 256 processors", at.job+1, m.jobs[at.job].Ref(at.rank, i), m.places[at.job][at.rank])
		}
		op.CPU += uint8(cpus)
		if op.Kind != Calc {
			if op.Peer != Any {
				op.Peer = uint32(m.places[at.job][op.Peer])
			}
			if op.Tag != AnyTag {
				op.Tag += m.shift[at.job]
			}
		}
		if m.b.End(); v.Collective(i) >= 0 {
			m.b.Begin(m.colls[at.job][v.Collective(i)])
		}
		m.b.Add(op)
		if m.b.err != nil {
			return 0, m.b.err
		}
		if m.b.s.names {
			label := v.Label(i)
			if shared && label != "" {
				label = "j" + strconv.Itoa(at.job+1) + "_" + label
			}
			m.b.s.name([]byte(label), 0, 0)
		}
	}
	for i := range v.Len() {
		for x := range v.AfterDone(i) {
			m.b.Requires(first+x, first+i)
		}
		for x := range v.AfterStart(i) {
			m.b.IRequires(first+x, first+i)
		}
	}
	return used, nil
}
