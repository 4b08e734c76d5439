package file

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// OutsideError is the error about a name that leads out of the folders in which
// somebody else's file may name files.
type OutsideError struct {
	Name    string
	Folders []string
}

// Error names the folders.
func (e *OutsideError) Error() string {
	var list []string
	for _, folder := range e.Folders {
		list = append(list, fmt.Sprintf("%q", folder))
	}
	return fmt.Sprintf("%q is outside, expected a file below %s", e.Name, strings.Join(list, " or "))
}

// ReadBelow is [ReadRegular] for a name that the user has not chosen, such as
// one in a scenario: the file must lie below a folder, links followed.
func ReadBelow(folder, name string, limit int64) (data []byte, err error) {
	root, at, err := below([]string{folder}, name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	info, err := root.Stat(at)
	if err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return nil, fmt.Errorf("%s: %s, expected a regular file", name, kind(info.Mode()))
	}
	f, err := root.Open(at)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: cause(err)}
	}
	data, err = ReadFrom(f, name, limit)
	return data, errors.Join(err, f.Close())
}

// CreateBelow is [Create] for a name that the user has not chosen: the file must
// lie below one of the folders, links followed. It is written through an
// [os.Root], so a link that somebody makes meanwhile leads nowhere else.
func CreateBelow(folders []string, name string) (*Writer, error) {
	root, at, err := below(folders, name)
	if err != nil {
		return nil, err
	}
	w := &Writer{name: name, root: root, target: filepath.Join(root.Name(), at)}
	info, err := root.Stat(at)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = w.temporary(0o666, false)
	case err != nil:
	case !info.Mode().IsRegular():
		err = errors.New("is no regular file")
	default:
		if err = w.writable(); err == nil {
			err = w.temporary(info.Mode().Perm(), true)
		}
	}
	if err != nil {
		return nil, errors.Join(w.failed(err), root.Close())
	}
	return w, nil
}

// Below returns an error if [CreateBelow] would refuse the place of a file.
func Below(folders []string, name string) error {
	root, _, err := below(folders, name)
	if err != nil {
		return err
	}
	return root.Close()
}

// below opens the folder that holds a file, and returns the path of the file in
// it.
func below(folders []string, name string) (root *os.Root, at string, err error) {
	for _, folder := range folders {
		folder, err := filepath.Abs(folder)
		if err != nil {
			return nil, "", err
		}
		as, err := filepath.Abs(name)
		if err != nil {
			return nil, "", err
		}
		at, err := filepath.Rel(folder, as)
		inside := err == nil && filepath.IsLocal(at)
		if folder, err = filepath.EvalSymlinks(folder); err != nil {
			return nil, "", err
		}
		if followed, err := filepath.Rel(folder, place(as)); err == nil && filepath.IsLocal(followed) {
			at, inside = followed, true
		} else if _, err := filepath.EvalSymlinks(filepath.Dir(as)); err == nil {
			inside = false // a link leads out
		}
		if inside {
			root, err = os.OpenRoot(folder)
			return root, at, err
		}
	}
	return nil, "", &OutsideError{name, folders}
}

// cause is the cause in an error about a path.
func cause(err error) error {
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		return path.Err
	}
	return err
}

// open is os.OpenFile within the folder of the writer.
func (w *Writer) open(name string, flag int, mode fs.FileMode) (*os.File, error) {
	if w.root == nil {
		return os.OpenFile(name, flag, mode)
	}
	at, err := filepath.Rel(w.root.Name(), name)
	if err != nil {
		return nil, err
	}
	return w.root.OpenFile(at, flag, mode)
}

// rename is os.Rename within the folder of the writer.
func (w *Writer) rename(from, to string) error {
	if w.root == nil {
		return os.Rename(from, to)
	}
	from, err := filepath.Rel(w.root.Name(), from)
	if err != nil {
		return err
	}
	if to, err = filepath.Rel(w.root.Name(), to); err != nil {
		return err
	}
	return w.root.Rename(from, to)
}

// leave closes the folder of the writer.
func (w *Writer) leave() error {
	if w.root == nil {
		return nil
	}
	return w.root.Close()
}
