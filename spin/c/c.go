// Package c holds the header with which handlers are written in C.
package c

import _ "embed"

// Header is the text of spin.h.
//
//go:embed spin.h
var Header []byte
