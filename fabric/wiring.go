package fabric

import (
	"fmt"

	"github.com/spinsim/spinsim/sim"
)

// wiring is the rate and the length of a link.
type wiring struct {
	rate    sim.Rate
	wire    sim.Time
	hop     sim.Time // wire, and the switch at the end
	control int64    // bytes after every packet
	idle    sim.Time // the time of the control bytes
	word    int64    // bytes after every 16 B of a packet
	queue   sim.Time // the time of Spec.Queue
}

// wiring returns the rate and the length of a link.
func (s *Spec) wiring(l Link) wiring {
	w := wiring{rate: l.Rate, wire: l.Wire, control: int64(l.Control), word: int64(l.ControlWord)}
	switch {
	case !w.rate.IsZero():
	case l.Node || s.SwitchRate.IsZero():
		w.rate = s.Rate
	default:
		w.rate = s.SwitchRate
	}
	if w.wire == 0 {
		w.wire = s.Wire
		if !l.Node && s.SwitchWire > 0 {
			w.wire = s.SwitchWire
		}
	}
	w.hop = w.wire + s.Switch
	if l.Switch > 0 {
		w.hop = w.wire + l.Switch
	}
	w.idle, w.queue = s.bits(w.rate, w.control), w.rate.Time(s.Queue)
	return w
}

// wiringOf returns the number of a link's wiring.
func (n *network) wiringOf(l Link) (uint8, error) {
	w := n.spec.wiring(l)
	for i, known := range n.wirings {
		if w == known {
			return uint8(i), nil
		}
	}
	const most = 256
	if len(n.wirings) == most {
		return 0, fmt.Errorf("fabric: links have more than %d different rates and lengths", most)
	}
	n.wirings = append(n.wirings, w)
	return uint8(len(n.wirings) - 1), nil
}
