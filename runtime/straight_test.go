package runtime_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// asked is a call of an import with constants.
type asked struct {
	op   hpu.Op
	args []int64
}

// straight is a module whose handlers call imports, one after the other, and
// return what lets a message go on. Its memory has a page, in which the bytes
// from 0 on count up; HPU memory follows it.
func straight(handlers map[string][]asked) []byte {
	leb := func(b []byte, v int64) []byte {
		for ; v < -64 || v > 63; v >>= 7 {
			b = append(b, byte(v)|0x80)
		}
		return append(b, byte(v)&0x7F)
	}
	vec := func(items [][]byte) []byte {
		return append(binary.AppendUvarint(nil, uint64(len(items))), bytes.Join(items, nil)...)
	}
	section := func(id byte, content []byte) []byte {
		return append(binary.AppendUvarint([]byte{id}, uint64(len(content))), content...)
	}
	wasmType := map[byte]byte{'i': 0x7F, 'I': 0x7E}
	types, imports := [][]byte{{0x60, 2, 0x7F, 0x7F, 1, 0x7F}}, [][]byte(nil)
	index, params, result := map[hpu.Op]byte{}, map[hpu.Op]string{}, map[hpu.Op]string{}
	for _, x := range importCalls {
		if _, known := index[x.op]; known {
			continue
		}
		t := []byte{0x60, byte(len(x.params))}
		for i := range x.params {
			t = append(t, wasmType[x.params[i]])
		}
		t = append(t, byte(len(x.result)))
		if x.result != "" {
			t = append(t, wasmType[x.result[0]])
		}
		index[x.op], params[x.op], result[x.op] = byte(len(imports)), x.params, x.result
		name := x.op.String()
		imports = append(imports, append(append(append([]byte("\x04spin"), byte(len(name))), name...), 0, byte(len(types))))
		types = append(types, t)
	}
	exports, funcs, codes := [][]byte{append([]byte("\x06memory"), 2, 0)}, [][]byte(nil), [][]byte(nil)
	for i, name := range []string{"header", "payload", "completion"} {
		code := []byte{0}
		for _, a := range handlers[name] {
			for k, v := range a.args {
				code = leb(append(code, map[byte]byte{'i': 0x41, 'I': 0x42}[params[a.op][k]]), v)
			}
			if code = append(code, 0x10, index[a.op]); result[a.op] != "" {
				code = append(code, 0x1A)
			}
		}
		code = append(leb(append(code, 0x41), []int64{int64(hpu.ProcessData), 0, 0}[i]), 0x0B)
		codes = append(codes, append(binary.AppendUvarint(nil, uint64(len(code))), code...))
		funcs = append(funcs, []byte{0})
		exports = append(exports, append(append([]byte{byte(len(name))}, name...), 0, byte(len(imports)+i)))
	}
	data := pattern(4096, 0)
	segment := append(binary.AppendUvarint([]byte{0, 0x41, 0, 0x0B}, uint64(len(data))), data...)
	return bytes.Join([][]byte{
		[]byte("\x00asm\x01\x00\x00\x00"), section(1, vec(types)), section(2, vec(imports)), section(3, vec(funcs)), section(5, []byte{1, 0, 1}),
		section(7, vec(exports)), section(10, vec(codes)), section(11, vec([][]byte{segment})),
	}, nil)
}

// straightRun is a device at rank 1 with one entry, to which rank 0 sends.
type straightRun struct {
	*testing.T
	handlers  map[string][]asked
	overrides []string
	bytes     int // of a message
	messages  int
	setup     func(m *nic.Memory, s *portals.Spin)
	target    func(p *runtime.Proc, m *nic.Memory) error
	cfg       func(*runtime.Config)
	until     sim.Time             // 0: to the end
	options   portals.EntryOptions // of the entry

	prof   *profile.Profile
	c      *runtime.Cluster
	memory *nic.Memory
	host   runtime.View
	steps  []step
	events []portals.Event
	err    error
}

// hpuMemory is HPU memory of a straightRun, bytes.
const hpuMemory = 4096

// Trace collects the events of rank 1.
func (r *straightRun) Trace(ni *portals.NI, t *portals.TraceRecord) {
	if id, err := ni.PhysID(); err == nil && t.What == portals.TraceEvent && id.NID == 1 {
		r.events = append(r.events, *t.Event)
	}
}

func (r *straightRun) run() *straightRun {
	var err error
	r.prof, err = profile.Load("spin-dis", append([]string{"fabric.kind=crossbar", "fabric.radix=0"}, r.overrides...)...)
	require.NoError(r, err)
	cfg := runtime.Config{Profile: r.prof, Nodes: 2, Engine: labEngine, Explain: r, Watch: func(h *nic.HandlerStep) {
		k := step{HandlerStep: *h}
		if h.Action != nil {
			k.act = *h.Action
		}
		r.steps = append(r.steps, k)
	}}
	if r.cfg != nil {
		r.cfg(&cfg)
	}
	r.c, err = runtime.NewCluster(cfg)
	require.NoError(r, err)
	r.Cleanup(func() { require.NoError(r, r.c.Close()) })
	require.NoError(r, r.c.Spawn(1, "target", r.install))
	require.NoError(r, r.c.Spawn(0, "source", func(p *runtime.Proc) error {
		ni := p.NI()
		data := p.Alloc(max(r.bytes, 1))
		copy(data.Raw(), pattern(r.bytes, 1))
		md, err := ni.Objects().MDBind(&portals.MD{Start: data.Addr(), Length: uint64(data.Len())})
		for range max(1, r.messages) {
			if err == nil {
				err = ni.Put(portals.Put{MD: md, Length: uint64(r.bytes), Target: portals.PhysID(1, 0)})
			}
		}
		return err
	}))
	if r.until > 0 {
		r.err = r.c.RunUntil(r.until)
		return r
	}
	r.err = r.c.Run(context.Background())
	return r
}

func (r *straightRun) install(p *runtime.Proc) error {
	m, err := r.c.LoadModule("straight", straight(r.handlers))
	if err != nil {
		return err
	}
	if r.memory, err = p.HPUAllocMem(m, hpuMemory); err != nil {
		return err
	}
	var names [3]string
	for i, kind := range []string{"header", "payload", "completion"} {
		if r.handlers[kind] != nil {
			names[i] = kind
		}
	}
	spin, err := r.memory.Spin(names[0], names[1], names[2])
	if err != nil {
		return err
	}
	if r.setup != nil {
		r.setup(r.memory, spin)
	}
	ni := p.NI()
	eq, err := ni.Objects().EQAlloc(64)
	if err != nil {
		return err
	}
	if _, err := ni.Objects().PTAlloc(portals.OptPTFlowCtrl, eq, 0); err != nil {
		return err
	}
	r.host = p.Alloc(1 << 16)
	if _, err := ni.MEAppend(0, &portals.ME{
		Start: r.host.Addr(), Length: 1 << 16, UID: portals.UIDAny, MatchID: portals.AnyID, Options: portals.OptMEOpPut | r.options, Spin: spin,
	}, portals.PriorityList, 0); err != nil {
		return err
	}
	if r.target != nil {
		return r.target(p, r.memory)
	}
	return nil
}

// of are the steps of a kind, of one operation if op is not OpNone, and of one kind of handlers.
func (r *straightRun) of(what nic.StepKind, op hpu.Op, handler string) (found []step) {
	for _, s := range r.steps {
		if s.What == what && (op == hpu.OpNone || s.Op == op) && (handler == "" || s.Handler == handler) {
			found = append(found, s)
		}
	}
	return found
}
