//go:build !linux

package hpu

import "slices"

func reserve(n int) ([]byte, error) { return make([]byte, n), nil }

// discard makes b zeros.
func discard(b []byte) error {
	clear(b)
	return nil
}

// touched tells of each page of b whether it may hold anything but zeros.
func touched(b []byte) []bool { return slices.Repeat([]bool{true}, len(b)/pageBytes) }

func release([]byte) error { return nil }
