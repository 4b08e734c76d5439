package runtime_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

var profiles = []string{"spin-dis", "spin-int"}

// eachProfile runs a test on both devices of sPIN'17.
func eachProfile(t *testing.T, f func(t *testing.T, profile string)) {
	for _, name := range profiles {
		t.Run(name, func(t *testing.T) { f(t, name) })
	}
}

// A blocking DMA takes two latencies and the transfer from host memory, and so
// do atomics (sPIN'17 C.3.2: "we pay two DMA latencies to read the data"). A
// write holds the handler until the bus, which is idle here, has taken it, or
// as a setting until the data has landed, one latency and the transfer. The
// bytes are read from HPU memory at the call.
func TestBlockingDMA(t *testing.T) {
	const end64 = hostBytes
	for _, c := range []struct {
		name   string
		act    rec
		result int64
		bytes  int64 // on the bus
		trips  int64
	}{
		{"write", do(hpu.OpDMAToHost, 0, 100, scratch, 3000), 0, 3000, 1},
		{"write nothing", do(hpu.OpDMAToHost, 0, 0, scratch, 0), 0, 0, 1},
		{"write nothing at the end", do(hpu.OpDMAToHost, 0, end64, scratch, 0), 0, 0, 1},
		{"write the last byte", do(hpu.OpDMAToHost, 0, end64-1, scratch, 1), 0, 1, 1},
		{"write past the end", do(hpu.OpDMAToHost, 0, end64-1, scratch, 2), hpu.Denied, 0, 0},
		{"write far outside", do(hpu.OpDMAToHost, 0, math.MaxUint64, scratch, 1), hpu.Denied, 0, 0},
		{"write that wraps", do(hpu.OpDMAToHost, 0, math.MaxUint64-3, scratch, 8), hpu.Denied, 0, 0},
		{"write to handler host memory", do(hpu.OpDMAToHost, 1, extraBytes-16, scratch, 16), 0, 16, 1},
		{"write past handler host memory", do(hpu.OpDMAToHost, 1, extraBytes-16, scratch, 17), hpu.Denied, 0, 0},
		{"write to space 2", do(hpu.OpDMAToHost, 2, 0, scratch, 1), hpu.Denied, 0, 0},
		{"read", do(hpu.OpDMAFromHost, 0, 100, scratch2, 3000), 0, 3000, 2},
		{"read nothing", do(hpu.OpDMAFromHost, 0, 0, scratch2, 0), 0, 0, 2},
		{"read the last byte", do(hpu.OpDMAFromHost, 0, end64-1, scratch2, 1), 0, 1, 2},
		{"read past the end", do(hpu.OpDMAFromHost, 0, end64, scratch2, 1), hpu.Denied, 0, 0},
		{"read handler host memory", do(hpu.OpDMAFromHost, 1, 0, scratch2, extraBytes), 0, extraBytes, 2},
		{"read space 4294967295", do(hpu.OpDMAFromHost, math.MaxUint32, 0, scratch2, 0), hpu.Denied, 0, 0},
		{"compare and swap", do(hpu.OpDMACAS, 0, 64, 0, 7, scratch2), 1, 8, 2},
		{"compare and do not swap", do(hpu.OpDMACAS, 0, 64, 1, 7, scratch2), 0, 8, 2},
		{"swap the last word", do(hpu.OpDMACAS, 0, end64-8, 0, 7, scratch2), 1, 8, 2},
		{"swap past the end", do(hpu.OpDMACAS, 0, end64, 0, 7, scratch2), hpu.Denied, 0, 0},
		{"swap at an odd offset", do(hpu.OpDMACAS, 0, 4, 0, 7, scratch2), hpu.Invalid, 0, 0},
		{"add", do(hpu.OpDMAFAdd, 1, 8, 5, scratch2), 0, 8, 2},
		{"add half outside", do(hpu.OpDMAFAdd, 1, extraBytes-4, 5, scratch2), hpu.Denied, 0, 0},
		{"add at an odd offset", do(hpu.OpDMAFAdd, 1, 1, 5, scratch2), hpu.Invalid, 0, 0},
	} {
		for _, until := range []string{nic.Initiated, nic.Landed} {
			t.Run(c.name+" "+until, func(t *testing.T) {
				eachProfile(t, func(t *testing.T, profile string) {
					r := conduct(t, setup{profile: profile, overrides: []string{"hpu.dma_write=" + until}, header: []rec{c.act, end(hpu.Proceed)}, length: 0, target: func(_ *runtime.Proc, r *rig) error {
						if hpu.Op(c.act.op) == hpu.OpDMAFromHost { // atomics find zeros
							copy(r.memory.host.Raw(), pattern(hostBytes, 3))
							copy(r.memory.extra.Raw(), pattern(extraBytes, 4))
						}
						return nil
					}})
					r.noHandlerErrors()
					require.Equal(t, c.result, r.result(headerAt, 0))
					op := hpu.Op(c.act.op)
					asked, answered := r.stepsOf(nic.StepActed, op)[0], r.stepsOf(nic.StepAnswered, op)[0]
					took := sim.Time(0)
					if c.trips > 0 && (op != hpu.OpDMAToHost || until == nic.Landed) {
						took = sim.Time(c.trips)*r.prof.DMA.Latency + r.prof.DMA.Bandwidth.Time(c.bytes)
					}
					require.Equal(t, took, answered.At-asked.At)
					checkMoved(t, r, c.act, c.result)
				})
			})
		}
	}
}

// A payload handler writes its packet and ends: the host sees the record one
// transfer and one latency after the handler has begun to write, whatever the
// handler waits for. A handler that goes on working sends the record when it
// ends.
func TestRecordCrossesWithTheData(t *testing.T) {
	eachProfile(t, func(t *testing.T, profile string) {
		for _, until := range []string{nic.Initiated, nic.Landed} {
			for _, work := range []bool{false, true} {
				payload := []rec{do(hpu.OpDMAToHost, 0, 0, scratch, 3000)}
				if work { // a read keeps the handler for more than the write takes to land
					payload = append(payload, do(hpu.OpDMAFromHost, 0, 0, scratch2, 8))
				}
				r := conduct(t, setup{
					profile: profile, overrides: []string{"hpu.dma_write=" + until}, payload: append(payload, end(hpu.Success)), length: 64,
				})
				r.noHandlerErrors()
				wrote := r.stepsOf(nic.StepActed, hpu.OpDMAToHost)[0].At
				lands := wrote + r.prof.DMA.Latency + r.prof.DMA.Bandwidth.Time(3000)
				ended := r.stepsOf(nic.StepEnded, hpu.OpNone)[0].At
				want := max(lands, ended+r.prof.DMA.Latency)
				if until == nic.Landed && !work {
					require.Equal(t, r.stepsOf(nic.StepAnswered, hpu.OpDMAToHost)[0].At, lands)
					want = ended
				}
				require.Equal(t, want, only(t, r.targets, portals.EventPut).at, "%s, goes on: %v", until, work)
			}
		}
	})
}

// checkMoved compares host and HPU memory with what one DMA operation does to them.
func checkMoved(t *testing.T, r *rig, act rec, result int64) {
	host, extra := make([]byte, hostBytes), make([]byte, extraBytes)
	if hpu.Op(act.op) == hpu.OpDMAFromHost {
		copy(host, pattern(hostBytes, 3))
		copy(extra, pattern(extraBytes, 4))
	}
	local := make([]byte, 4096)
	if result >= 0 {
		at := [][]byte{host, extra}[act.args[0]][act.args[1]:]
		switch hpu.Op(act.op) {
		case hpu.OpDMAToHost:
			copy(at[:act.args[3]], pattern(4096, 50))
		case hpu.OpDMAFromHost:
			copy(local, at[:act.args[3]])
		case hpu.OpDMACAS:
			if result == 1 {
				binary.LittleEndian.PutUint64(at, act.args[3])
			}
		case hpu.OpDMAFAdd:
			binary.LittleEndian.PutUint64(at, act.args[2])
		}
	}
	require.True(t, bytes.Equal(host, r.host), "the entry's memory")
	require.True(t, bytes.Equal(extra, r.extra), "handler host memory")
	require.True(t, bytes.Equal(local, r.hpu.Bytes()[scratch2-hpuBase:][:4096]), "HPU memory")
}

// Non-blocking operations cost the handler nothing but their call, land when
// blocking ones would, and are known by handles that test and wait free.
func TestNonBlockingDMA(t *testing.T) {
	eachProfile(t, func(t *testing.T, profile string) {
		header := []rec{
			do(hpu.OpDMAToHostNB, 0, 0, scratch, 64),       // 0: handle 0
			also(opStore, scratch, 0),                      // 1: the bytes of the call travel
			do(hpu.OpDMATest, 0),                           // 2: not yet
			do(hpu.OpDMAWait, 0),                           // 3
			do(hpu.OpDMAWait, 0),                           // 4: freed
			do(hpu.OpDMATest, 0),                           // 5
			do(hpu.OpDMAFAddNB, 0, 128, 5, scratch2),       // 6: handle 0 again
			do(hpu.OpDMACASNB, 0, 136, 0, 9, scratch2+8),   // 7: handle 1
			do(hpu.OpDMACASNB, 0, 136, 0, 9, scratch2+16),  // 8: handle 2, does not swap
			do(hpu.OpDMAFromHostNB, 0, 0, scratch2+64, 64), // 9: handle 3
			also(opSpin, 5000),                             // 10: longer than any of them takes
			do(hpu.OpDMATest, 0), do(hpu.OpDMATest, 0),     // 11, 12: done, then free
			do(hpu.OpDMAWait, 1), do(hpu.OpDMAWait, 2), // 13, 14: 1 swapped, 0 not
			do(hpu.OpDMATest, 3),                            // 15
			do(hpu.OpDMAWait, 99),                           // 16
			do(hpu.OpDMATest, math.MaxUint32),               // 17
			do(hpu.OpDMAToHostNB, 0, hostBytes, scratch, 1), // 18
			do(hpu.OpDMAFAddNB, 0, 3, 1, scratch2),          // 19
			do(hpu.OpDMAToHostNB, 1, 0, scratch, 8),         // 20: handle 0, landing after the end
			end(hpu.Proceed),
		}
		r := conduct(t, setup{profile: profile, header: header, target: func(_ *runtime.Proc, r *rig) error { return nil }})
		r.noHandlerErrors()
		want := map[int]int64{
			0: 0, 2: 0, 3: 0, 4: hpu.Invalid, 5: hpu.Invalid, 6: 0, 7: 1, 8: 2, 9: 3, 11: 1, 12: hpu.Invalid, 13: 1, 14: 0, 15: 1,
			16: hpu.Invalid, 17: hpu.Invalid, 18: hpu.Denied, 19: hpu.Invalid, 20: 0,
		}
		for i := range header {
			if v, ok := want[i]; ok {
				require.Equal(t, v, r.result(headerAt, i), "line %d", i)
			}
		}
		require.Equal(t, pattern(64, 50), r.host[:64], "the bytes as they were at the call")
		require.Equal(t, uint64(5), binary.LittleEndian.Uint64(r.host[128:]))
		require.Equal(t, uint64(9), binary.LittleEndian.Uint64(r.host[136:]))
		require.Equal(t, []uint64{0, 0, 9}, []uint64{r.word(scratch2), r.word(scratch2 + 8), r.word(scratch2 + 16)})
		require.Equal(t, pattern(64, 50), r.hpu.Bytes()[scratch2+64-hpuBase:][:64])
		require.Equal(t, make([]byte, 8), r.extra[:8], "stored at line 1, sent at line 20")

		d, bus := r.prof.DMA.Latency, r.prof.DMA.Bandwidth
		landed := r.stepsOf(nic.StepLanded, hpu.OpDMAToHost)
		acted := r.stepsOf(nic.StepActed, hpu.OpDMAToHostNB)
		require.Equal(t, acted[0].At+d+bus.Time(64), landed[0].At)
		require.Equal(t, landed[0].At, r.stepsOf(nic.StepAnswered, hpu.OpDMAWait)[0].At, "wait ends when the data has landed")
		tested := r.stepsOf(nic.StepActed, hpu.OpDMATest)[0]
		require.Equal(t, tested.At, r.stepsOf(nic.StepAnswered, hpu.OpDMATest)[0].At, "test answers at the handler's own time")
		waits := r.stepsOf(nic.StepAnswered, hpu.OpDMAWait)
		require.Equal(t, r.stepsOf(nic.StepActed, hpu.OpDMAWait)[2].At, waits[2].At, "nothing to wait for")
	})
}

// A handler has dma_handles operations open at most; a handle that test or wait
// has seen done is free again.
func TestDMAHandlesRunOut(t *testing.T) {
	var header []rec
	for range 3 {
		header = append(header, do(hpu.OpDMAToHostNB, 0, 0, scratch, 8))
	}
	header = append(header, do(hpu.OpDMAWait, 1), do(hpu.OpDMAToHostNB, 0, 0, scratch, 8), do(hpu.OpDMAToHostNB, 0, 0, scratch, 8), end(hpu.Proceed))
	r := conduct(t, setup{header: header, overrides: []string{"hpu.dma_handles=2"}})
	var got []int64
	for i := range header[:6] {
		got = append(got, r.result(headerAt, i))
	}
	require.Equal(t, []int64{0, 1, hpu.NoSpace, 0, 1, hpu.NoSpace}, got)
}

// A blocking DMA gives the HPU to another context, if there is one: two payload
// handlers that each wait for a read and compute take the time of one read and
// two computations instead of two reads.
func TestBlockingDMAOverlaps(t *testing.T) {
	eachProfile(t, func(t *testing.T, profile string) {
		last := map[int]sim.Time{}
		var hidden sim.Time
		for _, contexts := range []int{1, 2} {
			r := conduct(t, setup{
				profile: profile, overrides: []string{"hpu.cores=1", fmt.Sprintf("hpu.contexts=%d", contexts), "fabric.mtu=64"},
				payload: []rec{do(hpu.OpDMAFromHost, 0, 0, scratch2, 8), also(opSpin, 10), end(hpu.Success)}, length: 128,
			})
			r.noHandlerErrors()
			ended := r.stepsOf(nic.StepEnded, hpu.OpNone)
			require.Len(t, ended, 2)
			last[contexts] = ended[1].At
			began := r.stepsOf(nic.StepBegan, hpu.OpNone)
			if contexts == 2 {
				require.Less(t, began[1].At, ended[0].At, "the second handler begins while the first waits")
			} else {
				require.Equal(t, ended[0].At, began[1].At)
				hidden = r.stepsOf(nic.StepAnswered, hpu.OpDMAFromHost)[1].At - began[1].At
			}
		}
		require.Equal(t, hidden, last[1]-last[2], "the second handler reaches the end of its read while the first waits and computes")
	})
}

// Atomics of two HPUs on one word of host memory take effect in the order in which they reach it.
func TestDMAAtomicsOfTwoHPUs(t *testing.T) {
	eachProfile(t, func(t *testing.T, profile string) {
		r := conduct(t, setup{
			profile: profile, overrides: []string{"fabric.mtu=64"}, length: 128,
			payloads: map[int][]rec{
				// Packet 0 begins first and asks last.
				0: {also(opSpin, 1000), do(hpu.OpDMAFAdd, 0, 0, 100, scratch2), end(hpu.Success)},
				1: {do(hpu.OpDMAFAdd, 0, 0, 1, scratch2+8), end(hpu.Success)},
			},
		})
		r.noHandlerErrors()
		require.Equal(t, uint64(101), binary.LittleEndian.Uint64(r.host))
		require.Equal(t, []uint64{1, 0}, []uint64{r.word(scratch2), r.word(scratch2 + 8)})
	})
}

// The same for words of HPU memory: by the handlers' own times, although the
// handler of packet 0 is executed first.
func TestHPUAtomicsOfTwoHPUs(t *testing.T) {
	r := conduct(t, setup{
		overrides: []string{"fabric.mtu=64"}, length: 128,
		payloads: map[int][]rec{
			0: {also(opSpin, 1000), do(hpu.OpFAdd, scratch2, 100), do(hpu.OpCAS, scratch2+8, 0, 7), end(hpu.Success)},
			1: {do(hpu.OpFAdd, scratch2, 1), do(hpu.OpCAS, scratch2+8, 0, 9), do(hpu.OpCAS, scratch2+8, 9, 10), end(hpu.Success)},
		},
	})
	r.noHandlerErrors()
	const second = payloadAt + scriptBytes
	require.Equal(t, []int64{1, 0}, []int64{r.result(payloadAt, 1), r.result(payloadAt, 2)})
	require.Equal(t, []int64{0, 1, 1}, []int64{r.result(second, 0), r.result(second, 1), r.result(second, 2)})
	require.Equal(t, []uint64{101, 10}, []uint64{r.word(scratch2), r.word(scratch2 + 8)})
	asked, got := r.stepsOf(nic.StepActed, hpu.OpFAdd), r.stepsOf(nic.StepAnswered, hpu.OpFAdd)
	require.Equal(t, []sim.Time{asked[1].At, asked[0].At}, []sim.Time{got[0].At, got[1].At}, "no time but the cycles")
}

// A read and an atomic do not overtake the writes issued before them, however
// long these take (docs/abi.md, Order).
func TestDMAKeepsOrder(t *testing.T) {
	eachProfile(t, func(t *testing.T, profile string) {
		r := conduct(t, setup{profile: profile, header: []rec{
			do(hpu.OpDMAToHostNB, 0, 0, hpuBase, 60000), // 0: long
			do(hpu.OpDMAToHostNB, 0, 0, scratch, 64),    // 1
			do(hpu.OpDMAFAddNB, 0, 0, 1, scratch2),      // 2
			do(hpu.OpDMAFromHost, 0, 0, scratch2+64, 64),
			end(hpu.Proceed),
		}})
		r.noHandlerErrors()
		before := binary.LittleEndian.Uint64(pattern(64, 50))
		require.Equal(t, before, r.word(scratch2), "the add found what was written")
		require.Equal(t, before+1, binary.LittleEndian.Uint64(r.host))
		require.Equal(t, before+1, r.word(scratch2+64))
	})
}

// scatter gives the handlers of an entry host memory in pieces, of so many bytes in all.
func scatter(me *portals.ME, bytes uint64, pieces []portals.IOVec) {
	me.Spin.HostMem = portals.Region{Length: bytes, IOVec: pieces}
	me.Options |= portals.OptMEHandlerIOVec
}

// The entry's memory and the handler host memory may be scattered: offsets run
// over the concatenation. An atomic must lie within one piece, at an address
// that is a multiple of 8.
func TestDMAOfScatteredMemory(t *testing.T) {
	r := conduct(t, setup{
		header: []rec{
			do(hpu.OpDMAToHost, 1, 10, scratch, 40),    // 0: over all three pieces
			do(hpu.OpDMAFromHost, 1, 10, scratch2, 40), // 1
			do(hpu.OpDMAFAdd, 1, 16, 1, scratch2+64),   // 2: address 16 + 4: odd
			do(hpu.OpDMAFAdd, 1, 12, 1, scratch2+64),   // 3: across two pieces
			do(hpu.OpDMAFAdd, 1, 20, 1, scratch2+64),   // 4: address 24
			do(hpu.OpDMAToHost, 1, 60, scratch, 5),     // 5: past the end
			do(hpu.OpDMAToHost, 1, 64, scratch, 0),     // 6
			end(hpu.Proceed),
		},
		entry: func(me *portals.ME, r *rig) {
			scatter(me, 64, []portals.IOVec{
				{Base: r.addr + 4096, Length: 16}, {Base: r.addr + 20, Length: 20}, {Base: r.addr + 8, Length: 0}, {Base: r.addr + 512, Length: 28},
			})
		},
	})
	r.noHandlerErrors()
	var got []int64
	for i := range 7 {
		got = append(got, r.result(headerAt, i))
	}
	require.Equal(t, []int64{0, 0, hpu.Invalid, hpu.Invalid, 0, hpu.Denied, 0}, got)
	data := pattern(40, 50)
	require.Equal(t, data[:6], r.host[4096+10:4096+16])
	require.Equal(t, data, r.hpu.Bytes()[scratch2-hpuBase:][:40])
	word := binary.LittleEndian.Uint64(data[10:])
	require.Equal(t, word, r.word(scratch2+64))
	require.Equal(t, word+1, binary.LittleEndian.Uint64(r.host[24:]))
	require.Equal(t, data[26:40], r.host[512:526])
}

// A DMA operation that finds its page missing takes its time, moves nothing and
// returns FAULT; a retry succeeds.
func TestDMAFault(t *testing.T) {
	faults := 0
	r := conduct(t, setup{
		header: []rec{
			do(hpu.OpDMAToHost, 0, 0, scratch, 8), do(hpu.OpDMAToHost, 0, 0, scratch, 8),
			do(hpu.OpDMAFAddNB, 0, 64, 1, scratch2), do(hpu.OpDMATest, 0), do(hpu.OpDMAWait, 0), end(hpu.Proceed),
		},
		cfg: func(cfg *runtime.Config) {
			cfg.InjectDMA = func(rank int, op hpu.Op) int64 {
				require.Equal(t, 1, rank)
				if faults++; faults != 2 {
					return hpu.Fault
				}
				return hpu.OK
			}
		},
	})
	require.Equal(t, []int64{hpu.Fault, 0, 0, 0, hpu.Fault},
		[]int64{r.result(headerAt, 0), r.result(headerAt, 1), r.result(headerAt, 2), r.result(headerAt, 3), r.result(headerAt, 4)})
	require.Zero(t, binary.LittleEndian.Uint64(r.host[64:]))
	asked, answered := r.stepsOf(nic.StepActed, hpu.OpDMAToHost), r.stepsOf(nic.StepAnswered, hpu.OpDMAToHost)
	require.Equal(t, answered[1].At-asked[1].At, answered[0].At-asked[0].At)
}
