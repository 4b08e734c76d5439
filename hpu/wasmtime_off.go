//go:build !wasmtime

package hpu

import "errors"

func newWasmtimeEngine() (Engine, error) {
	return nil, errors.New("wasm engine wasmtime: this program was built without it; build with -tags wasmtime (needs cgo)")
}
