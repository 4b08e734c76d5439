package runtime

import (
	"fmt"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/portals"
)

// NI is a network interface of a process. Package portals defines the meaning
// of its calls. Calls that involve the NIC are here and take time; the others
// are in Objects.
type NI struct {
	core *portals.NI
	proc *Proc
	by   *host.Thread // calling thread, if not the process
	one  oneHandle    // lists for a wait on one object
}

type oneHandle struct {
	handle [1]portals.Handle
	test   [1]uint64
}

// By returns the interface for another thread of the node, for example its
// kernel or a thread of a library. That thread pays for the operations it
// posts. Only the process itself may make calls that wait.
func (ni *NI) By(t *host.Thread) *NI { return &NI{core: ni.core, proc: ni.proc, by: t} }

// Proc is the process that owns the interface.
func (ni *NI) Proc() *Proc { return ni.proc }

// post takes the overhead o of an operation and performs it.
func (ni *NI) post(what string, operation func() error) error {
	caller := ni.by
	if caller == nil {
		caller = &ni.proc.thread
	}
	caller.Run(ni.proc.Reads(used.Post).NIC.Overhead, what)
	if flow := caller.Flow(); flow != 0 {
		ni.core.SetCause(nic.Cause(flow, causeHops))
		defer ni.core.SetCause(0)
	}
	return operation()
}

// causeHops is how many messages a timeline follows from one flow: the thread's
// message, the message that its own device sends for it, and the message that
// the other device sends for that (PART: command, request, the block again).
const causeHops = 3

// Objects are the interface's objects. Their calls take no virtual time.
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

// SetMap (PtlSetMap, Portals 4.x §3.6.6) gives the processes their ranks. The
// nodes of the mapping must exist.
func (ni *NI) SetMap(mapping []portals.ID) error {
	for rank, id := range mapping {
		if !ni.proc.node.cluster.has(id.NID) {
			return fmt.Errorf("%w: SetMap: rank %d is on node %d of %d", portals.ErrArgInvalid, rank, id.NID, len(ni.proc.node.cluster.nodes))
		}
	}
	return ni.core.SetMap(mapping)
}

// MEAppend (PtlMEAppend, Portals 4.x §3.12.2) appends an entry and copies the
// initial state of its handlers to HPU memory.
func (ni *NI) MEAppend(pt uint32, me *portals.ME, list portals.List, userPtr uint64) (portals.Handle, error) {
	return ni.proc.node.nic.Install(ni.proc, me.Spin, func() (portals.Handle, error) { return ni.core.MEAppend(pt, me, list, userPtr) })
}

// TriggeredMEAppend (PtlTriggeredMEAppend, Portals 4.x §3.16.9) appends an
// entry once a counter reaches threshold. The initial state of its handlers is
// copied to HPU memory at the call.
func (ni *NI) TriggeredMEAppend(pt uint32, me *portals.ME, list portals.List, userPtr uint64, ct portals.Handle, threshold uint64) (portals.Handle, error) {
	return ni.proc.node.nic.Install(ni.proc, me.Spin, func() (portals.Handle, error) {
		return ni.core.TriggeredMEAppend(pt, me, list, userPtr, ct, threshold)
	})
}

// LEAppend (PtlLEAppend, Portals 4.x §3.11.2) is MEAppend for interfaces without matching.
func (ni *NI) LEAppend(pt uint32, le *portals.LE, list portals.List, userPtr uint64) (portals.Handle, error) {
	return ni.proc.node.nic.Install(ni.proc, le.Spin, func() (portals.Handle, error) { return ni.core.LEAppend(pt, le, list, userPtr) })
}
