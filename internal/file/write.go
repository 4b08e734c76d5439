package file

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// Writer is a file that is being written. Until Commit the name still stands
// for the old file. Devices, pipes and the standard streams have no old
// content, so they are written at once.
type Writer struct {
	out    *os.File
	name   string   // as the user gave it, for errors
	target string   // where the bytes end up, links followed; "": out is the target
	root   *os.Root // the folder that the target must not leave; nil: there is none
	moved  bool     // out is in another folder, because the target's takes no new file: it is copied
	stream bool     // out is not ours to close
	err    error
	done   bool
}

// pending are the existing temporary files and folders.
var pending = struct {
	sync.Mutex
	names  map[string]bool
	serial int
}{names: make(map[string]bool)}

// maxLinks is how many symbolic links a name may lead through, as in Linux.
const maxLinks = 40

// Create begins to write a file. Its error names the file as the user gave it,
// for example if its folder is missing, it may not be written, or it is a
// folder.
func Create(name string) (*Writer, error) {
	w := &Writer{name: name}
	var err error
	if Standard(name) {
		w.out, w.stream = os.Stdout, true
		if strings.HasSuffix(name, "err") || strings.HasSuffix(name, "2") {
			w.out = os.Stderr
		}
		return w, nil
	}
	if w.target, err = follow(name); err != nil {
		return nil, err
	}
	info, err := os.Stat(w.target)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = w.temporary(0o666, false)
	case err != nil:
	case info.IsDir():
		err = errors.New("is a directory")
	case !info.Mode().IsRegular() || Device(name):
		w.target = ""
		w.out, err = os.OpenFile(name, os.O_WRONLY, 0)
	default:
		if err = w.writable(); err == nil {
			err = w.temporary(info.Mode().Perm(), true)
		}
	}
	if err != nil {
		return nil, w.failed(err)
	}
	return w, nil
}

// follow resolves the links of the last part of a name. Their target need not
// exist.
func follow(name string) (string, error) {
	at := name
	for range maxLinks {
		if Device(at) {
			return at, nil // /dev/fd/3 is written as it is, whatever it leads to
		}
		to, err := os.Readlink(at)
		if err != nil {
			return at, nil //nolint:nilerr // no link, or nothing there
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(at), to)
		}
		at = to
	}
	return "", &fs.PathError{Op: "open", Path: name, Err: errors.New("too many symbolic links")}
}

// Device reports whether the system gives a name its meaning. To replace such
// a name would cut it off from that meaning.
func Device(name string) bool {
	return strings.HasPrefix(name, "/dev/") || strings.HasPrefix(name, "/proc/")
}

// writable returns why an existing file may not be overwritten. Its folder's
// permissions do not decide that.
func (w *Writer) writable() error {
	f, err := w.open(w.target, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

// temporary makes the file for the bytes. It is beside the target or, if the
// target exists and its folder takes no new file, where the system keeps
// temporary files.
func (w *Writer) temporary(mode fs.FileMode, exists bool) error {
	folder, base := filepath.Split(w.target)
	if base == "" {
		return errors.New("expected the name of a file")
	}
	out, err := create(folder, base, mode, w.open)
	if err != nil && exists {
		out, err = create(os.TempDir(), base, 0o600, os.OpenFile)
		w.moved = true
	} else if err == nil && exists {
		err = out.Chmod(mode) // the mask may have removed permissions
	}
	w.out = out
	if err != nil && out != nil {
		err = errors.Join(err, out.Close(), os.Remove(out.Name()))
	}
	return err
}

// maxBase keeps the temporary name short enough for file systems, bytes.
const maxBase = 100

// create makes a file with a new name. Abandon removes it, too.
func create(folder, base string, mode fs.FileMode, open func(name string, flag int, mode fs.FileMode) (*os.File, error)) (f *os.File, err error) {
	_, err = fresh(folder, base, func(name string) (err error) {
		f, err = open(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		return err
	})
	return f, err
}

// fresh lets create make a file or folder with a new name.
func fresh(folder, base string, create func(name string) error) (string, error) {
	pending.Lock()
	defer pending.Unlock()
	base = strings.ToValidUTF8(base[:min(len(base), maxBase)], "")
	for {
		pending.serial++
		name := filepath.Join(folder, fmt.Sprintf(".%s.%d-%d.tmp", base, os.Getpid(), pending.serial))
		err := create(name)
		if errors.Is(err, fs.ErrExist) {
			continue // left by a killed process with the same number
		}
		if err == nil {
			pending.names[name] = true
		}
		return name, err
	}
}

// settle ends a temporary file: end renames or removes it.
func settle(name string, end func() error) error {
	pending.Lock()
	defer pending.Unlock()
	delete(pending.names, name)
	return end()
}

// Abandon removes the temporary files of all writers, for a program that is
// about to end. Afterwards nobody can create or commit a file.
func Abandon() {
	pending.Lock()                    // for ever
	for name := range pending.names { //lint:maporder the order of removal does not matter
		_ = os.RemoveAll(name) // the program ends; there is nobody to tell
	}
}

// Write appends bytes.
func (w *Writer) Write(b []byte) (int, error) {
	n, err := w.out.Write(b)
	if err != nil {
		err = w.failed(err)
		w.err = errors.Join(w.err, err)
	}
	return n, err
}

// Discard ends the file without a trace. After Commit it does nothing.
func (w *Writer) Discard() error {
	if w.done {
		return nil
	}
	w.done = true
	switch {
	case w.stream:
		return nil
	case w.target == "":
		return w.out.Close()
	}
	name := w.out.Name()
	return settle(name, func() error { return errors.Join(w.out.Close(), os.Remove(name), w.leave()) })
}

// Commit gives the file its name. If a write has failed, or this does, the old
// file stays as it was.
func (w *Writer) Commit() error {
	if w.done || w.err != nil {
		return errors.Join(w.err, w.Discard())
	}
	w.done = true
	if w.stream {
		return nil
	}
	err := w.out.Close()
	if w.target != "" {
		name := w.out.Name()
		err = settle(name, func() error {
			switch {
			case err != nil:
			case w.moved:
				err = w.overwrite(name)
			default:
				if err = w.rename(name, w.target); err == nil {
					return w.leave()
				}
				if w.writable() == nil { // it may be a file system of its own, as in containers
					err = w.overwrite(name)
				}
			}
			return errors.Join(err, os.Remove(name), w.leave())
		})
	}
	if err != nil {
		return w.failed(err)
	}
	return nil
}

// overwrite copies a complete file into an existing one that cannot be
// replaced.
func (w *Writer) overwrite(name string) error {
	from, err := os.Open(name)
	if err != nil {
		return err
	}
	to, err := w.open(w.target, os.O_WRONLY|os.O_TRUNC, 0)
	if err == nil {
		_, err = io.Copy(to, from)
		err = errors.Join(err, to.Close())
	}
	return errors.Join(err, from.Close())
}

// Write writes a whole file, as Create and Commit do.
func Write(name string, data []byte) error {
	w, err := Create(name)
	if err != nil {
		return err
	}
	if _, err := w.Write(data); err != nil {
		return errors.Join(err, w.Discard())
	}
	return w.Commit()
}

// failed puts the user's name of the file into an error.
func (w *Writer) failed(err error) error {
	err = cause(err)
	if link, ok := errors.AsType[*os.LinkError](err); ok {
		err = link.Err
	}
	return &fs.PathError{Op: "write", Path: w.name, Err: err}
}
