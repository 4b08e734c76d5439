package portals

import (
	"math/rand/v2"
	"testing"
)

// garbage produces the values that break things.
type garbage struct {
	r       *rand.Rand
	handles []Handle
}

func (g *garbage) size() uint64 {
	switch g.r.IntN(6) {
	case 0:
		return SizeMax
	case 1:
		return SizeMax - uint64(g.r.IntN(100))
	case 2:
		return 1 << g.r.IntN(64)
	case 3:
		return g.r.Uint64()
	}
	return uint64(g.r.IntN(100))
}

func (g *garbage) handle() Handle {
	if len(g.handles) > 0 && g.r.IntN(4) > 0 {
		return g.handles[g.r.IntN(len(g.handles))]
	}
	return Handle(g.r.Uint32())
}

func (g *garbage) small() uint32 {
	return pick(g.r, 0, 0, 1, 2, g.r.Uint32(), ^uint32(0))
}

func (g *garbage) id() ID { return ID{g.small(), g.small(), g.small()} }

func (g *garbage) iov() []IOVec {
	if g.r.IntN(3) > 0 {
		return nil
	}
	iov := make([]IOVec, g.r.IntN(6))
	for i := range iov {
		iov[i] = IOVec{g.size(), g.size()}
	}
	return iov
}

func (g *garbage) me() *ME {
	me := &ME{
		Start: g.size(), Length: g.size(), IOVec: g.iov(), CT: g.handle(), UID: pick(g.r, UIDAny, 0, 7),
		Options: EntryOptions(g.r.Uint32()), MatchID: g.id(), MatchBits: uint64(g.r.IntN(2)), IgnoreBits: g.size(),
		MinFree: g.size(),
	}
	if g.r.IntN(4) > 0 {
		me.Options &= optMEAll &^ OptMEHandlerIOVec
		me.IOVec, me.Options = nil, me.Options&^OptMEIOVec
		me.Start, me.Length, me.CT = uint64(g.r.IntN(5000)), uint64(g.r.IntN(5000)), CTNone
		me.MatchID, me.UID, me.IgnoreBits, me.Options = AnyID, UIDAny, pick(g.r, 0, SizeMax), me.Options|OptMEOpPut|OptMEOpGet
	}
	return me
}

func (g *garbage) note(h Handle, err error) {
	if err == nil {
		g.handles = append(g.handles, h)
	}
}

func (g *garbage) header(refs uint64) Header {
	r := g.r
	h := Header{
		Kind: OpKind(r.IntN(9)), NI: NIMatchingPhysical, AckReq: AckReq(r.IntN(6)), Op: AtomicOp(r.IntN(20)),
		Type: Datatype(r.IntN(16)), Initiator: g.id(), UID: g.small(), PT: g.small(), MatchBits: uint64(r.IntN(2)),
		RLength: g.size(), RemoteOffset: g.size(), Ref: uint64(r.IntN(3))<<32 | uint64(r.IntN(int(refs)+4)),
		Fail: FailType(r.IntN(10)), List: List(r.IntN(3)), MLength: g.size(),
	}
	if r.IntN(2) == 0 {
		h.RLength, h.RemoteOffset, h.PT = uint64(r.IntN(64))*8, uint64(r.IntN(64)), 0
		h.Op, h.Type = pick(r, OpSUM, OpPROD, OpMIN), Datatype(r.IntN(int(Double)+1))
		if h.Kind == OpSwap {
			h.Op, h.Type, h.RLength = AtomicOp(10+r.IntN(8)), pick(r, Int64, Double, Uint64), 8
		}
	}
	return h
}

// TestGarbage calls every function with stale, foreign and random handles,
// sizes near 2^64, hostile headers, and frees objects with operations in
// flight. Nothing may panic, and the interface must come to rest.
func TestGarbage(t *testing.T) {
	for seed := range uint64(300) {
		g := &garbage{r: rand.New(rand.NewPCG(seed, 3))}
		limits := deviceLimits
		limits.MaxEQs, limits.MaxEntries = 8, 50
		ni, _, err := NewNI(NIConfig{Options: OptNIMatching | OptNIPhysical, Device: limits, Memory: make(flatMemory, 4096)})
		if err != nil {
			t.Fatal(err)
		}
		q, err := ni.EQAlloc(1 + seed%20)
		if err != nil {
			t.Fatal(err)
		}
		g.handles = append(g.handles, q)
		if _, err := ni.PTAlloc(pick(g.r, 0, OptPTFlowCtrl), q, 0); err != nil {
			t.Fatal(err)
		}
		var open []*Delivery
		var ops []*Op
		for range 600 {
			g.call(ni)
			g.transport(ni, &open, &ops)
		}
		if seed%2 == 0 {
			_ = ni.NIFini() // what is in flight now meets a dead interface
		}
		for _, d := range open {
			ni.Port().Finish(d, Outcome{Delivered: g.size(), Fail: FailType(g.r.IntN(8))})
		}
		for op := ni.Port().NextOp(); op != nil; op = ni.Port().NextOp() {
			ops = append(ops, op)
		}
		for _, op := range ops {
			ni.Port().Sent(op, FailType(g.r.IntN(8)))
			ni.Port().Release(op)
		}
		for _, p := range ni.pts {
			if p != nil && p.open != 0 && !ni.dead {
				t.Fatalf("seed %d: %d deliveries never ended", seed, p.open)
			}
		}
	}
}

// transport receives, writes and finishes at random.
func (g *garbage) transport(ni *NI, open *[]*Delivery, ops *[]*Op) {
	r := g.r
	switch r.IntN(6) {
	case 0, 1:
		h := g.header(uint64(len(ni.pending.ops)))
		if h.Kind == OpReply {
			*open = append(*open, ni.Port().ReplyTo(&h))
		} else {
			*open = append(*open, ni.Port().Receive(&h))
		}
	case 2:
		h := g.header(uint64(len(ni.pending.ops)))
		ni.Port().Acked(&h)
		h = g.header(uint64(len(ni.pending.ops)))
		ni.Port().Lost(&h, NIUndeliverable)
	case 3:
		if len(*open) > 0 {
			i := r.IntN(len(*open))
			d := (*open)[i]
			ni.Port().Write(d, uint64(r.IntN(4))*32, make([]byte, r.IntN(100)))
			pending := r.IntN(4) == 0
			ni.Port().Finish(d, Outcome{Delivered: g.size(), Fail: FailType(r.IntN(8)), Pending: pending})
			if !pending {
				*open = append((*open)[:i:i], (*open)[i+1:]...)
			}
		}
	case 4:
		if op := ni.Port().NextOp(); op != nil {
			var buf [64]byte
			ni.Port().Read(op, g.size(), buf[:])
			for it := op.Segments(g.size(), g.size()); ; {
				if _, _, ok := it.Next(); !ok {
					break
				}
			}
			*ops = append(*ops, op)
		}
	default:
		if len(*ops) > 0 {
			op := (*ops)[0]
			*ops = (*ops)[1:]
			ni.Port().Sent(op, FailType(r.IntN(8)))
			ni.Port().Release(op)
		}
	}
}

// call calls a random function of the host's side; errors are expected.
func (g *garbage) call(ni *NI) {
	r := g.r
	op, typ := AtomicOp(r.IntN(20)), Datatype(r.IntN(16))
	trig := r.IntN(3) == 0
	switch n := r.IntN(22); {
	case n > 10:
		g.callMore(ni, n, op, typ, trig)
	default:
		g.callObjects(ni, n, trig)
	}
}

func (g *garbage) callObjects(ni *NI, n int, trig bool) {
	r := g.r
	switch n {
	case 0:
		g.note(ni.EQAlloc(g.size()))
	case 1:
		g.note(ni.CTAlloc())
	case 2:
		m := &MD{Start: g.size(), Length: g.size(), IOVec: g.iov(), Options: MDOptions(r.Uint32()), EQ: g.handle(), CT: g.handle()}
		if r.IntN(3) > 0 {
			*m = MD{Length: pick(r, 4096, SizeMax), Options: MDOptions(r.Uint32()) & optMDAll &^ OptMDIOVec, EQ: m.EQ}
		}
		g.note(ni.MDBind(m))
	case 3:
		_, _ = ni.PTAlloc(PTOptions(r.Uint32())&pick(r, optPTAll, ^PTOptions(0)), g.handle(), g.small())
	case 4, 5:
		if trig {
			g.note(ni.TriggeredMEAppend(g.small(), g.me(), List(r.IntN(3)), 0, g.handle(), g.size()))
		} else {
			g.note(ni.MEAppend(g.small(), g.me(), List(r.IntN(3)), 0))
		}
	case 6:
		_ = ni.MEUnlink(g.handle())
		_ = ni.LEUnlink(g.handle())
		_ = ni.Triggered(MEUnlink{ME: g.handle()}, g.handle(), g.size())
	case 7:
		_ = ni.MESearch(g.small(), g.me(), SearchOp(r.IntN(3)), 0)
		_ = ni.LESearch(g.small(), &LE{}, SearchOnly, 0)
		_, _ = ni.LEAppend(g.small(), &LE{}, PriorityList, 0)
	case 8:
		_ = ni.EQFree(g.handle())
	case 9:
		_ = ni.CTFree(g.handle())
	case 10:
		_ = ni.MDRelease(g.handle())
	}
}

func (g *garbage) callMore(ni *NI, n int, op AtomicOp, typ Datatype, trig bool) {
	r := g.r
	switch n {
	case 11:
		_ = ni.PTFree(g.small())
		_ = ni.PTDisable(g.small())
		_ = ni.PTEnable(0)
		ni.Port().DisableForFlowControl(g.small())
	case 12:
		_, _ = ni.EQGet(g.handle())
		_, _, _ = ni.EQPoll([]Handle{g.handle(), g.handle()})
		_, _ = ni.CTGet(g.handle())
		_, _, _ = ni.CTPoll([]Handle{g.handle()}, []uint64{g.size(), 0}[:1+r.IntN(2)])
	case 13:
		_ = ni.CTSet(g.handle(), CTEvent{g.size(), g.size()})
		_ = ni.CTInc(g.handle(), CTEvent{g.size(), 0})
		_ = ni.CTCancelTriggered(g.handle())
	case 14:
		_ = ni.Triggered(CTInc{CT: g.handle(), Increment: CTEvent{g.size(), 0}}, g.handle(), g.size())
		_ = ni.Triggered(CTSet{CT: g.handle(), Value: CTEvent{g.size(), g.size()}}, g.handle(), g.size())
	case 15:
		_ = ni.Port().Issue(&HandlerOp{
			Kind: OpKind(r.IntN(8)), Data: make([]byte, r.IntN(9000)), Source: Region{Start: g.size(), Length: g.size()},
			SourceOffset: g.size(), Dest: Region{Start: g.size(), Length: g.size()}, DestOffset: g.size(), MD: g.handle(),
			AckReq: AckReq(r.IntN(6)), Target: g.id(), Op: op, Type: typ, Operand: make([]byte, r.IntN(64)),
		})
	case 16:
		_, _ = ni.NIStatus(StatusRegister(r.IntN(5)))
		_, _ = ni.Process().NIHandle(g.handle())
		_ = ni.SetMap([]ID{g.id()})
		_, _ = ni.GetMap(make([]ID, 1))
	default:
		g.move(ni, op, typ, trig)
	}
}

func (g *garbage) move(ni *NI, op AtomicOp, typ Datatype, trig bool) {
	r := g.r
	off, n := uint64(r.IntN(64)), uint64(r.IntN(8))*16
	if r.IntN(4) == 0 {
		off, n = g.size(), g.size()
	}
	operand := make([]byte, r.IntN(40))
	a, b, c := g.handle(), g.handle(), g.handle()
	to, ack := g.id(), AckReq(r.IntN(6))
	switch k := r.IntN(5); {
	case k == 0 && trig:
		_ = ni.Triggered(Put{MD: a, Offset: off, Length: n, Ack: ack, Target: to, PT: g.small(), RemoteOffset: g.size()}, c, g.size())
	case k == 0:
		_ = ni.Put(Put{MD: a, Offset: off, Length: n, Ack: ack, Target: to, PT: g.small(), RemoteOffset: g.size()})
	case k == 1 && trig:
		_ = ni.Triggered(Get{MD: a, Offset: off, Length: n, Target: to, PT: g.small(), RemoteOffset: g.size()}, c, g.size())
	case k == 1:
		_ = ni.Get(Get{MD: a, Offset: off, Length: n, Target: to, PT: g.small(), RemoteOffset: g.size()})
	case k == 2 && trig:
		_ = ni.Triggered(Atomic{MD: a, Offset: off, Length: n, Ack: ack, Target: to, PT: g.small(), RemoteOffset: g.size(), Op: op, Type: typ}, c, g.size())
	case k == 2:
		_ = ni.Atomic(Atomic{MD: a, Offset: off, Length: n, Ack: ack, Target: to, PT: g.small(), RemoteOffset: g.size(), Op: op, Type: typ})
	case k == 3 && trig:
		_ = ni.Triggered(FetchAtomic{GetMD: a, GetOffset: off, MD: b, Offset: off, Length: n, Target: to, PT: g.small(), RemoteOffset: g.size(), Op: op, Type: typ}, c, g.size())
	case k == 3:
		_ = ni.FetchAtomic(FetchAtomic{GetMD: a, GetOffset: off, MD: b, Offset: off, Length: n, Target: to, PT: g.small(), RemoteOffset: g.size(), Op: op, Type: typ})
	case trig:
		_ = ni.Triggered(Swap{GetMD: a, GetOffset: off, MD: b, Offset: off, Length: n, Target: to, PT: g.small(), RemoteOffset: g.size(), Operand: operand, Op: op, Type: typ}, c, g.size())
	default:
		_ = ni.Swap(Swap{GetMD: a, GetOffset: off, MD: b, Offset: off, Length: n, Target: to, PT: g.small(), RemoteOffset: g.size(), Operand: operand, Op: op, Type: typ})
	}
}
