package nic

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/portals"
)

// Memory is memory of the NIC that handlers share, with their program
// (PtlHPUAllocMem, sPIN'17 §2). Several match entries of its process may use
// it. It lives until it is freed.
type Memory struct {
	// Every message needs these, so they lie side by side:
	program *hpu.Program
	freed   bool
	// messages whose handlers use it or have writes on the way, and their other
	// DMA operations
	uses int
	watchers

	nic    *NIC
	owner  any    // process
	tenant uint16 // of the process, when the memory was given out
	name   string
	handle uint32
	module *hpu.Module
	addr   uint32
	bytes  uint32
	taken  int64      // bytes of the node's memory
	funcs  []hpu.Func // handlers given out; a handler's identifier is its index + 1
	names  []string
	pools  [3]uint8     // where its handlers run, by kind
	grants []grant      // by other processes, in the order of their spaces
	pieces []*pieces    // for messages
	warm   [][]hpu.Func // of each cluster: handlers whose code is in its instruction cache
}

// Allocate makes a program of a compiled module for a process, with HPU memory
// from the image. owner identifies the process, and uid its user. ErrNoSpace: the
// programs of the node, or of the tenant, use all of their memory.
func (n *NIC) Allocate(owner any, uid uint32, m *hpu.Module, code hpu.Image) (*Memory, error) {
	layout, limit := code.Layout(), int64(n.env.hpu.NodeMemory)
	needed := int64(layout.Own) + int64(layout.HPUBytes)
	if needed > limit-n.memoryUsed {
		return nil, fmt.Errorf("module %s needs %d bytes of NIC memory on rank %d, %d of its own and %d of HPU memory; %d of %d are left (hpu.node_memory): %w",
			m.Name(), needed, n.env.rank, layout.Own, layout.HPUBytes, limit-n.memoryUsed, limit, portals.ErrNoSpace)
	}
	o := n.schedule.tenants.byUID(uid)
	if o != nil && o.NodeMemory > 0 && needed > int64(o.NodeMemory)-o.memory {
		return nil, fmt.Errorf("module %s needs %d bytes of NIC memory on rank %d; tenant %s has %d left of %d (tenants.%s.node_memory): %w",
			m.Name(), needed, n.env.rank, o.Name, int64(o.NodeMemory)-o.memory, int64(o.NodeMemory), o.Name, portals.ErrNoSpace)
	}
	program, err := code.Instantiate(fmt.Sprintf("rank %d", n.env.rank), n.device())
	if err != nil {
		return nil, err
	}
	n.memoryUsed += needed
	h := &Memory{nic: n, owner: owner, name: m.Name(), module: m, program: program, taken: needed, pools: n.schedule.serving(n.serve, m.Library())}
	if o != nil {
		o.memory += needed
		h.tenant = o.number
	}
	h.addr, h.bytes = program.HPUMemory()
	n.memories = append(n.memories, h)
	h.handle = uint32(len(n.memories))
	return h, nil
}

// Free gives the memory back and ends the program (PtlHPUFreeMem). Entries that
// still name it drop the messages that they match and report a HandlerError.
// ErrInUse: a message is being handled, or a DMA operation of a handler is on
// its way. ErrArgInvalid: the memory is free already.
func (h *Memory) Free() error {
	switch {
	case h.freed:
		return fmt.Errorf("HPU memory %d: %w", h.handle, portals.ErrArgInvalid)
	case h.uses > 0:
		return fmt.Errorf("HPU memory %d: %w", h.handle, portals.ErrInUse)
	}
	h.freed = true
	h.nic.memoryUsed -= h.taken
	if t := h.nic.schedule.tenants; t != nil {
		t.list[h.tenant].memory -= h.taken
	}
	return h.program.Close()
}

// grant is memory of a process that handlers of another process may reach. Its
// number is free if space is nil.
type grant struct {
	space  *host.AddressSpace
	region portals.Region
	uses   int // DMA operations on their way
}

// Grant lets DMA operations of the handlers reach a range of memory of another
// process of the node, which gives it. For example, a device of the IOprovider
// serves rings of IOusers (NPF'17 §1). It returns the number of the space in
// those operations (docs/abi.md): the lowest free number. The number is valid
// until Revoke. Errors: the memory was freed; ErrNoSpace, if all 254 spaces are
// given out. Their numbers end where TELL_FAULTS begins.
func (h *Memory) Grant(space *host.AddressSpace, start, length uint64) (uint32, error) {
	if h.freed {
		return 0, fmt.Errorf("HPU memory %d: %w", h.handle, portals.ErrArgInvalid)
	}
	g := grant{space: space, region: portals.Region{Start: start, Length: length}}
	i := slices.IndexFunc(h.grants, func(o grant) bool { return o.space == nil })
	switch {
	case i >= 0:
		h.grants[i] = g
	case len(h.grants) == maxGrants:
		return 0, fmt.Errorf("HPU memory %d has %d grants: %w", h.handle, maxGrants, portals.ErrNoSpace)
	default:
		i = len(h.grants)
		h.grants = append(h.grants, g)
	}
	return uint32(granted + i), nil
}

// Revoke takes a grant back. From then on, accesses of handlers to it are
// DENIED, until the number is granted again. Errors: ErrArgInvalid, if the
// number is no grant of memory of the address space, or the memory was freed;
// ErrInUse, while a DMA operation of a handler is on its way there.
func (h *Memory) Revoke(space *host.AddressSpace, number uint32) error {
	i := int64(number) - granted
	switch {
	case h.freed || i < 0 || i >= int64(len(h.grants)) || h.grants[i].space != space:
		return fmt.Errorf("HPU memory %d: space %d is not granted: %w", h.handle, number, portals.ErrArgInvalid)
	case h.grants[i].uses > 0:
		return fmt.Errorf("HPU memory %d: space %d: %w", h.handle, number, portals.ErrInUse)
	}
	h.grants[i] = grant{}
	return nil
}

// use counts a DMA operation in a space: n is 1 when it begins and -1 when it
// has ended.
func (h *Memory) use(space uint32, n int) {
	h.uses += n
	if space >= granted {
		h.grants[space-granted].uses += n
	}
}

// NIC is the device of the memory.
func (h *Memory) NIC() *NIC { return h.nic }

// Bytes is the HPU memory as the host maps it; nil: it is free.
func (h *Memory) Bytes() []byte {
	if h.freed {
		return nil
	}
	return h.of(h.program.Memory())
}

// Present is Bytes for use at once: it is valid until the caller waits or uses
// another memory. With many nodes it needs less memory of the simulating
// machine.
func (h *Memory) Present() []byte {
	if h.freed {
		return nil
	}
	return h.of(h.program.Present())
}

func (h *Memory) of(program []byte) []byte { return program[h.addr : h.addr+h.bytes : h.addr+h.bytes] }

// Program is the instance of the module.
func (h *Memory) Program() *hpu.Program { return h.program }

// Spin makes the handler part of a match entry from the names of exports. An
// empty name means no handler of that kind.
func (h *Memory) Spin(header, payload, completion string) (*portals.Spin, error) {
	var ids [3]uint32
	for i, name := range [3]string{header, payload, completion} {
		if name == "" {
			continue
		}
		id, err := h.function(name)
		if err != nil {
			return nil, err
		}
		ids[i] = id
	}
	return &portals.Spin{
		Handlers: portals.Handlers{Header: ids[0], Payload: ids[1], Completion: ids[2]},
		HPUMem:   h.handle,
	}, nil
}

func (h *Memory) function(name string) (uint32, error) {
	for i, known := range h.names {
		if known == name {
			return uint32(i + 1), nil
		}
	}
	fn, err := h.module.Export(name)
	if err != nil {
		return 0, err
	}
	h.funcs = append(h.funcs, fn)
	h.names = append(h.names, name)
	return uint32(len(h.funcs)), nil
}

// ErrHandlers is wrapped by every error about the handler part of an entry.
var ErrHandlers = errors.New("handlers of the entry")

// Install checks the handler part of an entry of a process, appends the entry,
// and copies the initial state to HPU memory.
func (n *NIC) Install(owner any, s *portals.Spin, appendEntry func() (portals.Handle, error)) (portals.Handle, error) {
	if s == nil {
		return appendEntry()
	}
	if err := n.checkHandlers(owner, s); err != nil {
		return portals.InvalidHandle, err
	}
	n.note(s)
	entry, err := appendEntry()
	if err == nil {
		h := n.memories[s.HPUMem-1]
		h.provide(s)
		copy(h.Present()[s.HPUMemOffset:], s.InitialState)
	}
	return entry, err
}

// checkHandlers checks the handler part of an entry. The HPU memory must belong
// to the process, the state must lie in it, and the handlers must exist.
func (n *NIC) checkHandlers(owner any, s *portals.Spin) error {
	if s.HPUMem == 0 || uint64(s.HPUMem) > uint64(len(n.memories)) || n.memories[s.HPUMem-1].owner != owner || n.memories[s.HPUMem-1].freed {
		return fmt.Errorf("%w: HPU memory %d was not given out to process %v of rank %d", ErrHandlers, s.HPUMem, owner, n.env.rank)
	}
	h := n.memories[s.HPUMem-1]
	if s.HPUMemOffset > uint64(h.bytes) || uint64(len(s.InitialState)) > uint64(h.bytes)-s.HPUMemOffset {
		return fmt.Errorf("%w: initial state of %d bytes at offset %d does not fit in %d bytes of HPU memory",
			ErrHandlers, len(s.InitialState), s.HPUMemOffset, h.bytes)
	}
	for _, id := range [3]uint32{s.Handlers.Header, s.Handlers.Payload, s.Handlers.Completion} {
		if uint64(id) > uint64(len(h.funcs)) {
			return fmt.Errorf("%w: no handler %d in %s", ErrHandlers, id, h.name)
		}
	}
	if s.UserHdrLen > 0 && s.Handlers.Header == 0 {
		return fmt.Errorf("%w: user header of %d bytes without a header handler, which would see it", ErrHandlers, s.UserHdrLen)
	}
	return h.checkMemories(s, max(1, n.env.hpu.Clusters))
}

// installed are the handlers of an entry.
type installed struct {
	memory                      *Memory
	header, payload, completion hpu.Func // invalid: the entry has no such handler
	nic                         *NIC
	program                     *hpu.Program // of the memory
	userHeader                  uint64       // bytes
	state                       uint32       // address in the program's memory
	pools                       [3]uint8     // where each kind runs
	pieces                      bool         // each message has its own memory
}

// note resolves the handler part of an entry. A message on its way keeps the
// handlers that the entry had when the message came.
func (n *NIC) note(s *portals.Spin) {
	in := n.handlers(s)
	if known, is := s.Device.(*installed); is && *known == in {
		return
	}
	kept := in
	s.Device = &kept
}

// installed returns the handlers of an entry that Install has checked and
// noted.
func (n *NIC) installed(s *portals.Spin) *installed {
	if in, is := s.Device.(*installed); is && in.nic == n {
		return in
	}
	in := n.handlers(s) // an entry that another NIC has, too
	return &in
}

// handlers resolves the handler part of an entry.
func (n *NIC) handlers(s *portals.Spin) installed {
	h := n.memories[s.HPUMem-1]
	in := installed{
		memory: h, nic: n, program: h.program, userHeader: s.UserHdrLen, state: h.addr + uint32(s.HPUMemOffset), pools: h.pools, pieces: s.PerMessage.Messages > 0,
	}
	if id := s.Handlers.Header; id != 0 {
		in.header = h.funcs[id-1]
	}
	if id := s.Handlers.Payload; id != 0 {
		in.payload = h.funcs[id-1]
	}
	if id := s.Handlers.Completion; id != 0 {
		in.completion = h.funcs[id-1]
	}
	return in
}
