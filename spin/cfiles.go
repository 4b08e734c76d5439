//go:build !tinygo

package spin

import "embed"

// CFiles is the folder c, with which handlers in C are compiled. It has the
// headers of this project, headers under the names of other toolchains
// (docs/porting.md) and a small C library.
//
//go:embed c
var CFiles embed.FS

// CHeader is the text of spin.h, which declares the whole ABI.
//
//go:embed c/spin.h
var CHeader []byte
