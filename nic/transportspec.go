package nic

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/internal/fields"
	"github.com/spinsim/spinsim/laws"
	"github.com/spinsim/spinsim/sim"
)

// TransportSpec describes how packets get from NIC to NIC. It is the transport
// section of a profile. There are no defaults.
type TransportSpec struct {
	// Kind is "none" or "reliable". None is for a network that loses nothing; a
	// packet that is lost nevertheless is counted and named at the end of the
	// run. With reliable every packet is acknowledged, lost or damaged packets
	// are sent again, and the packets between a pair of nodes arrive once and
	// in order.
	Kind string `yaml:"kind"`
	// Timeout is the time from a packet's turn on the wire to its
	// retransmission, unless it has been acknowledged: 1 ps to 1 s. A message
	// that loses one packet is later by Timeout.
	Timeout sim.Time `yaml:"timeout"`
	// Window is how many unacknowledged packets to one node there may be, 1 to
	// 2^16. Others wait at the NIC.
	Window int `yaml:"window"`
	// Retries is how often a packet is sent again, 0 to 2^16. After that, the
	// messages to its node that are on their way fail with
	// PTL_NI_UNDELIVERABLE. Later messages are sent as usual.
	Retries int `yaml:"retries"`
	// AckBytes is the length of an acknowledgement without fabric.header,
	// bytes, 0 to the MTU.
	AckBytes int `yaml:"ack_bytes" unit:"B"`
	// Law is the rate law of a reliable transport: how many bytes may be on their
	// way to a node (package laws). Absent: Window packets, whatever happens.
	Law string `yaml:"law,omitempty"`
	// FirstWindow is how many full packets may be on their way before the first
	// acknowledgement, 1 to 2^16. Absent: as Law chooses.
	FirstWindow int `yaml:"first_window,omitempty"`
	// Way is the path choice with fabric.paths packet (package laws). Absent: all
	// packets of a pair take one way.
	Way string `yaml:"way,omitempty"`
	// Paths is how many paths Way chooses from, 1 to 512.
	Paths int `yaml:"paths,omitempty"`
	// LawCycles bounds the cycles of a module for one event, 1 to 10^9: what a
	// pipeline at the rate of the link could spend. Needed for modules in the slots
	// transport.law and transport.way.
	LawCycles int64 `yaml:"law_cycles,omitempty"`
	// GrantBytes is how many bytes a receiver grants at once, with a law whose
	// receivers grant, 1 to 2^20.
	GrantBytes int `yaml:"grant_bytes,omitempty" unit:"B"`
	// GrantShare is the share of its link's rate that a receiver grants, above 0, at
	// most 1.
	GrantShare float64 `yaml:"grant_share,omitempty"`
	// Numbers are parameters of Law and Way in place of their defaults, by their
	// names.
	Numbers map[string]uint64 `yaml:"numbers,omitempty"`
}

// Values of TransportSpec.Kind.
const (
	Lossless = "none"
	Reliable = "reliable"
)

// maxLawCycles bounds LawCycles.
const maxLawCycles = 1_000_000_000

// maxGrant bounds GrantBytes.
const maxGrant = 1 << 20

// maxWindow bounds the packets and retries of a transport.
const maxWindow = 1 << 16

// Validate returns every violation, each with the field's name in a profile.
// Packets of the network have up to mtu bytes.
func (s *TransportSpec) Validate(mtu int32) error {
	var wrong fields.Errors
	wrong.OneOf("kind", s.Kind, Lossless, Reliable)
	fields.Between(&wrong, "timeout", s.Timeout, 1, MaxTime)
	fields.Between(&wrong, "window", s.Window, 1, maxWindow)
	fields.Between(&wrong, "retries", s.Retries, 0, maxWindow)
	fields.Between(&wrong, "ack_bytes", s.AckBytes, 0, int(max(0, mtu)))
	if s.Law != "" {
		wrong.OneOf("law", s.Law, laws.Names(laws.Rates)...)
		if s.Kind != Reliable {
			wrong.Add("law", fmt.Errorf("%s with kind %s, want kind %s: a law needs acknowledgements", s.Law, s.Kind, Reliable))
		}
	}
	if s.Way != "" {
		wrong.OneOf("way", s.Way, laws.Names(laws.Ways)...)
	}
	fields.Between(&wrong, "paths", s.Paths, min(1, len(s.Way)), fabric.Paths)
	for _, name := range slices.Sorted(maps.Keys(s.Numbers)) {
		wrong.Add("numbers."+name, s.number(name, s.Numbers[name]))
	}
	grants := 0
	if l := laws.Find(laws.Rates, s.Law); l != nil && l.Grants {
		grants = 1
		if s.GrantShare == 0 {
			wrong.Add("grant_share", fmt.Errorf("0, receivers of law %s grant a share above it", s.Law))
		}
	}
	if !(s.GrantShare >= 0 && s.GrantShare <= 1) {
		wrong.Add("grant_share", fmt.Errorf("%v, expected 0 to 1", s.GrantShare))
	}
	fields.Between(&wrong, "grant_bytes", s.GrantBytes, grants, maxGrant)
	fields.Between(&wrong, "law_cycles", s.LawCycles, 0, maxLawCycles)
	if s.Law == "" && (s.Way != "" || s.FirstWindow != 0) {
		wrong.Add("way", errors.New("way and first_window belong to a rate law: want law"))
	}
	fields.Between(&wrong, "first_window", s.FirstWindow, 0, maxWindow)
	return wrong.Join()
}

// number returns an error if neither law has a number of a name, or one cannot
// have the value.
func (s *TransportSpec) number(name string, value uint64) error {
	var all []string
	found := false
	for _, l := range []*laws.Law{laws.Find(laws.Rates, s.Law), laws.Find(laws.Ways, s.Way)} {
		if l == nil {
			continue
		}
		known, err := l.Check(name, value)
		if err != nil {
			return err
		}
		found = found || known
		for _, n := range l.Numbers {
			all = append(all, n.Name)
		}
	}
	if found {
		return nil
	}
	return fmt.Errorf("neither law %q nor way %q has such a number, expected one of %s%s", s.Law, s.Way, strings.Join(all, ", "), fields.DidYouMean(name, all))
}

// Fits returns what a network needs of the transport, each with the field's
// name in a profile.
func (s *TransportSpec) Fits(f *fabric.Spec) error {
	var wrong fields.Errors
	if sprays := f.Paths == fabric.ByPacket; sprays != (s.Way != "") {
		wrong.Add("transport.way", fmt.Errorf("%q with fabric.paths %q: packets choose their ways with both, or with neither", s.Way, f.Paths))
	}
	if f.Paths == fabric.ByLoad && s.Kind != Reliable {
		wrong.Add("fabric.paths", fmt.Errorf("%s with transport.kind %s: packets may pass each other, want kind %s, which puts them in order", f.Paths, s.Kind, Reliable))
	}
	if l := laws.Find(laws.Rates, s.Law); l != nil && l.Rated && f.Rates == 0 {
		wrong.Add("transport.law", fmt.Errorf("%s keeps to the rates of links, and they compute none: want fabric.rates", s.Law))
	}
	if f.Trim != "" && s.Law == "" {
		wrong.Add("fabric.trim", errors.New("nobody sends a trimmed packet again: want transport.law"))
	}
	return wrong.Join()
}
