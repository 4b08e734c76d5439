package nic

import (
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/portals"
)

// Interface is a Portals interface of a process as the NIC sees it.
type Interface struct {
	Port  *portals.Port      // the transport's side
	Space *host.AddressSpace // the process's memory
	env   *env
	found [lineKinds]foundLine // the latest look-up of each kind

	NI      *portals.NI // for its counters
	Own     portals.ID  // physical
	waiters waiters
	lines   [lineKinds]map[int32]*host.Order // by the other node
	tenants *tenants                         // nil: the profile names none
	_       [48]byte
}

// foundLine is the result of a look-up of a line.
type foundLine struct {
	node int32
	line *host.Order // nil: there was none
}

// lineKind is the purpose of the accesses in a line.
type lineKind uint8

const (
	// writes, reads and atomics of messages from a node and of their handlers
	forArrivals lineKind = iota
	forRequests          // reads of the data of requests to a node
	forAnswers           // reads of the data of replies to a node
	lineKinds
)

// Attach makes the NIC serve an interface.
func (n *NIC) Attach(ni *portals.NI, space *host.AddressSpace, own portals.ID) *Interface {
	i := &Interface{NI: ni, Port: ni.Port(), Space: space, Own: own, env: &n.env, waiters: &n.act.requests, tenants: n.schedule.tenants}
	if n.act.dma.turns != nil {
		i.Port.Stranger = func(uid uint32) bool { return i.tenants.byUID(uid).number != i.tenant() }
	}
	n.transmit.attach(i)
	return i
}

// tenant is the number of the tenant of the process now; 0: none has it.
func (i *Interface) tenant() uint16 {
	if i.tenants == nil {
		return 0
	}
	uid, _ := i.NI.UID() // of one that is closed: nobody
	return i.tenants.byUID(uid).number
}

// write writes a packet or a record to memory, in turn with other tenants. The client
// passes Begun, and a status other than OK, on to written.
func (i *Interface) write(a *host.Access) {
	if t := i.turns(); t != nil {
		a.Line = i.tenant()
		t.lands(i.tenants.act, a)
		return
	}
	i.env.bus.Write(a)
}

func (i *Interface) written(a *host.Access) {
	if t := i.turns(); t != nil {
		t.landsNow(i.tenants.act, a)
	}
}

// turns returns nil if writes go in the order in which they come.
func (i *Interface) turns() *turns {
	if i.tenants == nil || i.tenants.act == nil {
		return nil
	}
	return i.tenants.act.dma.turns
}

// lineOf returns the line for accesses to memory on behalf of messages from or
// to a node. It returns nil where nothing waits. A line keeps accesses in order
// for several reasons. The writes and reads of small messages are ordered
// (Portals 4.x §3.6.1, max_waw_ordered_size and max_war_ordered_size). So are
// the writes of handlers (docs/abi.md). The events of messages of one source
// come in the order of their last packets. The requests of a process to a node
// leave in the order in which they were made (§2.4), so their data is read in
// that order. An absent page delays no reply, no other node and no other
// process.
func (i *Interface) lineOf(kind lineKind, node int32) *host.Order {
	if i.env.bus.Paged() {
		return i.line(kind, node)
	}
	if line := i.lines[kind][node]; line != nil && !line.Idle() {
		return line
	}
	return nil
}

// line returns the line of a kind for a node, and makes it if there is none.
func (i *Interface) line(kind lineKind, node int32) *host.Order {
	found := &i.found[kind]
	if found.line != nil && found.node == node {
		return found.line
	}
	line := i.lines[kind][node]
	if line == nil {
		if i.lines[kind] == nil {
			i.lines[kind] = map[int32]*host.Order{}
		}
		line = &host.Order{}
		i.lines[kind][node] = line
	}
	*found = foundLine{node, line}
	return line
}

// interfaceOf returns the interface that a header is for; nil: the process or
// the interface does not exist. If a process has closed an interface and opened
// it again, the result is the newest.
func (t *transmit) interfaceOf(h *portals.Header) *Interface {
	for i := len(t.names) - 1; i >= 0; i-- {
		if name := &t.names[i]; name.pid == h.Target.PID && name.kind == h.NI {
			return name.of
		}
	}
	return nil
}

// interfaceName is the name of an interface on its node in headers.
type interfaceName struct {
	pid  uint32
	kind portals.NIKind
	of   *Interface
}

func (t *transmit) attach(i *Interface) {
	i.Port.Index = len(t.interfaces)
	t.interfaces = append(t.interfaces, i)
	t.names = append(t.names, interfaceName{i.Own.PID, i.NI.Kind(), i})
	if len(t.ready)*64 < len(t.interfaces) {
		t.ready = append(t.ready, 0)
	}
}

// Reached implements host.Client; a record is not an atomic.
func (i *Interface) Reached(*host.Access) {}

// Begun implements host.Client.
func (i *Interface) Begun(a *host.Access) { i.written(a) }

// Ended implements host.Client: the record of an operation's end has landed.
func (i *Interface) Ended(a *host.Access, _ int, _ host.Status) {
	op, fail := a.Ref.(*portals.Op), portals.FailType(a.Index)
	i.env.core.releaseAccess(a)
	i.sent(op, fail)
}

// sent delivers the event SEND, or GET at the target of a get.
func (i *Interface) sent(op *portals.Op, fail portals.FailType) {
	cookie := uint64(0)
	if fail != portals.NIOK {
		cookie = i.Port.Cookie(op)
	}
	i.Port.Sent(op, fail)
	i.env.trace.sent(op)
	i.Port.Release(op)
	if cookie != 0 {
		i.waiters.replied(cookie, 0, fail)
	}
}

// self is the name of the process on its interface.
func (i *Interface) self() portals.ID {
	if id, err := i.NI.ID(); err == nil {
		return id
	}
	return i.Own
}
