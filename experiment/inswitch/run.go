package inswitch

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/handlers/allreduce"
	"github.com/spinsim/spinsim/handlers/reduction"
	"github.com/spinsim/spinsim/internal/memory"
	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// measured is a running measurement.
type measured struct {
	*experiment.Point
	ranks, bytes int
	density      float64 // share of elements that are not zero
	want         []byte
	mu           sync.Mutex // of what ranks write
	last         sim.Time   // when the last one had the result
}

func run(ctx context.Context, p *experiment.Point) (values experiment.Values, err error) {
	m := &measured{Point: p, ranks: p.Int("ranks"), bytes: p.Int("size"), density: 1}
	c, err := runtime.NewCluster(p.Config(ctx, m.ranks))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	m.expect()
	var tree reduction.Tree
	if inTree(p) {
		tree, err = m.trees(c, p.Text("mode"), p.Int("window"))
	} else {
		err = m.messages(c)
	}
	if err == nil {
		err = c.Run(ctx)
	}
	if err != nil {
		return nil, err
	}
	if failed, n := c.HandlerErrors(); n > 0 {
		return nil, failed[0]
	}
	stats := c.Stats()
	values = experiment.ClusterValues(&stats)
	values[experiment.LatencyColumn] = m.last
	values["rank_bytes"] = m.sent(c)
	values["aggregators"], values["height"] = int64(len(tree)), int64(tree.Height())
	return values, nil
}

// sent is the mean of the bytes that the ranks' own links have carried.
func (m *measured) sent(c *runtime.Cluster) int64 {
	bytes := int64(0)
	for _, l := range c.Fabric().Links() {
		var node int
		if n, _ := fmt.Sscanf(l.Name, "Node[%d]", &node); n == 1 && node < m.ranks && strings.HasSuffix(l.Name, ".Tx") {
			bytes += l.Bytes
		}
	}
	return bytes / int64(m.ranks)
}

// tree places the ranks and aggregators.
func (m *measured) tree(c *runtime.Cluster, where string) (members []portals.ID, tree reduction.Tree, err error) {
	pid := uint32(0)
	if where == byNICTree {
		pid = 1 // the aggregator is the first process of its node
	}
	for rank := range m.ranks {
		members = append(members, portals.PhysID(uint32(rank), pid))
	}
	if where == bySwitch {
		tree, err = reduction.Switches(c, members, 0)
	} else {
		const below = 2
		tree, err = reduction.NICs(members, below)
	}
	return members, tree, err
}

// trees starts aggregators and the ranks, which are members of their group.
func (m *measured) trees(c *runtime.Cluster, where string, window int) (reduction.Tree, error) {
	library, err := reduction.Load(c)
	if err != nil {
		return nil, err
	}
	members, tree, err := m.tree(c, where)
	if err != nil {
		return nil, err
	}
	group, err := library.Group(reduction.Options{Members: members, Tree: tree, Window: window})
	if err != nil {
		return nil, err
	}
	for rank := range m.ranks {
		err := c.Spawn(rank, "rank", func(p *runtime.Proc) error {
			member, err := group.Open(p, rank, nil)
			if err != nil {
				return err
			}
			v := p.Alloc(m.bytes)
			m.fill(v.Write(), rank)
			if err := member.Begin(allreduce.Call{Source: v, Result: v, Op: allreduce.Sum, Type: allreduce.Float32}); err != nil {
				return err
			}
			if err := member.Wait(); err != nil {
				return err
			}
			return m.ended(p, v)
		})
		if err != nil {
			return nil, err
		}
	}
	return tree, nil
}

// messages starts ranks of MPI.
func (m *measured) messages(c *runtime.Cluster) error {
	o := mpi.DefaultOptions(mpi.Host)
	if m.Text("mode") == byNIC {
		o.Allreduce = mpi.ModeDoubling
	}
	w, err := mpi.New(c, o)
	if err != nil {
		return err
	}
	for rank := range m.ranks {
		err := w.Spawn(rank, func(r *mpi.Rank) error {
			v, err := r.Alloc(m.bytes)
			if err != nil {
				return err
			}
			m.fill(v.Write(), rank)
			if m.Text("mode") == byHostRing {
				err = ring(r, v)
			} else {
				err = r.World().Allreduce(mpi.InPlace, v, mpi.Float32, mpi.Sum)
			}
			if err != nil {
				return err
			}
			return m.ended(r.Proc(), v)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// ring is an allreduce of pieces, one of each rank: they go round and gather the
// vectors of all ranks, and then go round complete.
func ring(r *mpi.Rank, v runtime.View) error {
	n, me, elements := r.Size(), r.Rank(), v.Len()/element
	piece := func(i int) runtime.View {
		i = (i%n + n) % n
		from, to := elements*i/n, elements*(i+1)/n
		return v.Slice(element*from, element*to)
	}
	space, err := r.Alloc(element * (elements/n + 1))
	if err != nil {
		return err
	}
	right, left := (me+1)%n, (me+n-1)%n
	for step := range 2 * (n - 1) {
		out, in := piece(me-step), piece(me-step-1)
		to := in
		if step < n-1 {
			to = space.Slice(0, in.Len())
		}
		if _, err := r.World().Sendrecv(out, right, 0, to, left, 0); err != nil {
			return err
		}
		if step < n-1 {
			if err := r.ReduceLocal(to, in, mpi.Float32, mpi.Sum); err != nil {
				return err
			}
		}
	}
	return nil
}

// number is the element of a rank at place i: a small whole number, so that
// sums are exact in any order. Which are not zero is by chance, at each rank.
func (m *measured) number(rank, i int) float32 {
	if m.density < 1 && !m.chosen(rank, i) {
		return 0
	}
	return float32(int64((uint64(rank)*7+uint64(i)*13+m.Seed)%61) - 20)
}

func (m *measured) fill(b []byte, rank int) {
	for i := range m.bytes / element {
		binary.LittleEndian.PutUint32(b[element*i:], math.Float32bits(m.number(rank, i)))
	}
}

// expect computes the result by a loop over all ranks.
func (m *measured) expect() {
	m.want = memory.Make[byte](m.bytes)
	for i := range m.bytes / element {
		sum := float32(0)
		for rank := range m.ranks {
			sum += m.number(rank, i)
		}
		binary.LittleEndian.PutUint32(m.want[element*i:], math.Float32bits(sum))
	}
}

// ended notes that a rank has the result.
func (m *measured) ended(p *runtime.Proc, v runtime.View) error {
	m.mu.Lock()
	m.last = max(m.last, p.Now())
	m.mu.Unlock()
	m.LastOperation(p, 0)
	if err := experiment.SameView("the result", v, m.want); err != nil {
		return fmt.Errorf("rank %d: %w", p.Rank(), err)
	}
	return nil
}
