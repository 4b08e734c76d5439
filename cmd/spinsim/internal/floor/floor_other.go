//go:build !linux

package floor
