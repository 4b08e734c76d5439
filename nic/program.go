package nic

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/portals"
)

// Memory is memory of the NIC that handlers share, with the program that works
// on it (PtlHPUAllocMem, sPIN'17 §2). Several match entries of its process may
// use it; it lives until it is freed.
type Memory struct {
	// What every message needs, side by side:
	program *hpu.Program
	freed   bool
	// messages whose handlers work on it or have writes on the way, and other
	// DMA operations of theirs
	uses int
	watchers

	nic    *NIC
	owner  any // process
	name   string
	handle uint32
	module *hpu.Module
	addr   uint32
	bytes  uint32
	taken  int64      // of the node's memory
	funcs  []hpu.Func // handlers given out; the identifier of one is its index + 1
	names  []string
	pools  [3]uint8  // where its handlers run, by their kinds
	grants []grant   // of other processes, by their spaces
	pieces []*pieces // of messages
}

// Allocate makes a program of a compiled module, whose HPU memory is the
// image's, for a process; owner tells it from others. ErrNoSpace: the programs
// of the node have all of hpu.node_memory.
func (n *NIC) Allocate(owner any, m *hpu.Module, code hpu.Image) (*Memory, error) {
	layout, limit := code.Layout(), int64(n.env.hpu.NodeMemory)
	needed := int64(layout.Own) + int64(layout.HPUBytes)
	if needed > limit-n.memoryUsed {
		return nil, fmt.Errorf("module %s needs %d bytes of NIC memory on rank %d, %d of its own and %d of HPU memory; %d of %d are left (hpu.node_memory): %w",
			m.Name(), needed, n.env.rank, layout.Own, layout.HPUBytes, limit-n.memoryUsed, limit, portals.ErrNoSpace)
	}
	program, err := code.Instantiate(fmt.Sprintf("rank %d", n.env.rank), n.device())
	if err != nil {
		return nil, err
	}
	n.memoryUsed += needed
	h := &Memory{nic: n, owner: owner, name: m.Name(), module: m, program: program, taken: needed, pools: n.schedule.serving(n.serve, m.Library())}
	h.addr, h.bytes = program.HPUMemory()
	n.memories = append(n.memories, h)
	h.handle = uint32(len(n.memories))
	return h, nil
}

// Free gives the memory back and ends the program (PtlHPUFreeMem). Entries that
// still name it drop what they match and report a HandlerError. ErrInUse while
// a message is being handled, or a DMA operation of a handler is on its way;
// ErrArgInvalid if it is free already.
func (h *Memory) Free() error {
	switch {
	case h.freed:
		return fmt.Errorf("HPU memory %d: %w", h.handle, portals.ErrArgInvalid)
	case h.uses > 0:
		return fmt.Errorf("HPU memory %d: %w", h.handle, portals.ErrInUse)
	}
	h.freed = true
	h.nic.memoryUsed -= h.taken
	return h.program.Close()
}

// grant is memory of a process that handlers of another may reach. Its number
// is free when there is no space.
type grant struct {
	space  *host.AddressSpace
	region portals.Region
	uses   int // DMA operations on the way
}

// Grant lets DMA operations of the handlers reach a range of memory of another
// process of the node, which gives it: a device that belongs to the IOprovider
// and serves rings of IOusers (NPF'17 §1). It returns the number of the space
// in those operations (docs/abi.md), the lowest that is free, until Revoke.
// Errors: the memory was freed; ErrNoSpace, all 254 spaces are given out, whose
// numbers end where TELL_FAULTS begins.
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

// Revoke takes a grant back: what handlers still ask for there is DENIED, until
// the number is somebody else's. Errors: ErrArgInvalid, the number is no grant
// of memory of the address space, or the memory was freed; ErrInUse while a DMA
// operation of a handler is on its way there.
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

// use counts a DMA operation that begins (1) in a space, or has ended (-1).
func (h *Memory) use(space uint32, n int) {
	h.uses += n
	if space >= granted {
		h.grants[space-granted].uses += n
	}
}

// NIC is the device of the memory.
func (h *Memory) NIC() *NIC { return h.nic }

// Bytes is the HPU memory itself, as the host maps it; nil once it is free.
func (h *Memory) Bytes() []byte {
	if h.freed {
		return nil
	}
	return h.program.Memory()[h.addr : h.addr+h.bytes : h.addr+h.bytes]
}

// Program is the instance of the module.
func (h *Memory) Program() *hpu.Program { return h.program }

// Spin makes the handler part of a match entry from names of exports; an empty
// name means no handler of that kind.
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

// Install checks the handler part of an entry of a process, has the entry
// appended, and copies the initial state to HPU memory.
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
		copy(h.Bytes()[s.HPUMemOffset:], s.InitialState)
	}
	return entry, err
}

// checkHandlers checks the handler part of an entry: HPU memory of the process
// itself, state within it, handlers that exist.
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
	header, payload, completion hpu.Func // invalid where the entry has none
	nic                         *NIC
	program                     *hpu.Program // the memory's
	userHeader                  uint64       // bytes
	state                       uint32       // address in the program's memory
	pools                       [3]uint8     // where each kind runs
	pieces                      bool         // its messages have memory of their own
}

// note resolves the handler part of an entry. Messages on their way keep the
// handlers that it had when they came.
func (n *NIC) note(s *portals.Spin) {
	in := n.handlers(s)
	if known, is := s.Device.(*installed); is && *known == in {
		return
	}
	kept := in
	s.Device = &kept
}

// installed are the handlers of an entry that was checked by Install, which has
// noted them in the entry.
func (n *NIC) installed(s *portals.Spin) *installed {
	if in, is := s.Device.(*installed); is && in.nic == n {
		return in
	}
	in := n.handlers(s) // of an entry that another NIC has, too
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
