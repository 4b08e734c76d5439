//go:build !linux

package hpu

func reserve(n int) ([]byte, error) { return make([]byte, n), nil }

// discard makes b zeros.
func discard(b []byte) error {
	clear(b)
	return nil
}

func release([]byte) error { return nil }
