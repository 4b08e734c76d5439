package mpirun

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/internal/file"
)

//go:embed provider/*.c provider/*.h
var source embed.FS

//go:embed provider/agent.sh
var agent []byte

const packages = "gcc, libc6-dev, libfabric-dev and openmpi-bin"

// Provider compiles the provider of libfabric, if the user's cache does not have
// it, and returns its file. Errors: a *MissingError, or gcc's own.
func Provider() (string, error) {
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		return "", &MissingError{"gcc", packages}
	}
	if _, err := os.Stat("/usr/include/rdma/providers/fi_prov.h"); err != nil {
		return "", &MissingError{"header of libfabric", packages}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("mpirun: %w", err)
	}
	texts, hash, err := sources(gcc)
	if err != nil {
		return "", err
	}
	folder := filepath.Join(cache, "spinsim", "provider-"+hash)
	library := filepath.Join(folder, "libspinsim-fi.so")
	if _, err := os.Stat(library); err == nil {
		return library, nil
	}
	work, remove, err := file.Scratch("spinsim-provider")
	if err != nil {
		return "", fmt.Errorf("mpirun: %w", err)
	}
	defer remove()
	built := filepath.Join(work, filepath.Base(library))
	args := []string{"-std=gnu11", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-o", built}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		path := filepath.Join(work, name)
		if err := file.Write(path, texts[name]); err != nil {
			return "", fmt.Errorf("mpirun: %w", err)
		}
		if strings.HasSuffix(name, ".c") {
			args = append(args, path)
		}
	}
	if out, err := exec.Command(gcc, append(args, "-ldl")...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("mpirun: gcc: %w\n%s", err, out)
	}
	b, err := os.ReadFile(built)
	if err == nil {
		err = os.MkdirAll(folder, 0o700)
	}
	if err == nil {
		err = file.Write(library, b)
	}
	if err != nil {
		return "", fmt.Errorf("mpirun: %w", err)
	}
	return library, nil
}

// sources returns the provider's files, by their names, and a hash of them and of
// the compiler.
func sources(gcc string) (texts map[string][]byte, hash string, err error) {
	sum := sha256.New()
	version, err := exec.Command(gcc, "-dumpfullversion").Output()
	if err != nil {
		return nil, "", fmt.Errorf("mpirun: gcc: %w", err)
	}
	sum.Write(version)
	files, err := source.ReadDir("provider")
	if err != nil {
		return nil, "", fmt.Errorf("mpirun: %w", err)
	}
	texts = make(map[string][]byte)
	for _, f := range files { // in the order of names
		text, err := source.ReadFile("provider/" + f.Name())
		if err != nil {
			return nil, "", fmt.Errorf("mpirun: %w", err)
		}
		texts[f.Name()] = text
		fmt.Fprintf(sum, "%s %d\n%s", f.Name(), len(text), text)
	}
	return texts, hex.EncodeToString(sum.Sum(nil))[:16], nil
}
