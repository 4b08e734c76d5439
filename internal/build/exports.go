package build

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// export is an exported function with the signature of a handler.
type export struct {
	name   string
	symbol string // of the function in the source, "" if the module does not contain it
	index  uint32 // of the function
}

// handlers lists the handlers that a module exports, in its order. An error
// reading the module is the compiler's fault.
func handlers(module []byte) (out []export, err error) {
	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	defer func() { err = cmp.Or(err, r.Close(ctx)) }()
	m, err := r.CompileModule(ctx, module)
	if err != nil {
		return nil, fmt.Errorf("what the compiler wrote: %w", err)
	}
	const i32 = api.ValueTypeI32
	for name, f := range m.ExportedFunctions() { //lint:maporder sorted below
		if slices.Equal(f.ParamTypes(), []api.ValueType{i32, i32}) && slices.Equal(f.ResultTypes(), []api.ValueType{i32}) {
			out = append(out, export{name, f.Name(), f.Index()})
		}
	}
	slices.SortFunc(out, func(a, b export) int { return cmp.Or(cmp.Compare(a.index, b.index), cmp.Compare(a.name, b.name)) })
	return out, nil
}
