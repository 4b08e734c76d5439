package file

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Check says why a file could not be written, as Create would. Nothing is
// changed; devices and pipes are not opened, which might wait for somebody.
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

// Standard reports whether a name is that of the standard output or the standard error.
func Standard(name string) bool {
	switch name {
	case "/dev/stdout", "/proc/self/fd/1", "/dev/fd/1", "/dev/stderr", "/proc/self/fd/2", "/dev/fd/2":
		return true
	}
	return false
}

// Same reports whether two names are of one file, which may not be there yet.
// What goes to a device such as /dev/null twice overwrites nothing.
func Same(a, b string) bool {
	x, err := os.Stat(a)
	y, also := os.Stat(b)
	if err == nil && also == nil {
		return os.SameFile(x, y) && x.Mode()&os.ModeDevice == 0
	}
	return errors.Is(err, fs.ErrNotExist) && errors.Is(also, fs.ErrNotExist) && place(a) == place(b)
}

// place is where a file would be, links followed as far as there is something.
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

// ReadRegular is Read of a file that is to be read again later, and whose name
// may come from a document: a pipe, which waits for somebody who writes, or a
// device is an error.
func ReadRegular(name string, limit int64) ([]byte, error) {
	if err := Regular(name); err != nil {
		return nil, err
	}
	return Read(name, limit)
}

// Regular says of a pipe, a socket or a device what it is. Of what is not
// there, or is a folder, opening it will tell.
func Regular(name string) error {
	info, err := os.Stat(name)
	if err != nil || info.Mode().IsRegular() || info.IsDir() {
		return nil //nolint:nilerr // as said above
	}
	return fmt.Errorf("%s: %s, expected a regular file", name, kind(info.Mode()))
}

// kind is what a file is that is no regular one.
func kind(m fs.FileMode) string {
	switch {
	case m&fs.ModeNamedPipe != 0:
		return "a pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	}
	return "a device"
}
