package hpu

import (
	"errors"
	"fmt"
	"iter"
)

// Spec is a device's offer to handlers and its limits. It is plain data, part
// of a device profile.
type Spec struct {
	Cores    int // HPUs, 1 to 4096
	Clusters int // of equal numbers of HPUs: 0 and 1 mean one; divides Cores
	Contexts int // contexts of each HPU, 1 to 4096; Cores times Contexts at most 65,536
	// packet buffer of a context, bytes: the MTU plus the longest user header
	PacketBytes       int
	StackBytes        int   // shadow stack of a context, bytes
	MaxCodeBytes      int   // code section of a module, bytes
	MaxFunctions      int   // functions that a module defines
	MaxMemoryBytes    int64 // memory that a module declares, bytes
	MaxHPUMemoryBytes int64 // HPU memory of one program, bytes
	// active calls of functions that may recurse, 1 to 1024; a large one counts
	// as several (frameBytes)
	MaxCallDepth int
	Costs        CostTable // cycles by class of instruction and by import
	// Others are processors of other kinds, pool by pool. They run the same
	// handlers. Their contexts follow the contexts of the HPUs.
	Others []Processors
	// Watch is for tools that observe handlers. A device does not use it.
	Watch Watch
}

// Processors is a pool of equal processors.
type Processors struct {
	Number   int // 1 to 4096
	Contexts int // of each, 1 to 4096
}

// Pools lists all processors: the HPUs, then the others.
func (s *Spec) Pools() iter.Seq[Processors] {
	return func(yield func(Processors) bool) {
		if !yield(Processors{s.Cores, s.Contexts}) {
			return
		}
		for _, p := range s.Others {
			if !yield(p) {
				return
			}
		}
	}
}

func (s *Spec) contexts() (n int64) {
	for p := range s.Pools() {
		n += int64(p.Number) * int64(p.Contexts)
	}
	return n
}

// unit returns the number of context i in its pool, the number of contexts
// there, and the number of context i's processor. A context executes one
// handler at a time, so it is what sPIN'17 §3.2.2 calls a handler execution
// unit: as many handlers can be active as there are.
func (s *Spec) unit(i int) (number, of, processor int) {
	for p := range s.Pools() {
		if n := p.Number * p.Contexts; i >= n {
			i -= n
			continue
		}
		return i, p.Number * p.Contexts, i / p.Contexts
	}
	return 0, s.Cores * s.Contexts, 0
}

func (s *Spec) clusters() int { return max(1, s.Clusters) }

// cluster returns the number of context i's cluster, and the number of
// clusters. Another pool is one cluster.
func (s *Spec) cluster(i int) (number, of int) {
	if i >= s.Cores*s.Contexts {
		return 0, 1
	}
	return i / s.Contexts / (s.Cores / s.clusters()), s.clusters()
}

// MaxUnchecked is how many instructions of a function may run between two
// checks of the budget. A block that would exceed it is charged and checked
// before it begins.
const MaxUnchecked = 1024

// maxCallDepth is the most active calls that a device may allow. frameBytes is
// how much of an engine's own stack a call may take to count as one. Together
// they fit the smallest stack of an engine, two mebibytes of wasmtime. So no
// engine's stack is ever used up, and the behaviour of a module does not depend
// on the engine.
const (
	maxCallDepth = 1024
	frameBytes   = 512
)

// Validate reports every error in the specification, each with the path of the
// field.
func (s *Spec) Validate() error {
	var errs []error
	check := func(field string, v, least, most int64) {
		if v < least || v > most {
			errs = append(errs, fmt.Errorf("%s: %d, expected %d to %d", field, v, least, most))
		}
	}
	check("cores", int64(s.Cores), 1, 4096)
	check("contexts", int64(s.Contexts), 1, 4096)
	if s.Cores > 0 && s.Contexts > 0 {
		check("cores*contexts", int64(s.Cores)*int64(s.Contexts), 1, 65_536)
	}
	if check("clusters", int64(s.Clusters), 0, int64(max(s.Cores, 0))); s.Clusters > 0 && s.Cores%s.Clusters != 0 {
		errs = append(errs, fmt.Errorf("clusters: %d, expected a divisor of cores, which are %d", s.Clusters, s.Cores))
	}
	for _, p := range s.Others {
		check("processors", int64(p.Number), 1, 4096)
		check("contexts of a processor", int64(p.Contexts), 1, 4096)
	}
	if errs == nil {
		check("contexts of all processors", s.contexts(), 1, 65_536)
	}
	check("packet_bytes", int64(s.PacketBytes), 1, 1<<24)
	check("stack_bytes", int64(s.StackBytes), 0, 1<<24)
	check("max_code_bytes", int64(s.MaxCodeBytes), 1, 1<<26)
	check("max_functions", int64(s.MaxFunctions), 1, 1<<20)
	check("max_memory_bytes", s.MaxMemoryBytes, 0, maxTotalMemory)
	check("max_hpu_memory", s.MaxHPUMemoryBytes, 0, maxTotalMemory)
	check("max_call_depth", int64(s.MaxCallDepth), 1, maxCallDepth)
	return errors.Join(append(errs, s.Costs.problems("costs.")...)...)
}
