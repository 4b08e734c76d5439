package runtime_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/sim"
)

const (
	toSwitch   = "{link: 'Node[0].Tx', from: %dps, to: %dps}"
	fromSwitch = "{link: 'Switch[0][0].Down[0]', from: %dps, to: %dps}" // to rank 0
	always     = sim.Second
)

// What is sent over a link that is down fails when the last retry is over, with
// every event that was asked for (SEND, ACK, REPLY), its counter counts
// failures, and the run reports it.
func TestUndeliverable(t *testing.T) {
	for _, c := range []struct {
		name   string
		op     func(k *pairRank) error
		events []string
		fails  uint64
		length uint64
	}{
		{"put", func(k *pairRank) error { return k.put(3000, 0) }, []string{"SEND UNDELIVERABLE 0", "ACK UNDELIVERABLE 0"}, 2, 3000},
		{"nothing", func(k *pairRank) error { return k.put(0, 0) }, []string{"SEND UNDELIVERABLE 0", "ACK UNDELIVERABLE 0"}, 2, 0},
		{"get", func(k *pairRank) error { return k.get(3000) }, []string{"REPLY UNDELIVERABLE 0"}, 1, 0},
		{"atomic", func(k *pairRank) error {
			return k.ni.Atomic(portals.Atomic{MD: k.md, Length: 64, Ack: portals.Ack, Target: k.other(), UserPtr: 7, Op: portals.OpSUM, Type: portals.Uint64})
		}, []string{"SEND UNDELIVERABLE 0", "ACK UNDELIVERABLE 0"}, 2, 64},
		{"fetching atomic", func(k *pairRank) error {
			return k.ni.FetchAtomic(portals.FetchAtomic{GetMD: k.md, MD: k.md, Offset: 64, Length: 64, Target: k.other(), UserPtr: 7, Op: portals.OpSUM, Type: portals.Uint64})
		}, []string{"SEND UNDELIVERABLE 0", "REPLY UNDELIVERABLE 0"}, 2, 64},
		{"two puts", func(k *pairRank) error {
			if err := k.put(3000, 0); err != nil {
				return err
			}
			return k.put(100, 0)
		}, []string{"SEND UNDELIVERABLE 0", "ACK UNDELIVERABLE 0", "SEND UNDELIVERABLE 0", "ACK UNDELIVERABLE 0"}, 4, 3000},
	} {
		t.Run(c.name, func(t *testing.T) {
			var sent sim.Time
			r := runPair(t, fmt.Sprintf(toSwitch, 0, always), [2]func(*pairRank) error{func(k *pairRank) error {
				if err := c.op(k); err != nil {
					return err
				}
				sent = k.p.Now()
				v, err := k.ni.CTWait(k.mdCT, 1)
				require.Equal(t, portals.CTEvent{Failure: min(v.Failure, c.fails)}, v)
				return err
			}})
			require.NoError(t, r.err)
			require.Equal(t, c.events, told(r.ranks[0].events))
			require.Empty(t, r.ranks[1].events)
			v, err := r.ranks[0].ni.Objects().CTGet(r.ranks[0].mdCT)
			require.NoError(t, err)
			require.Equal(t, portals.CTEvent{Failure: c.fails}, v)
			r.left()

			failures, n := r.c.Failures()
			require.Equal(t, n, 1+strings.Count(c.name, "two puts"))
			require.Len(t, failures, 1, "what is given up at once is told of at once")
			require.ErrorContains(t, failures[0], "undeliverable: node 1 did not acknowledge a packet that was sent 4 times (transport.retries, 3)")
			require.EqualValues(t, n, r.c.Node(0).Stats().MessagesLost)
			lost, _ := r.c.LostMessages()
			require.Equal(t, []any{0, portals.PhysID(0, 0), portals.PhysID(1, 0), uint64(1), c.length + 100*uint64(lost[0].More)}, []any{lost[0].Rank, lost[0].Initiator, lost[0].Target, lost[0].Number, lost[0].Length})
			if c.name == "put" {
				// The first packet leaves when it has been read, and has its turn four times.
				first := sent + 2*r.prof.DMA.Latency + r.prof.DMA.Bandwidth.Time(1024)
				require.Equal(t, first+patience+r.prof.DMA.Latency, r.ranks[0].events[0].at)
				require.EqualValues(t, 3, r.c.Node(0).Stats().Retransmitted, "of the oldest packet")
			}
		})
	}
}

// Who counts acknowledgements, and nothing else, is told as well: with a
// counter alone, of either kind, and in a queue without SEND.
func TestAcknowledgementsFail(t *testing.T) {
	for _, ack := range []portals.AckReq{portals.Ack, portals.CTAck, portals.OCAck} {
		for _, queue := range []bool{false, true} {
			var counted portals.CTEvent
			r := runPair(t, fmt.Sprintf(toSwitch, 0, always), [2]func(*pairRank) error{func(k *pairRank) error {
				ct, err := k.ni.Objects().CTAlloc()
				if err != nil {
					return err
				}
				md := portals.MD{Start: k.ownAddr, Length: pairBytes, CT: ct, Options: portals.OptMDEventCTAck | portals.OptMDEventSendDisable}
				if queue {
					md.EQ = k.eq
				}
				h, err := k.ni.Objects().MDBind(&md)
				if err != nil {
					return err
				}
				for range 2 {
					if err := k.ni.Put(portals.Put{MD: h, Length: 2000, Ack: ack, Target: k.other(), UserPtr: 7}); err != nil {
						return err
					}
				}
				if counted, err = k.ni.CTWait(ct, 1); err != nil {
					return err
				}
				if queue && ack == portals.Ack {
					ev, err := k.ni.EQWait(k.eq)
					require.NoError(t, err)
					require.Equal(t, []any{portals.EventAck, portals.NIUndeliverable, uint64(7)}, []any{ev.Type, ev.Fail, ev.UserPtr})
				}
				return k.ni.Objects().MDRelease(h) // nothing holds it
			}})
			require.NoError(t, r.err)
			require.Equal(t, portals.CTEvent{Failure: 2}, counted, "%v, queue %t", ack, queue)
			r.left()
		}
	}
}

// The report counts what nobody has acknowledged, not what was lost: of a put
// of which a part has arrived the rest, of one that has arrived altogether, but
// for its acknowledgements, all.
func TestWhatWasNotAcknowledged(t *testing.T) {
	base := runPair(t, "", [2]func(*pairRank) error{func(k *pairRank) error { return k.put(9000, 0) }})
	p := base.prof
	first := sim.Microsecond + p.NIC.Overhead + 2*p.DMA.Latency + p.DMA.Bandwidth.Time(1024)
	third := first + 2*p.Fabric.Rate.Time(1024) + 1 // two packets have begun
	for _, c := range []struct {
		down string
		says string
		sent string
	}{
		{fmt.Sprintf(toSwitch, third, always), "7 of 9 packets (6952 of 9000 B) of a put from rank 0 to rank 1", "sent 4 times (transport.retries, 3)"},
		{fmt.Sprintf(fromSwitch, 0, always), "9 of 9 packets (9000 of 9000 B) of a put from rank 0 to rank 1", "sent 4 times (transport.retries, 3)"},
		{fmt.Sprintf(toSwitch, third, always), "7 of 9 packets (6952 of 9000 B) of a put from rank 0 to rank 1", "sent once (transport.retries, 0)"},
	} {
		overrides := []string{}
		if strings.Contains(c.sent, "once") {
			overrides = []string{"transport.retries=0"}
		}
		r := runPair(t, c.down, [2]func(*pairRank) error{func(k *pairRank) error { return k.put(9000, 0) }}, overrides...)
		failures, n := r.c.Failures()
		require.GreaterOrEqual(t, n, 1)
		require.ErrorContains(t, failures[0], c.says+" were not acknowledged, it is undeliverable: node 1 did not acknowledge a packet that was "+c.sent+" (portal table index 0, ")
	}
	// Several at once are one line; one that goes elsewhere, or is given up later, is another.
	r := runPair(t, fmt.Sprintf(toSwitch, third, always), [2]func(*pairRank) error{func(k *pairRank) error {
		for i := range 3 {
			if err := k.put(9000, uint64(9000*i)); err != nil {
				return err
			}
		}
		k.p.Sleep(2 * patience)
		return k.put(8, 0)
	}})
	failures, n := r.c.Failures()
	require.Equal(t, 4, n)
	require.Len(t, failures, 2)
	require.ErrorContains(t, failures[0], "25 of 27 packets (24952 of 27000 B) of 3 messages from rank 0 to rank 1 were not acknowledged, they are undeliverable: node 1 did not")
	require.ErrorContains(t, failures[1], "1 of 1 packets (8 of 8 B) of a put from rank 0 to rank 1 were not acknowledged, it is")
	require.EqualValues(t, 4, r.c.Stats().MessagesLost)
}

// A message of which the target has seen a part fails there, too, when it hears
// of the source again; what comes after it goes through, in order.
func TestLinkComesBack(t *testing.T) {
	// Packets of 1 KiB leave one after the other: the link goes down in the third.
	base := runPair(t, "", [2]func(*pairRank) error{func(k *pairRank) error { return k.put(9000, 0) }})
	require.NoError(t, base.err)
	p := base.prof
	first := sim.Microsecond + p.NIC.Overhead + 2*p.DMA.Latency + p.DMA.Bandwidth.Time(1024)
	down := first + 2*p.Fabric.Rate.Time(1024) + 1
	up := down + 2*patience
	r := runPair(t, fmt.Sprintf(toSwitch, down, up), [2]func(*pairRank) error{func(k *pairRank) error {
		for _, op := range []func() error{
			func() error { return k.put(9000, 0) },
			func() error { return k.put(8, 20000) }, // behind it: it shares its fate
			func() error { k.p.SleepUntil(up); return nil },
			func() error { return k.put(5000, 30000) },
			func() error { return k.ni.Get(portals.Get{MD: k.md, Offset: 40000, Length: 3000, Target: k.other()}) },
		} {
			if err := op(); err != nil {
				return err
			}
		}
		return nil
	}, func(k *pairRank) error {
		k.p.SleepUntil(up + 20*sim.Microsecond)
		return k.ni.PTDisable(0) // waits for nothing
	}})
	require.NoError(t, r.err)
	require.Equal(t, []string{
		"SEND UNDELIVERABLE 0", "ACK UNDELIVERABLE 0", "SEND UNDELIVERABLE 0", "ACK UNDELIVERABLE 0", "SEND OK 5000", "ACK OK 5000", "REPLY OK 3000",
	}, told(r.ranks[0].events))
	require.Equal(t, []string{"PUT UNDELIVERABLE 2048", "PUT OK 5000", "GET OK 3000"}, told(r.ranks[1].events))
	require.Equal(t, r.ranks[0].own[:2048], r.ranks[1].mem[:2048], "what had come")
	require.Equal(t, make([]byte, 20000), r.ranks[1].mem[2048:22048])
	require.Equal(t, r.ranks[0].own[:5000], r.ranks[1].mem[30000:35000])
	require.Equal(t, r.ranks[1].mem[:3000], r.ranks[0].own[40000:43000])
	v, err := r.ranks[1].ni.Objects().CTGet(r.ranks[1].ct)
	require.NoError(t, err)
	require.Equal(t, portals.CTEvent{Success: 2, Failure: 1}, v)
	_, n := r.c.Failures()
	require.Equal(t, 2, n, "each message once")
	r.left()
}

// An acknowledgement of Portals or a reply that could not be delivered is told
// to who waits for it, as soon as there is a way.
func TestLostAnswers(t *testing.T) {
	for _, c := range []struct {
		name   string
		op     func(k *pairRank) error
		events []string
		there  []string
		before sim.Time // of the answer's arrival: the link goes down
	}{
		{"acknowledgement", func(k *pairRank) error { return k.put(500, 0) }, []string{"SEND OK 500", "ACK UNDELIVERABLE 0"}, []string{"PUT OK 500"}, 150 * sim.Nanosecond},
		{
			"reply", func(k *pairRank) error {
				return k.ni.Get(portals.Get{MD: k.md, Length: 3000, Target: k.other(), UserPtr: 7})
			},
			[]string{"REPLY UNDELIVERABLE 0"},
			[]string{"GET UNDELIVERABLE 0"},
			200 * sim.Nanosecond,
		},
		{
			"part of reply", func(k *pairRank) error {
				return k.ni.Get(portals.Get{MD: k.md, Length: 30000, Target: k.other(), UserPtr: 7})
			},
			[]string{"REPLY UNDELIVERABLE 15360"},
			[]string{"GET UNDELIVERABLE 0"},
			370 * sim.Nanosecond,
		},
	} {
		for name, downFor := range map[string]sim.Time{"soon": patience + patience/2, "late": 5 * patience} {
			t.Run(c.name+" "+name, func(t *testing.T) {
				program := func(k *pairRank) error {
					if err := c.op(k); err != nil {
						return err
					}
					if name == "late" { // the news is lost, too; it comes when something else is heard
						k.p.Sleep(5*patience + pairTimeout)
						return k.ni.Put(portals.Put{MD: k.md, Length: 8, Target: k.other(), RemoteOffset: 60000, UserPtr: 1})
					}
					return nil
				}
				// The request's own acknowledgement gets through: when the last
				// packet has left for rank 0, and not much later, the link goes
				// down.
				base := runPair(t, "", [2]func(*pairRank) error{c.op})
				require.NoError(t, base.err)
				answered := all(base.ranks[0].events, map[bool]portals.EventType{true: portals.EventAck, false: portals.EventReply}[c.name == "acknowledgement"])[0].at
				from := answered - c.before
				r := runPair(t, fmt.Sprintf(fromSwitch, from, from+downFor), [2]func(*pairRank) error{program})
				require.NoError(t, r.err)
				events, there := c.events, c.there
				if name == "late" {
					events, there = append([]string{}, c.events...), append(append([]string{}, c.there...), "PUT OK 8")
					events = append(events[:len(events)-1], "SEND OK 8", events[len(events)-1])
				}
				require.ElementsMatch(t, events, told(r.ranks[0].events))
				require.ElementsMatch(t, there, told(r.ranks[1].events))
				failures, n := r.c.Failures()
				require.Equal(t, 1, n, "%v", failures)
				r.left()
			})
		}
	}
}

// If the way back is broken for good the initiator gets no answer. It still
// waits at the end of the run, which fails with an error that names the loss and
// its cause.
func TestAnswersThatNeverCome(t *testing.T) {
	for _, c := range []struct {
		name   string
		op     func(k *pairRank) error
		lost   string
		before sim.Time
	}{
		{"acknowledgement", func(k *pairRank) error { return k.put(500, 0) }, "an ack", 150 * sim.Nanosecond},
		{"reply", func(k *pairRank) error {
			return k.ni.Get(portals.Get{MD: k.md, Length: 3000, Target: k.other(), UserPtr: 7})
		}, "a reply", 200 * sim.Nanosecond},
		{"values of an atomic", func(k *pairRank) error {
			return k.ni.FetchAtomic(portals.FetchAtomic{GetMD: k.md, MD: k.md, Offset: 64, Length: 64, Target: k.other(), UserPtr: 7, Op: portals.OpSUM, Type: portals.Uint64})
		}, "a reply", 150 * sim.Nanosecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			kinds := map[string]portals.EventType{"an ack": portals.EventAck, "a reply": portals.EventReply}
			base := runPair(t, "", [2]func(*pairRank) error{c.op})
			require.NoError(t, base.err)
			from := all(base.ranks[0].events, kinds[c.lost])[0].at - c.before
			r := runPair(t, fmt.Sprintf(fromSwitch, from, always), [2]func(*pairRank) error{func(k *pairRank) error {
				if err := c.op(k); err != nil {
					return err
				}
				for {
					ev, err := k.ni.EQWait(k.eq)
					if err != nil || ev.Type == kinds[c.lost] {
						return err
					}
				}
			}})
			var stuck *sim.StuckError
			require.ErrorAs(t, r.err, &stuck)
			require.Len(t, stuck.Waiting, 1)
			require.Equal(t, "rank 0 program", stuck.Waiting[0].Who)
			require.Equal(t, "an event on event queue 0 of rank 0: message 1 of rank 1 is undeliverable: node 0 did not acknowledge a packet that was sent 4 times (transport.retries, 3)",
				stuck.Waiting[0].What)
			failures, n := r.c.Failures()
			require.Equal(t, 1, n)
			require.ErrorContains(t, failures[0], "of "+c.lost+" from rank 1 to rank 0 were not acknowledged, it is undeliverable: node 0 did not acknowledge")
		})
	}
}

// An answer to what the initiator has given up meanwhile is nobody's: the
// initiator could not know that its request had arrived.
func TestAnswerAfterGivingUp(t *testing.T) {
	for _, c := range []struct {
		name   string
		op     func(k *pairRank) error
		events []string
		there  []string
		up     sim.Time
	}{
		{"put", func(k *pairRank) error { return k.put(500, 0) }, []string{"SEND UNDELIVERABLE 0", "ACK UNDELIVERABLE 0"}, []string{"PUT OK 500"}, 90 * sim.Microsecond},
		{
			"get", func(k *pairRank) error {
				return k.ni.Get(portals.Get{MD: k.md, Length: 3000, Target: k.other(), UserPtr: 7})
			},
			[]string{"REPLY UNDELIVERABLE 0"},
			[]string{"GET OK 3000"},
			60 * sim.Microsecond,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			// The answer leaves two latencies after the request has arrived, so
			// that its last retry does, too: after the initiator's event.
			r := runPair(t, fmt.Sprintf(fromSwitch, 0, c.up), [2]func(*pairRank) error{c.op}, "dma.latency=16us")
			require.NoError(t, r.err)
			require.Equal(t, c.events, told(r.ranks[0].events))
			require.Equal(t, c.there, told(r.ranks[1].events))
			r.left()
		})
	}
}

// Giving up does not touch what the NIC still reads: the buffer is the NIC's
// until SEND, and the next message is none the worse.
func TestGivingUpWhileReading(t *testing.T) {
	slow := []string{"dma.bandwidth=1ns/B", "dma.shared_memory=false", "transport.retries=0", "transport.timeout=3us"}
	up := 20 * sim.Microsecond
	r := runPair(t, fmt.Sprintf(toSwitch, 0, up), [2]func(*pairRank) error{func(k *pairRank) error {
		if err := k.put(pairBytes, 0); err != nil {
			return err
		}
		k.p.SleepUntil(up) // about 20 packets of 64 have been read
		if err := k.put(0, 500); err != nil {
			return err
		}
		return k.put(3000, 0)
	}}, slow...)
	require.NoError(t, r.err)
	require.Equal(t, []string{"SEND UNDELIVERABLE 0", "ACK UNDELIVERABLE 0", "SEND OK 0", "ACK OK 0", "SEND OK 3000", "ACK OK 3000"}, told(r.ranks[0].events))
	require.Greater(t, r.ranks[0].events[0].at, sim.Time(pairBytes)*sim.Nanosecond, "when all has been read")
	require.Equal(t, []string{"PUT OK 0", "PUT OK 3000"}, told(r.ranks[1].events))
	require.Equal(t, r.ranks[0].own[:3000], r.ranks[1].mem[:3000])
	_, n := r.c.Failures()
	require.Equal(t, 1, n)
	r.left()
}

// To the own node nothing gets lost, whatever the links do.
func TestReliableToSelf(t *testing.T) {
	r := runPair(t, fmt.Sprintf(toSwitch, 0, always), [2]func(*pairRank) error{func(k *pairRank) error {
		self := portals.PhysID(0, 0)
		if err := k.ni.Put(portals.Put{MD: k.md, Length: 5000, Ack: portals.Ack, Target: self, UserPtr: 7}); err != nil {
			return err
		}
		return k.ni.Get(portals.Get{MD: k.md, Offset: 10000, Length: 5000, Target: self, UserPtr: 7})
	}})
	require.NoError(t, r.err)
	require.ElementsMatch(t, []string{"SEND OK 5000", "PUT OK 5000", "ACK OK 5000", "GET OK 5000", "REPLY OK 5000"}, told(r.ranks[0].events))
	require.Equal(t, r.ranks[0].own[:5000], r.ranks[0].mem[:5000])
	_, n := r.c.Failures()
	require.Zero(t, n)
	r.left()
}
