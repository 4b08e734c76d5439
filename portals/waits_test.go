package portals

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// waitingRun is a list of entries that are used once, and a list that is walked beside it.
type waitingRun struct {
	*rapid.T
	*pair
	list, under []walkedEntry // of which messages are open
	open        []*Delivery
	headers     [64]Header
	sent        int
	user        uint64
	completed   []uint64
}

type walkedEntry struct {
	user, bits, ignore uint64
	waits              bool
}

// TestEntriesThatWait: an entry that is used once, and that a message does not
// complete, is back in its place: the next message finds what a list that is
// walked from its beginning has, with one event and one AUTO_UNLINK for each
// entry that was completed.
func TestEntriesThatWait(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := &waitingRun{T: rt, pair: newPair(t, 0)}
		for range 40 {
			switch rapid.IntRange(0, 2).Draw(r.T, "what") {
			case 0:
				r.append()
			case 1:
				r.message()
			default:
				r.through()
			}
			r.check()
		}
		var puts, gone []uint64
		for e, err := r.b.EQGet(r.bq); err == nil; e, err = r.b.EQGet(r.bq) {
			switch e.Type {
			case EventPut:
				puts = append(puts, e.UserPtr)
			case EventAutoUnlink:
				gone = append(gone, e.UserPtr)
			default:
			}
		}
		require.Equal(r, r.completed, puts)
		require.Equal(r, r.completed, gone)
	})
}

func (r *waitingRun) append() {
	r.user++
	e := walkedEntry{user: r.user, bits: rapid.Uint64Range(0, 3).Draw(r.T, "bits"), ignore: 1<<rapid.IntRange(0, 10).Draw(r.T, "ignored") - 1}
	_, err := r.b.MEAppend(0, &ME{
		Length: 64, UID: UIDAny, MatchID: AnyID, MatchBits: e.bits, IgnoreBits: e.ignore, Options: OptMEOpPut | OptMEUseOnce | OptMEEventLinkDisable,
	}, PriorityList, r.user)
	require.NoError(r, err)
	r.list = append(r.list, e)
}

// message comes, if it finds an entry: one that does not would disable the portal table entry.
func (r *waitingRun) message() {
	h := &r.headers[r.sent]
	*h = Header{Kind: OpPut, NI: NIMatchingPhysical, MatchBits: rapid.Uint64Range(0, 3).Draw(r.T, "message"), RLength: 8}
	i := slices.IndexFunc(r.list, func(e walkedEntry) bool { return (e.bits^h.MatchBits)&^e.ignore == 0 })
	if i < 0 {
		return
	}
	r.sent++
	d := r.b.Port().Receive(h)
	require.True(r, d.Matched())
	require.Equal(r, r.list[i].user, d.entry.userPtr)
	r.open, r.under = append(r.open, d), append(r.under, r.list[i])
	r.list = slices.Delete(r.list, i, i+1)
}

func (r *waitingRun) through() {
	if len(r.open) == 0 {
		return
	}
	i := rapid.IntRange(0, len(r.open)-1).Draw(r.T, "through")
	d, e := r.open[i], r.under[i]
	r.open, r.under = slices.Delete(r.open, i, i+1), slices.Delete(r.under, i, i+1)
	o := d.Done()
	o.Note, o.Waits = 7, rapid.Bool().Draw(r.T, "waits")
	if o.Waits && rapid.Bool().Draw(r.T, "fails") {
		o.Fail = NIDropped
	}
	r.b.Port().Finish(d, o)
	if !o.Waits || o.Fail != NIOK {
		r.completed = append(r.completed, e.user)
		return
	}
	e.waits = true
	at, _ := slices.BinarySearchFunc(r.list, e, func(a, b walkedEntry) int { return int(a.user) - int(b.user) })
	r.list = slices.Insert(r.list, at, e)
}

// check compares the entries that wait.
func (r *waitingRun) check() {
	var waits, want []uint64
	r.b.Port().WaitingEntries(func(w WaitingEntry) {
		require.EqualValues(r, 7, w.Note)
		waits = append(waits, w.UserPtr)
	})
	for _, e := range r.list {
		if e.waits {
			want = append(want, e.user)
		}
	}
	require.Equal(r, want, waits)
}
