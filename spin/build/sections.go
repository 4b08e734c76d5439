package build

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// keepNames removes the custom sections of a wasm module except the names, which tell functions
// apart in messages. The others say which build of which compiler was used, and nothing a loader
// wants to know.
func keepNames(module []byte) ([]byte, error) {
	const preamble = 8 // magic and version
	if len(module) < preamble || !bytes.Equal(module[:4], []byte("\x00asm")) {
		return nil, errors.New("the compiler did not write a wasm module")
	}
	out := append([]byte(nil), module[:preamble]...)
	for at := preamble; at < len(module); {
		size, n := binary.Uvarint(module[at+1:])
		body := at + 1 + n
		if n <= 0 || size > uint64(len(module)-body) {
			return nil, fmt.Errorf("section at offset %d is cut off", at)
		}
		end := body + int(size)
		const custom = 0
		if module[at] != custom || bytes.HasPrefix(module[body:end], []byte("\x04name")) {
			out = append(out, module[at:end]...)
		}
		at = end
	}
	return out, nil
}
