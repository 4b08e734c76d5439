package file

import (
	"fmt"
	"io"
	"os"
)

// Bounds for files that are held in memory, bytes.
const (
	MaxText   = 1 << 20   // profiles, scenarios, parameter files, scripts: written by people
	MaxModule = 64 << 20  // handler modules, before the device's own limit is known
	MaxData   = 128 << 20 // payloads, packets, contents of memory
)

// Read returns the content of a file of at most limit bytes. For a longer one
// the error names the file and the bound. The file may be a pipe or a device.
func Read(name string, limit int64) (data []byte, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	data, err = ReadFrom(f, name, limit)
	if closing := f.Close(); err == nil {
		err = closing
	}
	return data, err
}

// ReadFrom is Read for an open file; name is for the error.
func ReadFrom(r io.Reader, name string, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%s: more than %d bytes, the most that such a file may have", name, limit)
	}
	return data, nil
}
