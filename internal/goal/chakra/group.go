package chakra

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
)

// group is a process group: the NPUs that do a collective together.
type group struct {
	name  string
	ranks []int
	whole bool // of all NPUs
	index uint32
	done  []done // its collectives, as the first NPU does them
	seen  int    // NPUs that have done them
	// The current NPU's:
	npu    int    // itself
	me     int    // its place among the ranks
	next   int    // collective
	chunks uint32 // so far
	trees  uint32 // chunks that went along a tree
}

// done is what all NPUs of a group must agree on.
type done struct {
	kind uint8
	size uint64
}

// group returns the group of a collective of the current NPU.
func (im *Importer) group(npu int, n *node) (*group, error) {
	for len(im.current) <= len(im.trace.names) {
		im.current = append(im.current, nil)
	}
	g := im.current[n.group+1]
	if g != nil {
		return g, nil
	}
	g = im.all
	if n.group >= 0 {
		var err error
		if g, err = im.named(im.trace.names[n.group]); err != nil {
			return nil, im.trace.at(n, "%w", err)
		}
	}
	if g.me = slices.Index(g.ranks, npu); g.me < 0 {
		return nil, im.trace.at(n, "NPU %d is not in process group %s", npu, g.name)
	}
	if g.next == 0 || g.npu != npu {
		g.npu, g.next, g.chunks, g.trees = npu, 0, 0, 0
		im.used = append(im.used, g)
	}
	im.current[n.group+1] = g
	return g, nil
}

// named returns the group that the current trace means by a name. Another NPU
// may mean another one.
func (im *Importer) named(name string) (*group, error) {
	ranks, ok := im.trace.groups[name]
	if !ok {
		ranks, ok = im.told[name]
	}
	if !ok {
		return nil, fmt.Errorf("process group %q is not defined: neither by a METADATA node nor by --groups", name)
	}
	key := fmt.Sprint(name, ranks)
	g := im.groups[key]
	if g == nil {
		if err := im.fits(ranks); err != nil {
			return nil, fmt.Errorf("process group %s: %w", name, err)
		}
		g = &group{name: name, ranks: ranks, index: uint32(len(im.groups)) + 1}
		if len(ranks) == im.npus { // ASTRA-sim orders it as the machine
			g.ranks, g.whole = im.all.ranks, true
		}
		im.groups[key] = g
	}
	return g, nil
}

// fits checks the members of a group.
func (im *Importer) fits(ranks []int) error {
	seen := make(map[int]bool, len(ranks))
	for _, r := range ranks {
		if r < 0 || r >= im.npus {
			return fmt.Errorf("NPU %d, and the trace has files of %d NPUs", r, im.npus)
		}
		if seen[r] {
			return fmt.Errorf("NPU %d twice", r)
		}
		seen[r] = true
	}
	return nil
}

// join notes a collective, which the other NPUs must do, too.
func (g *group) join(t *trace, n *node) error {
	is := done{n.coll, n.size}
	if g.seen == 0 {
		g.done = append(g.done, is)
	}
	g.next++
	switch {
	case g.next > len(g.done):
		return t.at(n, "collective %d of process group %s, in which other NPUs do %d", g.next, g.name, len(g.done))
	case g.done[g.next-1] != is:
		was := g.done[g.next-1]
		return t.at(n, "collective %d of process group %s is %s of %d bytes, on other NPUs it is %s of %d bytes", g.next, g.name,
			collName(is.kind), is.size, collName(was.kind), was.size)
	}
	return nil
}

// leave ends the part of an NPU in the collectives.
func (g *group) leave(file string) error {
	g.seen++
	if g.next < len(g.done) {
		return &Error{File: file, Msg: fmt.Sprintf("%d collectives of process group %s, in which other NPUs do %d", g.next, g.name, len(g.done))}
	}
	return nil
}

// ReadGroups reads ASTRA-sim's file of process groups: a JSON object with lists
// of NPUs by the number of the group.
func ReadGroups(file string, text []byte) (map[string][]int, error) {
	groups := make(map[string][]int)
	if err := json.Unmarshal(text, &groups); err != nil {
		return nil, fmt.Errorf("%s: %w; expected lists of NPUs by the number of the group", file, err)
	}
	for name, ranks := range groups {
		if n, err := strconv.Atoi(name); err != nil || n < 1 {
			return nil, fmt.Errorf("%s: group %q, expected a number from 1: 0 is the group of all NPUs", file, name)
		}
		if len(ranks) == 0 {
			return nil, fmt.Errorf("%s: group %s has no NPUs", file, name)
		}
	}
	return groups, nil
}
