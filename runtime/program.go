package runtime

import (
	"errors"
	"fmt"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/portals"
)

// HPUMemory is memory of the NIC that handlers share, with the program that works on it (PtlHPUAllocMem, sPIN'17 §2).
// Several match entries of its process may use it; it lives until it is freed.
type HPUMemory struct {
	proc    *Proc // the owner
	name    string
	handle  uint32
	module  *hpu.Module
	program *hpu.Program
	addr    uint32
	bytes   uint32
	taken   int64      // of the node's memory
	funcs   []hpu.Func // handlers given out; the identifier of one is its index + 1
	names   []string
	uses    int // messages whose handlers work on it, and their DMA operations on the way
	freed   bool
}

// HPUAllocMem gives a process n bytes of HPU memory with an instance of the handler module (PtlHPUAllocMem). The memory is
// zeroed. Errors: the module does not fit the device or fails in its own initialisation; ErrNoSpace: the programs of the node have
// all of hpu.node_memory.
func (p *Proc) HPUAllocMem(m *hpu.Module, n int) (*HPUMemory, error) {
	c := p.node.cluster
	if n < 0 || int64(n) > c.profile.HPU.MaxHPUMemory {
		return nil, fmt.Errorf("runtime: %d bytes of HPU memory, expected 0 to %d (hpu.max_hpu_memory)", n, c.profile.HPU.MaxHPUMemory)
	}
	key := codeKey{m, uint32(n)}
	code := c.codes[key]
	if code == nil {
		var err error
		if code, err = c.executor.Compile(m, uint32(n)); err != nil {
			return nil, err
		}
		c.codes[key] = code
	}
	layout, limit := code.Layout(), int64(c.profile.HPU.NodeMemory)
	needed := int64(layout.Own) + int64(layout.HPUBytes)
	if needed > limit-p.node.hpuMemory {
		return nil, fmt.Errorf("runtime: module %s needs %d bytes of NIC memory on rank %d, %d of its own and %d of HPU memory; %d of %d are left (hpu.node_memory): %w",
			m.Name(), needed, p.node.rank, layout.Own, layout.HPUBytes, limit-p.node.hpuMemory, limit, portals.ErrNoSpace)
	}
	program, err := code.Instantiate(fmt.Sprintf("rank %d", p.node.rank), p.node.device())
	if err != nil {
		return nil, err
	}
	p.node.hpuMemory += needed
	h := &HPUMemory{proc: p, name: m.Name(), module: m, program: program, taken: needed}
	h.addr, h.bytes = program.HPUMemory()
	p.node.memories = append(p.node.memories, h)
	h.handle = uint32(len(p.node.memories))
	return h, nil
}

// Free gives the memory back and ends the program (PtlHPUFreeMem). Entries that still name it drop what they match and report a
// HandlerError. ErrInUse while a message is being handled, or a DMA operation of a handler is on its way; ErrArgInvalid if it is free already.
func (h *HPUMemory) Free() error {
	switch {
	case h.freed:
		return fmt.Errorf("HPU memory %d: %w", h.handle, portals.ErrArgInvalid)
	case h.uses > 0:
		return fmt.Errorf("HPU memory %d: %w", h.handle, portals.ErrInUse)
	}
	h.freed = true
	h.proc.node.hpuMemory -= h.taken
	return h.program.Close()
}

// Bytes is the HPU memory itself, as the host maps it; nil once it is free.
func (h *HPUMemory) Bytes() []byte {
	if h.freed {
		return nil
	}
	return h.program.Memory()[h.addr : h.addr+h.bytes : h.addr+h.bytes]
}

// Program is the instance of the module.
func (h *HPUMemory) Program() *hpu.Program { return h.program }

// Spin makes the handler part of a match entry from names of exports; an empty name means no handler of that kind.
func (h *HPUMemory) Spin(header, payload, completion string) (*portals.Spin, error) {
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

func (h *HPUMemory) function(name string) (uint32, error) {
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

// errHandlers is wrapped by every error about the handler part of an entry.
var errHandlers = errors.New("runtime: handlers of the entry")

// install checks the handler part of an entry, appends the entry, and copies the initial state to HPU memory.
func (p *Proc) install(s *portals.Spin, appendEntry func() (portals.Handle, error)) (portals.Handle, error) {
	if s == nil {
		return appendEntry()
	}
	if err := p.checkHandlers(s); err != nil {
		return portals.InvalidHandle, err
	}
	entry, err := appendEntry()
	if err == nil {
		copy(p.node.memories[s.HPUMem-1].Bytes()[s.HPUMemOffset:], s.InitialState)
	}
	return entry, err
}

// checkHandlers checks the handler part of an entry: HPU memory of the process itself, state within it, handlers that exist.
func (p *Proc) checkHandlers(s *portals.Spin) error {
	n := p.node
	if s.HPUMem == 0 || uint64(s.HPUMem) > uint64(len(n.memories)) || n.memories[s.HPUMem-1].proc != p || n.memories[s.HPUMem-1].freed {
		return fmt.Errorf("%w: HPU memory %d was not given out to process %s of rank %d", errHandlers, s.HPUMem, p.name, n.rank)
	}
	h := n.memories[s.HPUMem-1]
	if s.HPUMemOffset > uint64(h.bytes) || uint64(len(s.InitialState)) > uint64(h.bytes)-s.HPUMemOffset {
		return fmt.Errorf("%w: initial state of %d bytes at offset %d does not fit in %d bytes of HPU memory",
			errHandlers, len(s.InitialState), s.HPUMemOffset, h.bytes)
	}
	for _, id := range [3]uint32{s.Handlers.Header, s.Handlers.Payload, s.Handlers.Completion} {
		if uint64(id) > uint64(len(h.funcs)) {
			return fmt.Errorf("%w: no handler %d in %s", errHandlers, id, h.name)
		}
	}
	return nil
}

// installed are the handlers of a matched entry.
type installed struct {
	memory                      *HPUMemory // nil: the entry has no handlers
	header, payload, completion hpu.Func   // invalid where the entry has none
	state                       uint32     // address in the program's memory
}

// handlersOf resolves the handler part of an entry that was checked by install.
func (n *Node) handlersOf(s *portals.Spin) (in installed) {
	h := n.memories[s.HPUMem-1]
	in.memory = h
	in.state = h.addr + uint32(s.HPUMemOffset)
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
