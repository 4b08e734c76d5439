package fabric

import "github.com/spinsim/spinsim/sim"

// Line is a link in one direction, for a capture.
type Line struct {
	Name     string // "Node[0].Tx", "Switch[1][0].Up[3]"
	From, To int    // nodes at its ends; -1: a switch
}

// Capturer is a Fabric that shows the packets on its links.
type Capturer interface {
	// Capture calls f for every packet on the lines that want chooses, with the
	// time from which to which its bytes are put onto the line. That time may be
	// later than now. Call Capture before the first packet. f must not change the
	// simulation.
	Capture(want func(l Line) bool, f func(l *Line, p Packet, from, to sim.Time))
}

// FindCapturer returns the Capturer inside the decorators of f, nil if there is
// none.
func FindCapturer(f Fabric) Capturer {
	for {
		if c, is := f.(Capturer); is {
			return c
		}
		switch x := f.(type) {
		case *Faulty:
			f = x.Fabric
		case interface{ Unwrap() Fabric }:
			f = x.Unwrap()
		default:
			return nil
		}
	}
}

// capture is a network's captured links and the function to call.
type capture struct {
	lines []*Line // by number, first of switches, then of nodes; nil: not wanted
	f     func(l *Line, p Packet, from, to sim.Time)
}

// Capture implements Capturer.
func (n *network) Capture(want func(l Line) bool, f func(l *Line, p Packet, from, to sim.Time)) {
	c := &capture{make([]*Line, len(n.links)+len(n.ports)), f}
	for i := range c.lines {
		l := Line{From: -1, To: -1}
		if node := i - len(n.links); node >= 0 {
			l.Name, l.From = nodeLink(node), node
		} else {
			if n.topo.Link(i).To == nowhere {
				continue
			}
			l.Name = n.topo.LinkName(i)
			if t := n.topo.Link(i); t.Node {
				l.To = t.To
			}
		}
		if want(l) {
			c.lines[i] = &l
		}
	}
	n.capture = c
}

// see shows a packet, in the form of an event, on a line.
func (c *capture) see(line int, a, b uint64, ref any, from, to sim.Time) {
	if l := c.lines[line]; l != nil {
		c.f(l, Unpack(&sim.Event{A: a, B: b, P: ref}), from, to)
	}
}
