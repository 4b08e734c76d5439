//go:build !linux

package hpu

func reserve(n int) ([]byte, error) { return make([]byte, n), nil }

// discard makes b zeros.
func discard(b []byte) error {
	clear(b)
	return nil
}

// touched appends the pages of b that may hold anything but zeros. known is
// false if the system does not tell.
func touched(b []byte, pages []int) (list []int, known bool) { return allPages(b, pages), false }

func release([]byte) error { return nil }
