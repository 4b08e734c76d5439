package lab

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// target is a portal table index with match bits.
type target struct {
	pt   uint32
	bits uint64
}

// run has two ranks: 1 offers the entries, and 0 puts 16 bytes to each target.
func run(t *testing.T, entries []Entry, limits sim.Limits, to ...target) (*Run, error) {
	t.Helper()
	device, err := profile.Load("spin-int", "limits.max_entries=3")
	require.NoError(t, err)
	r := &Run{Keep: func(rank int, e *portals.Event) bool { return rank == 1 && e.Type == portals.EventPut }}
	main := func(n *Node) error {
		if err := n.MakeQueue(16); err != nil {
			return err
		}
		if n.Rank() == 1 {
			for i := range entries {
				entries[i].Memory = n.Alloc(8)
			}
			handles, err := n.Offer(entries)
			require.Len(t, handles, min(3, len(entries)))
			return err
		}
		md, err := n.NI().Objects().MDBind(&portals.MD{Start: n.Alloc(16).Addr(), Length: 16})
		for _, at := range to {
			if err == nil {
				err = n.NI().Put(portals.Put{MD: md, Length: 16, Target: portals.PhysID(1, 0), PT: at.pt, MatchBits: at.bits})
			}
		}
		return err
	}
	c := runtime.Config{Profile: device, Nodes: 2, Limits: limits}
	return r, r.Do(t.Context(), c, func(int) string { return "main" }, main, func(err error) error { return err })
}

func entry(pt uint32) Entry {
	return Entry{PT: pt, ME: portals.ME{UID: portals.UIDAny, MatchID: portals.AnyID, Options: portals.OptMEOpPut}}
}

// Entries of one index share its portal table entry, which joins their options.
// What happens there is recorded with its time.
func TestRunRecords(t *testing.T) {
	second := entry(0)
	second.PTs = portals.OptPTFlowCtrl
	r, err := run(t, []Entry{entry(0), second, entry(0)}, sim.Limits{}, target{}, target{pt: 7}, target{bits: 1})
	require.NoError(t, err)
	require.Len(t, r.Events, 1)
	require.Positive(t, r.Events[0].At)
	n := &r.Nodes[1]
	require.EqualValues(t, 1, n.Counted[portals.EventPut])
	require.EqualValues(t, 1, n.Truncated, "16 bytes in 8")
	require.EqualValues(t, 2, n.Refused)
	require.EqualValues(t, 1, n.Counted[portals.EventPTDisabled], "flow control of the second entry")
	require.ErrorContains(t, r.Refused[0], "no entry took a put of 16 B from rank 0")
	require.ErrorContains(t, r.Refused[0], "portal table index 7")
	require.False(t, Early(err))
}

// The fourth entry is beyond the limit of the device: those before it have handles.
func TestOfferEndsAtTheWrongEntry(t *testing.T) {
	_, err := run(t, []Entry{entry(0), entry(1), entry(2), entry(3)}, sim.Limits{})
	require.ErrorIs(t, err, portals.ErrNoSpace)
	require.False(t, Early(err))
}

func TestLimitsAreEarlyEnds(t *testing.T) {
	_, err := run(t, []Entry{entry(0)}, sim.Limits{Until: sim.Nanosecond}, target{})
	require.Error(t, err)
	require.True(t, Early(err))
}

// Fields are columns of the kind of their type, and nil is no value.
func TestRowsAreStructs(t *testing.T) {
	type row struct {
		Other int       // no column
		At    sim.Time  `column:"at" scale:"x" help:"When."`
		Bytes *uint64   `column:"bytes,size"`
		Bits  *uint64   `column:"bits,hex"`
		Done  *sim.Time `column:"done"`
		Text  string    `column:"text"`
		Data  []byte    `column:"data,hex"`
		Is    bool      `column:"is"`
	}
	d := TableOf[*row]("name", "Title")
	require.Equal(t, report.Column{Name: "at", Unit: "ns", Kind: report.Duration, Scale: "x", Help: "When."}, d.Columns[0])
	var kinds []report.Kind
	for _, c := range d.Columns {
		kinds = append(kinds, c.Kind)
	}
	require.Equal(t, []report.Kind{report.Duration, report.Size, report.Text, report.Duration, report.Text, report.Text, report.Flag}, kinds)
	require.Equal(t, experiment.Rows{
		{sim.Time(5), int64(16), "0x10", sim.Time(7), "a", "01ff", true},
		{sim.Time(0), nil, nil, nil, "", "", false},
	}, RowsOf([]*row{{1, 5, new(uint64(16)), new(uint64(16)), new(sim.Time(7)), "a", []byte{1, 255}, true}, {}}))
}
