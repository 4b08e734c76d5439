//go:build !wasmtime

package runtime_test

// labEngine executes the handlers of these tests.
const labEngine = "wazero"
