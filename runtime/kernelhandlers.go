package runtime

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/sim"
)

// KernelHandlers is an instance of a handler module in the kernel of a node, as
// Linux has programs of eBPF. Its handlers run on the core that calls them, at
// once and from beginning to end. They reach their own memory only. It lives as
// long as the cluster.
type KernelHandlers struct {
	node    *Node
	program *hpu.Program
	context *hpu.Context
	clock   sim.Frequency
	ran     int64 // handlers
	step    nic.HandlerStep
}

// kernelOps are the imports that a kernel answers, beside those whose answer a
// context has itself.
var kernelOps = []hpu.Op{hpu.OpNow, hpu.OpLog, hpu.OpNumHPUs, hpu.OpMyHPU, hpu.OpNumClusters, hpu.OpMyCluster, hpu.OpCycles, hpu.OpRuntimeBegin, hpu.OpRuntimeEnd}

// InKernel returns why a module cannot run in a kernel.
func InKernel(m *hpu.Module) error {
	for _, i := range m.Imports() {
		if !slices.Contains(kernelOps, i.Op) {
			var names []string
			for _, op := range kernelOps {
				names = append(names, op.String())
			}
			return fmt.Errorf("imports %v: handlers of a kernel have no device, expected only %s", i.Op, strings.Join(names, ", "))
		}
	}
	return nil
}

// KernelHandlers makes an instance of a module with a number of bytes of memory
// for its state, which are zero. Errors: the node has no operating system; the
// module imports what only a device can do, or does not fit.
func (n *Node) KernelHandlers(m *hpu.Module, bytes int) (*KernelHandlers, error) {
	prof := n.cluster.Reads(used.Module)
	if !prof.OS.On() {
		return nil, fmt.Errorf("runtime: profile %s has no operating system that could run handlers (os.kind)", prof.Name)
	}
	if err := InKernel(m); err != nil {
		return nil, fmt.Errorf("runtime: module %s %w", m.Name(), err)
	}
	code, err := n.compile(m, bytes)
	if err != nil {
		return nil, err
	}
	k := &KernelHandlers{node: n, clock: cmp.Or(prof.OS.HandlerClock, prof.HPU.Clock)}
	if k.program, err = code.Instantiate(fmt.Sprintf("kernel of rank %d", n.rank), k); err != nil {
		return nil, err
	}
	k.context = k.program.Context(0)
	return k, nil
}

// State is the memory of the handlers. It is valid until the caller's event
// ends.
func (k *KernelHandlers) State() []byte {
	addr, size := k.program.HPUMemory()
	return k.program.Present()[addr : addr+size]
}

// Header runs a header handler. message is the user header, at most
// hpu.ShortPacket bytes; the rest of the record belongs to a put of
// so many bytes from the node to itself. It returns the handler's time on the
// core, which the caller lets pass. The error is a trap of the handler, or says
// that it did not return spin.Proceed.
func (k *KernelHandlers) Header(f hpu.Func, message []byte) (sim.Time, error) {
	if len(message) > hpu.ShortPacket {
		return 0, fmt.Errorf("runtime: a message of %d bytes to a kernel's handler, expected at most %d", len(message), hpu.ShortPacket)
	}
	prof := k.node.cluster.profile
	k.node.host.cpu.Use(used.KernelHandler)
	c, mem := k.context, k.program.Present()
	packet := c.PacketAddr(len(message))
	copy(mem[packet:packet+hpu.ShortPacket], message)
	rec := mem[c.ArgsAddr() : c.ArgsAddr()+hpu.HeaderSize]
	clear(rec)
	le := binary.LittleEndian
	le.PutUint32(rec[4:], uint32(len(message)))
	le.PutUint64(rec[8:], uint64(len(message)))
	le.PutUint64(rec[16:], uint64(len(message)))
	le.PutUint32(rec[24:], uint32(k.node.rank))
	le.PutUint32(rec[32:], uint32(k.node.rank))
	le.PutUint32(rec[72:], packet)
	addr, _ := k.program.HPUMemory()
	k.ran++
	if s := k.begin(nic.StepBegan, 0); s != nil {
		s.Record = rec
		k.node.cluster.watch(s)
	}
	c.Start(f, c.ArgsAddr(), addr, prof.HPU.MaxCycles+prof.HPU.MaxCyclesPerByte*int64(len(message)))
	out := c.Outcome()
	if s := k.begin(nic.StepEnded, out.Cycles); s != nil {
		s.Code, s.Err, s.Invalid = out.Code, out.Err, out.Err == nil && out.Code != hpu.Proceed
		k.node.cluster.watch(s)
	}
	switch {
	case out.Err != nil:
		return 0, fmt.Errorf("kernel of rank %d: %w", k.node.rank, out.Err)
	case out.Code != hpu.Proceed:
		return 0, fmt.Errorf("kernel of rank %d: handler %s of module %s returned %d, expected PROCEED, %d", k.node.rank, f.Name(), k.program.Module().Name(), out.Code, hpu.Proceed)
	}
	return k.time(out.Cycles), nil
}

// begin begins a step for Config.Watch; nil: nobody watches. It is at the
// handler's own time, which the caller lets pass behind its end.
func (k *KernelHandlers) begin(what nic.StepKind, cycles int64) *nic.HandlerStep {
	if k.node.cluster.watch == nil {
		return nil
	}
	k.step = nic.HandlerStep{
		What: what, Rank: int(k.node.rank), Number: k.ran, Pool: "kernel", Handler: "header",
		At: k.node.domain.engine.Now() + k.time(cycles), Cycles: cycles, Memory: k.program.Present(),
	}
	return &k.step
}

func (k *KernelHandlers) time(cycles int64) sim.Time {
	if k.node.cluster.profile.HPU.Charge == nic.ChargeNothing {
		return 0
	}
	return k.clock.Cycles(cycles)
}

// Fail ends the run with an error: the handlers did not do what they promise.
func (k *KernelHandlers) Fail(err error) { k.node.domain.engine.Fail(err) }

// Act answers imports of the handlers; it implements hpu.Device.
func (k *KernelHandlers) Act(_ *hpu.Context, a *hpu.Action) (result int64, blocked bool) {
	n := k.node
	at := n.domain.engine.Now() + k.time(a.Cycles)
	switch {
	case a.Op == hpu.OpNow:
		result = int64(at)
	case n.cluster.log != nil: // OpLog, the other one
		n.cluster.log(int(n.rank), at, k.program.Module().Name(), a.Line(k.program))
	}
	if s := k.begin(nic.StepActed, a.Cycles); s != nil {
		told := *a
		s.Action, s.Op, s.Result = &told, a.Op, result
		n.cluster.watch(s)
	}
	return result, false
}
