package file

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Check returns why Create could not write a file. It changes nothing. It does
// not open devices and pipes, because that might wait for somebody.
func Check(name string) error {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return nil
	}
	w, err := Create(name)
	if err != nil {
		return err
	}
	return w.Discard()
}

// Standard reports whether a name stands for the standard output or the
// standard error.
func Standard(name string) bool {
	switch name {
	case "/dev/stdout", "/proc/self/fd/1", "/dev/fd/1", "/dev/stderr", "/proc/self/fd/2", "/dev/fd/2":
		return true
	}
	return false
}

// Same reports whether two names stand for one file, which may not exist yet. A
// device such as /dev/null does not count, because writing to it twice
// overwrites nothing.
func Same(a, b string) bool {
	x, err := os.Stat(a)
	y, also := os.Stat(b)
	if err == nil && also == nil {
		return os.SameFile(x, y) && x.Mode()&os.ModeDevice == 0
	}
	return errors.Is(err, fs.ErrNotExist) && errors.Is(also, fs.ErrNotExist) && place(a) == place(b)
}

// place returns the path of a file after following links as far as they exist.
func place(name string) string {
	at, err := follow(name)
	if err != nil {
		return name
	}
	folder, err := filepath.EvalSymlinks(filepath.Dir(at))
	if err != nil {
		return at
	}
	if all, err := filepath.Abs(folder); err == nil {
		folder = all
	}
	return filepath.Join(folder, filepath.Base(at))
}

// ReadRegular is Read for a file that must be read again later, and whose name
// may come from a document. A device is an error, and so is a pipe, which waits
// for a writer.
func ReadRegular(name string, limit int64) ([]byte, error) {
	if err := Regular(name); err != nil {
		return nil, err
	}
	return Read(name, limit)
}

// Regular returns an error that names the kind of a pipe, a socket or a device.
// It accepts a missing file and a folder: opening them fails anyway.
func Regular(name string) error {
	info, err := os.Stat(name)
	if err != nil || info.Mode().IsRegular() || info.IsDir() {
		return nil //nolint:nilerr // as described above
	}
	return fmt.Errorf("%s: %s, expected a regular file", name, kind(info.Mode()))
}

// kind names the kind of a file that is not regular.
func kind(m fs.FileMode) string {
	switch {
	case m&fs.ModeNamedPipe != 0:
		return "a pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	}
	return "a device"
}
