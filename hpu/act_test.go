package hpu

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// importProgram has every import as a handler; its device remembers the action,
// answers with result and blocks as told.
type importProgram struct {
	p      *Program
	got    Action
	acts   int
	result int64
	block  bool
}

func newImportProgram(t testing.TB, e Engine) *importProgram {
	x := &importProgram{}
	x.p = programOn(t, e, importsWasm, testSpec(), x)
	return x
}

func (x *importProgram) Act(_ *Context, a *Action) (int64, bool) {
	x.got, x.acts = *a, x.acts+1
	return x.result, x.block
}

// call calls an import with arguments.
func (x *importProgram) call(t testing.TB, op Op, args ...uint64) Outcome {
	c := x.p.Context(2)
	for i, v := range args {
		le.PutUint64(x.p.Memory()[int(c.ArgsAddr())+8*i:], v)
	}
	x.got = Action{}
	f := handler(t, x.p, op.String())
	require.Equal(t, op.MayBlock(), f.MaySuspend())
	require.Equal(t, Done, c.Start(f, c.ArgsAddr(), 0, 1e6))
	return c.Outcome()
}

// TestActions reads docs/abi.md, Imports, line by line: which argument goes where.
func TestActions(t *testing.T) {
	const addr, odd = 0x1000, 0x1003
	onEngines(t, func(t *testing.T, e Engine) {
		x := newImportProgram(t, e)
		x.result = -3
		for _, w := range []struct {
			args []uint64
			want Action
		}{
			{[]uint64{1, 1 << 40, odd, 77}, Action{Op: OpDMAToHost, Space: 1, Offset: 1 << 40, Local: odd, Len: 77}},
			{[]uint64{1, 1 << 40, odd, 77}, Action{Op: OpDMAFromHost, Space: 1, Offset: 1 << 40, Local: odd, Len: 77}},
			{[]uint64{1, 1 << 40, odd, 77}, Action{Op: OpDMAToHostNB, Space: 1, Offset: 1 << 40, Local: odd, Len: 77}},
			{[]uint64{1, 1 << 40, odd, 77}, Action{Op: OpDMAFromHostNB, Space: 1, Offset: 1 << 40, Local: odd, Len: 77}},
			{[]uint64{1, 2, 1 << 63, 4, odd}, Action{Op: OpDMACAS, Space: 1, Offset: 2, A: 1 << 63, B: 4, Local: odd}},
			{[]uint64{1, 2, 1 << 63, 4, odd}, Action{Op: OpDMACASNB, Space: 1, Offset: 2, A: 1 << 63, B: 4, Local: odd}},
			{[]uint64{1, 2, 1 << 63, odd}, Action{Op: OpDMAFAdd, Space: 1, Offset: 2, A: 1 << 63, Local: odd}},
			{[]uint64{1, 2, 1 << 63, odd}, Action{Op: OpDMAFAddNB, Space: 1, Offset: 2, A: 1 << 63, Local: odd}},
			{[]uint64{5}, Action{Op: OpDMATest, A: 5}},
			{[]uint64{5}, Action{Op: OpDMAWait, A: 5}},
			{nil, Action{Op: OpYield}},
			{[]uint64{9, addr}, Action{Op: OpCTGet, CT: 9, Local: addr}},
			{[]uint64{9, 1 << 62, 3}, Action{Op: OpCTSet, CT: 9, A: 1 << 62, B: 3}},
			{[]uint64{9, 1 << 62, 3}, Action{Op: OpCTInc, CT: 9, A: 1 << 62, B: 3}},
			{[]uint64{4}, Action{Op: OpAck, A: 4}},
			{[]uint64{odd, 6}, Action{Op: OpLog, Local: odd, Len: 6, A: 6}},
			{[]uint64{odd, 1025}, Action{Op: OpLog, Local: odd, Len: MaxLogBytes, A: 1025}},
		} {
			out := x.call(t, w.want.Op, w.args...)
			require.Nil(t, out.Err)
			got := x.got
			require.Positive(t, got.Cycles)
			got.Cycles = 0
			require.Equal(t, w.want, got)
			if w.want.Op != OpYield && w.want.Op != OpLog {
				require.Equal(t, Code(-3), out.Code, w.want.Op)
			}
		}
	})
}

// operationFields has every field of the operation record filled with other
// bytes, at the offsets of docs/abi.md.
func operationFields(b []byte) Operation {
	le.PutUint32(b[0:], 0x1000)
	le.PutUint32(b[4:], 0x11)
	le.PutUint64(b[8:], 0x1122334455667788)
	le.PutUint64(b[16:], 40)
	le.PutUint32(b[24:], 0x33)
	le.PutUint32(b[28:], 0x44)
	le.PutUint32(b[32:], 0x55)
	le.PutUint32(b[36:], 0x66)
	le.PutUint64(b[40:], 0x7700000000000001)
	le.PutUint64(b[48:], 0x8800000000000002)
	le.PutUint64(b[56:], 0x9900000000000003)
	le.PutUint64(b[64:], 0xAA00000000000004)
	le.PutUint32(b[72:], 0xBB)
	le.PutUint32(b[76:], 0xCC)
	le.PutUint32(b[80:], 0xDD)
	le.PutUint32(b[84:], 0xEE)
	le.PutUint32(b[88:], 0x2000)
	le.PutUint32(b[92:], 0x3000)
	le.PutUint64(b[96:], 0xFF00000000000005)
	le.PutUint32(b[104:], 0x4000)
	le.PutUint32(b[108:], 24)
	return Operation{
		Local: 0x1000, Space: 0x11, Offset: 0x1122334455667788, Length: 40, TargetNID: 0x33, TargetPID: 0x44, PTIndex: 0x55,
		AckReq: 0x66, MatchBits: 0x7700000000000001, RemoteOffset: 0x8800000000000002, HdrData: 0x9900000000000003,
		UserPtr: 0xAA00000000000004, MD: 0xBB, Options: 0xCC, AtomicOp: 0xDD, Datatype: 0xEE, Operand: 0x2000, Fetch: 0x3000,
		FetchOffset: 0xFF00000000000005, UserHdr: 0x4000, UserHdrLen: 24,
	}
}

var operations = []Op{
	OpPutFromHost, OpPutFromDevice, OpGetFromHost, OpGetFromDevice, OpAtomicFromHost, OpAtomicFromDevice, OpTimer, OpToSelf,
}

func operationArgs(op Op, record uint64) []uint64 {
	if op == OpTimer {
		return []uint64{1 << 50, record}
	}
	return []uint64{record}
}

func TestOperations(t *testing.T) {
	onEngines(t, func(t *testing.T, e Engine) {
		x := newImportProgram(t, e)
		want := operationFields(x.p.Memory()[0x101:])
		for _, op := range operations {
			out := x.call(t, op, operationArgs(op, 0x101)...)
			require.Nil(t, out.Err)
			require.Equal(t, want, x.got.Desc, op)
			if op == OpTimer {
				require.Equal(t, uint64(1<<50), x.got.A)
			}
		}
	})
}

// TestAddresses gives every import every address at the edge of the memory,
// over it, and where address and length wrap round: the handler ends with SEGV
// and the device is not asked.
func TestAddresses(t *testing.T) {
	onEngines(t, func(t *testing.T, e Engine) {
		x := newImportProgram(t, e)
		size := uint64(len(x.p.Memory()))
		check := func(ok bool, op Op, args ...uint64) {
			t.Helper()
			before := x.acts
			out := x.call(t, op, args...)
			if ok {
				require.Nil(t, out.Err, "%v %v", op, args)
				require.Equal(t, before+1, x.acts)
				return
			}
			require.NotNil(t, out.Err, "%v %v", op, args)
			require.Equal(t, TrapOutOfBounds, out.Err.Kind)
			require.Equal(t, Segv, out.Code)
			require.Equal(t, op, out.Err.Op)
			require.Contains(t, out.Err.Error(), op.String()+": out of bounds memory access: ")
			require.Equal(t, before, x.acts)
		}
		ranges := func(addr, n uint64) [][3]uint64 {
			return [][3]uint64{{addr, n, 1}, {size - n, n, 1}, {size - n + 1, n, 0}, {1<<32 - 1, n, 0}, {size, 0, 1}, {size + 1, 0, 0}, {0, size, 1}, {0, size + 1, 0}, {1<<32 - 1, 1<<32 - 1, 0}}
		}
		for _, r := range ranges(64, 8) {
			ok := r[2] == 1
			for _, op := range []Op{OpDMAToHost, OpDMAFromHost, OpDMAToHostNB, OpDMAFromHostNB} {
				check(ok, op, 0, 0, r[0], r[1])
			}
			check(ok, OpLog, r[0], r[1])
		}
		for _, r := range []struct {
			addr uint64
			ok   bool
		}{{0, true}, {size - 8, true}, {size - 7, false}, {1<<32 - 8, false}, {1<<32 - 1, false}} {
			for _, op := range []Op{OpDMACAS, OpDMACASNB} {
				check(r.ok, op, 0, 0, 0, 0, r.addr)
			}
			for _, op := range []Op{OpDMAFAdd, OpDMAFAddNB} {
				check(r.ok, op, 0, 0, 0, r.addr)
			}
			if r.addr%8 == 0 {
				check(r.ok, OpCAS, r.addr, 0, 0)
				check(r.ok, OpFAdd, r.addr, 0)
			}
			check(r.ok && r.addr != size-8, OpCTGet, 0, r.addr)
		}
		for _, op := range operations {
			check(true, op, operationArgs(op, size-OperationSize)...)
			check(false, op, operationArgs(op, size-OperationSize+1)...)
			check(false, op, operationArgs(op, 1<<32-1)...)
		}
	})
}

// TestOperationAddresses does the same with the addresses within an operation
// record; those that an operation does not use may hold anything.
func TestOperationAddresses(t *testing.T) {
	onEngines(t, func(t *testing.T, e Engine) {
		x := newImportProgram(t, e)
		size := uint32(len(x.p.Memory()))
		uses := map[string][]Op{
			"op.local":    {OpPutFromDevice, OpGetFromDevice, OpAtomicFromDevice, OpTimer, OpToSelf},
			"op.fetch":    {OpAtomicFromDevice},
			"op.operand":  {OpAtomicFromHost, OpAtomicFromDevice},
			"op.user_hdr": operations,
		}
		at := map[string]int{"op.local": 0, "op.fetch": 92, "op.operand": 88, "op.user_hdr": 104}
		for _, op := range operations {
			for _, field := range []string{"op.local", "op.fetch", "op.operand", "op.user_hdr"} {
				record := x.p.Memory()[0x100 : 0x100+OperationSize]
				operationFields(record)
				le.PutUint32(record[at[field]:], size-10)
				out := x.call(t, op, operationArgs(op, 0x100)...)
				if !contains(uses[field], op) {
					require.Nil(t, out.Err, "%v %v", op, field)
					continue
				}
				require.NotNil(t, out.Err, "%v %v", op, field)
				require.Equal(t, TrapOutOfBounds, out.Err.Kind)
				require.Contains(t, out.Err.Error(), field)
			}
			record := x.p.Memory()[0x100 : 0x100+OperationSize]
			operationFields(record)
			le.PutUint64(record[16:], 1<<64-1) // a length that wraps round
			out := x.call(t, op, operationArgs(op, 0x100)...)
			require.Equal(t, contains(uses["op.local"], op), out.Err != nil, op)
		}
	})
}

func contains(ops []Op, op Op) bool {
	for _, o := range ops {
		if o == op {
			return true
		}
	}
	return false
}

// TestAtomics executes cas and fadd on the memory as it is when the handler
// goes on, not when it asked.
func TestAtomics(t *testing.T) {
	onEngines(t, func(t *testing.T, e Engine) {
		x := newImportProgram(t, e)
		at := x.p.Memory()[0x1000:]
		le.PutUint64(at, 7)
		require.Equal(t, Code(0), x.call(t, OpCAS, 0x1000, 8, 100).Code)
		require.Equal(t, uint64(7), le.Uint64(at))
		require.Equal(t, Code(1), x.call(t, OpCAS, 0x1000, 7, 100).Code)
		require.Equal(t, uint64(100), le.Uint64(at))
		x.call(t, OpFAdd, 0x1000, 1<<63)
		require.Equal(t, uint64(100), le.Uint64(x.p.Memory()[x.p.Context(2).ArgsAddr()+64:]))
		require.Equal(t, uint64(1<<63+100), le.Uint64(at))

		x.block = true
		c := x.p.Context(0)
		for i, v := range []uint64{0x1000, 55, 66} {
			le.PutUint64(x.p.Memory()[int(c.ArgsAddr())+8*i:], v)
		}
		require.Equal(t, Blocked, c.Start(handler(t, x.p, "cas"), c.ArgsAddr(), 0, 1e6))
		le.PutUint64(at, 55)
		require.Equal(t, Done, c.Resume(0))
		require.Equal(t, Code(1), c.Outcome().Code)
		require.Equal(t, uint64(66), le.Uint64(at))
	})
}

// TestQuestions are the imports that need no device.
func TestQuestions(t *testing.T) {
	onEngines(t, func(t *testing.T, e Engine) {
		x := newImportProgram(t, e)
		require.Equal(t, Code(4), x.call(t, OpNumHPUs).Code) // two contexts on each of two processors
		require.Equal(t, Code(2), x.call(t, OpMyHPU).Code)   // context 2: no other has its number
		x.call(t, OpCycles)
		require.Equal(t, uint64(11+31), le.Uint64(x.p.Memory()[x.p.Context(2).ArgsAddr()+64:]))
		require.Zero(t, x.acts)
	})
}

// TestBlockingWhatMayNot is a device that breaks its contract.
func TestBlockingWhatMayNot(t *testing.T) {
	e, err := NewEngine("wazero")
	require.NoError(t, err)
	x := newImportProgram(t, e)
	x.block = true
	defer func() {
		require.Contains(t, recover(), "hpu: the device blocks put_from_host, which may not block")
		require.NoError(t, e.Close())
	}()
	x.call(t, OpPutFromHost, 0)
}

func TestOps(t *testing.T) {
	for op := OpNone + 1; op < NumOps; op++ {
		got, ok := OpByName(op.String())
		require.True(t, ok)
		require.Equal(t, op, got)
	}
	require.Equal(t, "none", OpNone.String())
	require.Equal(t, "none", NumOps.String())
	_, ok := OpByName("none")
	require.False(t, ok)
}
