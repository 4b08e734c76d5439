package hpu

import "github.com/spinsim/spinsim/hpu/internal/wasm"

// importModule is the only module that a handler may import from.
const importModule = "spin"

type opInfo struct {
	name   string
	params string // one letter per value: i is i32, I is i64
	result string // "", "i" or "I"
	block  bool   // it may suspend the handler: column S of docs/abi.md
}

var opTable = [NumOps]opInfo{
	OpDMAToHost:        {"dma_to_host", "iIii", "i", true},
	OpDMAFromHost:      {"dma_from_host", "iIii", "i", true},
	OpDMAToHostNB:      {"dma_to_host_nb", "iIii", "i", false},
	OpDMAFromHostNB:    {"dma_from_host_nb", "iIii", "i", false},
	OpDMACAS:           {"dma_cas", "iIIIi", "i", true},
	OpDMACASNB:         {"dma_cas_nb", "iIIIi", "i", false},
	OpDMAFAdd:          {"dma_fadd", "iIIi", "i", true},
	OpDMAFAddNB:        {"dma_fadd_nb", "iIIi", "i", false},
	OpDMATest:          {"dma_test", "i", "i", true},
	OpDMAWait:          {"dma_wait", "i", "i", true},
	OpCAS:              {"cas", "iII", "i", true},
	OpFAdd:             {"fadd", "iI", "I", true},
	OpYield:            {"yield", "", "", true},
	OpPutFromHost:      {"put_from_host", "i", "i", false},
	OpPutFromDevice:    {"put_from_device", "i", "i", true},
	OpGetFromHost:      {"get_from_host", "i", "i", false},
	OpGetFromDevice:    {"get_from_device", "i", "i", true},
	OpAtomicFromHost:   {"atomic_from_host", "i", "i", false},
	OpAtomicFromDevice: {"atomic_from_device", "i", "i", true},
	OpCTGet:            {"ct_get", "ii", "i", true},
	OpCTSet:            {"ct_set", "iII", "i", false},
	OpCTInc:            {"ct_inc", "iII", "i", false},
	OpAck:              {"ack", "i", "i", false},
	OpTimer:            {"timer", "Ii", "i", false},
	OpToSelf:           {"to_self", "i", "i", false},
	OpNumHPUs:          {"num_hpus", "", "i", false},
	OpMyHPU:            {"my_hpu", "", "i", false},
	OpCycles:           {"cycles", "", "I", false},
	OpLog:              {"log", "ii", "", false},
	OpTimerCancel:      {"timer_cancel", "i", "i", false},
	OpAtomic32:         {"atomic32", "iiii", "i", true},
	OpDMAToHostPosted:  {"dma_to_host_posted", "iIii", "i", true},
	OpHostWrite:        {"host_write", "iII", "i", true},
	OpHostWriteNB:      {"host_write_nb", "iII", "i", false},
	OpWait32:           {"wait32", "ii", "", true},
	OpMyCluster:        {"my_cluster", "", "i", false},
	OpNumClusters:      {"num_clusters", "", "i", false},
	OpFlowID:           {"flow_id", "", "i", false},
	OpScratchpad:       {"scratchpad", "i", "I", false},
	OpMessageMemory:    {"message_memory", "", "I", false},
	OpDMAFAddTyped:     {"dma_fadd_typed", "iIiIi", "i", true},
	OpDMAFAddTypedNB:   {"dma_fadd_typed_nb", "iIiIi", "i", false},
	OpNow:              {"now", "", "I", false},
	OpTimerAt:          {"timer_at", "IIi", "i", false},
	OpExpiries:         {"expiries", "", "I", false},
	OpRuntimeBegin:     {"runtime_begin", "", "", false},
	OpRuntimeEnd:       {"runtime_end", "", "", false},
}

var opByName = func() map[string]Op {
	m := make(map[string]Op, NumOps)
	for op := OpNone + 1; op < NumOps; op++ {
		m[opTable[op].name] = op
	}
	return m
}()

// OpByName returns the import with a name, or OpNone and false.
func OpByName(name string) (Op, bool) {
	op, ok := opByName[name]
	return op, ok
}

// String returns the name of the import in docs/abi.md.
func (op Op) String() string {
	if op == OpNone || op >= NumOps {
		return "none"
	}
	return opTable[op].name
}

// MayBlock reports whether a device may suspend the handler during this call
// (docs/abi.md, Imports, column S).
func (op Op) MayBlock() bool { return op < NumOps && opTable[op].block }

func (op Op) signature() wasm.FuncType {
	info := &opTable[op]
	return wasm.FuncType{Params: valueTypes(info.params), Results: valueTypes(info.result)}
}

// imported returns the import's type in a rewritten module: it takes and
// returns the cycles left, behind everything else.
func (op Op) imported() wasm.FuncType {
	t := op.signature()
	return wasm.FuncType{Params: append(t.Params, wasm.I64), Results: append(t.Results, wasm.I64)}
}

func valueTypes(letters string) []wasm.ValueType {
	types := make([]wasm.ValueType, len(letters))
	for i, l := range letters {
		types[i] = wasm.I32
		if l == 'I' {
			types[i] = wasm.I64
		}
	}
	return types
}
