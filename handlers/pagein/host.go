//go:build !tinygo

package pagein

import (
	_ "embed"
	"encoding/binary"
	"fmt"
	"slices"
	"unsafe"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/handlers/part"
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/internal/manifest"
	"github.com/spinsim/spinsim/runtime"
)

//go:generate go run ../../internal/build/cmd -o pagein.wasm guest

//go:embed pagein.wasm
var wasm []byte

// Library is the handler library, compiled from the Go source in guest.
var Library = handlers.Register("pagein", wasm)

// Policy is the name of its handler.
const Policy = "policy"

// PolicySlot is the page-fault policy.
var PolicySlot = Library.Slot(handlers.Slot{
	Name: "policy", Short: "PART's page-fault policy: what the kernel brings in for a fault",
	Handlers: []string{Policy},
	Fields:   answer[:],
	Kernel:   true,
	Expects: []string{
		"The kernel of a node runs it once for each fault that PART's driver must resolve; nothing else runs meanwhile. It has now, cycles and log, and no other import.",
		"The user header is the Fault. The kernel clears plan before the handler; then plan.first includes the page, and the handler returns PROCEED.",
	},
})

// answer are the numbers of the state that the kernel reads.
var answer = [...]string{"plan.first.start", "plan.first.end", "plan.then.start", "plan.then.end", "plan.search"}

// Load makes the module of the slot ready for the kernels of all nodes, and
// returns the policy that asks it. A module that breaks a rule of the slot ends
// the run with an error.
func Load(c *runtime.Cluster) (part.Policy, error) {
	m, err := PolicySlot.Load(c)
	if err != nil {
		return nil, err
	}
	plan, err := m.Plan(Policy, "", "")
	if err != nil {
		return nil, err
	}
	kernels := make([]kernel, c.Nodes())
	for i := range kernels {
		if err := kernels[i].load(c, m, plan, i); err != nil {
			return nil, err
		}
	}
	return func(f part.Fault) part.Plan { return kernels[f.Node].ask(&f) }, nil
}

const faultBytes = int64(unsafe.Sizeof(Fault{}))

// kernel is the policy of a node.
type kernel struct {
	handlers *runtime.KernelHandlers
	policy   hpu.Func
	answer   [len(answer)]manifest.Number
	known    []*host.Process // by their number in Fault
	question Fault
	message  [faultBytes]byte
}

func (k *kernel) load(c *runtime.Cluster, m *handlers.Module, plan *handlers.Plan, node int) error {
	device := handlers.DeviceOf(c.Profile(), node, c.Nodes())
	size, err := plan.Memory(device)
	if err != nil {
		return err
	}
	state, err := plan.Initial(nil, device)
	if err != nil {
		return err
	}
	for i, name := range answer {
		if k.answer[i], err = plan.State.Lookup(name); err != nil {
			return fmt.Errorf("module %s: state: %w", m.Name(), err)
		}
	}
	if k.policy, err = m.Export(plan.Exports[0]); err != nil {
		return err
	}
	if k.handlers, err = c.Node(node).KernelHandlers(m.Module, int(size)); err != nil {
		return err
	}
	copy(k.handlers.State(), state)
	return nil
}

// ask runs the handler. After an error, the run ends with it.
func (k *kernel) ask(f *part.Fault) part.Plan {
	k.put(f)
	state := k.handlers.State()
	for i := range k.answer {
		n := &k.answer[i]
		clear(state[n.Offset : n.Offset+n.Field.Type.Size()])
	}
	took, err := k.handlers.Header(k.policy, k.message[:])
	var numbers [len(answer)]uint64
	state = k.handlers.State()
	for i := range k.answer {
		n := &k.answer[i]
		var all [8]byte
		copy(all[:], state[n.Offset:n.Offset+n.Field.Type.Size()])
		numbers[i] = binary.LittleEndian.Uint64(all[:])
	}
	plan := part.Plan{First: part.Range{Start: numbers[0], End: numbers[1]}, Then: part.Range{Start: numbers[2], End: numbers[3]}, Search: numbers[4] != 0, Took: took}
	if err == nil && (f.Page < plan.First.Start || f.Page >= plan.First.End) {
		err = fmt.Errorf("page-fault policy of node %d: plan.first is %#x to %#x, expected to include the page, %#x", f.Node, plan.First.Start, plan.First.End, f.Page)
	}
	if err != nil {
		k.handlers.Fail(err)
	}
	return plan
}

// put writes the question.
func (k *kernel) put(f *part.Fault) {
	process := slices.Index(k.known, f.Process)
	if process < 0 {
		process = len(k.known)
		k.known = append(k.known, f.Process)
	}
	k.question = Fault{
		Page: f.Page, Start: f.Mapping.Start, End: f.Mapping.End, At: uint64(f.At), Process: uint32(process),
		SourceNID: f.Block.Node, SourcePID: f.Block.PID, Transaction: f.Block.Transaction, Sequence: f.Block.Sequence,
	}
	if f.Source {
		k.question.Source = 1
	}
	if f.Block.Known {
		k.question.Known = 1
	}
	if _, err := binary.Encode(k.message[:], binary.LittleEndian, &k.question); err != nil {
		panic(err) //lint:panic it is as long as a Fault
	}
}
