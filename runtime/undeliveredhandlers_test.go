package runtime_test

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// unreliable are overrides of the laboratory's device: rank 1, whose handlers
// act on rank 2, loses a link for a time.
func unreliable(link string, from, to sim.Time) []string {
	return []string{
		"transport.kind=reliable", fmt.Sprintf("transport.timeout=%dps", pairTimeout), fmt.Sprintf("transport.retries=%d", pairRetries),
		fmt.Sprintf("fabric.faults.down=[{link: '%s', from: %dps, to: %dps}]", link, from, to),
	}
}

// A handler that waits for an answer that will not come goes on with an error:
// the request, its reply, or a part of it could not be delivered.
func TestHandlerGetsUndeliverable(t *testing.T) {
	get := setup{
		header: []rec{do(hpu.OpGetFromDevice, opAt(0)), do(hpu.OpGetFromDevice, opAt(1)), end(hpu.Proceed)},
		build: func(r *rig) {
			r.ops = []hpu.Operation{
				{Local: scratch2, Length: 12000, TargetNID: 2, RemoteOffset: 8, MD: uint32(r.md), UserPtr: 5},
				// refused: rank 0 has no entry
				{Local: scratch2, Length: 8, TargetNID: 0, MD: uint32(r.md), UserPtr: 6},
			}
		},
	}
	s := get
	s.overrides = unreliable("Node[1].Tx", 0, 1)
	base := conduct(t, s)
	require.Equal(t, hpu.OK, base.result(headerAt, 0))
	asked, there := base.stepsOf(nic.StepActed, hpu.OpGetFromDevice)[0].At, base.stepsOf(nic.StepAnswered, hpu.OpGetFromDevice)[0].At
	for name, c := range map[string]struct {
		link string
		from sim.Time
		to   sim.Time
	}{
		"request":       {"Switch[0][0].Down[2]", asked, asked + 2*patience},
		"reply":         {"Node[2].Tx", there - 800*sim.Nanosecond, there + patience + patience/2},
		"part of reply": {"Node[2].Tx", there - 200*sim.Nanosecond, there + patience + patience/2},
	} {
		t.Run(name, func(t *testing.T) {
			s := get
			s.overrides = unreliable(c.link, c.from, c.to)
			r := conduct(t, s)
			r.noHandlerErrors()
			require.Equal(t, []int64{hpu.Denied, hpu.Denied}, []int64{r.result(headerAt, 0), r.result(headerAt, 1)})
			replies := all(r.targets, portals.EventReply)
			require.Len(t, replies, 2)
			require.Equal(t, []any{portals.NIUndeliverable, uint64(5)}, []any{replies[0].Fail, replies[0].UserPtr})
			require.Equal(t, portals.NIOK, only(t, r.targets, portals.EventPut).Fail)
			_, n := r.c.Failures()
			require.Equal(t, 1, n)
			for i := range 3 {
				require.NoError(t, r.c.Node(i).NIC().Idle())
			}
		})
	}
}

// Puts of handlers to a node that cannot be reached do not block the egress for
// ever, and complete the entry with a failure.
func TestHandlerPutsUndeliverable(t *testing.T) {
	var script []rec
	for range 6 {
		script = append(script, do(hpu.OpPutFromDevice, opAt(0)))
	}
	r := conduct(t, setup{
		overrides: append(unreliable("Switch[0][0].Down[2]", 0, always), "nic.egress_packets=2", "transport.window=1"),
		header:    append(script, end(hpu.ProceedPending)), length: 100,
		build: func(r *rig) {
			r.ops = []hpu.Operation{{Local: scratch, Length: 4096, TargetNID: 2, MD: uint32(r.md), Options: 1}}
		},
	})
	r.noHandlerErrors()
	for i := range script {
		require.Equal(t, hpu.OK, r.result(headerAt, i))
	}
	sends := all(r.targets, portals.EventSend)
	require.Len(t, sends, len(script))
	for _, e := range sends {
		require.Equal(t, portals.NIUndeliverable, e.Fail)
	}
	put := only(t, r.targets, portals.EventPut)
	require.Equal(t, []any{portals.NIUndeliverable, uint64(100)}, []any{put.Fail, put.MLength})
	_, n := r.c.Failures()
	require.Equal(t, len(script), n)
	require.NoError(t, r.c.Node(1).NIC().Idle())
}

// If the rest of a message never comes, its handlers end as for a damaged
// message: the completion handler receives the number of missing bytes.
func TestHandlersOfAbandonedMessages(t *testing.T) {
	for _, s := range []setup{
		{payload: []rec{also(opSpin, 3000), end(hpu.Success)}, completion: []rec{end(hpu.Success)}},
		{header: []rec{also(opSpin, 100), end(hpu.ProcessData)}, payload: []rec{end(hpu.Success)}, completion: []rec{end(hpu.Success)}},
		{header: []rec{also(opSpin, 1000000/2), end(hpu.Proceed)}},
		{header: []rec{end(hpu.ProcessData)}, completion: []rec{end(hpu.Success)}},
		{header: []rec{end(hpu.Drop)}},
	} {
		s.length = 10 * 4096
		again := func(up sim.Time) func(p *runtime.Proc, md portals.Handle, r *rig) error {
			return func(p *runtime.Proc, md portals.Handle, r *rig) error {
				for i := range 2 {
					if err := p.NI().Put(portals.Put{MD: md, Length: []uint64{uint64(r.length), 4096}[i], Ack: portals.Ack, Target: portals.PhysID(1, 0), MatchBits: 5, UserPtr: uint64(i)}); err != nil {
						return err
					}
					p.SleepUntil(max(p.Now(), up))
				}
				return nil
			}
		}
		up := sim.Microsecond + 2*patience
		s.initiator = again(up)
		s.overrides = append(unreliable("Node[0].Tx", 900*sim.Nanosecond, up), "hpu.max_cycles=10000000")
		r := conduct(t, s)
		puts := all(r.targets, portals.EventPut)
		require.Len(t, puts, 2)
		require.Equal(t, []any{portals.NIUndeliverable, portals.NIOK}, []any{puts[0].Fail, puts[1].Fail})
		acks := all(r.inits, portals.EventAck)
		require.Len(t, acks, 2)
		require.Equal(t, []portals.FailType{portals.NIUndeliverable, portals.NIOK}, []portals.FailType{acks[0].Fail, acks[1].Fail})
		came := int64(puts[0].MLength)
		if len(s.header) > 0 && s.header[len(s.header)-1].args[0] == end(hpu.Drop).args[0] {
			require.Zero(t, came)
		} else {
			require.Positive(t, came)
			require.Less(t, came, int64(s.length))
			require.Zero(t, came%4096)
		}
		if s.completion != nil {
			ends := r.stepsOf(nic.StepBegan, hpu.OpNone)
			var records [][]byte
			for _, e := range ends {
				if e.Handler == "completion" {
					records = append(records, e.Record)
				}
			}
			require.Len(t, records, 2)
			require.Equal(t, uint64(s.length)-uint64(came), binary.LittleEndian.Uint64(records[0]))
			require.Equal(t, byte(1), records[0][12], "failed")
			require.Zero(t, binary.LittleEndian.Uint64(records[1]))
		}
		_, n := r.c.Failures()
		require.Equal(t, 1, n)
		for i := range 2 {
			require.NoError(t, r.c.Node(i).NIC().Idle())
		}
	}
}

// All that was sent of a message has arrived, and only the acknowledgements
// have not: its target learns of the end like any other.
func TestGivenUpBetweenPackets(t *testing.T) {
	up := 50 * sim.Microsecond
	r := runPair(t, fmt.Sprintf(fromSwitch, 0, up), [2]func(*pairRank) error{func(k *pairRank) error {
		if err := k.put(3000, 0); err != nil {
			return err
		}
		k.p.SleepUntil(up)
		return k.put(500, 10000)
	}}, "transport.window=1", "transport.retries=0")
	require.NoError(t, r.err)
	require.Equal(t, []string{"SEND UNDELIVERABLE 0", "ACK UNDELIVERABLE 0", "SEND OK 500", "ACK OK 500"}, told(r.ranks[0].events))
	require.Equal(t, []string{"PUT UNDELIVERABLE 1024", "PUT OK 500"}, told(r.ranks[1].events))
	failures, _ := r.c.Failures()
	require.ErrorContains(t, failures[0], "3 of 3 packets (3000 of 3000 B) of a put from rank 0 to rank 1 were not acknowledged")
	r.left()
}
