package nic

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/internal/fields"
	"github.com/spinsim/spinsim/sim"
)

// PoolSpec describes a pool of processors beside the HPUs of a device. They run
// the same handlers with the same budget, but in other times.
type PoolSpec struct {
	// Kind is "firmware" or "hardware". Firmware is a few cores, and each takes
	// Invocation for any handler. An example is the R5 of ExaNeSt. Hardware is
	// a pipeline that takes Latency for a handler and begins another every
	// Latency / Depth. A handler that waits in a loop with yield looks again
	// after the pool's time for a handler.
	Kind string `yaml:"kind"`
	// Cores is the number of firmware cores, 1 to 4096.
	Cores int `yaml:"cores,omitempty"`
	// Contexts is how many handlers a firmware core holds, 1 to 4096. One runs
	// while the others wait for host memory or replies.
	Contexts int `yaml:"contexts,omitempty"`
	// Invocation is the time of firmware for a handler, at most 1 s.
	Invocation sim.Time `yaml:"invocation,omitempty"`
	// Quiet is the time of firmware for a handler that sends nothing, for example
	// after a NACK, or after the last ACK of a transfer, at most 1 s. PART'22 §4.2: 3 us
	// "for the initiation of the transfer"; TR-488 §4.5.2: 2 to 4 us whenever it is
	// invoked. 0, or absent: as Invocation.
	Quiet sim.Time `yaml:"quiet,omitempty"`
	// Follow is the time of firmware for a handler that waited for its core: the
	// core has found it together with the one before, at most 1 s. 0, or absent:
	// as any other.
	Follow sim.Time `yaml:"follow,omitempty"`
	// State are numbers of the state of those libraries whose header handlers the
	// pool runs, in place of their defaults, by their names: choices of the
	// firmware. Programs may choose otherwise. A library without such a number
	// does not run.
	State map[string]uint64 `yaml:"state,omitempty"`
	// OtherShare is how much of its time a firmware core spends on work that is
	// not simulated, 0 to 0.99. A handler that comes during such work begins when
	// the piece ends: with this probability, after a time that is uniform from 0
	// to OtherTime, from the seed of the run. Absent: none.
	OtherShare float64 `yaml:"other_share,omitempty"`
	// OtherTime is the time of a piece of that work, at most 1 s. It is required
	// with OtherShare, and refused without.
	OtherTime sim.Time `yaml:"other_time,omitempty"`
	// Latency is the time of hardware for a handler, at most 1 s.
	Latency sim.Time `yaml:"latency,omitempty"`
	// Rate is the rate at which hardware takes the bytes of a packet, beside
	// Latency: its payload handlers take that much longer. A byte takes at most 1
	// ms. Absent: bytes take no time of their own.
	Rate sim.Rate `yaml:"rate,omitempty"`
	// Depth is how many handlers the hardware pipeline holds, 1 to 4096.
	// Handlers that wait for host memory or replies count.
	Depth int `yaml:"depth,omitempty"`
	// Ports is how many ways of its own to host memory hardware has, 0 to 64.
	// Reads and writes of its handlers take them in place of the bus, with
	// dma.latency, each the one that is free first. 0, or absent: none.
	Ports int `yaml:"ports,omitempty"`
	// PortRate is the rate of a port in each direction. A byte takes at most 1 ms.
	// It is required with Ports, and refused without.
	PortRate sim.Rate `yaml:"port_rate,omitempty"`
}

// Values of PoolSpec.Kind.
const (
	Firmware = "firmware"
	Hardware = "hardware"
)

// HPUs is the name of the pool that every device has. It runs the handlers that
// Serve does not name.
const HPUs = "hpu"

// Pools are the processors of a device beside its HPUs, by name.
type Pools map[string]PoolSpec

// Serve maps a library's name and a handler's kind ("header", "payload" or
// "completion") to the pool that runs such handlers.
type Serve map[string]map[string]string

const maxProcessors = 4096

// Validate returns every violation, each with the field's name in a profile.
func (s *PoolSpec) Validate() error {
	var wrong fields.Errors
	wrong.OneOf("kind", s.Kind, Firmware, Hardware)
	unused := func(field string, set bool) {
		if set {
			wrong.Add(field, fmt.Errorf("given, expected none for a pool of %s", s.Kind))
		}
	}
	switch s.Kind {
	case Firmware:
		fields.Between(&wrong, "cores", s.Cores, 1, maxProcessors)
		fields.Between(&wrong, "contexts", s.Contexts, 1, maxProcessors)
		fields.Between(&wrong, "invocation", s.Invocation, 0, MaxTime)
		fields.Between(&wrong, "quiet", s.Quiet, 0, MaxTime)
		fields.Between(&wrong, "follow", s.Follow, 0, MaxTime)
		s.validateOther(&wrong)
		unused("latency", s.Latency != 0)
		unused("rate", !s.Rate.IsZero())
		unused("depth", s.Depth != 0)
		unused("ports", s.Ports != 0)
		unused("port_rate", !s.PortRate.IsZero())
	case Hardware:
		fields.Between(&wrong, "latency", s.Latency, 0, MaxTime)
		if !s.Rate.IsZero() {
			wrong.Add("rate", s.Rate.Check())
		}
		fields.Between(&wrong, "depth", s.Depth, 1, maxProcessors)
		s.validatePorts(&wrong)
		unused("cores", s.Cores != 0)
		unused("contexts", s.Contexts != 0)
		unused("invocation", s.Invocation != 0)
		unused("quiet", s.Quiet != 0)
		unused("follow", s.Follow != 0)
		unused("state", len(s.State) != 0)
		unused("other_share", s.OtherShare != 0)
		unused("other_time", s.OtherTime != 0)
	}
	return wrong.Join()
}

// validateOther adds the violations of the fields of other work.
func (s *PoolSpec) validateOther(wrong *fields.Errors) {
	fields.Between(wrong, "other_time", s.OtherTime, 0, MaxTime)
	switch {
	case !(s.OtherShare >= 0 && s.OtherShare <= 0.99):
		wrong.Add("other_share", fmt.Errorf("%v, expected 0 to 0.99", s.OtherShare))
	case (s.OtherShare > 0) != (s.OtherTime > 0):
		wrong.Add("other_share", fmt.Errorf("%v with other_time %v, expected both or none", s.OtherShare, s.OtherTime))
	}
}

// maxPorts is far beyond any device: an accelerator has a handful.
const maxPorts = 64

// validatePorts adds the violations of the fields of ports.
func (s *PoolSpec) validatePorts(wrong *fields.Errors) {
	fields.Between(wrong, "ports", s.Ports, 0, maxPorts)
	switch {
	case (s.Ports > 0) != !s.PortRate.IsZero():
		wrong.Add("port_rate", fmt.Errorf("%v with %d ports, expected both or none", s.PortRate, s.Ports))
	case s.Ports > 0:
		wrong.Add("port_rate", s.PortRate.Check())
	}
}

// Names lists the pools in the order in which a device has them, without the HPUs.
func (p Pools) Names() []string { return slices.Sorted(maps.Keys(p)) }

// Validate returns every violation, each with the field's name in a profile.
func (p Pools) Validate() error {
	var wrong fields.Errors
	for _, name := range p.Names() {
		if name == HPUs {
			wrong.Add(name, fmt.Errorf("the pool of section hpu, expected another name"))
		}
		spec := p[name]
		wrong.Below(name, spec.Validate())
	}
	return wrong.Join()
}

// Processors is the part of the pools that the module loader needs.
func (p Pools) Processors() (list []hpu.Processors) {
	for _, name := range p.Names() {
		spec := p[name]
		if spec.Kind == Hardware {
			list = append(list, hpu.Processors{Number: spec.Depth, Contexts: 1})
		} else {
			list = append(list, hpu.Processors{Number: spec.Cores, Contexts: spec.Contexts})
		}
	}
	return list
}

// Pool is the name of the pool that runs a library's handlers of a kind.
func (s Serve) Pool(library, kind string) string {
	if name := s[library][kind]; name != "" {
		return name
	}
	return HPUs
}

// Idle is a note for readers of a result: pools are chosen for libraries, but
// no handler of these libraries ran. It is empty if that is not so.
func (s Serve) Idle(running []string) string {
	if len(s) == 0 || len(running) == 0 || slices.ContainsFunc(running, func(library string) bool { return s[library] != nil }) {
		return ""
	}
	return fmt.Sprintf("The profile chooses processors (serve) for handlers of %s; those that ran are of %s and ran on the HPUs.",
		strings.Join(slices.Sorted(maps.Keys(s)), ", "), strings.Join(running, ", "))
}

// Validate returns every violation for a device with these pools, each with the
// field's name in a profile.
func (s Serve) Validate(pools Pools) error {
	var wrong fields.Errors
	names := append([]string{HPUs}, pools.Names()...)
	for _, library := range slices.Sorted(maps.Keys(s)) {
		for _, kind := range slices.Sorted(maps.Keys(s[library])) {
			field := library + "." + kind
			if !slices.Contains(handlerKindNames[:], kind) {
				wrong.Add(field, fmt.Errorf("no kind of handlers, expected one of %s", strings.Join(handlerKindNames[:], ", ")))
			} else if pool := s[library][kind]; !slices.Contains(names, pool) {
				wrong.Add(field, fmt.Errorf("no pool %q, expected one of %s", pool, strings.Join(names, ", ")))
			}
		}
	}
	return wrong.Join()
}
