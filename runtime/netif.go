package runtime

import (
	"fmt"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/portals"
)

// NI is a network interface of a process. Package portals decides what its calls
// mean. The calls that the NIC takes part in are here, and take their time; the
// others belong to Objects.
type NI struct {
	core *portals.NI
	proc *Proc
	by   *host.Thread // who calls, if it is not the process
	one  oneHandle    // of a wait for a single object, as lists
}

type oneHandle struct {
	handle [1]portals.Handle
	test   [1]uint64
}

// By returns the interface for a thread of the process's node that is not the
// process: its kernel, or a thread of a library. What an operation costs is
// that thread's. It is for calls that do not wait for anything; those that do
// are the process's own.
func (ni *NI) By(t *host.Thread) *NI { return &NI{core: ni.core, proc: ni.proc, by: t} }

// Proc is the process the interface belongs to.
func (ni *NI) Proc() *Proc { return ni.proc }

// post takes the overhead o of an operation and carries it out.
func (ni *NI) post(what string, operation func() error) error {
	caller := ni.by
	if caller == nil {
		caller = &ni.proc.thread
	}
	caller.Run(ni.proc.node.cluster.profile.NIC.Overhead, what)
	if flow := caller.Flow(); flow != 0 {
		ni.core.SetCause(nic.Cause(flow, causeHops))
		defer ni.core.SetCause(0)
	}
	return operation()
}

// causeHops is how far a timeline follows what a thread does because of a flow:
// its message, what the own device sends for it, and what the other's sends for
// that (PART: command, request, the block again).
const causeHops = 3

// Objects are the interface's objects, with the calls that take no virtual time.
func (ni *NI) Objects() *portals.Objects { return &ni.core.Objects }

// Put (PtlPut, Portals 4.x §3.15.2) posts a put after the overhead o.
func (ni *NI) Put(o portals.Put) error {
	return ni.post("put", func() error { return ni.core.Put(o) })
}

// Get (PtlGet, Portals 4.x §3.15.3) posts a get after the overhead o.
func (ni *NI) Get(o portals.Get) error {
	return ni.post("get", func() error { return ni.core.Get(o) })
}

// Atomic (PtlAtomic, Portals 4.x §3.15.4) posts an atomic operation after the
// overhead o.
func (ni *NI) Atomic(o portals.Atomic) error {
	return ni.post("atomic", func() error { return ni.core.Atomic(o) })
}

// FetchAtomic (PtlFetchAtomic, Portals 4.x §3.15.4) posts a fetching atomic
// operation after the overhead o.
func (ni *NI) FetchAtomic(o portals.FetchAtomic) error {
	return ni.post("fetch-atomic", func() error { return ni.core.FetchAtomic(o) })
}

// Swap (PtlSwap, Portals 4.x §3.15.4) posts a swap after the overhead o.
func (ni *NI) Swap(o portals.Swap) error {
	return ni.post("swap", func() error { return ni.core.Swap(o) })
}

// SetMap (PtlSetMap, Portals 4.x §3.6.6) names the processes by rank. The nodes in it must exist.
func (ni *NI) SetMap(mapping []portals.ID) error {
	for rank, id := range mapping {
		if !ni.proc.node.cluster.has(id.NID) {
			return fmt.Errorf("%w: SetMap: rank %d is on node %d of %d", portals.ErrArgInvalid, rank, id.NID, ni.proc.node.cluster.Nodes())
		}
	}
	return ni.core.SetMap(mapping)
}

// MEAppend (PtlMEAppend, Portals 4.x §3.12.2) appends an entry; the initial
// state of its handlers is copied to HPU memory.
func (ni *NI) MEAppend(pt uint32, me *portals.ME, list portals.List, userPtr uint64) (portals.Handle, error) {
	return ni.proc.node.nic.Install(ni.proc, me.Spin, func() (portals.Handle, error) { return ni.core.MEAppend(pt, me, list, userPtr) })
}

// TriggeredMEAppend (PtlTriggeredMEAppend, Portals 4.x §3.16.9) appends an
// entry once a counter reaches threshold; the initial state of its handlers is
// copied to HPU memory now.
func (ni *NI) TriggeredMEAppend(pt uint32, me *portals.ME, list portals.List, userPtr uint64, ct portals.Handle, threshold uint64) (portals.Handle, error) {
	return ni.proc.node.nic.Install(ni.proc, me.Spin, func() (portals.Handle, error) {
		return ni.core.TriggeredMEAppend(pt, me, list, userPtr, ct, threshold)
	})
}

// LEAppend (PtlLEAppend, Portals 4.x §3.11.2) is MEAppend for interfaces without matching.
func (ni *NI) LEAppend(pt uint32, le *portals.LE, list portals.List, userPtr uint64) (portals.Handle, error) {
	return ni.proc.node.nic.Install(ni.proc, le.Spin, func() (portals.Handle, error) { return ni.core.LEAppend(pt, le, list, userPtr) })
}
