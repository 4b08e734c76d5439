package runtime_test

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// program runs host programs, one of each rank and more of some, on a cluster of so many nodes.
func program(t *testing.T, nodes int, programs map[int][]func(p *runtime.Proc) error) (*runtime.Cluster, error) {
	prof, err := profile.Load("spin-int")
	require.NoError(t, err)
	c, err := runtime.NewCluster(runtime.Config{Profile: prof, Nodes: nodes})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	for rank := range nodes {
		for _, f := range programs[rank] {
			require.NoError(t, c.Spawn(rank, "program", f))
		}
	}
	return c, c.Run(context.Background())
}

// onOneNode is program on one node with one process.
func onOneNode(t *testing.T, f func(p *runtime.Proc) error) {
	_, err := program(t, 1, map[int][]func(p *runtime.Proc) error{0: {f}})
	require.NoError(t, err)
}

// A wrong request of the host is an error that names the expected values.
func TestMisuseOfCluster(t *testing.T) {
	prof, err := profile.Load("spin-int")
	require.NoError(t, err)
	for _, cfg := range []runtime.Config{{}, {Profile: prof}, {Profile: prof, Nodes: -1}, {Profile: prof, Nodes: 1, Engine: "v8"}, {Profile: prof, Nodes: math.MaxInt}} {
		c, err := runtime.NewCluster(cfg)
		require.Error(t, err)
		require.Nil(t, c)
	}
	c, err := runtime.NewCluster(runtime.Config{Profile: prof, Nodes: 2})
	require.NoError(t, err)
	for _, rank := range []int{-1, 2, math.MaxInt} {
		require.ErrorContains(t, c.Spawn(rank, "nobody", nil), "expected 0 to 1")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.NoError(t, c.Spawn(0, "endless", func(p *runtime.Proc) error {
		for {
			p.Sleep(sim.Nanosecond)
		}
	}))
	require.ErrorIs(t, c.Run(ctx), context.Canceled)
	require.NoError(t, c.Close())
}

// Handles that are stale or of another kind, offsets and lengths out of this world are refused.
func TestMisuseOfInterface(t *testing.T) {
	onOneNode(t, func(p *runtime.Proc) error {
		ni := p.NI()
		addr := p.Alloc(100).Addr()
		eq, err := ni.Objects().EQAlloc(4)
		require.NoError(t, err)
		ct, err := ni.Objects().CTAlloc()
		require.NoError(t, err)
		md, err := ni.Objects().MDBind(&portals.MD{Start: addr, Length: 100, EQ: eq})
		require.NoError(t, err)
		to := portals.PhysID(0, 0)
		for _, bad := range []struct{ offset, length uint64 }{
			{0, 101}, {100, 1}, {math.MaxUint64, 1}, {1, math.MaxUint64}, {math.MaxUint64, math.MaxUint64}, {101, 0},
		} {
			require.ErrorIs(t, ni.Put(portals.Put{MD: md, Offset: bad.offset, Length: bad.length, Target: to}), portals.ErrArgInvalid)
			require.ErrorIs(t, ni.Get(portals.Get{MD: md, Offset: bad.offset, Length: bad.length, Target: to}), portals.ErrArgInvalid)
			require.ErrorIs(t, ni.Atomic(portals.Atomic{MD: md, Offset: bad.offset, Length: bad.length, Target: to, Op: portals.OpSUM, Type: portals.Int8}), portals.ErrArgInvalid)
		}
		require.NoError(t, ni.Objects().MDRelease(md))
		for _, h := range []portals.Handle{md, eq, ct, 0, math.MaxUint32} {
			require.ErrorIs(t, ni.Put(portals.Put{MD: h, Length: 1, Target: to}), portals.ErrArgInvalid)
			require.ErrorIs(t, ni.FetchAtomic(portals.FetchAtomic{GetMD: h, MD: h, Length: 1, Target: to, Op: portals.OpSUM, Type: portals.Int8}), portals.ErrArgInvalid)
			require.ErrorIs(t, ni.Swap(portals.Swap{GetMD: h, MD: h, Length: 1, Target: to, Op: portals.OpSWAP, Type: portals.Int8}), portals.ErrArgInvalid)
		}
		require.NoError(t, ni.Objects().EQFree(eq))
		require.NoError(t, ni.Objects().CTFree(ct))
		for _, h := range []portals.Handle{md, eq, ct, 0, math.MaxUint32} {
			_, err = ni.EQWait(h)
			require.ErrorIs(t, err, portals.ErrArgInvalid)
			_, err = ni.CTWait(h, 1)
			require.ErrorIs(t, err, portals.ErrArgInvalid)
			_, _, err = ni.EQPoll([]portals.Handle{h}, sim.Nanosecond)
			require.ErrorIs(t, err, portals.ErrArgInvalid)
			_, _, err = ni.CTPoll([]portals.Handle{h}, []uint64{1}, sim.Nanosecond)
			require.ErrorIs(t, err, portals.ErrArgInvalid)
		}
		return nil
	})
}

// HPU memory has limits, and is its process's own.
func TestMisuseOfHPUMemory(t *testing.T) {
	var first *portals.Spin
	_, err := program(t, 1, map[int][]func(p *runtime.Proc) error{0: {
		func(p *runtime.Proc) error {
			binary, err := readModule("actions/actions.wasm")
			require.NoError(t, err)
			m, err := p.Cluster().LoadModule("actions", binary)
			require.NoError(t, err)
			limit := int(p.Cluster().Profile().HPU.MaxHPUMemory)
			for _, n := range []int{-1, limit + 1, math.MaxInt, math.MinInt} {
				_, err = p.HPUAllocMem(m, n)
				require.ErrorContains(t, err, "expected 0 to 16777216")
			}
			for _, n := range []int{limit, 0} {
				h, err := p.HPUAllocMem(m, n)
				require.NoError(t, err)
				require.Len(t, h.Bytes(), n)
				_, err = h.Spin("header", "no such", "")
				require.ErrorContains(t, err, "no such")
				first, err = h.Spin("header", "", "")
				require.NoError(t, err)
				refused(t, p, first, n)
			}
			return nil
		},
		func(p *runtime.Proc) error {
			p.Sleep(sim.Microsecond)
			_, err := p.NI().Objects().PTAlloc(0, portals.EQNone, 0)
			require.NoError(t, err)
			_, err = p.NI().MEAppend(0, &portals.ME{Spin: first}, portals.PriorityList, 0)
			require.ErrorContains(t, err, "HPU memory 2 was not given out to process program of rank 0", "of the other process")
			return nil
		},
	}})
	require.NoError(t, err)
}

// refused tries entries with bad handler parts, in every way to append one.
func refused(t *testing.T, p *runtime.Proc, good *portals.Spin, memory int) {
	ni := p.NI()
	pt, err := ni.Objects().PTAlloc(0, portals.EQNone, portals.PTAny)
	require.NoError(t, err)
	plain, err := p.NIInit(portals.OptNINoMatching|portals.OptNIPhysical, nil)
	require.NoError(t, err)
	plainPT, err := plain.Objects().PTAlloc(0, portals.EQNone, portals.PTAny)
	require.NoError(t, err)
	ct, err := ni.Objects().CTAlloc()
	require.NoError(t, err)
	for _, change := range []func(s *portals.Spin){
		func(s *portals.Spin) { s.HPUMem = 0 },
		func(s *portals.Spin) { s.HPUMem = 99 },
		func(s *portals.Spin) { s.HPUMem = math.MaxUint32 },
		func(s *portals.Spin) { s.HPUMemOffset = uint64(memory) + 1 },
		func(s *portals.Spin) { s.HPUMemOffset = math.MaxUint64 },
		func(s *portals.Spin) {
			s.InitialState, s.HPUMemOffset = make([]byte, 16), uint64(memory)-min(uint64(memory), 15)
		},
		func(s *portals.Spin) { s.Handlers.Payload = 77 },
		func(s *portals.Spin) { s.Handlers.Completion = math.MaxUint32 },
	} {
		s := *good
		change(&s)
		_, err := ni.MEAppend(pt, &portals.ME{Spin: &s}, portals.PriorityList, 0)
		require.ErrorContains(t, err, "handlers of the entry")
		_, err = ni.TriggeredMEAppend(pt, &portals.ME{Spin: &s}, portals.PriorityList, 0, ct, 1)
		require.ErrorContains(t, err, "handlers of the entry")
		_, err = plain.LEAppend(plainPT, &portals.LE{Spin: &s}, portals.PriorityList, 0)
		require.ErrorContains(t, err, "handlers of the entry")
	}
}

// Messages to nodes, processes and interfaces that do not exist are answered
// UNDELIVERABLE; nobody waits for ever.
func TestNobodyThere(t *testing.T) {
	type end struct {
		kind portals.EventType
		fail portals.FailType
	}
	got := map[uint64][]end{}
	_, err := program(t, 2, map[int][]func(p *runtime.Proc) error{0: {func(p *runtime.Proc) error {
		ni := p.NI()
		addr := p.Alloc(10000).Addr()
		eq, err := ni.Objects().EQAlloc(64)
		if err != nil {
			return err
		}
		md, err := ni.Objects().MDBind(&portals.MD{Start: addr, Length: 10000, EQ: eq})
		if err != nil {
			return err
		}
		left := 0
		for i, to := range []portals.ID{portals.PhysID(2, 0), portals.PhysID(1<<31, 0), portals.PhysID(math.MaxUint32-1, 0), portals.PhysID(1, 5), portals.PhysID(0, 5)} {
			user := uint64(10 * i)
			require.NoError(t, ni.Put(portals.Put{MD: md, Length: 10000, Ack: portals.Ack, Target: to, UserPtr: user}))
			require.NoError(t, ni.Get(portals.Get{MD: md, Length: 10000, Target: to, UserPtr: user + 1}))
			require.NoError(t, ni.Put(portals.Put{MD: md, Target: to, UserPtr: user + 2}))
			left += 4
		}
		for range left {
			ev, err := ni.EQWait(eq)
			if err != nil {
				return err
			}
			got[ev.UserPtr] = append(got[ev.UserPtr], end{ev.Type, ev.Fail})
		}
		require.NoError(t, ni.Objects().MDRelease(md), "nothing is under way any more")
		return nil
	}}})
	require.NoError(t, err)
	const lost = portals.NIUndeliverable
	for i := range uint64(5) {
		put, silent := []end{{portals.EventSend, lost}, {portals.EventAck, lost}}, []end{{portals.EventSend, lost}}
		if i > 2 {
			put, silent = []end{{portals.EventSend, portals.NIOK}, {portals.EventAck, lost}}, []end{{portals.EventSend, portals.NIOK}}
		}
		require.Equal(t, put, got[10*i], "put %d", i)
		require.Equal(t, []end{{portals.EventReply, lost}}, got[10*i+1], "get %d", i)
		require.Equal(t, silent, got[10*i+2], "put %d without acknowledgement", i)
	}
}

// The four interfaces of a process, and the map of those with ranks.
var (
	fourKinds = []portals.NIOptions{
		portals.OptNIMatching | portals.OptNIPhysical, portals.OptNINoMatching | portals.OptNIPhysical,
		portals.OptNIMatching | portals.OptNILogical, portals.OptNINoMatching | portals.OptNILogical,
	}
	fourRanks = []portals.ID{portals.PhysID(0, 0), portals.PhysID(1, 0), portals.PhysID(1, 1), portals.PhysID(1, 2)}
)

// openInbox opens an interface with an entry for everything, the second time if again is set.
func openInbox(t *testing.T, p *runtime.Proc, options portals.NIOptions, again bool) (*runtime.NI, portals.Handle) {
	ni, err := p.NIInit(options, nil)
	require.NoError(t, err)
	if again {
		require.NoError(t, ni.Objects().NIFini())
		if ni == p.NI() {
			require.NoError(t, ni.Objects().NIFini(), "Spawn opened it before")
		}
		second, err := p.NIInit(options, nil)
		require.NoError(t, err)
		require.NotSame(t, ni, second)
		ni = second
	}
	if options&portals.OptNILogical != 0 {
		require.ErrorIs(t, ni.SetMap([]portals.ID{portals.PhysID(2, 0)}), portals.ErrArgInvalid)
		require.NoError(t, ni.SetMap(fourRanks))
	}
	eq, err := ni.Objects().EQAlloc(16)
	require.NoError(t, err)
	_, err = ni.Objects().PTAlloc(0, eq, 0)
	require.NoError(t, err)
	addr := p.Alloc(64).Addr()
	entry := portals.OptMEOpPut | portals.OptMEEventLinkDisable
	if options&portals.OptNIMatching != 0 {
		_, err = ni.MEAppend(0, &portals.ME{Start: addr, Length: 64, UID: portals.UIDAny, MatchID: portals.AnyID, Options: entry}, portals.PriorityList, 0)
	} else {
		_, err = ni.LEAppend(0, &portals.LE{Start: addr, Length: 64, UID: portals.UIDAny, Options: entry}, portals.PriorityList, 0)
	}
	require.NoError(t, err)
	return ni, eq
}

// Several processes on a node, each with several interfaces, get their own
// messages, also after an interface was closed and opened again.
func TestProcessesAndInterfaces(t *testing.T) {
	const processes = 3
	var got [processes][]uint64
	receiver := func(p *runtime.Proc) error {
		me, err := p.NI().Objects().PhysID()
		require.NoError(t, err)
		var open []*runtime.NI
		var eqs []portals.Handle
		for _, options := range fourKinds {
			ni, eq := openInbox(t, p, options, me.PID == 1)
			open, eqs = append(open, ni), append(eqs, eq)
		}
		for i, ni := range open {
			ev, err := ni.EQWait(eqs[i])
			if err != nil {
				return err
			}
			got[me.PID] = append(got[me.PID], ev.HdrData)
		}
		return nil
	}
	sender := func(p *runtime.Proc) error {
		p.Sleep(sim.Microsecond)
		for pid := range uint32(processes) {
			for i, options := range fourKinds {
				ni, err := p.NIInit(options, nil)
				require.NoError(t, err)
				to := portals.PhysID(1, pid)
				if options&portals.OptNILogical != 0 {
					require.NoError(t, ni.SetMap(fourRanks))
					to = portals.RankID(1 + pid)
				}
				md, err := ni.Objects().MDBind(&portals.MD{})
				require.NoError(t, err)
				require.NoError(t, ni.Put(portals.Put{MD: md, Target: to, HdrData: uint64(pid)*10 + uint64(i)}))
			}
		}
		return nil
	}
	_, err := program(t, 2, map[int][]func(p *runtime.Proc) error{0: {sender}, 1: {receiver, receiver, receiver}})
	require.NoError(t, err)
	require.Equal(t, [processes][]uint64{{0, 1, 2, 3}, {10, 11, 12, 13}, {20, 21, 22, 23}}, got)
}

// A cluster that nobody waits for any more is not built to its end.
func TestStopBuilding(t *testing.T) {
	prof, err := profile.Load("spin-int")
	require.NoError(t, err)
	enough, asked := errors.New("enough"), 0
	told := func(profile.Used) { t.Error("nothing was used") }
	c, err := runtime.NewCluster(runtime.Config{Profile: prof, Nodes: 100_000, Used: told, Stop: func() error {
		if asked++; asked == 3 {
			return enough
		}
		return nil
	}})
	require.ErrorIs(t, err, enough)
	require.Nil(t, c)
	require.Equal(t, 3, asked)
}
