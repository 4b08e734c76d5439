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
		{"put", OptMDEventCTAck, persistent, func(p *pair) error { return p.a.Put(p.md, 0, 512, Ack, to, 0, 0, 0, 0, 0) }},
		{"volatile put", OptMDVolatile, persistent, func(p *pair) error { return p.a.Put(p.md, 0, 128, Ack, to, 0, 0, 0, 0, 0) }},
		{"get", OptMDEventCTReply, persistent, func(p *pair) error { return p.a.Get(p.md, 0, 512, to, 0, 0, 0, 0) }},
		{"atomic", 0, persistent, func(p *pair) error {
			return p.a.Atomic(p.md, 0, 512, Ack, to, 0, 0, 0, 0, 0, OpPROD, LongDoubleComplex)
		}},
		{"fetch", 0, persistent, func(p *pair) error {
			return p.a.FetchAtomic(p.md, 0, p.md, 1024, 512, to, 0, 0, 0, 0, 0, OpSUM, Int32)
		}},
		{"swap", 0, persistent, func(p *pair) error {
			return p.a.Swap(p.md, 0, p.md, 1024, 8, to, 0, 0, 0, 0, 0, operand, OpCSWAP, Uint64)
		}},
		{"triggered put", 0, persistent, func(p *pair) error {
			v, err := p.a.CTGet(p.ct)
			if err != nil {
				return err
			}
			if err := p.a.TriggeredPut(p.md, 0, 64, NoAck, to, 0, 0, 0, 0, 0, p.ct, v.Success+1); err != nil {
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
			return p.a.Put(p.md, 0, 64, Ack, to, 0, 0, 0, 0, 0)
		}},
		{"unexpected", 0, func(p *pair) error {
			_, err := p.b.MEAppend(0, entry, OverflowList, 0)
			return err
		}, func(p *pair) error {
			if err := p.a.Put(p.md, 0, 64, Ack, to, 0, 0, 0, 0, 0); err != nil {
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
		}, func(p *pair) error { return p.a.Put(p.md, 0, 64, NoAck, to, 0, 0, 0, 0, 0) }},
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
