module github.com/spinsim/spinsim/hpu/testdata/wasmtime

go 1.26.0

require (
	github.com/bytecodealliance/wasmtime-go/v44 v44.0.0
	github.com/spinsim/spinsim v0.0.0
)

replace github.com/spinsim/spinsim => ../../..
