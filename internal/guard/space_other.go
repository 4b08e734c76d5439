//go:build !(linux && (amd64 || arm64))

package guard

// Space does nothing on this system.
type Space struct{}

// New returns nil.
func New() *Space { return nil }

// Alloc is not called.
func (*Space) Alloc(int) []byte { return nil }

// Cores is not called.
func (*Space) Cores(int, []byte, uint64) []byte { return nil }

// Open is not called.
func (*Space) Open(int, uint64, uint64, bool) {}

// Close is not called.
func (*Space) Close() {}

// Find is not called.
func (*Space) Find(uintptr) (i int, off uint64, ok bool) { return 0, 0, false }

// Release is not called.
func (*Space) Release() {}
