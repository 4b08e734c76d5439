package experiment

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/spinsim/spinsim/internal/provenance"
	"github.com/spinsim/spinsim/internal/visible"
)

// Recorded are the files of Experiment.Inputs when a result is made again; nil: the
// files of the machine.
type Recorded struct{ files map[string]recordedFile }

type recordedFile struct {
	data []byte
	err  error
}

// Open opens a file of Experiment.Inputs. When a result is made again, it is the
// recorded file: somebody else may have named another one in the record.
func (r *Recorded) Open(name string) (io.ReadCloser, error) {
	if r == nil {
		return os.Open(name)
	}
	f, has := r.files[name]
	if !has {
		return nil, fmt.Errorf("%s: no input of the record: %w", visible.Line(name), fs.ErrNotExist)
	}
	return io.NopCloser(bytes.NewReader(f.data)), f.err
}

// takeFiles takes the files of a record that points read themselves.
func (s *Sweep) takeFiles(r *provenance.Record, read func(path string) ([]byte, error)) {
	e := s.Experiment()
	if e.Inputs == nil {
		return
	}
	s.given = &Recorded{make(map[string]recordedFile)}
	for i := range r.Inputs {
		in := &r.Inputs[i]
		if !slices.ContainsFunc(e.Axes, func(a Axis) bool { return a.Name == in.Flag }) {
			continue
		}
		data, err := in.Data(read)
		if err != nil { // a file that is not there is no end of those of a trace
			err = errors.New("provenance.inputs: " + err.Error())
		}
		s.given.files[in.Name] = recordedFile{data, err}
	}
}
