package file

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// WriteFolder makes a folder with files, given by their names. It appears
// complete or not at all; an existing folder is an error.
func WriteFolder(name string, files map[string][]byte) (err error) {
	name = filepath.Clean(name)
	if _, err := os.Lstat(name); err == nil {
		return &fs.PathError{Op: "mkdir", Path: name, Err: fs.ErrExist}
	}
	w := &Writer{name: name}
	folder, err := createFolder(filepath.Split(name))
	if err != nil {
		return w.failed(err)
	}
	for file, content := range files { //lint:maporder each file by itself
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, file), content, 0o666)
		}
	}
	err = settle(folder, func() error {
		if err == nil {
			err = os.Rename(folder, name)
		}
		if err == nil {
			return nil
		}
		return errors.Join(err, os.RemoveAll(folder))
	})
	if err != nil {
		return w.failed(err)
	}
	return nil
}

// createFolder makes a folder with a new name. Abandon removes it, too.
func createFolder(parent, base string) (string, error) {
	return fresh(parent, base, func(name string) error { return os.Mkdir(name, 0o777) })
}

// Scratch makes a folder where the system keeps temporary ones. The caller
// removes it and its contents; Abandon does, too.
func Scratch(base string) (folder string, remove func(), err error) {
	folder, err = createFolder(os.TempDir(), base)
	return folder, func() {
		_ = settle(folder, func() error { return os.RemoveAll(folder) }) // scratch only
	}, err
}
