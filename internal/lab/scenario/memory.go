package scenario

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/internal/manifest"
	"github.com/spinsim/spinsim/internal/memory"
	"github.com/spinsim/spinsim/portals"
)

// on returns the environment of a rank.
func (p *Plan) on(rank int) *env { return p.env.with(varRank, int64(rank)) }

// hostMemory is the suffix of the name of an entry's handler host memory. The
// name of the entry comes before it.
const hostMemory = ".host_memory"

// sizeOf returns the size of an entry's or a buffer's memory on a rank.
func (p *Plan) sizeOf(rank int, name string) (int64, error) {
	entry, isHost := strings.CutSuffix(name, hostMemory)
	if e := p.entry(entry); e != nil && (!isHost || e.handlers != nil) {
		if e.on[rank] && isHost {
			_, n, err := p.handlerMemory(e, rank)
			return n, err
		}
		if !e.on[rank] {
			return 0, fmt.Errorf("entry %s is not on rank %d", name, rank)
		}
		return e.size(p.on(rank))
	}
	if g := p.programOf[rank]; g != nil {
		for i := range g.Buffers {
			if b := &g.Buffers[i]; b.Name == name {
				return b.size(p.on(rank))
			}
		}
	}
	return 0, fmt.Errorf("rank %d has no entry and no buffer %s", rank, name)
}

// size returns the length of an entry. The default is the length of its
// content.
func (e *entryPlan) size(at *env) (int64, error) {
	n, err := e.Fill.size(e.Length, at)
	if err != nil {
		return 0, fmt.Errorf("length: %w", err)
	}
	return n, nil
}

func (b *Buffer) size(at *env) (int64, error) {
	n, err := b.Fill.size(b.Bytes, at)
	if err != nil {
		return 0, fmt.Errorf("bytes: %w", err)
	}
	return n, nil
}

// size returns the given size, or else the size of the content.
func (c *Content) size(given Expr, at *env) (int64, error) {
	own, err := c.make(at, source{})
	if err != nil {
		return 0, err
	}
	return given.int(at, int64(len(own)), 0, maxBytes)
}

// span is a range of a memory.
type span struct {
	of       string // entry or buffer; the path of a step, for the step's own memory
	off, len int64
}

// spanOf resolves a range of a memory. By default it extends to the end.
func (p *Plan) spanOf(rank int, of string, offset, bytes Expr, at *env) (s span, err error) {
	size, err := p.sizeOf(rank, of)
	if err != nil {
		return s, err
	}
	s.of = of
	if s.off, err = offset.int(at, 0, 0, size); err != nil {
		return s, fmt.Errorf("offset in %s: %w", of, err)
	}
	if s.len, err = bytes.int(at, size-s.off, 0, maxBytes); err == nil && s.len > size-s.off {
		err = fmt.Errorf("%d at offset %d, but %s has %d bytes", s.len, s.off, of, size)
	}
	if err != nil {
		return s, fmt.Errorf("bytes: %w", err)
	}
	return s, nil
}

// operand resolves the memory that an operation reads or writes: a named one,
// or the step's own, which is as large as the operation needs.
func (p *Plan) operand(rank int, path, of string, offset, bytes Expr, fill *Content, at *env) (span, error) {
	if of != "" {
		if fill.IsSet() {
			return span{}, fmt.Errorf("fill and %s: the bytes are either those of a memory or of the step's own", of)
		}
		return p.spanOf(rank, of, offset, bytes, at)
	}
	if offset.IsSet() {
		return span{}, errors.New("offset without a memory that it is in")
	}
	n, err := fill.size(bytes, p.on(rank))
	if err != nil {
		return span{}, fmt.Errorf("bytes: %w", err)
	}
	return span{of: path, len: n}, nil
}

// address is the destination of a request.
type address struct {
	to     int
	pt     uint32
	bits   uint64
	remote uint64
}

// id returns the process of the rank.
func (a *address) id() portals.ID { return portals.PhysID(uint32(a.to), 0) }

// addresses resolves the targets of an operation.
func (p *Plan) addresses(t *Target, at *env) ([]address, error) {
	ranks, err := t.To.list(at)
	if err != nil {
		return nil, fmt.Errorf("to: %w", err)
	}
	list := make([]address, len(ranks))
	for i, to := range ranks {
		a := &list[i]
		a.to = to
		var pt int64
		if t.Entry != "" {
			e := p.entry(t.Entry)
			switch {
			case e == nil:
				return nil, fmt.Errorf("entry: there is no entry %s", t.Entry)
			case !e.on[to]:
				return nil, fmt.Errorf("entry: %s is not on rank %d", t.Entry, to)
			}
			if pt, a.bits, err = p.criteria(e, to); err != nil {
				return nil, err
			}
		}
		if pt, err = t.PT.int(at, pt, 0, int64(p.profile.Limits.MaxPTIndex)); err != nil {
			return nil, fmt.Errorf("pt: %w", err)
		}
		a.pt = uint32(pt)
		if t.MatchBits.IsSet() {
			if a.bits, err = t.MatchBits.u64(at); err != nil {
				return nil, fmt.Errorf("match_bits: %w", err)
			}
		}
		if a.remote, err = t.RemoteOffset.u64(at); err != nil {
			return nil, fmt.Errorf("remote_offset: %w", err)
		}
	}
	return list, nil
}

// criteria returns the portal table index and match bits of an entry on a rank.
func (p *Plan) criteria(e *entryPlan, rank int) (pt int64, bits uint64, err error) {
	at := p.on(rank)
	if pt, err = e.PT.int(at, 0, 0, int64(p.profile.Limits.MaxPTIndex)); err != nil {
		return 0, 0, fmt.Errorf("pt: %w", err)
	}
	if bits, err = e.MatchBits.u64(at); err != nil {
		return 0, 0, fmt.Errorf("match_bits: %w", err)
	}
	return pt, bits, nil
}

// device returns the device of a rank as manifests see it.
func (p *Plan) device(rank int) *manifest.Device { return handlers.DeviceOf(p.profile, rank, p.ranks) }

// state returns the size and the initial contents of an entry's HPU memory on a
// rank.
func (p *Plan) state(e *entryPlan, rank int) (size int64, initial []byte, err error) {
	h := e.Handlers
	at, device := p.on(rank), p.device(rank)
	needed, err := e.handlers.Memory(device)
	most := p.profile.HPU.MaxHPUMemory
	if err == nil && needed > most {
		err = fmt.Errorf("hpu_memory: the handlers of %s need %d bytes, the device has at most %d (hpu.max_hpu_memory)", h.Module, needed, most)
	}
	if err != nil {
		return 0, nil, err
	}
	src := p.stream(rank, "state of "+e.Name)
	if h.State.kind == contentNone || h.State.kind == contentValues {
		initial, err = e.handlers.Initial(nil, device)
	} else {
		initial, err = h.State.make(at, src)
	}
	if err != nil {
		return 0, nil, fmt.Errorf("state%w", err)
	}
	for i := range h.State.values {
		v := &h.State.values[i]
		if err := putNumber(initial, e.layout.described, v, at, device); err != nil {
			return 0, nil, fmt.Errorf("state.values.%s: %w", v.Name, err)
		}
	}
	size, err = h.HPUMemory.int(at, max(needed, int64(len(initial))), 0, most)
	if err != nil {
		return 0, nil, fmt.Errorf("hpu_memory: %w", err)
	}
	if h.State.kind == contentPattern {
		initial = memory.Make[byte](size)
		src.fill(initial)
	}
	switch most := int64(p.profile.Limits.MaxInitialState); {
	case needed > size:
		return 0, nil, fmt.Errorf("hpu_memory: %d bytes, but the handlers of %s need %d", size, h.Module, needed)
	case int64(len(initial)) > size:
		return 0, nil, fmt.Errorf("state: %d bytes, which do not fit in %d bytes of HPU memory", len(initial), size)
	case int64(len(initial)) > most:
		return 0, nil, fmt.Errorf("state: %d bytes, the device takes at most %d (limits.max_initial_state)", len(initial), most)
	}
	return size, initial, nil
}

// putNumber writes a number into the bytes of a state.
func putNumber(b []byte, s *manifest.State, v *NamedValue, at *env, device *manifest.Device) error {
	n, err := s.Lookup(v.Name)
	if err != nil {
		return err
	}
	if n.Field.Type.Float() {
		x, err := v.Value.eval(at, n.Field.Type)
		if err != nil {
			return err
		}
		return n.Put(b, x, device)
	}
	n.Name = v.Value.expr.String()
	x, err := v.Value.expr.Value(at.of)
	if err != nil {
		return fmt.Errorf("%s: %w", n.Name, err)
	}
	return n.Put(b, x, device)
}
