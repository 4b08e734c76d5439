// Package spin is what a packet handler imports: the records a handler is given, the codes it
// returns and the actions it can take (sPIN'17 §2 and §3; docs/abi.md is the contract).
//
// A handler is an exported function of two pointers, the record of its kind and the HPU memory of
// its match entry:
//
//	// State lies in HPU memory, shared by all handlers of the entry.
//	type State struct {
//		_     structs.HostLayout
//		Bytes uint64
//	}
//
//	//go:wasmexport payload
//	func payload(p *spin.Payload, s *State) spin.Code {
//		spin.FAdd(&s.Bytes, uint64(p.Length))
//		return spin.Success
//	}
//
// TinyGo compiles it to the wasm module that a simulated network interface runs. The same source
// compiles as plain Go, where package spintest plays the device: a handler is tested with go test,
// without TinyGo and without a simulator.
//
// The package depends on the standard library only and allocates nothing. Handlers may not
// allocate either: there is no heap, and one that needs it does not link (docs/handlers.md).
package spin
