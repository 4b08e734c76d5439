package portals

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/internal/poison"
)

// pair is two interfaces with a direct wire.
type pair struct {
	a, b   *NI
	eq, ct Handle // at a
	md     Handle
	bq     Handle
	h      Header // of the message on the wire
	buf    [4096]byte
}

func newPair(t testing.TB, mdOptions MDOptions) *pair {
	limits := deviceLimits
	p := &pair{}
	newNI := func(nid uint32) *NI {
		ni, _, err := NewNI(NIConfig{NID: nid, Options: OptNIMatching | OptNIPhysical, Device: limits, Memory: make(flatMemory, 1<<16)})
		require.NoError(t, err)
		return ni
	}
	p.a, p.b = newNI(0), newNI(1)
	var err error
	p.eq, err = p.a.EQAlloc(64)
	require.NoError(t, err)
	p.ct, err = p.a.CTAlloc()
	require.NoError(t, err)
	p.md, err = p.a.MDBind(&MD{Length: 4096, EQ: p.eq, CT: p.ct, Options: mdOptions})
	require.NoError(t, err)
	p.bq, err = p.b.EQAlloc(64)
	require.NoError(t, err)
	_, err = p.b.PTAlloc(OptPTFlowCtrl, p.bq, 0)
	require.NoError(t, err)
	return p
}

// flush carries everything and drains the queues.
func (p *pair) flush(t testing.TB) {
	for busy := true; busy; {
		busy = false
		for _, from := range []*NI{p.a, p.b} {
			to := p.b
			if from == p.b {
				to = p.a
			}
			for op := from.Port().NextOp(); op != nil; op = from.Port().NextOp() {
				busy = true
				p.h = op.Header
				data := p.buf[:op.Length()]
				if !from.Port().Read(op, 0, data) && len(data) > 0 {
					t.Fatal("payload is not accessible")
				}
				from.Port().Sent(op, NIOK)
				from.Port().Release(op)
				switch p.h.Kind {
				case OpAck:
					to.Port().Acked(&p.h)
				case OpReply:
					d := to.Port().ReplyTo(&p.h)
					to.Port().Write(d, 0, data)
					to.Port().Finish(d, d.Done())
				default:
					d := to.Port().Receive(&p.h)
					to.Port().Write(d, 0, data)
					to.Port().Finish(d, d.Done())
				}
			}
		}
	}
	for p.a.EQLen(p.eq) > 0 {
		ev, err := p.a.EQGet(p.eq)
		if err != nil || ev.Fail != NIOK {
			t.Fatal(ev, err)
		}
	}
	for p.b.EQLen(p.bq) > 0 {
		if _, err := p.b.EQGet(p.bq); err != nil {
			t.Fatal(err)
		}
	}
}

// allocCase is a kind of message: what is prepared and what happens once.
type allocCase struct {
	name    string
	options MDOptions
	setup   func(p *pair) error
	run     func(p *pair) error
}

func allocCases(t *testing.T) []allocCase {
	to := PhysID(1, 0)
	entry := &ME{Start: 8192, Length: 4096, UID: UIDAny, MatchID: AnyID, Options: OptMEOpPut | OptMEOpGet}
	persistent := func(p *pair) error {
		_, err := p.b.MEAppend(0, entry, PriorityList, 0)
		return err
	}
	operand := make([]byte, 8)
	return []allocCase{
		{"put", OptMDEventCTAck, persistent, func(p *pair) error { return p.a.Put(Put{MD: p.md, Length: 512, Ack: Ack, Target: to}) }},
		{"volatile put", OptMDVolatile, persistent, func(p *pair) error { return p.a.Put(Put{MD: p.md, Length: 128, Ack: Ack, Target: to}) }},
		{"get", OptMDEventCTReply, persistent, func(p *pair) error { return p.a.Get(Get{MD: p.md, Length: 512, Target: to}) }},
		{"atomic", 0, persistent, func(p *pair) error {
			return p.a.Atomic(Atomic{MD: p.md, Length: 512, Ack: Ack, Target: to, Op: OpPROD, Type: LongDoubleComplex})
		}},
		{"fetch", 0, persistent, func(p *pair) error {
			return p.a.FetchAtomic(FetchAtomic{GetMD: p.md, MD: p.md, Offset: 1024, Length: 512, Target: to, Op: OpSUM, Type: Int32})
		}},
		{"swap", 0, persistent, func(p *pair) error {
			return p.a.Swap(Swap{GetMD: p.md, MD: p.md, Offset: 1024, Length: 8, Target: to, Operand: operand, Op: OpCSWAP, Type: Uint64})
		}},
		{"triggered put", 0, persistent, func(p *pair) error {
			v, err := p.a.CTGet(p.ct)
			if err != nil {
				return err
			}
			if err := p.a.Triggered(Put{MD: p.md, Length: 64, Target: to}, p.ct, v.Success+1); err != nil {
				return err
			}
			return p.a.CTInc(p.ct, CTEvent{Success: 1})
		}},
		{"use once", 0, func(*pair) error { return nil }, func(p *pair) error {
			once := *entry
			once.Options |= OptMEUseOnce
			if _, err := p.b.MEAppend(0, &once, PriorityList, 0); err != nil {
				return err
			}
			return p.a.Put(Put{MD: p.md, Length: 64, Ack: Ack, Target: to})
		}},
		{"unexpected", 0, func(p *pair) error {
			_, err := p.b.MEAppend(0, entry, OverflowList, 0)
			return err
		}, func(p *pair) error {
			if err := p.a.Put(Put{MD: p.md, Length: 64, Ack: Ack, Target: to}); err != nil {
				return err
			}
			p.flush(t)
			once := *entry
			once.Options |= OptMEUseOnce
			_, err := p.b.MEAppend(0, &once, PriorityList, 0)
			return err
		}},
		{"handler put", 0, persistent, func(p *pair) error {
			return p.a.Port().Issue(&HandlerOp{Kind: OpPut, Data: operand, Target: to, MD: p.md})
		}},
		{"refused", OptMDEventSuccessDisable, func(p *pair) error {
			return errors.Join(persistent(p), p.b.PTDisable(0))
		}, func(p *pair) error { return p.a.Put(Put{MD: p.md, Length: 64, Target: to}) }},
	}
}

// TestNoAllocations checks that the steady state of every kind of message
// allocates nothing, from the call to the last event.
func TestNoAllocations(t *testing.T) {
	for _, c := range allocCases(t) {
		t.Run(c.name, func(t *testing.T) {
			p := newPair(t, c.options)
			require.NoError(t, c.setup(p))
			once := func() {
				if err := c.run(p); err != nil {
					t.Fatal(err)
				}
				p.flush(t)
			}
			for range 100 {
				once()
			}
			if allocations := testing.AllocsPerRun(200, once); !poison.On { // then nothing is used again
				require.Zero(t, allocations)
			}
		})
	}
}
