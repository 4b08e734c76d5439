//go:build !tinygo

package spin

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"unsafe"
)

// EncodeState returns v's bytes as a handler finds them in HPU memory. The host
// gives them as the initial state of a match entry (sPIN'17 §2). T consists of
// numbers, and of arrays and structs of numbers, with every gap written as a
// field. Any other T is a programmer's mistake and panics.
func EncodeState[T any](v *T) []byte {
	checkLayout[T]()
	b, err := binary.Append(nil, binary.LittleEndian, v)
	if err != nil {
		panic(err) // checkLayout has seen the type
	}
	return b
}

// DecodeState sets v from the first bytes of b, which come from HPU memory. It
// fails if b is too short and ignores the rest of a longer b.
func DecodeState[T any](b []byte, v *T) error {
	checkLayout[T]()
	if _, err := binary.Decode(b, binary.LittleEndian, v); err != nil {
		return fmt.Errorf("spin: state %T takes %d bytes, got %d", *v, binary.Size(v), len(b))
	}
	return nil
}

// checkLayout panics unless T has the same layout here and in wasm.
func checkLayout[T any]() {
	var zero T
	if n := binary.Size(&zero); n != int(unsafe.Sizeof(zero)) {
		panic(fmt.Sprintf("spin: state %v takes %d bytes in memory but its fields %d: use fields of fixed size and spell out gaps",
			reflect.TypeFor[T](), unsafe.Sizeof(zero), n))
	}
}
