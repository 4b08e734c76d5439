package runtime_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// calling is a module whose payload handler calls an import n times with the
// same arguments: constants, of which those in wide are 64 bits. An operation
// record lies at address 0, whose length is 8, to rank 0.
func calling(op hpu.Op, params, result string, args []int64, n int) []byte {
	leb := func(b []byte, v int64) []byte {
		for ; v < -64 || v > 63; v >>= 7 {
			b = append(b, byte(v)|0x80)
		}
		return append(b, byte(v)&0x7F)
	}
	section := func(id byte, content ...byte) []byte {
		return append(binary.AppendUvarint([]byte{id}, uint64(len(content))), content...)
	}
	types := map[byte]byte{'i': 0x7F, 'I': 0x7E}
	imported := []byte{0x60, byte(len(params))}
	code := append(leb([]byte{1, 1, 0x7F, 0x41}, int64(n)), 0x21, 2, 0x03, 0x40) // a counter, a loop
	for i := range params {
		imported = append(imported, types[params[i]])
		code = leb(append(code, map[byte]byte{'i': 0x41, 'I': 0x42}[params[i]]), args[i])
	}
	imported = append(imported, byte(len(result)))
	code = append(code, 0x10, 0)
	if result != "" {
		imported = append(imported, types[result[0]])
		code = append(code, 0x1A)
	}
	// until the counter is 0; return 0
	code = append(code, 0x20, 2, 0x41, 1, 0x6B, 0x22, 2, 0x0D, 0, 0x0B, 0x41, 0, 0x0B)
	record := make([]byte, hpu.OperationSize)
	binary.LittleEndian.PutUint32(record, 4096)
	record[16], record[32] = 8, 1 // length, portal table index
	binary.LittleEndian.PutUint64(record[96:], 1<<64-1)
	name := op.String()
	return bytes.Join([][]byte{
		[]byte("\x00asm\x01\x00\x00\x00"),
		section(1, append([]byte{2, 0x60, 2, 0x7F, 0x7F, 1, 0x7F}, imported...)...),
		section(2, append(append(append([]byte("\x01\x04spin"), byte(len(name))), name...), 0, 1)...),
		section(3, 1, 0),
		section(5, 1, 0, 1),
		section(7, []byte("\x02\x06memory\x02\x00\x07payload\x00\x01")...),
		section(10, append(binary.AppendUvarint([]byte{1}, uint64(len(code))), code...)...),
		section(11, append([]byte{1, 0, 0x41, 0, 0x0B, hpu.OperationSize}, record...)...),
	}, nil)
}

// wide is how many bytes the longest transfers of importCalls move.
const wide = 1 << 16

// importCalls are calls of imports that reach a device.
var importCalls = []struct {
	op             hpu.Op
	params, result string
	args           []int64
	effort         int64 // of a call, docs/abi.md
}{
	{hpu.OpDMAToHost, "iIii", "i", []int64{0, 0, 0, 8}, 100},
	{hpu.OpDMAToHost, "iIii", "i", []int64{0, 0, 0, wide}, 100 + wide/64},
	{hpu.OpDMAFromHost, "iIii", "i", []int64{0, 0, 8192, wide - 8192}, 100 + (wide-8192)/64},
	{hpu.OpDMAToHostNB, "iIii", "i", []int64{0, 0, 0, wide}, 100 + wide/64},
	{hpu.OpDMAFromHostNB, "iIii", "i", []int64{0, 0, 8192, wide - 8192}, 100 + (wide-8192)/64},
	{hpu.OpDMACAS, "iIIIi", "i", []int64{0, 0, 0, 1, 4096}, 100},
	{hpu.OpDMACASNB, "iIIIi", "i", []int64{0, 0, 0, 1, 4096}, 100},
	{hpu.OpDMAFAdd, "iIIi", "i", []int64{0, 0, 1, 4096}, 100},
	{hpu.OpDMAFAddNB, "iIIi", "i", []int64{0, 0, 1, 4096}, 100},
	{hpu.OpDMAFAddTyped, "iIiIi", "i", []int64{0, 0, 5, 1, 4096}, 100},
	{hpu.OpDMAFAddTypedNB, "iIiIi", "i", []int64{0, 0, 5, 1, 4096}, 100},
	{hpu.OpDMATest, "i", "i", []int64{0}, 100},
	{hpu.OpDMAWait, "i", "i", []int64{0}, 100},
	{hpu.OpCAS, "iII", "i", []int64{4096, 0, 1}, 100},
	{hpu.OpFAdd, "iI", "I", []int64{4096, 1}, 100},
	{hpu.OpAtomic32, "iiii", "i", []int64{int64(hpu.Add32), 4096, 1, 0}, 100},
	{hpu.OpYield, "", "", nil, 100},
	{hpu.OpPutFromHost, "i", "i", []int64{0}, 300},
	{hpu.OpPutFromDevice, "i", "i", []int64{0}, 300},
	{hpu.OpGetFromHost, "i", "i", []int64{0}, 300},
	{hpu.OpGetFromDevice, "i", "i", []int64{0}, 300},
	{hpu.OpAtomicFromHost, "i", "i", []int64{0}, 300},
	{hpu.OpAtomicFromDevice, "i", "i", []int64{0}, 300},
	{hpu.OpCTGet, "ii", "i", []int64{1, 4096}, 100},
	{hpu.OpCTSet, "iII", "i", []int64{1, 1, 0}, 100},
	{hpu.OpCTInc, "iII", "i", []int64{1, 1, 0}, 100},
	{hpu.OpAck, "i", "i", []int64{0}, 100},
	{hpu.OpTimer, "Ii", "i", []int64{1, 0}, 300},
	{hpu.OpTimerAt, "IIi", "i", []int64{0, 0, 0}, 300},
	{hpu.OpNow, "", "I", nil, 100},
	{hpu.OpExpiries, "", "I", nil, 100},
	{hpu.OpTimerCancel, "i", "i", []int64{0}, 100},
	{hpu.OpToSelf, "i", "i", []int64{0}, 300},
	{hpu.OpDMAToHostPosted, "iIii", "i", []int64{0, 0, 0, 8}, 100},
	{hpu.OpDMAToHostPosted, "iIii", "i", []int64{0, 0, 0, wide}, 100 + wide/64},
	{hpu.OpHostWrite, "iII", "i", []int64{0, 0, 1}, 100},
	{hpu.OpHostWriteNB, "iII", "i", []int64{0, 0, 1}, 100},
	{hpu.OpWait32, "ii", "", []int64{4096, 1}, 100},
	{hpu.OpFlowID, "", "i", nil, 100},
	{hpu.OpScratchpad, "i", "I", []int64{0}, 100},
	{hpu.OpMessageMemory, "", "I", nil, 100},
	{hpu.OpLog, "ii", "", []int64{0, 1024}, 100 + 1024},
}

// No import that reaches a device is left out of the benchmark: a budget bounds
// the real time of all of them.
func TestAllImportsAreMeasured(t *testing.T) {
	// those are answered where handlers run: hpu's BenchmarkCycle
	measured := map[hpu.Op]bool{hpu.OpNumHPUs: true, hpu.OpMyHPU: true, hpu.OpCycles: true, hpu.OpMyCluster: true, hpu.OpNumClusters: true, hpu.OpRuntimeBegin: true, hpu.OpRuntimeEnd: true}
	for _, x := range importCalls {
		measured[x.op] = true
	}
	for op := hpu.OpNone + 1; op < hpu.NumOps; op++ {
		require.True(t, measured[op], "%v", op)
	}
}

// BenchmarkImports measures what a cycle of a handler's budget takes when the
// handler calls an import again and again on a device of the simulator, with
// everything that follows from it: events, messages of 8 bytes, suspensions,
// transfers of 8 bytes and of 64 KiB.
func BenchmarkImports(b *testing.B) {
	for _, x := range importCalls {
		size := int64(8)
		if len(x.args) > 0 && x.args[len(x.args)-1] >= wide/2 {
			size = x.args[len(x.args)-1]
		}
		b.Run(fmt.Sprintf("%v/%d", x.op, size), func(b *testing.B) {
			module := func(n int) []byte { return calling(x.op, x.params, x.result, x.args, n) }
			const rounds = 500
			// the least: other programs disturb
			once, often := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
			var cycles int64
			for b.Loop() {
				took, before := callImports(b, module(1))
				once = min(once, took)
				took, after := callImports(b, module(rounds))
				often, cycles = min(often, took), after-before+(rounds-1)*x.effort
			}
			ns := float64(often-once) / float64(cycles)
			b.ReportMetric(ns, "ns/cycle")
			b.ReportMetric(ns/20, "x-of-20-ns/cycle")
		})
	}
}

// callImports sends a message to an entry with a handler and returns how long
// that took, and the handler's cycles.
func callImports(b *testing.B, binary []byte) (time.Duration, int64) {
	p, err := profile.Load("spin-int", "hpu.max_cycles=900000000", "fabric.kind=crossbar", "fabric.radix=0")
	require.NoError(b, err)
	c, err := runtime.NewCluster(runtime.Config{Profile: p, Nodes: 2, Engine: labEngine, Log: func(int, sim.Time, string, string) {}})
	require.NoError(b, err)
	defer func() { require.NoError(b, c.Close()) }()
	entry := func(p *runtime.Proc, spin *portals.Spin) error {
		ni := p.NI()
		if _, err := ni.Objects().CTAlloc(); err != nil {
			return err
		}
		addr := p.Alloc(1 << 16).Addr()
		for pt := range uint32(2) { // handlers at 0, what they send arrives at 1
			if _, err := ni.Objects().PTAlloc(0, portals.EQNone, pt); err != nil {
				return err
			}
			if _, err := ni.MEAppend(pt, &portals.ME{
				Start: addr, Length: 1 << 16, UID: portals.UIDAny, MatchID: portals.AnyID,
				Options: portals.OptMEOpPut | portals.OptMEOpGet, Spin: spin,
			}, portals.PriorityList, 0); err != nil {
				return err
			}
			spin = nil
		}
		return nil
	}
	require.NoError(b, c.Spawn(1, "target", func(p *runtime.Proc) error {
		m, err := c.LoadModule("calling", binary)
		if err != nil {
			return err
		}
		memory, err := p.HPUAllocMem(m, 64)
		if err != nil {
			return err
		}
		spin, err := memory.Spin("", "payload", "")
		return errors.Join(err, entry(p, spin))
	}))
	require.NoError(b, c.Spawn(0, "source", func(p *runtime.Proc) error {
		if err := entry(p, nil); err != nil {
			return err
		}
		addr := p.Alloc(8).Addr()
		md, err := p.NI().Objects().MDBind(&portals.MD{Start: addr, Length: 8})
		if err != nil {
			return err
		}
		p.Sleep(10 * sim.Microsecond)
		return p.NI().Put(portals.Put{MD: md, Length: 8, Target: portals.PhysID(1, 0)})
	}))
	require.NoError(b, c.RunUntil(5*sim.Microsecond))
	start := time.Now()
	require.NoError(b, c.Run(context.Background()))
	took := time.Since(start)
	errs, _ := c.HandlerErrors()
	require.Empty(b, errs)
	return took, c.Node(1).Stats().HandlerCycles
}
