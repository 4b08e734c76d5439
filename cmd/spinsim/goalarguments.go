package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spinsim/spinsim/internal/cli"
	"github.com/spinsim/spinsim/internal/provenance"
	"github.com/spinsim/spinsim/internal/seal"
)

// goalRunName is the name of goal run in the record of a result.
const goalRunName = "goal run"

// goalRunArguments are the arguments of goal run on the model, as a record has
// them.
type goalRunArguments struct {
	Schedule string          `json:"schedule"`
	On       string          `json:"on"`
	Model    *modelArguments `json:"model,omitempty"`
	Nodes    json.RawMessage `json:"nodes,omitempty"` // of results that older versions wrote
}

type modelArguments struct {
	L           int64  `json:"L_ns"`
	O           int64  `json:"o_ns"`
	G           int64  `json:"g_ns"`
	PerByteG    int64  `json:"G_ns_per_byte"`
	PerByteO    int64  `json:"O_ns_per_byte"`
	Eager       uint64 `json:"S_bytes"`
	Noise       string `json:"noise,omitempty"`
	Coscheduled bool   `json:"noise_coscheduled,omitempty"`
}

func (f *modelFlags) arguments(schedule string) *goalRunArguments {
	p := f.params
	m := &modelArguments{p.L, p.Overhead, p.Gap, p.ByteGap, p.ByteOverhead, p.Eager, f.noise, f.coscheduled}
	return &goalRunArguments{Schedule: schedule, On: "model", Model: m}
}

// restore sets the flags from a record and returns the name of the schedule.
func (f *modelFlags) restore(r *provenance.Record) (schedule string, err error) {
	var a goalRunArguments
	if err := r.Parse(&a); err != nil {
		return "", err
	}
	switch m := a.Model; {
	case a.Nodes != nil:
		return "", errors.New("goal run --on nodes has the document of an experiment now, with rows instead of results: spinsim goal run FILE --on nodes --format json writes it anew")
	case m == nil || a.On != "model":
		return "", fmt.Errorf("provenance.arguments: on %q, expected model with its arguments", a.On)
	default:
		p := &f.params
		p.L, p.Overhead, p.Gap, p.ByteGap, p.ByteOverhead, p.Eager = m.L, m.O, m.G, m.PerByteG, m.PerByteO, m.Eager
		f.noise, f.coscheduled = m.Noise, m.Coscheduled
	}
	if r.Seed != nil {
		f.seed = *r.Seed
	}
	return a.Schedule, nil
}

// writeWithOrigin writes an object as a line of JSON. Its origin is the first
// field and its seal the last. failed is what has ended the run early.
func writeWithOrigin(out io.Writer, r *provenance.Record, v any, failed error) error {
	var b bytes.Buffer
	b.WriteString(`{"provenance":`)
	for i, part := range []any{r, v} {
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		at := b.Len()
		if err := e.Encode(part); err != nil {
			return err
		}
		if i == 0 {
			b.Truncate(b.Len() - 1)
			continue
		}
		b.Bytes()[at] = ',' // replaces the opening bracket of the object
	}
	sealed, err := seal.Object(b.Bytes(), cli.CutBy(failed))
	if err != nil {
		return err
	}
	_, err = out.Write(sealed)
	return err
}
