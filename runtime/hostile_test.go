package runtime_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// A hostile handler is installed on rank 1, to which rank 0 sends. Ranks 2 and
// 3 exchange messages whose bytes are checked, and rank 4 sends to another
// entry of rank 1.

// witness is what the ranks that have nothing to do with the handler see.
type witness struct {
	times   []sim.Time // of the events of ranks 2 and 3
	damaged int        // messages with wrong bytes
	visits  int        // of rank 4 at rank 1
}

const (
	witnessRounds = 8
	witnessBytes  = 10_000
	visitBytes    = 5000
)

// crime is a run with a hostile handler.
type crime struct {
	witness
	c      *runtime.Cluster
	events []portals.Event // of the owner
	acks   []portals.Event // of the sender
	load   error           // of the owner's attempt to install the handler
}

// suspect installs the handlers of an entry; an error means that there is no entry.
type suspect func(p *runtime.Proc) (*portals.Spin, error)

// scripted are handlers of testdata/actions.
func scripted(header, payload, completion []rec) suspect {
	return func(p *runtime.Proc) (*portals.Spin, error) {
		spin, _, err := scripts(p, header, payload, completion)
		return spin, err
	}
}

func scripts(p *runtime.Proc, header, payload, completion []rec) (*portals.Spin, *nic.Memory, error) {
	binary, err := readModule("actions/actions.wasm")
	if err != nil {
		return nil, nil, err
	}
	module, err := p.Cluster().LoadModule("actions", binary)
	if err != nil {
		return nil, nil, err
	}
	return scriptsOf(p, module, header, payload, completion)
}

// alone is a module whose export "payload" is the handler.
func alone(name string, module func() ([]byte, error)) suspect {
	return func(p *runtime.Proc) (*portals.Spin, error) {
		binary, err := module()
		if err != nil {
			return nil, err
		}
		m, err := p.Cluster().LoadModule(name, binary)
		if err != nil {
			return nil, err
		}
		memory, err := p.HPUAllocMem(m, 64)
		if err != nil {
			return nil, err
		}
		return memory.Spin("", "payload", "")
	}
}

// commit runs a suspect; nil is an innocent entry without handlers.
func commit(t *testing.T, s suspect) *crime {
	p, err := profile.Load("spin-dis", "hpu.max_cycles=20000", "hpu.max_cycles_per_byte=0", "hpu.dma_bytes=8KiB", "hpu.waiting_handlers=8",
		"hpu.node_memory=1MiB")
	require.NoError(t, err)
	k := &crime{}
	k.c, err = runtime.NewCluster(runtime.Config{Profile: p, Nodes: 5, Engine: labEngine})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, k.c.Close()) })
	require.NoError(t, k.c.Spawn(1, "owner", func(p *runtime.Proc) error { return k.owner(p, s) }))
	require.NoError(t, k.c.Spawn(0, "sender", k.sender))
	require.NoError(t, k.c.Spawn(2, "witness", func(p *runtime.Proc) error { return k.exchange(p, 3) }))
	require.NoError(t, k.c.Spawn(3, "witness", func(p *runtime.Proc) error { return k.exchange(p, 2) }))
	require.NoError(t, k.c.Spawn(4, "visitor", k.visitor))
	require.NoError(t, k.c.Run(context.Background()))
	return k
}

func (k *crime) owner(p *runtime.Proc, s suspect) error {
	ni := p.NI()
	eq, err := ni.Objects().EQAlloc(64)
	if err != nil {
		return err
	}
	for pt := range uint32(2) {
		if _, err := ni.Objects().PTAlloc(portals.OptPTFlowCtrl, eq, pt); err != nil {
			return err
		}
	}
	visited := p.Alloc(hostBytes)
	plain := portals.ME{
		Start: visited.Addr(), Length: hostBytes, UID: portals.UIDAny, MatchID: portals.AnyID,
		Options: portals.OptMEOpPut | portals.OptMEEventLinkDisable | portals.OptMEManageLocal,
	}
	if _, err := ni.MEAppend(1, &plain, portals.PriorityList, 1); err != nil {
		return err
	}
	evil := plain
	evil.Start = p.Alloc(hostBytes).Addr()
	if s != nil {
		if evil.Spin, k.load = s(p); k.load != nil {
			evil.Spin = nil
		}
	}
	if _, err := ni.MEAppend(0, &evil, portals.PriorityList, 0); err != nil {
		return err
	}
	for messages := 0; messages < 2+3; {
		ev, err := ni.EQWait(eq)
		if err != nil {
			return err
		}
		switch {
		case ev.Type == portals.EventPutOverflow || ev.Type == portals.EventPut && ev.UserPtr == 1:
			messages++
			at := int(ev.Start - visited.Addr())
			if !bytes.Equal(visited.Slice(at, at+int(ev.MLength)).Read(), pattern(visitBytes, 9)) {
				k.damaged++
			}
			k.visits++
			continue
		case ev.Type == portals.EventPut:
			messages++
		}
		k.events = append(k.events, ev)
		if ev.Type == portals.EventPTDisabled {
			if err := ni.Objects().PTEnable(ev.PTIndex); err != nil {
				return err
			}
		}
	}
	return nil
}

// sender sends a message, waits for its fate, and sends another.
func (k *crime) sender(p *runtime.Proc) error {
	ni := p.NI()
	eq, err := ni.Objects().EQAlloc(64)
	if err != nil {
		return err
	}
	data := p.Alloc(6000)
	copy(data.Raw(), pattern(6000, 1))
	md, err := ni.Objects().MDBind(&portals.MD{Start: data.Addr(), Length: 6000, EQ: eq, Options: portals.OptMDEventSendDisable})
	if err != nil {
		return err
	}
	for range 2 {
		if err := ni.Put(portals.Put{MD: md, Length: 6000, Ack: portals.Ack, Target: portals.PhysID(1, 0)}); err != nil {
			return err
		}
		ev, err := ni.EQWait(eq)
		if err != nil {
			return err
		}
		k.acks = append(k.acks, ev)
	}
	return nil
}

// exchange sends messages to a peer and checks what it sends, in turn.
func (k *crime) exchange(p *runtime.Proc, peer uint32) error {
	ni := p.NI()
	eq, err := ni.Objects().EQAlloc(64)
	if err != nil {
		return err
	}
	if _, err := ni.Objects().PTAlloc(0, eq, 0); err != nil {
		return err
	}
	inbox := p.Alloc(witnessBytes)
	if _, err := ni.MEAppend(0, &portals.ME{
		Start: inbox.Addr(), Length: witnessBytes, UID: portals.UIDAny, MatchID: portals.AnyID,
		Options: portals.OptMEOpPut | portals.OptMEEventLinkDisable,
	}, portals.PriorityList, 0); err != nil {
		return err
	}
	data := p.Alloc(witnessBytes)
	md, err := ni.Objects().MDBind(&portals.MD{Start: data.Addr(), Length: witnessBytes, EQ: portals.EQNone})
	if err != nil {
		return err
	}
	for i := range witnessRounds {
		if p.Rank() == 2 || i > 0 {
			data.CopyFrom(pattern(witnessBytes, byte(i)))
			if err := ni.Put(portals.Put{MD: md, Length: witnessBytes, Target: portals.PhysID(peer, 0)}); err != nil {
				return err
			}
		}
		if p.Rank() == 2 && i == witnessRounds-1 {
			return nil
		}
		if _, err := ni.EQWait(eq); err != nil {
			return err
		}
		k.times = append(k.times, p.Now())
		if want := i + p.Rank() - 2; p.Rank() == 3 && !bytes.Equal(inbox.Read(), pattern(witnessBytes, byte(i))) ||
			p.Rank() == 2 && !bytes.Equal(inbox.Read(), pattern(witnessBytes, byte(want+1))) {
			k.damaged++
		}
	}
	return nil
}

func (k *crime) visitor(p *runtime.Proc) error {
	ni := p.NI()
	data := p.Alloc(visitBytes)
	copy(data.Raw(), pattern(visitBytes, 9))
	md, err := ni.Objects().MDBind(&portals.MD{Start: data.Addr(), Length: visitBytes, EQ: portals.EQNone})
	if err != nil {
		return err
	}
	for range 3 {
		if err := ni.Put(portals.Put{MD: md, Length: visitBytes, Target: portals.PhysID(1, 0), PT: 1}); err != nil {
			return err
		}
		p.Sleep(sim.Microsecond)
	}
	return nil
}

// verdict is what a hostile handler is to lead to.
type verdict struct {
	name    string
	suspect suspect
	load    []string         // parts of the error at installation; then there is no handler
	fail    portals.FailType // of the owner's event
	disable bool             // flow control
	handler string           // that is to blame
	causes  []string         // parts of the handler's error
}

// Whatever the handler does, it is reported once for each message, to its
// owner, its sender and the person who debugs; nobody else notices, to the
// picosecond.
func TestHostileHandlers(t *testing.T) {
	innocent := commit(t, nil)
	require.Zero(t, innocent.damaged)
	require.Len(t, innocent.times, 2*witnessRounds-1)
	for _, v := range slices.Concat(hostileCode(), hostilePointers(), hostileRecords()) {
		t.Run(v.name, func(t *testing.T) {
			k := commit(t, v.suspect)
			require.Equal(t, innocent.times, k.times, "ranks 2 and 3")
			require.Zero(t, k.damaged)
			require.Equal(t, 3, k.visits)
			errs, n := k.c.HandlerErrors()
			if v.load != nil {
				require.Error(t, k.load)
				for _, part := range v.load {
					require.ErrorContains(t, k.load, part)
				}
				require.Zero(t, n)
				return
			}
			require.NoError(t, k.load)
			checkBlame(t, k, &v, errs, n)
		})
	}
}

func checkBlame(t *testing.T, k *crime, v *verdict, errs []nic.HandlerError, n int) {
	var puts, disabled int
	for _, ev := range k.events {
		switch ev.Type {
		case portals.EventPut:
			puts++
			require.Equal(t, v.fail, ev.Fail)
		case portals.EventPTDisabled:
			disabled++
		}
	}
	require.Equal(t, 2, puts, "one event for each message")
	for _, ack := range k.acks {
		require.Equal(t, v.fail, ack.Fail)
	}
	if v.disable {
		require.Equal(t, 2, disabled, "PTEnable lets the second message in, which is punished likewise")
	} else {
		require.Zero(t, disabled)
	}
	if v.fail == portals.NIOK {
		require.Zero(t, n, "%v", errs)
		return
	}
	require.GreaterOrEqual(t, n, 2)
	for _, e := range errs {
		require.Equal(t, 1, e.Rank)
		require.Equal(t, v.handler, e.Handler)
		for _, part := range append(v.causes, "rank 1 at ", v.handler+" handler of ") {
			require.ErrorContains(t, e, part)
		}
	}
}

// hostileCode are handlers and modules that are bad by themselves.
func hostileCode() []verdict {
	ok := []rec{end(hpu.ProcessData)}
	payload := func(s ...rec) suspect { return scripted(nil, s, nil) }
	bad := func(name string, causes ...string) verdict {
		path := "hostile/" + name + ".wasm"
		return verdict{name: name, suspect: alone(name, func() ([]byte, error) { return readModule(path) }), load: append(causes, name)}
	}
	list := []verdict{
		{name: "endless loop", suspect: payload(also(opForever)), fail: portals.NIDropped, disable: true, handler: "payload", causes: []string{"module actions", "function run", "budget"}},
		{name: "endless loop in the header handler", suspect: scripted([]rec{also(opForever)}, nil, nil), fail: portals.NIDropped, disable: true, handler: "header", causes: []string{"budget"}},
		{name: "endless loop in the completion handler", suspect: scripted(ok, nil, []rec{also(opForever)}), fail: portals.NIDropped, disable: true, handler: "completion", causes: []string{"budget"}},
		{name: "endless recursion", suspect: payload(also(opRecurse)), fail: portals.NIDropped, handler: "payload", causes: []string{"module actions", "function recurse", "call depth exceeded"}},
		{name: "trap", suspect: payload(also(opTrap)), fail: portals.NIDropped, handler: "payload", causes: []string{"unreachable"}},
		{name: "load from outside", suspect: payload(also(opLoad, math.MaxUint32)), fail: portals.NISegv, handler: "payload", causes: []string{"out of bounds memory access"}},
		{name: "copy to outside", suspect: payload(also(opCopy, 1<<31, 0, 1<<12)), fail: portals.NISegv, handler: "payload", causes: []string{"out of bounds memory access"}},
		{name: "FAIL", suspect: payload(end(hpu.Fail)), fail: portals.NIDropped, handler: "payload", causes: []string{"returned FAIL"}},
		{name: "SEGV", suspect: payload(end(hpu.Segv)), fail: portals.NISegv, handler: "payload", causes: []string{"returned SEGV"}},
		{name: "fills the bus", suspect: payload(slices.Concat(slices.Repeat([]rec{do(hpu.OpDMAToHostNB, 0, 0, hpuBase, 4096)}, 20), []rec{
			do(hpu.OpDMAToHost, 0, 0, hpuBase, 60_000), end(hpu.Success),
		})...), fail: portals.NIOK},
		{name: "takes all memory", suspect: greedy, load: []string{"hpu.node_memory", "NO_SPACE"}},
		{name: "never reads what it writes", suspect: payload(do(hpu.OpDMAToHostNB, 0, 0, 0, 4096), end(hpu.Success)), fail: portals.NIOK},
		bad("grow", "memory.grow", "function payload", "offset"),
		bad("memory4g", "memory"),
		bad("data", "data segment"),
		bad("element", "element segment"),
		bad("start", "unreachable", "function begin"),
		bad("initialize", "ct_inc", "not allowed"),
		bad("missing", "no handler payload", "exports header"),
		bad("signature", "signature of a handler"),
		bad("import", "wasi_snapshot_preview1"),
		bad("nomemory", "memory"),
		{name: "1 MB of code", suspect: alone("large", func() ([]byte, error) { return generated(1, 1<<20), nil }), load: []string{"large", "code"}},
		{name: "100,000 functions", suspect: alone("many", func() ([]byte, error) { return generated(100_000, 1), nil }), load: []string{"many", "functions"}},
		{name: "no module", suspect: alone("noise", func() ([]byte, error) { return pattern(4000, 0), nil }), load: []string{"noise"}},
		{name: "empty module", suspect: alone("empty", func() ([]byte, error) { return nil, nil }), load: []string{"empty"}},
	}
	for _, c := range []struct {
		kind  string
		codes []hpu.Code
	}{
		{"header", []hpu.Code{hpu.Success, hpu.SuccessPending, 8, -3, math.MaxInt32, math.MinInt32}},
		{"payload", []hpu.Code{hpu.SuccessPending, hpu.DropPending, hpu.ProcessData, hpu.Proceed, 99}},
		{"completion", []hpu.Code{hpu.Drop, hpu.ProcessData, hpu.ProceedPending, -99}},
	} {
		for _, code := range c.codes {
			scripts := map[string][]rec{"header": ok}
			scripts[c.kind] = []rec{end(code)}
			list = append(list, verdict{
				name: fmt.Sprintf("code %d of a %s handler", code, c.kind), suspect: scripted(scripts["header"], scripts["payload"], scripts["completion"]),
				fail: portals.NIDropped, handler: c.kind, causes: []string{fmt.Sprintf("returned %d, which is no return code of a %s handler", code, c.kind)},
			})
		}
	}
	return list
}

// hostilePointers are all address arguments of all imports, just outside of the
// memory and far outside.
func hostilePointers() (list []verdict) {
	for _, c := range []struct {
		op   hpu.Op
		size uint64 // that must be within the memory
		args []uint64
		at   int // argument that is the address
	}{
		{hpu.OpDMAToHost, 16, []uint64{0, 0, 0, 16}, 2},
		{hpu.OpDMAFromHost, 16, []uint64{0, 0, 0, 16}, 2},
		{hpu.OpDMAToHostNB, 16, []uint64{0, 0, 0, 16}, 2},
		{hpu.OpDMAFromHostNB, 16, []uint64{0, 0, 0, 16}, 2},
		{hpu.OpDMACAS, 8, []uint64{0, 0, 0, 0, 0}, 4},
		{hpu.OpDMACASNB, 8, []uint64{0, 0, 0, 0, 0}, 4},
		{hpu.OpDMAFAdd, 8, []uint64{0, 0, 0, 0}, 3},
		{hpu.OpDMAFAddNB, 8, []uint64{0, 0, 0, 0}, 3},
		{hpu.OpCAS, 8, []uint64{0, 0, 0}, 0},
		{hpu.OpFAdd, 8, []uint64{0, 0}, 0},
		{hpu.OpPutFromHost, hpu.OperationSize, []uint64{0}, 0},
		{hpu.OpPutFromDevice, hpu.OperationSize, []uint64{0}, 0},
		{hpu.OpGetFromHost, hpu.OperationSize, []uint64{0}, 0},
		{hpu.OpGetFromDevice, hpu.OperationSize, []uint64{0}, 0},
		{hpu.OpAtomicFromHost, hpu.OperationSize, []uint64{0}, 0},
		{hpu.OpAtomicFromDevice, hpu.OperationSize, []uint64{0}, 0},
		{hpu.OpCTGet, 16, []uint64{0, 0}, 1},
		{hpu.OpTimer, hpu.OperationSize, []uint64{0, 0}, 1},
		{hpu.OpToSelf, hpu.OperationSize, []uint64{0}, 0},
		{hpu.OpLog, 16, []uint64{0, 16}, 0},
	} {
		for _, address := range []uint64{actionsMemory - c.size + 8, math.MaxUint32 - 7} {
			args := append([]uint64(nil), c.args...)
			args[c.at] = address
			list = append(list, verdict{
				name: fmt.Sprintf("%v at %#x", c.op, address), suspect: scripted(nil, []rec{do(c.op, args...), end(hpu.Success)}, nil),
				fail: portals.NISegv, handler: "payload", causes: []string{c.op.String() + ": out of bounds", fmt.Sprintf("%#x", address)},
			})
		}
	}
	for _, c := range []hpu.Op{hpu.OpCAS, hpu.OpFAdd} {
		list = append(list, verdict{
			name: c.String() + " misaligned", suspect: scripted(nil, []rec{do(c, scratch+4, 0, 0), end(hpu.Success)}, nil),
			fail: portals.NISegv, handler: "payload", causes: []string{"misaligned"},
		})
	}
	return list
}

// hostileRecords are addresses in operation records, and lengths that wrap.
func hostileRecords() (list []verdict) {
	const op = operations
	for _, c := range []struct {
		op    hpu.Op
		field uint64 // offset in the record
		clear int    // bits of the field behind it in the same word
		what  string
	}{
		{hpu.OpPutFromDevice, 0, 0, "op.local"},
		{hpu.OpGetFromDevice, 0, 0, "op.local"},
		{hpu.OpAtomicFromDevice, 0, 0, "op.local"},
		{hpu.OpToSelf, 0, 0, "op.local"},
		{hpu.OpTimer, 0, 0, "op.local"},
		{hpu.OpPutFromDevice, 16, 0, "op.local"},
		{hpu.OpTimer, 16, 0, "op.local"},
		{hpu.OpAtomicFromDevice, 88, 32, "op.operand"},
		{hpu.OpAtomicFromDevice, 92, 0, "op.fetch"},
		{hpu.OpAtomicFromHost, 88, 32, "op.operand"},
		{hpu.OpPutFromDevice, 104, 0, "op.user_hdr"},
		{hpu.OpToSelf, 108, 0, "op.user_hdr"},
	} {
		args := []uint64{op}
		if c.op == hpu.OpTimer {
			args = []uint64{1, op}
		}
		list = append(list, verdict{
			name: fmt.Sprintf("%v with %s at %d", c.op, c.what, c.field),
			suspect: scripted(nil, []rec{
				also(opStore, op+16, 8), also(opStore, op+(c.field&^7), math.MaxUint64<<(c.field%8*8)>>c.clear), do(c.op, args...), end(hpu.Success),
			}, nil),
			fail: portals.NISegv, handler: "payload", causes: []string{c.op.String() + ": out of bounds", c.what},
		})
	}
	return list
}

// generated is a module of n functions with so many instructions each, the last
// of which is the handler.
func generated(n, instructions int) []byte {
	leb := func(v int) []byte { return binary.AppendUvarint(nil, uint64(v)) }
	section := func(id byte, content ...[]byte) []byte {
		c := bytes.Join(content, nil)
		return append(append([]byte{id}, leb(len(c))...), c...)
	}
	body := append([]byte{0}, bytes.Repeat([]byte{1}, instructions)...) // no locals; nop
	body = append(body, 0x41, 0, 0x0b)                                  // i32.const 0, end
	body = append(leb(len(body)), body...)
	return bytes.Join([][]byte{
		[]byte("\x00asm\x01\x00\x00\x00"),
		section(1, []byte{1, 0x60, 2, 0x7f, 0x7f, 1, 0x7f}),
		section(3, leb(n), make([]byte, n)),
		section(5, []byte{1, 0, 1}),
		section(7, []byte{2}, []byte("\x06memory\x02\x00"), []byte("\x07payload\x00"), leb(n-1)),
		section(10, leb(n), bytes.Repeat(body, n)),
	}, nil)
}
