package nic

import (
	"slices"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/sim"
)

// homes gives handlers to clusters of HPUs (hpu.home: message). The clusters are
// pools: an HPU takes handlers that its cluster has. A handler's packet is copied
// into the memory of its cluster first, one after the other.
type homes struct {
	most     int // handlers that a cluster has at once
	clusters []home
	tasks    ring[task] // that no cluster takes, if there are no tenants
}

// home is a cluster.
type home struct {
	has     int        // handlers: those below, and in its pool
	copied  sim.Time   // when its last copy ends
	copying ring[task] // handlers whose packets are on their way
}

// choose returns the cluster for a handler of a message: its home if that takes
// one more, else the cluster that has the fewest.
func (h *homes) choose(flow int32) (cluster int, ok bool) {
	if cluster = int(flow) % len(h.clusters); h.clusters[cluster].has < h.most {
		return cluster, true
	}
	for i := range h.clusters {
		if h.clusters[i].has < h.clusters[cluster].has {
			cluster = i
		}
	}
	return cluster, h.clusters[cluster].has < h.most
}

// toCluster gives a handler to a cluster. If all have as many as they take, it
// waits.
func (s *schedule) toCluster(t task) {
	s.core.used.Add(used.HPU)
	if s.tenants != nil {
		s.waiting++
		s.tenants.push(t)
		s.tenants.fillClusters(s)
		return
	}
	i, ok := s.homes.choose(t.in.flow)
	if !ok {
		s.homes.tasks.push(t)
		s.waiting++
		return
	}
	s.take(i, t)
}

// take gives a handler to a cluster that has room.
func (s *schedule) take(i int, t task) {
	bytes := int64(0)
	if t.kind != completionHandler {
		from, to := t.in.frame.Span(int(t.packet))
		bytes = int64(to - from)
	}
	t.cluster = uint16(i)
	c := &s.homes.clusters[i]
	c.has++
	c.copied = max(s.now(), c.copied) + s.hpu.Copy.Time(bytes)
	c.copying.push(t)
	s.post(c.copied+s.hpu.Dispatch.Time(s.hpu.Clock), kindCopied, uint64(i), nil)
}

// eachTask visits the handlers that wait for an HPU: those that no cluster has
// taken, those on their way to one, and those of a pool.
func (s *schedule) eachTask(visit func(t *task)) {
	if s.homes != nil {
		s.homes.tasks.each(visit)
		for i := range s.homes.clusters {
			s.homes.clusters[i].copying.each(visit)
		}
	}
	for i := range s.pools {
		s.pools[i].tasks.each(visit)
	}
	if s.tenants != nil {
		for i := range s.tenants.list {
			s.tenants.list[i].tasks.each(visit)
		}
	}
}

// leftCluster lets a cluster take another handler in place of one that has
// ended.
func (s *schedule) leftCluster(cluster uint16) {
	h := s.homes
	if h.clusters[cluster].has--; s.tenants != nil {
		s.tenants.fillClusters(s)
	} else if h.tasks.len() > 0 {
		s.waiting--
		s.toCluster(h.tasks.pop())
	}
}

// buildHomes makes the pools of the clusters behind the first, and returns the
// number of HPUs of each cluster.
func (s *schedule) buildHomes() (each int) {
	spec := s.hpu
	if spec.Home != HomeMessage {
		return spec.Cores
	}
	n := spec.Clusters
	s.homes = &homes{most: spec.Cores/n + spec.ClusterTasks, clusters: make([]home, n)}
	for range n - 1 {
		s.pools = append(s.pools, pool{name: s.pools[0].name, hpu: spec})
	}
	return spec.Cores / n
}

// sends notes a packet that a handler sends at a time, which its end waits for.
func (d *act) sends(r *run, bytes uint64, at sim.Time) {
	if !d.hpu.Send.IsZero() {
		r.sent = max(r.sent, at+d.hpu.Send.Time(d.hpu.Clock)+d.hpu.Copy.Time(int64(bytes)))
	}
}

// tellContext tells a context what the cost of its next handler depends on,
// besides its instructions.
func (d *act) tellContext(r *run, fn hpu.Func) {
	in := r.task.in
	pads, m := in.d.Spin.Scratchpads, in.handlers.memory
	cluster := r.ctx.Cluster()
	r.fn, r.first = fn, r.core.pool.hpu != nil && !m.ran(cluster, fn)
	r.ctx.Begins(fn, hpu.Scratchpads{At: m.addr + uint32(pads.Offset), Each: uint32(pads.Bytes)}, r.first)
}

// ran reports whether a handler has run to its end in a cluster, so that its
// code is in the instruction cache there.
func (h *Memory) ran(cluster int, fn hpu.Func) bool {
	return cluster < len(h.warm) && slices.Contains(h.warm[cluster], fn)
}

// warmed notes the end of a handler's first run in a cluster. Runs that have
// begun before do not have its code, either.
func (h *Memory) warmed(cluster int, fn hpu.Func) {
	for len(h.warm) <= cluster {
		h.warm = append(h.warm, nil)
	}
	if !slices.Contains(h.warm[cluster], fn) {
		h.warm[cluster] = append(h.warm[cluster], fn)
	}
}
