package runtime_test

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/handlers/accumulate"
	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/spin"
)

// request is an operation from rank 1 to rank 2 that hosts, counters and handlers can issue.
type request struct {
	kind            portals.OpKind
	offset, length  uint64 // in rank 1's memory
	remote          uint64
	bits, data, ptr uint64
	ack             portals.AckReq
	op              portals.AtomicOp
	fetchInto       uint64
	compare         uint64 // operand of a conditional swap
}

func drawRequest(t *rapid.T) request {
	q := request{
		kind:   rapid.SampledFrom([]portals.OpKind{portals.OpPut, portals.OpGet, portals.OpAtomic, portals.OpFetchAtomic, portals.OpSwap}).Draw(t, "kind"),
		offset: rapid.Uint64Range(0, 2000).Draw(t, "offset") * 8, remote: rapid.Uint64Range(0, peerBytes/8).Draw(t, "remote") * 8,
		length: rapid.SampledFrom([]uint64{0, 8, 64, 1000, 4096, 9000}).Draw(t, "length"),
		bits:   rapid.Uint64().Draw(t, "bits"), data: rapid.Uint64().Draw(t, "data"), ptr: rapid.Uint64().Draw(t, "ptr"),
		ack:       portals.AckReq(rapid.IntRange(0, 3).Draw(t, "ack")),
		op:        rapid.SampledFrom([]portals.AtomicOp{portals.OpSUM, portals.OpMIN, portals.OpBXOR, portals.OpLAND}).Draw(t, "op"),
		fetchInto: 32768,
	}
	switch q.kind {
	case portals.OpGet:
		q.data = 0 // a get of a host has none
	case portals.OpAtomic, portals.OpFetchAtomic:
		q.length = min(q.length, 4096)
	case portals.OpSwap:
		q.length = 8
		q.op = rapid.SampledFrom([]portals.AtomicOp{portals.OpSWAP, portals.OpCSWAP, portals.OpMSWAP}).Draw(t, "swap")
		// the last is what lies at offset 0
		q.compare = rapid.SampledFrom([]uint64{0, 0xff00ff, 0x6b6a696867666564}).Draw(t, "operand")
	}
	return q
}

// host issues the request as a program of rank 1; with a counter as a triggered operation.
func (q *request) host(ni *runtime.NI, md, ct portals.Handle) error {
	to, operand := portals.PhysID(2, 0), word64(q.compare)
	if ct != 0 {
		switch q.kind {
		case portals.OpPut:
			return ni.Objects().Triggered(portals.Put{MD: md, Offset: q.offset, Length: q.length, Ack: q.ack, Target: to, MatchBits: q.bits, RemoteOffset: q.remote, UserPtr: q.ptr, HdrData: q.data}, ct, 1)
		case portals.OpGet:
			return ni.Objects().Triggered(portals.Get{MD: md, Offset: q.offset, Length: q.length, Target: to, MatchBits: q.bits, RemoteOffset: q.remote, UserPtr: q.ptr}, ct, 1)
		case portals.OpAtomic:
			return ni.Objects().Triggered(portals.Atomic{MD: md, Offset: q.offset, Length: q.length, Ack: q.ack, Target: to, MatchBits: q.bits, RemoteOffset: q.remote, UserPtr: q.ptr, HdrData: q.data, Op: q.op, Type: portals.Uint64}, ct, 1)
		case portals.OpFetchAtomic:
			return ni.Objects().Triggered(portals.FetchAtomic{GetMD: md, GetOffset: q.fetchInto, MD: md, Offset: q.offset, Length: q.length, Target: to, MatchBits: q.bits, RemoteOffset: q.remote, UserPtr: q.ptr, HdrData: q.data, Op: q.op, Type: portals.Uint64}, ct, 1)
		}
		return ni.Objects().Triggered(portals.Swap{GetMD: md, GetOffset: q.fetchInto, MD: md, Offset: q.offset, Length: q.length, Target: to, MatchBits: q.bits, RemoteOffset: q.remote, UserPtr: q.ptr, HdrData: q.data, Operand: operand, Op: q.op, Type: portals.Uint64}, ct, 1)
	}
	switch q.kind {
	case portals.OpPut:
		return ni.Put(portals.Put{MD: md, Offset: q.offset, Length: q.length, Ack: q.ack, Target: to, MatchBits: q.bits, RemoteOffset: q.remote, UserPtr: q.ptr, HdrData: q.data})
	case portals.OpGet:
		return ni.Get(portals.Get{MD: md, Offset: q.offset, Length: q.length, Target: to, MatchBits: q.bits, RemoteOffset: q.remote, UserPtr: q.ptr})
	case portals.OpAtomic:
		return ni.Atomic(portals.Atomic{MD: md, Offset: q.offset, Length: q.length, Ack: q.ack, Target: to, MatchBits: q.bits, RemoteOffset: q.remote, UserPtr: q.ptr, HdrData: q.data, Op: q.op, Type: portals.Uint64})
	case portals.OpFetchAtomic:
		return ni.FetchAtomic(portals.FetchAtomic{GetMD: md, GetOffset: q.fetchInto, MD: md, Offset: q.offset, Length: q.length, Target: to, MatchBits: q.bits, RemoteOffset: q.remote, UserPtr: q.ptr, HdrData: q.data, Op: q.op, Type: portals.Uint64})
	}
	return ni.Swap(portals.Swap{GetMD: md, GetOffset: q.fetchInto, MD: md, Offset: q.offset, Length: q.length, Target: to, MatchBits: q.bits, RemoteOffset: q.remote, UserPtr: q.ptr, HdrData: q.data, Operand: operand, Op: q.op, Type: portals.Uint64})
}

// handler is the operation record and the import that ask for the same.
func (q *request) handler(md portals.Handle) (hpu.Op, hpu.Operation) {
	d := hpu.Operation{
		Offset: q.offset, Length: q.length, TargetNID: 2, AckReq: uint32(q.ack), MatchBits: q.bits, RemoteOffset: q.remote, HdrData: q.data,
		UserPtr: q.ptr, MD: uint32(md), AtomicOp: uint32(q.op), Datatype: uint32(portals.Uint64), FetchOffset: math.MaxUint64,
	}
	switch q.kind {
	case portals.OpPut:
		return hpu.OpPutFromHost, d
	case portals.OpGet:
		return hpu.OpGetFromHost, d
	case portals.OpFetchAtomic, portals.OpSwap:
		d.FetchOffset, d.Operand = q.fetchInto, scratch2
	}
	return hpu.OpAtomicFromHost, d
}

// outcome is what an operation leaves behind: memory at both ends, and the
// events without their times, those of the message that set off the handler
// left out.
func (r *rig) outcome() string {
	text := ""
	for _, e := range r.peers {
		text += fmt.Sprintf("2: %+v\n", e.Event)
	}
	for _, e := range r.targets {
		if e.Type == portals.EventSend || e.Type == portals.EventAck || e.Type == portals.EventReply {
			text += fmt.Sprintf("1: %+v\n", e.Event)
		}
	}
	return text
}

// An operation does the same whether a host posts it, a counter triggers it or a handler issues it.
func TestFormsOfOperations(t *testing.T) {
	fill := func(r *rig) { copy(r.memory.host.Raw(), pattern(hostBytes, 3)) }
	rapid.Check(t, func(rt *rapid.T) {
		q := drawRequest(rt)
		host := conduct(t, setup{initiator: noMessage, target: func(p *runtime.Proc, r *rig) error {
			fill(r)
			return q.host(p.NI(), r.md, 0)
		}})
		triggered := conduct(t, setup{initiator: noMessage, target: func(p *runtime.Proc, r *rig) error {
			fill(r)
			if err := q.host(p.NI(), r.md, r.ct); err != nil {
				return err
			}
			return p.NI().Objects().CTInc(r.ct, portals.CTEvent{Success: 1})
		}})
		issued := conduct(t, setup{build: func(r *rig) {
			act, d := q.handler(r.md)
			r.ops = []hpu.Operation{d}
			r.header = []rec{also(opStore, scratch2, q.compare), do(act, opAt(0)), end(hpu.Drop)}
		}, target: func(_ *runtime.Proc, r *rig) error {
			fill(r)
			return nil
		}})
		issued.noHandlerErrors()
		for _, other := range []*rig{triggered, issued} {
			if host.outcome() != other.outcome() || !bytes.Equal(host.peerMem, other.peerMem) || !bytes.Equal(host.host, other.host) {
				rt.Fatalf("%+v\nposted:\n%sotherwise:\n%s", q, host.outcome(), other.outcome())
			}
		}
	})
}

func noMessage(*runtime.Proc, portals.Handle, *rig) error { return nil }

// The size of packets changes times and nothing else, with and without handlers
// that work on packets.
func TestPacketSizeChangesTimesOnly(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		size := rapid.IntRange(0, 2000).Draw(rt, "elements") * accumulate.ElementSize
		room := rapid.IntRange(0, 2500).Draw(rt, "room") * accumulate.ElementSize
		multiply := rapid.Bool().Draw(rt, "handlers")
		header := rapid.SampledFrom([]uint64{0, 16, 64, 256}).Draw(rt, "user header")
		var first *rig
		for _, mtu := range []int{256, 512, 1024, 4096} {
			var sees []rec
			if header > 0 { // which its handler leaves, and the rest is deposited
				multiply, sees = false, []rec{end(hpu.ProcessData)}
			}
			r := conduct(t, setup{
				overrides: []string{fmt.Sprintf("fabric.mtu=%d", mtu)}, length: size, header: sees, userHdr: header,
				entry: func(me *portals.ME, r *rig) {
					me.Length = uint64(room)
					if multiply {
						me.Spin = r.multiplier
					}
				},
				target: func(_ *runtime.Proc, r *rig) error { copy(r.memory.host.Raw(), pattern(hostBytes, 3)); return nil },
			})
			r.noHandlerErrors()
			if first == nil {
				first = r
				continue
			}
			if first.events() != r.events() || !bytes.Equal(first.host, r.host) {
				rt.Fatalf("MTU 256:\n%sMTU %d:\n%s", first.events(), mtu, r.events())
			}
		}
	})
}

// events are all events without their times.
func (r *rig) events() (text string) {
	for i, list := range [][]event{r.inits, r.targets} {
		for _, e := range list {
			text += fmt.Sprintf("%d: %+v\n", i, e.Event)
		}
	}
	return text
}

// multiplying is the handler of package accumulate, for an entry of rank 1.
func multiplying(p *runtime.Proc) (*portals.Spin, error) {
	module, err := p.Cluster().LoadModule("accumulate", accumulate.Library.Wasm)
	if err != nil {
		return nil, err
	}
	state, bytes := accumulate.NewState(16, int(p.Cluster().Profile().Fabric.MTU))
	memory, err := p.HPUAllocMem(module, bytes)
	if err != nil {
		return nil, err
	}
	s, err := memory.Spin("", accumulate.Payload, "")
	if err != nil {
		return nil, err
	}
	s.InitialState = spin.EncodeState(&state)
	return s, nil
}
