package fabric

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/sim"
)

// damage is the faults on the links of a network. Every link has its own
// record.
type damage struct {
	links []record
	down  map[int][]Down // by link
}

// record is the losses of a link.
type record struct {
	losses        []Loss // the first keptLosses
	lost, damaged int64
	bytes         int64 // of the lost packets, and the payload of trimmed ones
	trimmed       int64
	repeated      int64 // of both: packets that their sources repeat, for which there is no Loss
}

// keptLosses is how many losses a link keeps; the others are only counted.
const keptLosses = 100

func newDamage(links int) *damage { return &damage{make([]record, links), make(map[int][]Down)} }

func (d *damage) record(link int, l Loss) {
	if d.counts(link, l.Damaged, l.Packet.Repeated, int64(l.Packet.Bytes)) {
		r := &d.links[link]
		r.losses = append(r.losses, l)
	}
}

// counts counts a loss with its number of bytes. It reports whether the loss is
// among the first, which are kept.
func (d *damage) counts(link int, damaged, repeated bool, bytes int64) bool {
	r := &d.links[link]
	if damaged {
		r.damaged++
	} else {
		r.lost++
		r.bytes += bytes
	}
	if repeated {
		r.repeated++
		return false
	}
	return len(r.losses) < keptLosses
}

// trimmed counts a packet that loses its payload.
func (d *damage) trimmed(link int, b uint64) {
	d.links[link].trimmed++
	d.links[link].bytes += int64(b >> 32 & lengthMask)
}

func (d *damage) totals() (lost, damaged int64) {
	for i := range d.links {
		lost += d.links[i].lost
		damaged += d.links[i].damaged
	}
	return lost, damaged
}

// list returns the losses in order of time, and their total number without
// repeated packets.
func (d *damage) list() ([]Loss, int) {
	var all []Loss
	for i := range d.links {
		all = append(all, d.links[i].losses...)
	}
	lost, damaged := d.totals()
	for i := range d.links {
		lost -= d.links[i].repeated
	}
	return sortLosses(all), int(lost + damaged)
}

func sortLosses(all []Loss) []Loss {
	slices.SortStableFunc(all, func(a, b Loss) int { return cmp.Compare(a.At, b.At) })
	return all
}

// breakLinks marks the links of d, for the time of d.
func (n *network) breakLinks(d Down) error {
	var lines []int
	if d.Node != nil {
		if *d.Node < 0 || *d.Node >= len(n.ports) {
			return fmt.Errorf("node: want 0 to %d, got %d", len(n.ports)-1, *d.Node)
		}
		lines = []int{len(n.links) + *d.Node, int(n.ports[*d.Node].down)}
	} else {
		i := n.lineNamed(d.Link)
		if i < 0 {
			return fmt.Errorf("link: there is no link %q here; those from node 0 to node %d are %s", d.Link, len(n.ports)-1, n.pathNames())
		}
		lines = []int{i}
	}
	for _, i := range lines {
		if i < len(n.links) {
			n.links[i].to |= brokenBit
		} else {
			n.ports[i-len(n.links)].to |= brokenBit
		}
		n.damage.down[i] = append(n.damage.down[i], d)
	}
	return nil
}

// pathNames names some links, for messages.
func (n *network) pathNames() (names string) {
	const most = 8
	path := n.Path(0, len(n.ports)-1)
	for i, h := range path[:min(most, len(path))] {
		if i > 0 {
			names += ", "
		}
		names += h.Link
	}
	return names
}

// QueueFull is the cause of a loss for which Spec.Queue had no room.
const QueueFull = "queue full"

// note counts a packet that is lost or damaged on a link, at a time.
func (d *damage) note(n *network, link int, a, b uint64, ref any, at sim.Time, cause string, damaged bool) {
	if d.counts(link, damaged, b&repeatBit != 0, int64(b>>32&lengthMask)) {
		p, r := Unpack(&sim.Event{A: a &^ fateMask, B: b, P: ref}), &d.links[link]
		r.losses = append(r.losses, Loss{at, n.lineName(link), cause, damaged, p})
	}
}

// pass decides about a packet that occupies a link from start to end: it is
// lost, or goes on with the returned A.
func (d *damage) pass(n *network, link int, a, b uint64, ref any, start, end sim.Time) (uint64, bool) {
	if d == nil {
		return a, false
	}
	note := func(cause string, damaged bool) { d.note(n, link, a, b, ref, start, cause, damaged) }
	for _, w := range d.down[link] {
		if start < w.To && end > w.From {
			cause := "link down"
			if w.Node != nil {
				cause = fmt.Sprintf("node %d down", *w.Node)
			}
			note(cause, false)
			return a, true
		}
	}
	f := fateOf(a)
	switch f.what() {
	case fateLost, fateCorrupt:
		if f&hopMask > 0 {
			return a&^fateMask | (f - 1).word(), false
		}
		if f.what() == fateLost {
			note("loss", false)
			return a, true
		}
		note("corrupt", true)
		return a&^fateMask | fateDamaged.word(), false
	}
	return a, false
}
