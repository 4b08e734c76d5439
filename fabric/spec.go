package fabric

import (
	"errors"
	"fmt"

	"github.com/spinsim/spinsim/sim"
)

// Kinds of fabric.
const (
	FatTree  = "fat-tree"
	Crossbar = "crossbar"
)

// MaxNodes is the largest number of nodes of a fabric.
const MaxNodes = 1 << 22

// Spec describes a fabric. It is the fabric section of a profile.
type Spec struct {
	// Kind is "fat-tree" or "crossbar" (one switch with a port for every node).
	Kind string `yaml:"kind"`
	// Radix is the number of ports of a fat tree's switches: even, at least 4. A
	// crossbar has a port for every node and does not look at it.
	Radix int `yaml:"radix,omitempty"`
	// Rate is how fast a node's links are in each direction: the G of LogGP, as in
	// "20ps/B" or "400Gb/s". One packet's time is rounded to the nearest
	// picosecond, and exact if the rate is whole picoseconds per byte.
	Rate sim.Rate `yaml:"rate"`
	// SwitchRate is how fast links between switches are. Absent: as Rate.
	SwitchRate sim.Rate `yaml:"switch_rate,omitempty"`
	// Gap is the least time between the beginnings of two packets of one node: the g of LogGP.
	Gap sim.Time `yaml:"gap,omitempty"`
	// Wire is the propagation time of every link.
	Wire sim.Time `yaml:"wire"`
	// Switch is the time from a packet's head reaching a switch to its head being
	// at the output port.
	Switch sim.Time `yaml:"switch"`
	// StoreAndForward makes switches wait for a packet's tail before they route it.
	StoreAndForward bool `yaml:"store_and_forward,omitempty"`
	// Header is the number of bytes the link adds to every packet.
	Header int32 `yaml:"header,omitempty"`
	// MTU is the most bytes of a packet, Header not included.
	MTU int32 `yaml:"mtu"`
	// InjectBuffer is how many bytes, headers included, a node may have injected
	// and not yet sent. It is at least MTU + Header; 0 is no limit.
	InjectBuffer int64 `yaml:"inject_buffer,omitempty"`
}

// Validate reports everything wrong with s, each with the field's name in the
// profile.
func (s *Spec) Validate() error {
	var errs []error
	wrong := func(field, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s: %s", field, fmt.Sprintf(format, args...)))
	}
	switch s.Kind {
	case FatTree:
		if s.Radix < 4 || s.Radix%2 != 0 || s.Radix > MaxNodes {
			wrong("radix", "want an even number from 4 to %d, got %d", MaxNodes, s.Radix)
		}
	case Crossbar:
	default:
		wrong("kind", "want %s or %s, got %q", FatTree, Crossbar, s.Kind)
	}
	if s.Rate.IsZero() {
		wrong("rate", "want a rate such as 20ps/B or 400Gb/s")
	}
	if s.Wire < 1 {
		wrong("wire", "want more than 0 s, got %v: nodes may not meet without delay", s.Wire)
	}
	if s.Gap < 0 {
		wrong("gap", "want 0 s or more, got %v", s.Gap)
	}
	if s.Switch < 0 {
		wrong("switch", "want 0 s or more, got %v", s.Switch)
	}
	if s.MTU < 1 {
		wrong("mtu", "want at least 1 byte, got %d", s.MTU)
	}
	if s.Header < 0 {
		wrong("header", "want 0 bytes or more, got %d", s.Header)
	}
	if full := int64(s.MTU) + int64(s.Header); s.InjectBuffer != 0 && s.InjectBuffer < full {
		wrong("inject_buffer", "want 0 (no limit) or at least mtu + header = %d bytes, got %d", full, s.InjectBuffer)
	}
	return errors.Join(errs...)
}

// New makes the fabric that spec describes, for nodes nodes, and registers its
// switches with eng.
func New(eng *sim.Engine, spec Spec, nodes int) (Fabric, error) {
	if err := spec.Validate(); err != nil {
		return nil, fmt.Errorf("fabric: %w", err)
	}
	if nodes < 1 || nodes > MaxNodes {
		return nil, fmt.Errorf("fabric: want 1 to %d nodes, got %d", MaxNodes, nodes)
	}
	return newTree(eng, spec, nodes), nil
}
