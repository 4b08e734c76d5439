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
// for what was there before. Devices, pipes and the standard streams have no
// before: they are written at once.
type Writer struct {
	out    *os.File
	name   string // as the user gave it, for errors
	target string // where the bytes end up, links followed; "": out is the target
	moved  bool   // out lies elsewhere, because the target's folder takes no new file: it is copied
	stream bool   // out is not ours to close
	err    error
	done   bool
}

// pending are the temporary files and folders there are.
var pending = struct {
	sync.Mutex
	names  map[string]bool
	serial int
}{names: make(map[string]bool)}

// maxLinks is how many symbolic links a name may lead through, as in Linux.
const maxLinks = 40

// Create begins to write a file. An error names the file as it was given: its
// folder is missing, it may not be written, it is a folder.
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
	case !info.Mode().IsRegular() || isDevice(name):
		w.target = ""
		w.out, err = os.OpenFile(name, os.O_WRONLY, 0)
	default:
		if err = writable(w.target); err == nil {
			err = w.temporary(info.Mode().Perm(), true)
		}
	}
	if err != nil {
		return nil, w.failed(err)
	}
	return w, nil
}

// follow resolves the links of the last part of a name; what they lead to need not exist.
func follow(name string) (string, error) {
	at := name
	for range maxLinks {
		if isDevice(at) {
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

// isDevice reports whether the system gives a name its meaning: to replace it
// would cut what it stands for.
func isDevice(name string) bool {
	return strings.HasPrefix(name, "/dev/") || strings.HasPrefix(name, "/proc/")
}

// writable reports why a file that exists may not be overwritten: a folder that
// may be changed does not say that.
func writable(name string) error {
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

// temporary makes the file that the bytes go to: beside the target, or, if the
// target exists and its folder takes no new file, where the system keeps such
// files.
func (w *Writer) temporary(mode fs.FileMode, exists bool) error {
	folder, base := filepath.Split(w.target)
	if base == "" {
		return errors.New("expected the name of a file")
	}
	out, err := create(folder, base, mode)
	if err != nil && exists {
		out, err = create(os.TempDir(), base, 0o600)
		w.moved = true
	} else if err == nil && exists {
		err = out.Chmod(mode) // what the mask has taken from it
	}
	w.out = out
	if err != nil && out != nil {
		err = errors.Join(err, out.Close(), os.Remove(out.Name()))
	}
	return err
}

// maxBase keeps the temporary name within what file systems allow, bytes.
const maxBase = 100

// create makes a file of a new name and enters it into what Abandon removes.
func create(folder, base string, mode fs.FileMode) (f *os.File, err error) {
	_, err = fresh(folder, base, func(name string) (err error) {
		f, err = os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		return err
	})
	return f, err
}

// fresh lets create make something of a new name.
func fresh(folder, base string, create func(name string) error) (string, error) {
	pending.Lock()
	defer pending.Unlock()
	base = strings.ToValidUTF8(base[:min(len(base), maxBase)], "")
	for {
		pending.serial++
		name := filepath.Join(folder, fmt.Sprintf(".%s.%d-%d.tmp", base, os.Getpid(), pending.serial))
		err := create(name)
		if errors.Is(err, fs.ErrExist) {
			continue // left behind by a process of the same number that was killed
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
// about to end: nothing can be created or committed afterwards.
func Abandon() {
	pending.Lock()                    // for ever
	for name := range pending.names { //lint:maporder the order of removal does not matter
		_ = os.RemoveAll(name) // the program ends; there is nobody to tell
	}
}

// Write adds bytes.
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
	return settle(name, func() error { return errors.Join(w.out.Close(), os.Remove(name)) })
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
				err = overwrite(w.target, name)
			default:
				if err = os.Rename(name, w.target); err == nil {
					return nil
				}
				if writable(w.target) == nil { // a file system of its own, as containers have it
					err = overwrite(w.target, name)
				}
			}
			return errors.Join(err, os.Remove(name))
		})
	}
	if err != nil {
		return w.failed(err)
	}
	return nil
}

// overwrite copies a whole file into one that exists and cannot be replaced.
func overwrite(target, name string) error {
	from, err := os.Open(name)
	if err != nil {
		return err
	}
	to, err := os.OpenFile(target, os.O_WRONLY|os.O_TRUNC, 0)
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

// failed gives an error the name that the user knows.
func (w *Writer) failed(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	var link *os.LinkError
	if errors.As(err, &link) {
		err = link.Err
	}
	return &fs.PathError{Op: "write", Path: w.name, Err: err}
}
