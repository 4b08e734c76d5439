package inswitch

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/handlers/reduction"
	"github.com/spinsim/spinsim/handlers/sparse"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// What ranks send: the whole vector, or pairs of index and value.
const (
	asVector = "dense"
	asPairs  = "sparse"
)

// bytesColumn has what all links have carried.
const bytesColumn = "link_bytes"

var densityAxis = experiment.Axis{
	Name: "density", Kind: report.Share, Least: "0", Most: "1", Default: "0.1%,1%,2%,5%,10%,20%,50%",
	Help: "share of a rank's elements that are not zero",
}

var ofPairs = &experiment.Experiment{
	Name:  "sparse",
	Short: "allreduce of sparse vectors in trees, as pairs and whole",
	Long: `All ranks begin an allreduce of float32 at the same time. At each, elements that are not zero are so by chance, with the same probability.
  dense      ranks send whole vectors (handlers/reduction)
  sparse     ranks send pairs of index and value, 8 B, and aggregators what of a sum is not zero (handlers/sparse)
The aggregators are in units of switches (fabric.units) or in NICs. Those of sparse run on the processors of dense (serve.reduction) unless serve.sparse says
where. In profile inc a pipeline has any packet done in 100 ns, also one that ends a block and so empties its table. With
--set serve.reduction.payload=hpu HPUs do both, and it takes them time. Ranks of sparse look at each packet of the sum; in dense, triggered operations do.
What a rank does with the sum takes no time.`,
	Source: "ours", Profiles: []string{"inc"},
	Smoke: []experiment.Values{{"mode": asPairs, "where": byNICTree, "density": 0.2, "ranks": 5, "size": 9000}},
	Axes: []experiment.Axis{
		{Name: "mode", Kind: report.Text, Of: []string{asVector, asPairs}, Help: "what ranks send: dense, sparse"},
		{Name: "where", Kind: report.Text, Of: []string{bySwitch, byNICTree}, Default: bySwitch, Help: "who adds: switch, nic-tree"},
		densityAxis,
		{Name: "block", Kind: report.Count, Least: "1", Most: "32768", Default: "4096", Help: "elements of a block of sparse, a power of two: longer ones have fuller packets, but each has one HPU of an aggregator at a time"},
		{Name: "sums", Kind: report.Count, Most: "32768", Default: "0", Help: "places of an aggregator's table of sums, a power of two: a hash table, but for the root; 0: an array"},
		experiment.RanksAxis("1024", "16"),
		{Name: "size", Column: "bytes", Kind: report.Size, Least: "4", Most: "64MiB", Multiple: "4", Default: "1MiB", Help: "size of the whole vector"},
	},
	Points:      canPair,
	Independent: true,
	Run:         runPairs,
	Memory:      roomOfPairs,
	Columns: append([]report.Column{
		{Name: experiment.LatencyColumn, Unit: "us", Kind: report.Duration, Help: "from the call until the last rank has the result"},
		{Name: bytesColumn, Unit: "bytes", Kind: report.Size, Help: "bytes that all links have carried, headers included"},
		{Name: "rank_bytes", Unit: "bytes", Kind: report.Size, Help: "bytes that a rank has sent into the network, headers included, mean"},
		{Name: "spilled", Kind: report.Count, Help: "pairs whose place in a hash table another index had"},
	}, experiment.ClusterColumns()...),
	Relative: []experiment.Relative{
		{Column: report.Column{Name: "speedup_vs_dense", Kind: report.Ratio, Help: "latency of dense divided by latency"}, Of: experiment.LatencyColumn, Axis: "mode", Base: asVector},
		{Column: report.Column{Name: "bytes_saved", Kind: report.Share, Help: "1 - link_bytes / link_bytes of dense"}, Of: bytesColumn, Axis: "mode", Base: asVector},
	},
	Slots: func(p *experiment.Point) []*handlers.Slot {
		if p.Text("mode") == asPairs {
			return []*handlers.Slot{sparse.AggregatorSlot}
		}
		return []*handlers.Slot{reduction.AggregatorSlot}
	},
	Served:   []string{"reduction"},
	Followed: experiment.LatencyColumn,
	View: experiment.View{
		Value: experiment.LatencyColumn, Series: []string{"mode"}, Base: asVector, X: "density", Quiet: []string{"where", "block", "sums"}, Answer: worthIt,
		Summary: []string{experiment.ProfileColumn, "where", "block", "sums", "ranks", "bytes", "density", "mode", "latency_us", "speedup_vs_dense", bytesColumn, "bytes_saved"},
	},
	Notes: []string{"Every byte of every rank's result was compared with what it must be."},
}

// roomOfPairs adds the vectors, in pairs twice as large at a rank and in its
// inbox, and what aggregators have for two windows: tables, and as much again
// for each child.
func roomOfPairs(p *experiment.Point) int64 {
	ranks, size := int64(p.Int("ranks")), int64(p.Int("size"))
	need := p.Footprint(2*p.Int("ranks")) + (8*ranks+4)*size
	switch {
	case p.Text("mode") == asVector:
		return need
	case p.Text("where") == byNICTree: // with the rank and two others below each
		return need + 4*4*ranks*size
	}
	return need + 2*4*(ranks+1)*size
}

// canPair reports which points exist.
func canPair(p *experiment.Point) (bool, error) {
	block, table := p.Int("block"), p.Int("sums")
	switch {
	case block&(block-1) != 0:
		return false, fmt.Errorf("--block: %d, expected a power of two", block)
	case table&(table-1) != 0 || table > block:
		return false, fmt.Errorf("--sums: %d, expected a power of two up to the %d of --block", table, block)
	}
	if err := hasTree(p, p.Text("where")); err != nil {
		return false, err
	}
	return true, nil
}

func runPairs(ctx context.Context, p *experiment.Point) (values experiment.Values, err error) {
	if of := p.Profile.Serve; of["sparse"] == nil && of["reduction"] != nil {
		other := *p
		if other.Profile, err = experiment.WithFields(p.Profile, []string{"serve.sparse.payload=" + of.Pool("reduction", "payload")}); err != nil {
			return nil, err
		}
		p = &other
	}
	m := &measured{Point: p, ranks: p.Int("ranks"), bytes: p.Int("size"), density: p.Float("density")}
	m.expect()
	var group *sparse.Group
	var c *runtime.Cluster
	stats, err := experiment.Simulate(ctx, p.Config(ctx, m.ranks), func(on *runtime.Cluster) (err error) {
		c = on
		if p.Text("mode") == asVector {
			_, err = m.trees(c, p.Text("where"), 0)
		} else {
			group, err = m.pairs(c)
		}
		return err
	}, func() error {
		values = experiment.Values{experiment.LatencyColumn: m.last, "rank_bytes": m.sent(c), "spilled": int64(0)}
		carried := int64(0)
		for _, l := range c.Fabric().Links() {
			carried += l.Bytes
		}
		values[bytesColumn] = carried
		if group != nil {
			values["spilled"] = int64(group.Counts().Spilled)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for name, v := range experiment.ClusterValues(&stats) { //lint:maporder a map is made of a map
		values[name] = v
	}
	return values, nil
}

// chosen reports whether an element of a rank is not zero: the bits of its number
// are mixed (splitmix64) and compared.
func (m *measured) chosen(rank, i int) bool {
	x := m.Seed*0x9e3779b97f4a7c15 ^ uint64(rank)<<32 ^ uint64(i)
	for range 2 {
		x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
		x = (x ^ x>>27) * 0x94d049bb133111eb
	}
	return float64(x>>11) < m.density*(1<<53)
}

// pairs starts aggregators of pairs and the ranks.
func (m *measured) pairs(c *runtime.Cluster) (*sparse.Group, error) {
	library, err := sparse.Load(c)
	if err != nil {
		return nil, err
	}
	members, tree, err := m.tree(c, m.Text("where"))
	if err != nil {
		return nil, err
	}
	span, most := m.Int("block"), 1
	vectors := make([][]byte, m.ranks)
	for rank := range vectors {
		block := 0
		for i := range m.bytes / element {
			if i%span == 0 {
				block = 0
			}
			if v := m.number(rank, i); v != 0 {
				vectors[rank] = binary.LittleEndian.AppendUint32(vectors[rank], uint32(i))
				vectors[rank] = binary.LittleEndian.AppendUint32(vectors[rank], math.Float32bits(v))
				block++
				most = max(most, block)
			}
		}
	}
	group, err := library.Group(sparse.Options{
		Members: members, Tree: tree, Span: span, Most: most, Table: m.Int("sums"), Blocks: (m.bytes/element + span - 1) / span,
	})
	if err != nil {
		return nil, err
	}
	for rank := range m.ranks {
		err := c.Spawn(rank, "rank", func(p *runtime.Proc) error {
			member, err := group.Open(p, rank)
			if err != nil {
				return err
			}
			source, result := p.Alloc(len(vectors[rank])), p.Alloc(m.bytes)
			source.CopyFrom(vectors[rank])
			err = member.Allreduce(m.bytes/element, source, func(list []sparse.Pair) {
				sum := result.Write()
				for _, p := range list {
					binary.LittleEndian.PutUint32(sum[element*p.Index:], math.Float32bits(p.Value))
				}
			})
			if err != nil {
				return err
			}
			return m.ended(p, result)
		})
		if err != nil {
			return nil, err
		}
	}
	return group, nil
}

// worthIt says at which of the measured densities pairs take less time, and at
// which fewer bytes.
func worthIt(results []*experiment.Result) (lines []string) {
	type kind struct {
		profile, where            string
		block, table, ranks, size int
	}
	faster, fewer := map[kind][]string{}, map[kind][]string{}
	var order []kind
	for _, r := range results {
		p, dense := r.Point, experiment.Beside(results, r, "mode", asVector)
		if dense == nil || dense == r {
			continue
		}
		of := kind{p.Profile.Origin.Name, p.Text("where"), p.Int("block"), p.Int("sums"), p.Int("ranks"), p.Int("size")}
		if !slices.Contains(order, of) {
			order = append(order, of)
		}
		density := densityAxis.Plain(p.Float("density"))
		if r.Time(experiment.LatencyColumn) < dense.Time(experiment.LatencyColumn) {
			faster[of] = append(faster[of], density)
		}
		if r.Values[bytesColumn].(int64) < dense.Values[bytesColumn].(int64) {
			fewer[of] = append(fewer[of], density)
		}
	}
	said := func(list []string) string {
		if list == nil {
			return "at none of the densities"
		}
		return "at " + strings.Join(list, ", ")
	}
	for _, of := range order {
		blocks := fmt.Sprintf("blocks of %d", of.block)
		if of.table != 0 {
			blocks += fmt.Sprintf(" in tables of %d", of.table)
		}
		lines = append(lines, fmt.Sprintf("%s, %s, %d ranks, %v, %s: pairs are faster than whole vectors %s, and take fewer bytes on links %s.",
			of.profile, of.where, of.ranks, sim.Size(of.size), blocks, said(faster[of]), said(fewer[of])))
	}
	return lines
}
