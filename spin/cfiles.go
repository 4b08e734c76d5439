//go:build !tinygo

package spin

import "embed"

// CFiles are what handlers in C are compiled with, in the folder c: the headers
// of this project, those under the names of other toolchains (docs/porting.md)
// and a small C library.
//
//go:embed c
var CFiles embed.FS

// CHeader is the text of spin.h, which has the whole of the ABI.
//
//go:embed c/spin.h
var CHeader []byte
