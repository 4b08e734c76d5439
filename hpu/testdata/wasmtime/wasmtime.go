// Package wasmtime makes wasmtime the second WebAssembly engine of the programs that import it: an independent check of wazero. It is a module
// of its own, because it takes 237 MB and cgo. scripts/with-wasmtime.sh builds programs and tests of spinsim with it.
package wasmtime

// #cgo linux LDFLAGS: -Wl,--unresolved-symbols=ignore-all
// #cgo darwin LDFLAGS: -Wl,-undefined,dynamic_lookup
// #include <stdbool.h>
// void wasmtime_config_signals_based_traps_set(void *config, bool on); // of wasmtime-go's library
import "C"

import (
	"errors"
	"math"
	"unsafe"

	"github.com/bytecodealliance/wasmtime-go/v44"

	"github.com/spinsim/spinsim/hpu/internal/second"
	"github.com/spinsim/spinsim/hpu/internal/wasm"
)

func init() { second.Register("wasmtime", open) }

// stack is the machine stack of a handler, bytes: the most that wasmtime allows. hpu.Spec.MaxCallDepth keeps below it.
const stack = 2 << 20

type runtime struct{ engine *wasmtime.Engine }

func open() (second.Runtime, error) {
	cfg := wasmtime.NewConfig()
	cfg.SetMaxWasmStack(stack)
	cfg.SetCraneliftOptLevel(wasmtime.OptLevelNone) // the time goes into copying memory
	trapWhereItHappens(cfg)
	return &runtime{wasmtime.NewEngineWithConfig(cfg)}, nil
}

// trapWhereItHappens has accesses compared with the size of the memory instead of faulting. An
// access that faults may be a part of the instruction that takes its value, and the trap would be
// there. wasmtime-go has no method for it; its Config is nothing but the pointer of the library.
func trapWhereItHappens(cfg *wasmtime.Config) {
	C.wasmtime_config_signals_based_traps_set(*(*unsafe.Pointer)(unsafe.Pointer(cfg)), false)
}

func (r *runtime) Compile(binary []byte) (second.Code, error) {
	m, err := wasmtime.NewModule(r.engine, binary)
	if err != nil {
		return nil, err
	}
	return &code{r.engine, m}, nil
}

func (r *runtime) Close() { r.engine.Close() }

var faults = map[wasmtime.TrapCode]second.Fault{
	wasmtime.StackOverflow:          second.Stack,
	wasmtime.MemoryOutOfBounds:      second.Memory,
	wasmtime.TableOutOfBounds:       second.Table,
	wasmtime.IndirectCallToNull:     second.Table,
	wasmtime.BadSignature:           second.Signature,
	wasmtime.IntegerOverflow:        second.Overflow,
	wasmtime.IntegerDivisionByZero:  second.DivideByZero,
	wasmtime.BadConversionToInteger: second.Conversion,
	wasmtime.UnreachableCodeReached: second.Unreachable,
}

func (r *runtime) Fault(err error) (fault second.Fault, frames []second.Frame) {
	var trap *wasmtime.Trap
	if !errors.As(err, &trap) {
		return second.Unknown, nil
	}
	if code := trap.Code(); code != nil {
		fault = faults[*code]
	}
	for _, f := range trap.Frames() {
		frames = append(frames, second.Frame{Func: int(f.FuncIndex()), Offset: int(f.ModuleOffset())})
	}
	return fault, frames
}

type code struct {
	engine *wasmtime.Engine
	module *wasmtime.Module
}

func (c *code) Close() { c.module.Close() }

func (c *code) Instantiate(imports []second.Import) (second.Instance, error) {
	store := wasmtime.NewStore(c.engine)
	externs := make([]wasmtime.AsExtern, len(imports))
	for k := range imports {
		externs[k] = function(store, &imports[k])
	}
	inst, err := wasmtime.NewInstance(store, c.module, externs)
	if err != nil {
		store.Close()
		return nil, err
	}
	return &instance{store, inst}, nil
}

// function is an import as wasmtime calls it.
func function(store *wasmtime.Store, i *second.Import) *wasmtime.Func {
	typ := wasmtime.NewFuncType(types(i.Type.Params), types(i.Type.Results))
	return wasmtime.NewFunc(store, typ, func(_ *wasmtime.Caller, vals []wasmtime.Val) ([]wasmtime.Val, *wasmtime.Trap) {
		stack := make([]uint64, max(len(vals), len(i.Type.Results)))
		for k, v := range vals {
			stack[k] = bits(v)
		}
		i.Call(stack)
		results := make([]wasmtime.Val, len(i.Type.Results))
		for k, t := range i.Type.Results {
			results[k] = value(kind(t), stack[k])
		}
		return results, nil
	})
}

func types(list []wasm.ValueType) []*wasmtime.ValType {
	out := make([]*wasmtime.ValType, len(list))
	for k, t := range list {
		out[k] = wasmtime.NewValType(kind(t))
	}
	return out
}

// kind is that of an integer type: imports have no others.
func kind(t wasm.ValueType) wasmtime.ValKind {
	if t == wasm.I64 {
		return wasmtime.KindI64
	}
	return wasmtime.KindI32
}

// bits are those of a number.
func bits(v wasmtime.Val) uint64 {
	switch v.Kind() {
	case wasmtime.KindI32:
		return uint64(uint32(v.I32()))
	case wasmtime.KindI64:
		return uint64(v.I64())
	case wasmtime.KindF32:
		return uint64(math.Float32bits(v.F32()))
	default:
		return math.Float64bits(v.F64())
	}
}

// value is a number of its bits.
func value(kind wasmtime.ValKind, bits uint64) wasmtime.Val {
	switch kind {
	case wasmtime.KindI32:
		return wasmtime.ValI32(int32(uint32(bits)))
	case wasmtime.KindI64:
		return wasmtime.ValI64(int64(bits))
	case wasmtime.KindF32:
		return wasmtime.ValF32(math.Float32frombits(uint32(bits)))
	default:
		return wasmtime.ValF64(math.Float64frombits(bits))
	}
}

type instance struct {
	store *wasmtime.Store
	inst  *wasmtime.Instance
}

func (i *instance) memory(name string) *wasmtime.Memory {
	return i.inst.GetExport(i.store, name).Memory()
}

func (i *instance) Memory(name string) []byte { return i.memory(name).UnsafeData(i.store) }

func (i *instance) Grow(name string, pages uint64) error {
	_, err := i.memory(name).Grow(i.store, pages)
	return err
}

func (i *instance) Global(name string) second.Global {
	g := i.inst.GetExport(i.store, name).Global()
	return &global{i.store, g, g.Type(i.store).Content().Kind()}
}

func (i *instance) Call(name string, args ...uint64) ([]uint64, error) {
	f := i.inst.GetFunc(i.store, name)
	params := make([]any, len(args))
	for k, t := range f.Type(i.store).Params() {
		params[k] = value(t.Kind(), args[k])
	}
	v, err := f.Call(i.store, params...)
	if err != nil {
		return nil, err
	}
	list, _ := v.([]wasmtime.Val) // of those that the rewriter makes, which have two; others have none
	results := make([]uint64, len(list))
	for k, r := range list {
		results[k] = bits(r)
	}
	return results, nil
}

func (i *instance) Close() { i.store.Close() }

type global struct {
	store *wasmtime.Store
	of    *wasmtime.Global
	kind  wasmtime.ValKind
}

func (g *global) Get() uint64 { return bits(g.of.Get(g.store)) }

func (g *global) Set(bits uint64) {
	if err := g.of.Set(g.store, value(g.kind, bits)); err != nil {
		panic("wasmtime: a global variable does not take its own type: " + err.Error())
	}
}
