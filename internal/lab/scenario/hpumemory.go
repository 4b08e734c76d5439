package scenario

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"strings"
)

// WriteHPU is a write_hpu step.
type WriteHPU struct {
	Of     string  `yaml:"of" required:"true" help:"Entry of this rank with handlers."`
	Offset Expr    `yaml:"offset" help:"Where in its HPU memory. Default 0."`
	Bytes  Content `yaml:"bytes" required:"true" help:"What to write. Numbers of the state, {values: {limit: 5}}, are written one by one, in their order."`
}

// WaitHPU is a wait_hpu step.
type WaitHPU struct {
	Of     string `yaml:"of" required:"true" help:"Entry of this rank with handlers."`
	Field  string `yaml:"field" required:"true" help:"Field of the state: a name, or the number of the field, from 0."`
	Bounds `yaml:",inline"`
}

// hpuWrite is one write of a step.
type hpuWrite struct {
	offset int64
	bytes  []byte
}

// share lets an entry use the HPU memory of an earlier one. It returns false if
// it has noted an error.
func (p *planner) share(e *entryPlan) bool {
	h, path := e.Handlers, e.path+".handlers"
	other := p.entry(h.Shares)
	switch {
	case other == nil || other.handlers == nil:
		p.fail(path+".shares", "there is no entry %s with handlers before this one", h.Shares)
	case other.Handlers.Module != h.Module:
		p.fail(path+".shares", "the handlers of %s are of module %s, not of %s", h.Shares, other.Handlers.Module, h.Module)
	case h.State.IsSet() || h.HPUMemory.IsSet() || h.HostMemory.IsSet():
		p.fail(path+".shares", "state, hpu_memory and host_memory come from %s", h.Shares)
	default:
		for _, rank := range e.ranks {
			if !other.on[rank] {
				p.fail(path+".shares", "entry %s is not on rank %d", h.Shares, rank)
				return false
			}
		}
		e.shares, e.layout = other, other.layout
		if other.shares != nil {
			e.shares = other.shares
		}
		return true
	}
	return false
}

// owner returns the entry whose HPU memory e uses.
func (e *entryPlan) owner() *entryPlan {
	if e.shares != nil {
		return e.shares
	}
	return e
}

// checkHPU checks the names in a step about HPU memory.
func (p *planner) checkHPU(s *Step, path string) {
	var of string
	if s.WriteHPU != nil {
		path += ".write_hpu"
		of = s.WriteHPU.Of
		p.readFile(&s.WriteHPU.Bytes, path+".bytes")
	} else {
		path += ".wait_hpu"
		of = s.WaitHPU.Of
	}
	e := p.entry(of)
	if e == nil || e.handlers == nil {
		p.fail(path+".of", "there is no entry %s with handlers", of)
		return
	}
	if s.WaitHPU != nil {
		if _, err := e.layout.field(s.WaitHPU.Field); err != nil {
			p.fail(path+".field", "%w", err)
		}
		return
	}
	if s.WriteHPU.Bytes.kind == contentValues && s.WriteHPU.Offset.IsSet() {
		p.fail(path+".offset", "values have places of their own")
	}
	for i := range s.WriteHPU.Bytes.values {
		v := &s.WriteHPU.Bytes.values[i]
		if _, err := e.layout.field(v.Name); err != nil {
			p.fail(path+".bytes.values."+v.Name, "%w", err)
		}
	}
}

// hpuWrites resolves the writes of a step.
func (p *Plan) hpuWrites(rank int, x *WriteHPU, at *env) (writes []hpuWrite, err error) {
	e := p.entry(x.Of)
	if !e.on[rank] {
		return nil, fmt.Errorf("entry %s is not on this rank", x.Of)
	}
	size, _, err := p.state(e.owner(), rank)
	if err != nil {
		return nil, err
	}
	if x.Bytes.kind == contentValues {
		for i := range x.Bytes.values {
			v := &x.Bytes.values[i]
			w, err := p.hpuNumber(e, rank, v, at)
			if err != nil {
				return nil, fmt.Errorf("bytes.values.%s: %w", v.Name, err)
			}
			writes = append(writes, w)
		}
	} else {
		w := hpuWrite{}
		if w.offset, err = x.Offset.int(at, 0, 0, size); err != nil {
			return nil, fmt.Errorf("offset in the HPU memory of %s: %w", x.Of, err)
		}
		if w.bytes, err = x.Bytes.make(at, p.stream(rank, "write to "+x.Of)); err != nil {
			return nil, fmt.Errorf("bytes%w", err)
		}
		if i, err := (&stateLayout{described: e.layout.described}).list(x.Bytes.fields, w.offset, at, p.device(rank)); err != nil {
			return nil, fmt.Errorf("bytes[%d].%w", i, err)
		}
		if len(w.bytes) == 0 {
			return nil, errors.New("bytes: none; expected hex, a file, a list of typed values or values")
		}
		writes = append(writes, w)
	}
	for _, w := range writes {
		if n := int64(len(w.bytes)); w.offset > size-n {
			return nil, fmt.Errorf("%d bytes at offset %d, but the HPU memory of %s has %d", n, w.offset, x.Of, size)
		}
	}
	return writes, nil
}

// hpuNumber resolves the write of a number of the state.
func (p *Plan) hpuNumber(e *entryPlan, rank int, v *NamedValue, at *env) (w hpuWrite, err error) {
	f, err := e.layout.field(v.Name)
	if err != nil {
		return w, err
	}
	w.offset = f.Offset
	if described := e.layout.described; described != nil {
		if _, err := described.Lookup(v.Name); err == nil { // else an unnamed field of a list
			state := make([]byte, f.Offset+f.Field.Type.Size())
			err = putNumber(state, described, v, at, p.device(rank))
			w.bytes = state[f.Offset:]
			return w, err
		}
	}
	if f.Field.Type.Float() || !v.Value.expr.IsSet() {
		return w, fmt.Errorf("%s, expected a whole number for %s: write its bytes with an offset", v.Value.text, f.Field.Type)
	}
	w.bytes, err = v.Value.encode(f.Field.Type, at)
	return w, err
}

// writeHPU executes a write_hpu step.
func (r *run) writeHPU(st *rankState, x *WriteHPU, at *env) error {
	writes, err := r.hpuWrites(st.Rank(), x, at)
	for _, w := range writes {
		if err == nil {
			err = st.HPUWrite(st.entries[x.Of].made.HPU, uint64(w.offset), w.bytes)
		}
	}
	return err
}

// waitHPU executes a wait_hpu step.
func (r *run) waitHPU(st *rankState, x *WaitHPU, at *env) error {
	in := st.entries[x.Of]
	f, err := in.plan.layout.field(x.Field)
	if err != nil {
		return err
	}
	change := len(x.list()) == 0
	var first []byte
	st.waits = waiting{text: fmt.Sprintf("%s of %s in HPU memory to be %s", f.Name, x.Of, x.wanted())}
	number := numberOf(f.Name, f.Field.Type, 0)
	_, err = st.HPUWait(in.made.HPU, uint64(f.Offset), int(f.Field.Type.Size()), func(b []byte) bool {
		st.waits.now = number.Text(b)
		if change {
			if first == nil {
				first = bytes.Clone(b)
			}
			return !bytes.Equal(first, b)
		}
		v, whole := wholeOf(number.Get(b))
		return whole && x.holds(v, "", at) == nil
	})
	return err
}

// wanted describes the expected numbers.
func (b *Bounds) wanted() string {
	var texts []string
	for _, bound := range b.list() {
		texts = append(texts, bound.words+bound.e.String())
	}
	return cmp.Or(strings.Join(texts, " and "), "another one")
}
