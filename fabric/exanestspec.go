package fabric

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/sim"
)

// ExaNeSt is the network of the ExaNeSt prototype: boards of four MPSoCs in a
// torus.
const ExaNeSt = "exanest"

var exanestField = &field{name: "exanest", clear: func(s *Spec) { s.Exanest = ExanestSpec{} }, set: setOfExanest}

var exanestKind = &kind{
	name:   ExaNeSt,
	fields: []*field{dimsField, exanestField},
	whole:  true,
	check:  (*Spec).exanest,
	most:   func(s *Spec) int { return s.qfdbs().Nodes() },
	build: func(s *Spec, nodes int) (Topology, error) {
		if q := s.qfdbs(); nodes > q.Nodes() {
			return nil, fmt.Errorf("dims: %v QFDBs have %d MPSoCs, too few for %d nodes", q, q.Nodes(), nodes)
		}
		return newExanest(s, nodes), nil
	},
}

// ExanestSpec is the additional parameters of a network of kind exanest. Dims
// is the numbers of QFDBs. Rate and Wire are for links inside an MPSoC,
// SwitchRate and SwitchWire for links between the MPSoCs of a QFDB. A link
// between QFDBs takes SwitchWire and Switch, like a link in a QFDB with the
// switch behind it.
type ExanestSpec struct {
	// LinkRate is the rate of links between QFDBs.
	LinkRate sim.Rate `yaml:"link_rate,omitempty"`
	// Router is the time that a packet takes through a router between QFDBs. It
	// passes N+1 routers on N links. Router is at most 1 s, and more than two
	// Wires and a Switch: it includes the ways between the router and the switch
	// of its MPSoC.
	Router sim.Time `yaml:"router,omitempty"`
	// Control is the bytes that a router sends behind every packet on a link
	// between QFDBs. They occupy the link and carry nothing. At most 65,536.
	Control int32 `yaml:"control,omitempty" unit:"B"`
	// ControlWord is the bytes that a router sends beside every 16 B of a packet
	// and its header on such a link, which likewise carry nothing: a packet takes
	// longer by a factor. At most 65,536. TR-488 §6.1.2 has control data beside
	// each cell, and no number.
	ControlWord int32 `yaml:"control_word,omitempty" unit:"B"`
	// Order is the order in which packets take the dimensions: "xyz" or another
	// order of these letters.
	Order string `yaml:"order,omitempty"`
	// Ties decides the direction of packets that have half a ring before them:
	// "source" (up from even coordinates, down from odd ones), "destination" (up
	// to MPSoCs of even number, F1 and F3, down to others) or "up".
	Ties string `yaml:"ties,omitempty"`
	// Channels is the number of virtual channels of links between QFDBs: 2, or 1
	// if packets cannot wait in a circle even so.
	Channels int `yaml:"channels,omitempty"`
	// ZLinks is the number of links between counterparts of two groups: 1 or 2.
	// More groups are rings, like blades.
	ZLinks int `yaml:"z_links,omitempty"`
}

// Rules of ExanestSpec.Ties.
const (
	tiesSource      = "source"
	tiesDestination = "destination"
	tiesUp          = "up"
)

// qfdbs returns the dimensions of a network of kind exanest.
func (s *Spec) qfdbs() QFDBs { return QFDBs{s.Dims[0], s.Dims[1], s.Dims[2]} }

// QFDBs returns the numbers of boards of a network of kind exanest. It returns
// false if s is of another kind, or not valid.
func (s *Spec) QFDBs() (q QFDBs, is bool) {
	if s.Kind != ExaNeSt || len(s.Dims) != 3 || s.qfdbs().Validate() != nil {
		return q, false
	}
	return s.qfdbs(), true
}

// exanest checks the fields for a network of kind exanest.
func (s *Spec) exanest() (errs []error) {
	wrong := func(field, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s: %s", field, fmt.Sprintf(format, args...)))
	}
	if len(s.Dims) != 3 {
		wrong("dims", "want three numbers of QFDBs such as [4, 4, 2], on a mezzanine, mezzanines in a group and groups, got %v", s.Dims)
	} else if err := s.qfdbs().Validate(); err != nil {
		wrong("dims", "%v", err)
	}
	e := &s.Exanest
	if e.LinkRate.IsZero() {
		wrong("exanest.link_rate", "want a rate such as 10Gb/s")
	} else if err := e.LinkRate.Check(); err != nil {
		wrong("exanest.link_rate", "%v", err)
	}
	if low := 2*min(s.Wire, MaxTime) + min(s.Switch, MaxTime); e.Router <= low || e.Router > MaxTime {
		wrong("exanest.router", "want more than two wires and a switch, %v, to %v, got %v", low, MaxTime, e.Router)
	}
	if e.Control < 0 || e.Control > MaxMTU {
		wrong("exanest.control", "want 0 to %d bytes, got %d", MaxMTU, e.Control)
	}
	if e.ControlWord < 0 || e.ControlWord > MaxMTU {
		wrong("exanest.control_word", "want 0 to %d bytes, got %d", MaxMTU, e.ControlWord)
	}
	if letters := strings.Split(e.Order, ""); !slices.Equal(slices.Sorted(slices.Values(letters)), []string{"x", "y", "z"}) {
		wrong("exanest.order", "want the letters x, y and z in the order in which packets take the dimensions, got %q", e.Order)
	}
	if e.Ties != tiesSource && e.Ties != tiesDestination && e.Ties != tiesUp {
		wrong("exanest.ties", "want %s, %s or %s, got %q", tiesSource, tiesDestination, tiesUp, e.Ties)
	}
	if e.ZLinks < 1 || e.ZLinks > 2 {
		wrong("exanest.z_links", "want 1 or 2, got %d", e.ZLinks)
	}
	switch ring := s.circle(); {
	case e.Channels < 1 || e.Channels > 2:
		wrong("exanest.channels", "want 1 or 2, got %d", e.Channels)
	case e.Channels == 1 && len(s.Buffer) > 0 && ring > 0:
		wrong("exanest.channels", "want 2: packets on a ring of %d with ties %q could wait for each other in a circle", ring, e.Ties)
	}
	return errs
}

// setOfExanest returns the fields of Exanest that are set.
func setOfExanest(s *Spec) (set []string) {
	e := &s.Exanest
	for _, field := range []struct {
		name string
		said bool
	}{
		{"link_rate", e.LinkRate != sim.Rate{}},
		{"router", e.Router != 0},
		{"control", e.Control != 0},
		{"control_word", e.ControlWord != 0},
		{"order", e.Order != ""},
		{"ties", e.Ties != ""},
		{"channels", e.Channels != 0},
		{"z_links", e.ZLinks != 0},
	} {
		if field.said {
			set = append(set, "exanest."+field.name+":")
		}
	}
	return set
}

// circle returns the length of a ring on which packets can wait all round, 0 if
// there is none. A path of one link waits for nothing on the ring, and on rings
// of three there are no longer paths. On rings of four only packets halfway
// round take two links, and with ties by source no two of them in the same
// direction begin beside each other.
func (s *Spec) circle() int {
	for _, d := range s.Dims {
		if d > 4 || d == 4 && s.Exanest.Ties != tiesSource {
			return d
		}
	}
	return 0
}
