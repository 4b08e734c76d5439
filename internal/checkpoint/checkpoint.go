// Package checkpoint stores results in a folder as they are produced. Each has
// a key that is the hash of its input. So an interrupted sweep continues with
// its stored results, and the files of a sweep in parts on several machines can
// be put together.
//
// The files hold lines of JSON, one for each result. points.ndjson has the
// results of a run here, part-3-of-16.ndjson the results of a part. Several
// programs may write into the same file: each line is one write.
package checkpoint

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/spinsim/spinsim/internal/file"
	"github.com/spinsim/spinsim/internal/provenance"
	"github.com/spinsim/spinsim/internal/seal"
)

// Part is a share of the points of a sweep: the points whose number, from 0, is
// Index-1 modulo Of. The zero value is all points.
type Part struct{ Index, Of int }

// MaxParts is the maximum number of parts of a sweep.
const MaxParts = 100_000

// ParsePart reads "3/16", the third of sixteen parts.
func ParsePart(text string) (Part, error) {
	index, of, _ := strings.Cut(text, "/")
	i, err := strconv.Atoi(index)
	n, also := strconv.Atoi(of)
	if err != nil || also != nil || i < 1 || i > n || n > MaxParts {
		return Part{}, fmt.Errorf("%q, expected a part and how many there are, such as 3/16, at most %d", text, MaxParts)
	}
	return Part{i, n}, nil
}

// String returns the part in the form of ParsePart, "" for the zero value.
func (p Part) String() string {
	if p.Of == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d", p.Index, p.Of)
}

// Has reports whether the point with a number, from 0, belongs to the part.
func (p Part) Has(number int) bool { return p.Of == 0 || number%p.Of == p.Index-1 }

// file returns the name of the file with the part's results.
func (p Part) file() string {
	if p.Of == 0 {
		return "points" + extension
	}
	return fmt.Sprintf("part-%d-of-%d%s", p.Index, p.Of, extension)
}

const extension = ".ndjson"

// Folder is a folder with results. Its methods may be called from several
// goroutines.
type Folder struct {
	own string // the file for Put

	mu      sync.Mutex
	known   map[string]kept
	used    map[string]bool
	out     *os.File // nil: nothing was put yet
	failed  error    // of the first incomplete line: no line may follow it
	program string   // hash of the running program
}

// kept is a known result.
type kept struct {
	result json.RawMessage
	where  string // file and line; "": put by this program
}

// line is one result in a file.
type line struct {
	Key    string          `json:"key"`   // SHA-256 of the input of the result
	Point  string          `json:"point"` // name for people
	Result json.RawMessage `json:"result"`
	// the seal, which parse checks
	Complete bool   `json:"complete,omitempty"`
	Digest   string `json:"sha256,omitempty"`
}

// Open reads the results in a folder, and makes the folder if there is none.
// Put adds results of the given part. An incomplete last line of a file comes
// from a killed program and is ignored. Any other bad line is an error with its
// place: a malformed line, a line changed since it was written, or a line whose
// result differs from another of the same key.
func Open(path string, part Part) (*Folder, error) {
	f := &Folder{own: filepath.Join(path, part.file()), known: make(map[string]kept), used: make(map[string]bool)}
	if err := os.MkdirAll(path, 0o777); err != nil { //nolint:gosec // as the user's umask says
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(escaped(path), "*"+extension))
	if err != nil {
		return nil, err
	}
	slices.Sort(files)
	for _, name := range files {
		if err := f.read(name); err != nil {
			return nil, err
		}
	}
	// otherwise a result that took an hour would be the first to fail
	if err := file.Check(f.own); err != nil {
		return nil, err
	}
	f.program, err = program()
	return f, err
}

// escaped escapes a path for Glob, so that it contains no pattern.
func escaped(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

// program returns the hash of the running program: during development the
// version is not enough.
var program = sync.OnceValues(func() (string, error) {
	name, err := os.Executable()
	if err != nil {
		return "", err
	}
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // it was only read
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
})

// read reads the lines of a file.
func (f *Folder) read(name string) error {
	if err := file.Regular(name); err != nil { // a device may be endless
		return err
	}
	in, err := os.Open(name)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // it was only read
	return f.lines(in, name)
}

// lines reads lines from in, a file of the given name.
func (f *Folder) lines(in io.Reader, name string) error {
	r := bufio.NewReader(in)
	for number := 1; ; number++ {
		text, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil // the rest is no complete line
		}
		if err != nil {
			return err
		}
		where := fmt.Sprintf("%s:%d", name, number)
		l, err := parse(text)
		if err != nil {
			return fmt.Errorf("%s: %w", where, err)
		}
		if was, twice := f.known[l.Key]; twice && !bytes.Equal(was.result, l.Result) {
			return fmt.Errorf("%s: %s: another result than in %s, made from the same: one is wrong; remove both lines, and it is measured again", where, l.Point, was.where)
		}
		f.known[l.Key] = kept{l.Result, where}
	}
}

// parse reads a line and checks its digest.
func parse(text []byte) (l line, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&l); err != nil || l.Key == "" || l.Result == nil {
		return l, errors.New("no result of spinsim: expected a line of JSON with key, point, result and " + seal.Field)
	}
	if _, err = seal.CheckObject(text); errors.Is(err, seal.ErrNone) {
		return l, fmt.Errorf("%s: %w: an older spinsim kept it, or it was changed; name another folder, or remove the file, and its points are measured again", l.Point, err)
	}
	if err != nil {
		return l, fmt.Errorf("%s: %w; remove the line, and it is measured again", l.Point, err)
	}
	return l, nil
}

// Key returns the key of a result: the hash of its input, as JSON, and of the
// running program.
func (f *Folder) Key(from any) (string, error) {
	text, err := json.Marshal(struct {
		Program string `json:"program"`
		From    any    `json:"from"`
	}{f.program, from})
	return provenance.Hash(text), err
}

// Get returns the result stored under a key.
func (f *Folder) Get(key string) (result json.RawMessage, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	one, ok := f.known[key]
	if ok {
		f.used[key] = true
	}
	return one.result, ok
}

// Put stores a result under a key. point is its name for people. When Put
// returns, the result is in the file.
func (f *Folder) Put(key, point string, result any) error {
	value, err := json.Marshal(result)
	if err != nil {
		return fmt.Errorf("%s: %s: %w", f.own, point, err)
	}
	text, err := json.Marshal(line{Key: key, Point: point, Result: value})
	if err == nil {
		text, err = seal.Object(text, "")
	}
	if err != nil {
		return fmt.Errorf("%s: %s: %w", f.own, point, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failed != nil {
		return f.failed
	}
	if f.out == nil {
		if f.out, err = appendable(f.own); err != nil {
			return fmt.Errorf("results cannot be kept: %w", err)
		}
	}
	if _, f.failed = f.out.Write(append(text, '\n')); f.failed != nil {
		f.failed = fmt.Errorf("results cannot be kept: %w", f.failed)
		return f.failed
	}
	f.known[key], f.used[key] = kept{result: value}, true
	return nil
}

// appendable opens a file to append lines. It cuts off an incomplete last line.
func appendable(name string) (*os.File, error) {
	data, err := os.ReadFile(name) //nolint:gosec // the user has named it
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if whole := bytes.LastIndexByte(data, '\n') + 1; whole < len(data) {
		if err := os.Truncate(name, int64(whole)); err != nil { //lint:files a line that was not written whole
			return nil, err
		}
	}
	//lint:files each line has its digest, and counts from its end
	return os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666) //nolint:gosec // as the user's umask says
}

// Others returns how many results in the folder were never requested. They
// belong to other parameters, another input, or another spinsim.
func (f *Folder) Others() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.known) - len(f.used)
}

// Close ends writing. It does nothing for a nil folder.
func (f *Folder) Close() error {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.out == nil {
		return nil
	}
	err := f.out.Close()
	f.out = nil
	return err
}
