//go:build !linux && !darwin

package memory

// grants reports that the system gives any number of bytes: it is not asked.
func grants(int64) bool { return true }
