package runtime_test

import (
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

// handlersRun counts the handlers of each kind that began.
func (r *rig) handlersRun() (header, payload, completion int) {
	for _, s := range r.stepsOf(nic.StepBegan, hpu.OpNone) {
		switch s.Handler {
		case "header":
			header++
		case "payload":
			payload++
		default:
			completion++
		}
	}
	return header, payload, completion
}

// deposited are the bytes of the entry that are not zero any more, as ranges of
// the message that was sent to offset 0.
func deposited(host, message []byte, shift int) string {
	ranges := ""
	for i := 0; i < len(message)-shift; {
		k := i
		for k < len(message)-shift && host[k] == message[k+shift] {
			k++
		}
		if k > i {
			ranges += fmt.Sprintf("[%d,%d)", i, k)
			i = k
		}
		i++
	}
	return ranges
}

// solid is a message without zeros.
func solid(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(1 + i%255)
	}
	return b
}

// What becomes of a message of three packets for every return code of the
// header handler, with and without the other handlers (spec: sPIN'17 §2). The
// user header has 16 bytes where a header handler sees it.
func TestReturnCodes(t *testing.T) {
	const size, skip = 600, 16 // packets of 256, 256, 88
	success := []rec{end(hpu.Success)}
	for _, c := range []struct {
		name                        string
		header, payload, completion []rec
		ran                         [3]int
		shift                       int    // of the message's bytes in the entry
		host                        string // ranges deposited
		mlength                     uint64
		fail                        portals.FailType
	}{
		{"no handlers", nil, nil, nil, [3]int{}, 0, "[0,600)", 600, portals.NIOK},
		{"PROCEED", []rec{end(hpu.Proceed)}, success, success, [3]int{1, 0, 0}, 0, "[0,600)", 600, portals.NIOK},
		{"PROCEED alone", []rec{end(hpu.Proceed)}, nil, nil, [3]int{1, 0, 0}, 0, "[0,600)", 600, portals.NIOK},
		{"DROP", []rec{end(hpu.Drop)}, success, success, [3]int{1, 0, 0}, 0, "", 0, portals.NIOK},
		{"PROCESS_DATA", []rec{end(hpu.ProcessData)}, success, success, [3]int{1, 3, 1}, 0, "", 600, portals.NIOK},
		{"PROCESS_DATA without payload handler", []rec{end(hpu.ProcessData)}, nil, success, [3]int{1, 0, 1}, skip, "[0,584)", 600, portals.NIOK},
		{"PROCESS_DATA alone", []rec{end(hpu.ProcessData)}, nil, nil, [3]int{1, 0, 0}, skip, "[0,584)", 600, portals.NIOK},
		{"PROCESS_DATA without completion handler", []rec{end(hpu.ProcessData)}, success, nil, [3]int{1, 3, 0}, 0, "", 600, portals.NIOK},
		{"payload handler alone", nil, success, nil, [3]int{0, 3, 0}, 0, "", 600, portals.NIOK},
		{"completion handler alone", nil, nil, success, [3]int{0, 0, 1}, 0, "[0,600)", 600, portals.NIOK},
		{"all packets dropped", []rec{end(hpu.ProcessData)}, []rec{end(hpu.Drop)}, success, [3]int{1, 3, 1}, 0, "", skip, portals.NIOK},
		{"all packets dropped, no header handler", nil, []rec{end(hpu.Drop)}, success, [3]int{0, 3, 1}, 0, "", 0, portals.NIOK},
		{"header FAIL", []rec{end(hpu.Fail)}, success, success, [3]int{1, 0, 0}, 0, "", 0, portals.NIDropped},
		{"header SEGV", []rec{end(hpu.Segv)}, success, success, [3]int{1, 0, 0}, 0, "", 0, portals.NISegv},
		{"payload SEGV", []rec{end(hpu.ProcessData)}, []rec{end(hpu.Segv)}, success, [3]int{1, 3, 1}, 0, "", skip, portals.NISegv},
		{"completion FAIL", nil, success, []rec{end(hpu.Fail)}, [3]int{0, 3, 1}, 0, "", 600, portals.NIDropped},
	} {
		t.Run(c.name, func(t *testing.T) {
			userHdr := uint64(skip)
			if c.header == nil {
				userHdr = 0
			}
			r := conduct(t, setup{
				overrides: []string{"fabric.mtu=256"}, message: solid(size), userHdr: userHdr,
				header: c.header, payload: c.payload, completion: c.completion,
			})
			header, payload, completion := r.handlersRun()
			require.Equal(t, [3]int{header, payload, completion}, c.ran)
			require.Equal(t, c.host, deposited(r.host, r.message, c.shift))
			put := only(t, r.targets, portals.EventPut)
			require.Equal(t, c.mlength, put.MLength)
			require.Equal(t, c.fail, put.Fail)
			require.Equal(t, uint64(size), put.RLength)
			ack := only(t, r.inits, portals.EventAck)
			require.Equal(t, []uint64{c.mlength, uint64(c.fail)}, []uint64{ack.MLength, uint64(ack.Fail)})
		})
	}
}

// The records follow docs/abi.md, for a message with a user header to an offset
// of a locally managed entry that truncates it.
func TestRecords(t *testing.T) {
	const length, fits, skip, offset = 700, 600, 24, 1000
	ok := []rec{end(hpu.Success)}
	r := conduct(t, setup{
		overrides: []string{"fabric.mtu=256", "hpu.cores=1", "hpu.contexts=1"}, message: solid(length), userHdr: skip,
		header: []rec{also(opPayload, scratch2, 72, skip), end(hpu.ProcessData)},
		// by offset, which the user header shifts
		payloads:   map[int][]rec{0: {also(opPayload, scratch2+0x100, 0, 256-skip), end(hpu.Success)}, 1: {end(hpu.Drop)}},
		completion: ok,
		entry:      func(me *portals.ME, _ *rig) { me.Length = offset + fits },
		initiator: func(p *runtime.Proc, md portals.Handle, r *rig) error {
			return p.NI().Put(portals.Put{MD: md, Length: length, Ack: portals.Ack, Target: portals.PhysID(1, 0), MatchBits: 5, RemoteOffset: offset, UserPtr: 9, HdrData: 0xabc})
		},
	})
	r.noHandlerErrors()
	le := binary.LittleEndian
	u32 := func(b []byte, at ...int) (v []uint32) {
		for _, a := range at {
			v = append(v, le.Uint32(b[a:]))
		}
		return v
	}
	u64 := func(b []byte, at ...int) (v []uint64) {
		for _, a := range at {
			v = append(v, le.Uint64(b[a:]))
		}
		return v
	}
	began := r.stepsOf(nic.StepBegan, hpu.OpNone)
	require.Len(t, began, 5)
	h := began[0].Record
	require.Len(t, h, hpu.HeaderSize)
	require.Equal(t, []uint32{0, skip, 0, 0, 1, 0, 0}, u32(h, 0, 4, 24, 28, 32, 36, 76))
	require.Equal(t, []uint64{length, fits, 5, offset, 0xabc, began[0].Message, 0}, u64(h, 8, 16, 40, 48, 56, 64, 88))
	require.Equal(t, r.message[:skip], r.hpu.Bytes()[scratch2-hpuBase:][:skip])
	for i, want := range []struct{ length, offset uint64 }{{256 - skip, 0}, {256, 256 - skip}, {fits - 512, 512 - skip}} {
		b := began[i+1].Record
		require.Len(t, b, hpu.PayloadSize)
		require.Equal(t, []uint32{uint32(want.length), 0, 0}, u32(b, 4, 24, 28), "packet %d", i)
		require.Equal(t, []uint64{want.offset, began[0].Message, 0xabc, 5, offset + want.offset, fits}, u64(b, 8, 16, 32, 40, 48, 56))
	}
	require.Equal(t, r.message[256:512-skip], r.hpu.Bytes()[scratch2+0x100-hpuBase:][:256-skip])
	c := began[4].Record
	require.Len(t, c, hpu.CompletionSize)
	require.Equal(t, []uint32{0, 0, 0, 0}, u32(c, 8, 12, 24, 28))
	require.Equal(t, []uint64{fits - 512, began[0].Message, 0xabc, 5, offset, fits}, u64(c, 0, 16, 32, 40, 48, 56))
	put := only(t, r.targets, portals.EventPut)
	require.Equal(t, []uint64{length, 512}, []uint64{put.RLength, put.MLength})
}

// A message that is no longer than its user header, or than the room in the
// entry, has no payload; a message of zero bytes runs header and completion
// handler and nothing between.
func TestMessagesWithoutPayload(t *testing.T) {
	for _, c := range []struct {
		name           string
		length, remote uint64
		payloads       int
	}{
		{"nothing", 0, 0, 0},
		{"part of the user header", 10, 0, 0},
		{"the user header", 32, 0, 0},
		{"a byte more", 33, 0, 1},
		{"behind the entry", 5000, hostBytes, 0},
		{"far behind it", 5000, 1 << 62, 0},
		{"nothing behind it", 0, hostBytes + 1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := conduct(t, setup{
				length: int(c.length), userHdr: 32,
				header: []rec{end(hpu.ProcessData)}, payload: []rec{end(hpu.Success)}, completion: []rec{end(hpu.Success)},
				initiator: func(p *runtime.Proc, md portals.Handle, r *rig) error {
					return p.NI().Put(portals.Put{MD: md, Length: c.length, Ack: portals.Ack, Target: portals.PhysID(1, 0), MatchBits: 5, RemoteOffset: c.remote, UserPtr: 9, HdrData: 0xabc})
				},
			})
			r.noHandlerErrors()
			header, payload, completion := r.handlersRun()
			require.Equal(t, [3]int{1, c.payloads, 1}, [3]int{header, payload, completion})
			mlength := c.length
			if c.remote >= hostBytes {
				mlength = 0
			}
			require.Equal(t, mlength, only(t, r.targets, portals.EventPut).MLength)
			require.Equal(t, uint32(min(mlength, 32)), binary.LittleEndian.Uint32(r.stepsOf(nic.StepBegan, hpu.OpNone)[0].Record[4:]))
		})
	}
}

// Only the first error of a message is reported to its owner, and the
// completion handler hears that there was one.
func TestFirstErrorOnly(t *testing.T) {
	r := conduct(t, setup{
		overrides: []string{"fabric.mtu=64"}, length: 256,
		payloads: map[int][]rec{
			0: {also(opSpin, 2000), also(opTrap)}, 1: {also(opSpin, 1000), end(hpu.Segv)}, 2: {end(hpu.Success)}, 3: {also(opSpin, 3000), end(hpu.Fail)},
		},
		completion: []rec{end(hpu.Fail)},
	})
	require.Equal(t, portals.NISegv, only(t, r.targets, portals.EventPut).Fail)
	require.Len(t, r.targets, 1, "one event")
	_, n := r.c.HandlerErrors()
	require.Equal(t, 4, n, "all of them for the person who debugs")
	began := r.stepsOf(nic.StepBegan, hpu.OpNone)
	last := began[len(began)-1]
	require.Equal(t, "completion", last.Handler)
	require.Equal(t, []uint64{192, 1 << 32}, []uint64{binary.LittleEndian.Uint64(last.Record), binary.LittleEndian.Uint64(last.Record[8:])})
	require.Equal(t, uint64(64), only(t, r.targets, portals.EventPut).MLength)
}

// PENDING keeps the entry: the event waits for all operations with
// COMPLETE_ENTRY and counts the bytes of the message and theirs.
func TestPending(t *testing.T) {
	put := hpu.Operation{Offset: 0, Length: 300, TargetNID: 2, Options: 1, FetchOffset: 1 << 63}
	get := put
	get.Offset, get.Length = 4096, 5000
	atomic := hpu.Operation{Local: scratch, Length: 8, TargetNID: 2, Options: 1, Datatype: uint32(portals.Uint64)}
	fetching := atomic
	fetching.Fetch = scratch2
	device := put
	device.Local, device.Length = scratch, 40
	refused := put
	refused.MD = 0xdead
	for _, c := range []struct {
		name  string
		kind  hpu.Code // of the header handler
		ops   []hpu.Operation
		acts  []hpu.Op
		bytes int64 // delivered; -1: no event
	}{
		{"put from host", hpu.ProceedPending, []hpu.Operation{put}, []hpu.Op{hpu.OpPutFromHost}, 100 + 300},
		{"put from device", hpu.ProceedPending, []hpu.Operation{device}, []hpu.Op{hpu.OpPutFromDevice}, 100 + 40},
		{"get from host", hpu.DropPending, []hpu.Operation{get}, []hpu.Op{hpu.OpGetFromHost}, 5000},
		{"get from device", hpu.ProceedPending, []hpu.Operation{device}, []hpu.Op{hpu.OpGetFromDevice}, 100 + 40},
		{"atomic", hpu.ProceedPending, []hpu.Operation{atomic}, []hpu.Op{hpu.OpAtomicFromDevice}, 100 + 8},
		{"fetching atomic", hpu.ProceedPending, []hpu.Operation{fetching}, []hpu.Op{hpu.OpAtomicFromDevice}, 100 + 8},
		{"two operations", hpu.ProcessDataPending, []hpu.Operation{get, put}, []hpu.Op{hpu.OpGetFromHost, hpu.OpPutFromHost}, 100 + 5000 + 300},
		{"without PENDING", hpu.Proceed, []hpu.Operation{put, get}, []hpu.Op{hpu.OpPutFromHost, hpu.OpGetFromHost}, 100},
		{"no operation", hpu.ProceedPending, nil, nil, -1},
		{"refused operation", hpu.ProceedPending, []hpu.Operation{refused}, []hpu.Op{hpu.OpPutFromHost}, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := conduct(t, setup{length: 100, ops: c.ops, stuck: c.bytes < 0, build: func(r *rig) {
				for i, act := range c.acts {
					r.header = append(r.header, do(act, opAt(i)))
				}
				r.header = append(r.header, end(c.kind))
			}, entry: func(me *portals.ME, _ *rig) { me.Options |= portals.OptMEUseOnce }})
			r.noHandlerErrors()
			if c.bytes < 0 {
				require.Empty(t, r.targets)
				require.Equal(t, uint64(100), only(t, r.inits, portals.EventAck).MLength)
				require.ErrorContains(t, r.err, "rank 1: an entry of portal table entry 0, user pointer 77, waits since ")
				require.ErrorContains(t, r.err, "for another message: the handlers of the one before have returned PENDING")
				return
			}
			done := only(t, r.targets, portals.EventPut)
			require.Equal(t, c.bytes, int64(done.MLength))
			require.Equal(t, portals.NIOK, done.Fail)
			require.Equal(t, done.at, only(t, r.targets, portals.EventAutoUnlink).at)
			if c.kind == hpu.ProceedPending || c.kind == hpu.DropPending {
				for _, e := range r.peers {
					require.Greater(t, done.at, e.at-r.net(0)-r.fetch(5000), "not before the operation")
				}
			}
		})
	}
}

// Without such an operation the entry waits for another message, which
// completes it (sPIN'17 B.2), used once or not: the one before has an answer,
// and neither event nor count.
func TestPendingWaitsForAnotherMessage(t *testing.T) {
	again := func(pending, through hpu.Code) []rec { // the first time, and from then on
		return []rec{also(opSkip, scratch2, 2), also(opStore, scratch2, 1), end(pending), end(through)}
	}
	for name, s := range map[string]setup{ //lint:maporder each by itself
		"header":     {header: again(hpu.ProceedPending, hpu.Proceed)},
		"completion": {completion: again(hpu.SuccessPending, hpu.Success)},
	} {
		for _, once := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s once=%v", name, once), func(t *testing.T) {
				s.length = 100
				s.initiator = func(p *runtime.Proc, md portals.Handle, _ *rig) error {
					for i := range uint64(3) {
						if err := p.NI().Put(portals.Put{MD: md, Length: 100, Ack: portals.Ack, Target: portals.PhysID(1, 0), RemoteOffset: 200 * i, UserPtr: i, HdrData: i}); err != nil {
							return err
						}
						p.Sleep(20 * sim.Microsecond)
					}
					return nil
				}
				s.entry = func(me *portals.ME, r *rig) {
					me.CT = r.ct
					me.Options |= portals.OptMEEventCTComm
					if once {
						me.Options |= portals.OptMEUseOnce
					}
				}
				r := conduct(t, s)
				r.noHandlerErrors()
				puts, unlinked, fails := []uint64{1}, 1, []portals.FailType{portals.NIOK, portals.NIOK, portals.NIPTDisabled}
				if !once {
					puts, unlinked, fails[2] = []uint64{1, 2}, 0, portals.NIOK
				}
				var got []uint64
				for _, e := range all(r.targets, portals.EventPut) {
					got = append(got, e.HdrData)
				}
				require.Equal(t, puts, got)
				require.Len(t, all(r.targets, portals.EventAutoUnlink), unlinked)
				for i, e := range all(r.inits, portals.EventAck) {
					require.Equal(t, fails[i], e.Fail)
				}
				require.Equal(t, r.message[:100], r.host[:100])
				require.Equal(t, r.message[:100], r.host[200:300])
			})
		}
	}
}

// The completion handler may ask for PENDING too.
func TestCompletionPending(t *testing.T) {
	r := conduct(t, setup{
		length: 100, completion: []rec{do(hpu.OpGetFromHost, opAt(0)), end(hpu.SuccessPending)},
		ops: []hpu.Operation{{Offset: 4096, Length: 64, TargetNID: 2, Options: 1}},
	})
	r.noHandlerErrors()
	put := only(t, r.targets, portals.EventPut)
	require.Equal(t, uint64(164), put.MLength)
	require.Equal(t, pattern(peerBytes, 100)[:64], r.host[4096:4160])
}

// Two entries share one HPU memory, each with its own part as state; the
// initial state is there before the first message and is copied only if the
// entry is appended.
func TestSharedHPUMemory(t *testing.T) {
	const second = 0x9000
	r := conduct(t, setup{
		header: []rec{do(hpu.OpFAdd, scratch2, 1), end(hpu.Proceed)},
		entry:  func(me *portals.ME, _ *rig) { me.MatchBits, me.IgnoreBits = 1, 0 },
		target: func(p *runtime.Proc, r *rig) error {
			script := make([]byte, 80+2*recordSize)
			le := binary.LittleEndian
			le.PutUint32(script, hpuBase+second+80)
			le.PutUint32(script[80:], uint32(hpu.OpFAdd))
			le.PutUint64(script[96:], scratch2)
			le.PutUint64(script[104:], 100)
			le.PutUint64(script[80+recordSize+16:], uint64(hpu.Proceed))
			spin, err := r.hpu.Spin("header", "", "")
			if err != nil {
				return err
			}
			spin.HPUMemOffset, spin.InitialState = second, script
			me := portals.ME{
				Start: r.addr, Length: hostBytes, UID: portals.UIDAny, MatchID: portals.AnyID, MatchBits: 2, Options: portals.OptMEOpPut, Spin: spin,
			}
			broken := me
			broken.Options = 1 << 31
			before := append([]byte(nil), r.hpu.Bytes()...)
			_, err = p.NI().MEAppend(0, &broken, portals.PriorityList, 0)
			require.ErrorIs(t, err, portals.ErrArgInvalid)
			require.Equal(t, before, r.hpu.Bytes(), "an entry that is refused leaves no state")
			_, err = p.NI().MEAppend(0, &me, portals.PriorityList, 0)
			return err
		},
		initiator: func(p *runtime.Proc, md portals.Handle, r *rig) error {
			for _, bits := range []uint64{1, 2, 2, 1, 2} {
				if err := p.NI().Put(portals.Put{MD: md, Target: portals.PhysID(1, 0), MatchBits: bits}); err != nil {
					return err
				}
			}
			return nil
		},
	})
	r.noHandlerErrors()
	require.Equal(t, uint64(302), r.word(scratch2))
}

// real16 is a PTL_DOUBLE_COMPLEX without an imaginary part.
func real16(v float64) []byte { return append(word64(math.Float64bits(v)), make([]byte, 8)...) }

// A get, and atomics, have handlers too: DROP answers with nothing, PROCEED
// takes the default action.
func TestHandlersOfGetsAndAtomics(t *testing.T) {
	for _, code := range []hpu.Code{hpu.Proceed, hpu.Drop, hpu.ProcessData, hpu.Fail} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			r := conduct(t, setup{
				header: []rec{end(code)}, completion: []rec{end(hpu.Success)}, userHdr: 8,
				target: func(_ *runtime.Proc, r *rig) error { copy(r.memory.host.Raw(), real16(1000)); return nil },
				initiator: func(p *runtime.Proc, md portals.Handle, r *rig) error {
					ni, to := p.NI(), portals.PhysID(1, 0)
					if err := ni.Get(portals.Get{MD: md, Offset: 1024, Length: 16, Target: to, UserPtr: 1}); err != nil {
						return err
					}
					p.Sleep(10_000_000)
					if err := ni.FetchAtomic(portals.FetchAtomic{GetMD: md, GetOffset: 2048, MD: md, Length: 16, Target: to, UserPtr: 2, Op: portals.OpSUM, Type: portals.DoubleComplex}); err != nil {
						return err
					}
					p.Sleep(10_000_000)
					return ni.Atomic(portals.Atomic{MD: md, Length: 16, Ack: portals.Ack, Target: to, UserPtr: 3, Op: portals.OpSUM, Type: portals.DoubleComplex})
				},
				message: real16(7),
			})
			want := map[hpu.Code][]uint64{ // bytes of both replies and the acknowledgement, value
				hpu.Proceed: {16, 16, 16, 1014}, hpu.Drop: {0, 0, 0, 1000},
				hpu.ProcessData: {16, 0, 0, 1000}, // 8 bytes of user header are half an element: OP_VIOLATION
				hpu.Fail:        {0, 0, 0, 1000},
			}[code]
			replies := all(r.inits, portals.EventReply)
			require.Len(t, replies, 2)
			ack := only(t, r.inits, portals.EventAck)
			got := []uint64{replies[0].MLength, replies[1].MLength, ack.MLength, uint64(math.Float64frombits(binary.LittleEndian.Uint64(r.host)))}
			require.Equal(t, want, got)
			if code == hpu.ProcessData {
				require.Equal(t, portals.NIOpViolation, ack.Fail)
			}
		})
	}
}

// Elements of an atomic are never cut, whatever the packet size.
func TestAtomicsOverPackets(t *testing.T) {
	for _, mtu := range []int{64, 100, 1500} {
		message := solid(2048)
		r := conduct(t, setup{
			overrides: []string{fmt.Sprintf("fabric.mtu=%d", mtu)}, message: message,
			initiator: func(p *runtime.Proc, md portals.Handle, r *rig) error {
				return p.NI().Atomic(portals.Atomic{MD: md, Length: 2048, Ack: portals.Ack, Target: portals.PhysID(1, 0), UserPtr: 3, Op: portals.OpBXOR, Type: portals.Uint64})
			},
		})
		require.Equal(t, message, r.host[:2048])
		require.Equal(t, uint64(2048), only(t, r.targets, portals.EventAtomic).MLength)
	}
}

// The answer to a fetching atomic whose data handlers have taken holds no bytes of another message.
func TestNoLeakInReplies(t *testing.T) {
	r := conduct(t, setup{
		message: word64(7), payload: []rec{end(hpu.Success)},
		entry: func(me *portals.ME, _ *rig) { me.MatchBits, me.IgnoreBits = 1, 0 },
		target: func(p *runtime.Proc, r *rig) error {
			copy(r.memory.host.Raw(), word64(0x5ec2e7))
			_, err := p.NI().MEAppend(0, &portals.ME{
				Start: r.addr, Length: hostBytes, UID: portals.UIDAny, MatchID: portals.AnyID, Options: portals.OptMEOpPut | portals.OptMEOpGet,
			}, portals.PriorityList, 0)
			return err
		},
		initiator: func(p *runtime.Proc, md portals.Handle, r *rig) error {
			eq, err := p.NI().Objects().EQAlloc(8)
			if err != nil {
				return err
			}
			data := p.Alloc(8)
			get, err := p.NI().Objects().MDBind(&portals.MD{Start: data.Addr(), Length: 8, EQ: eq})
			if err != nil {
				return err
			}
			for bits, want := range []uint64{0x5ec2e7, 0} {
				data.CopyFrom(word64(1))
				if err := p.NI().FetchAtomic(portals.FetchAtomic{GetMD: get, MD: md, Length: 8, Target: portals.PhysID(1, 0), MatchBits: uint64(bits), Op: portals.OpSUM, Type: portals.Uint64}); err != nil {
					return err
				}
				if _, err := p.NI().EQWait(eq); err != nil {
					return err
				}
				require.Equal(t, want, binary.LittleEndian.Uint64(data.Read()))
			}
			return nil
		},
	})
	r.noHandlerErrors()
}
