//go:build wasmtime

package hpu

import "testing"

func init() { engines = append(engines, "wasmtime") }

// The differential tests run 10,000 generated modules, 200,000 handlers or parts of handlers, on wasmtime and on the reference,
// with which TestDifferential compares wazero: same results, actions, memory and cycles on both engines.

func TestWasmtimeDifferential(t *testing.T) { differential(t, "wasmtime", 8_000, 20, 2) }

// TestWasmtimeDifferentialOneContext has data.drop, too.
func TestWasmtimeDifferentialOneContext(t *testing.T) { differential(t, "wasmtime", 2_000, 20, 1) }
