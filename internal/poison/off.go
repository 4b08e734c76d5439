//go:build !invariants

package poison

// On reports whether released objects are poisoned.
const On = false

// Byte is what released memory would be filled with.
const Byte = 0xdb

// Mark is the first field of a pooled object; it has no size.
type Mark struct{}

// Live does nothing.
func (*Mark) Live(string) {}

// Release does nothing.
func (*Mark) Release(string) {}

// Bytes does nothing.
func Bytes([]byte) {}

// Check does nothing.
func Check([]byte, string) {}

// Buffers does nothing.
type Buffers struct{}

// Taken does nothing.
func (*Buffers) Taken([]byte) {}

// Released does nothing.
func (*Buffers) Released([]byte) {}

// Live returns 0.
func (*Buffers) Live() int { return 0 }

// Count does not count.
type Count struct{}

// Add does nothing.
func (*Count) Add(int) {}

// Live returns 0.
func (*Count) Live() int { return 0 }
