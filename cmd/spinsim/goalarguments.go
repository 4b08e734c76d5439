package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spinsim/spinsim/goal"
	"github.com/spinsim/spinsim/internal/digest"
	"github.com/spinsim/spinsim/internal/provenance"
)

// goalRunName is what the record of a result of goal run calls it.
const goalRunName = "goal run"

// goalRunArguments are the arguments of goal run, as a record has them.
type goalRunArguments struct {
	Schedule string          `json:"schedule"`
	On       string          `json:"on"`
	Model    *modelArguments `json:"model,omitempty"`
	Nodes    *nodeArguments  `json:"nodes,omitempty"`
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

type nodeArguments struct {
	Profile  string   `json:"profile"`
	Matching []string `json:"matching"`
	Eager    string   `json:"eager"`
	Buffers  int      `json:"buffers"`
	PerNode  int      `json:"ranks_per_node"`
}

func (f *modelFlags) arguments() *modelArguments {
	p := f.params
	return &modelArguments{p.L, p.Overhead, p.Gap, p.ByteGap, p.ByteOverhead, p.Eager, f.noise, f.coscheduled}
}

func (f *goalRunFlags) arguments(schedule string) *goalRunArguments {
	a := &goalRunArguments{Schedule: schedule, On: f.on}
	if f.on == "nodes" {
		a.Nodes = &nodeArguments{f.nodes.profile, f.nodes.matching, f.nodes.eager, f.nodes.buffers, f.nodes.perNode}
	} else {
		a.Model = f.model.arguments()
	}
	return a
}

// restore sets the flags to what a record says and returns the name of the schedule.
func (f *goalRunFlags) restore(r *provenance.Record) (schedule string, err error) {
	var a goalRunArguments
	if err := r.Parse(&a); err != nil {
		return "", err
	}
	if !(a.On == "model" && a.Model != nil || a.On == "nodes" && a.Nodes != nil) {
		return "", fmt.Errorf("provenance.arguments: on %q, expected model or nodes with the arguments of it", a.On)
	}
	f.on = a.On
	if m := a.Model; m != nil {
		f.model.params = goal.DefaultParams()
		p := &f.model.params
		p.L, p.Overhead, p.Gap, p.ByteGap, p.ByteOverhead, p.Eager = m.L, m.O, m.G, m.PerByteG, m.PerByteO, m.Eager
		f.model.noise, f.model.coscheduled = m.Noise, m.Coscheduled
		if r.Seed != nil {
			f.model.seed = *r.Seed
		}
	}
	if n := a.Nodes; n != nil {
		f.nodes = nodeFlags{profile: n.Profile, matching: n.Matching, eager: n.Eager, buffers: n.Buffers, perNode: max(1, n.PerNode), engine: r.Engine}
		if r.Seed != nil {
			f.nodes.seed = *r.Seed
		}
	}
	return a.Schedule, nil
}

// writeWithOrigin writes an object as JSON in a line, with what produced it as
// its first field and a digest as its last.
func writeWithOrigin(out io.Writer, r *provenance.Record, v any) error {
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
		b.Bytes()[at] = ',' // in place of the bracket that opens the object
	}
	sealed, err := digest.Add(b.Bytes())
	if err != nil {
		return err
	}
	_, err = out.Write(sealed)
	return err
}
