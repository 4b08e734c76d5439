//go:build wasmtime

package runtime_test

// labEngine executes the handlers of these tests: with the build tag they all
// hold on the second engine too, hostile handlers included, to the picosecond.
const labEngine = "wasmtime"
