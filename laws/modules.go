//go:build !tinygo

package laws

import _ "embed"

//go:generate go run ../internal/build/cmd -o nscc.wasm guest/nscc
//go:generate go run ../internal/build/cmd -o recycle.wasm guest/recycle
//go:generate go run ../internal/build/cmd -o wlbvt.wasm guest/wlbvt

// NSCCModule is NSCC, compiled from guest/nscc.
//
//go:embed nscc.wasm
var NSCCModule []byte

// RecycleModule is Recycle, compiled from guest/recycle.
//
//go:embed recycle.wasm
var RecycleModule []byte

// WLBVTModule is WLBVT, compiled from guest/wlbvt.
//
//go:embed wlbvt.wasm
var WLBVTModule []byte

// ExportKey is the function of a module that arbitrates between tenants. Its
// arguments are the addresses of the record and of the state.
const ExportKey = "key"

// Export is the function of a module that handles the events of a flow. Its
// arguments are the addresses of the record and of the state.
const Export = "law"
