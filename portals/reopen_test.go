package portals

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestNoAnswerForTheNext: an answer for an operation of an interface that is
// closed never completes one of an interface that was opened after it, whether
// by the same process or by another that has its identifier now, however often
// places in the tables of pending operations were used.
func TestNoAnswerForTheNext(t *testing.T) {
	limits := deviceLimits
	rapid.Check(t, func(r *rapid.T) {
		node := NewNode(1, 7)
		newProcess := func() *Process {
			return node.NewProcess(ProcessConfig{Device: limits, Memory: make(flatMemory, 4096)})
		}
		p := newProcess()
		other := newProcess() // is always there, and closed and opened at its own times
		var late []Header     // answers of closed interfaces
		for range rapid.IntRange(1, 6).Draw(r, "interfaces") {
			who := []*Process{p, other}[rapid.IntRange(0, 1).Draw(r, "who")]
			ni, ct, md := opened(r, who, &limits)
			open, counted := []Header{}, uint64(0)
			for range rapid.IntRange(0, 20).Draw(r, "operations") {
				switch what := rapid.IntRange(0, 3).Draw(r, "what"); {
				case what < 2:
					kind := OpAck
					var err error
					if what == 0 {
						err = ni.Put(Put{MD: md, Length: 8, Ack: CTAck, Target: PhysID(2, 0)})
					} else {
						kind, err = OpReply, ni.Get(Get{MD: md, Length: 8, Target: PhysID(2, 0)})
					}
					require.NoError(r, err)
					op := ni.Port().NextOp()
					h := op.Header
					h.Kind = kind
					ni.Port().Sent(op, NIOK)
					ni.Port().Release(op)
					open = append(open, h)
				case what == 2 && len(open) > 0:
					i := rapid.IntRange(0, len(open)-1).Draw(r, "answered")
					answer(ni, open[i])
					open = append(open[:i], open[i+1:]...)
					counted++
				case len(late) > 0:
					answer(ni, late[rapid.IntRange(0, len(late)-1).Draw(r, "late")])
				}
				v, err := ni.CTGet(ct)
				require.NoError(r, err)
				require.Equal(r, CTEvent{Success: counted}, v, "an answer for an interface that is closed was taken for one of this")
			}
			late = append(late, open...)
			require.NoError(r, ni.NIFini())
			if rapid.Bool().Draw(r, "the process ends") {
				if who.Fini(); who == p {
					p = newProcess()
				} else {
					other = newProcess()
				}
			}
		}
	})
}

// opened is a new interface of a process, with a counter and a descriptor that counts answers.
func opened(r *rapid.T, p *Process, limits *Limits) (ni *NI, ct, md Handle) {
	require.NoError(r, p.Init())
	ni, _, err := p.NIInit(IfaceDefault, OptNIMatching|OptNIPhysical, PIDAny, limits)
	require.NoError(r, err)
	ct, err = ni.CTAlloc()
	require.NoError(r, err)
	md, err = ni.MDBind(&MD{Length: 4096, CT: ct, Options: OptMDEventCTAck | OptMDEventCTReply})
	require.NoError(r, err)
	return ni, ct, md
}

// answer lets an acknowledgement or a reply arrive.
func answer(ni *NI, h Header) {
	if h.Kind == OpAck {
		ni.Port().Acked(&h)
		return
	}
	d := ni.Port().ReplyTo(&h)
	ni.Port().Write(d, 0, make([]byte, 8))
	ni.Port().Finish(d, d.Done())
}
