package runtime_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// to chooses the accesses of a direction that begin at an offset of the memory at base.
func to(dir host.Direction, base *uint64, off uint64) func(a *host.Access, _ int) bool {
	return func(a *host.Access, _ int) bool {
		addr, _ := a.At(0)
		return a.Direction() == dir && addr == *base+off
	}
}

// writesTo chooses writes to an offset of rank 1's entry, once r is known.
func writesTo(r **rig, off uint64) func(a *host.Access, _ int) bool {
	return func(a *host.Access, o int) bool { return to(host.ToMemory, &(*r).addr, off)(a, o) }
}

// A packet that memory does not take is missing from the message, which says so
// at both ends, and the others are there.
func TestUnwritableMemory(t *testing.T) {
	const n = 5 * 256
	for _, s := range []host.Status{host.Fault, host.Denied} {
		var x *rig
		initiator, counts := counted(func(ni *runtime.NI, md portals.Handle) error {
			return ni.Put(portals.Put{MD: md, Length: n, Ack: portals.Ack, Target: portals.PhysID(1, 0), MatchBits: 5})
		})
		r := conduct(t, setup{
			overrides: []string{"fabric.mtu=256", "nic.fault_tries=3"}, message: solid(n), target: filled, initiator: initiator,
			build: func(r *rig) { x = r }, cfg: onRank(1, forGood(s, func(a *host.Access, off int) bool { return writesTo(&x, 512)(a, off) })),
		})
		want := bytes.Clone(r.message)
		copy(want[512:], bytes.Repeat([]byte{0xee}, 256))
		require.Equal(t, want, r.host[:n])
		for _, ev := range []event{only(t, r.targets, portals.EventPut), only(t, r.inits, portals.EventAck)} {
			require.Equal(t, []any{portals.NISegv, uint64(n - 256)}, []any{ev.Fail, ev.MLength})
		}
		require.Equal(t, portals.NIOK, only(t, r.inits, portals.EventSend).Fail)
		require.Equal(t, portals.CTEvent{Failure: 1}, *counts)
		why := map[host.Status]string{host.Fault: "FAULT, 4 times (nic.fault_tries, 3)", host.Denied: "DENIED"}[s]
		require.Contains(t, r.failure(), fmt.Sprintf(
			": 1 of 5 packets (256 of 1280 B) of a put from rank 0 were dropped: memory at %#x could not be written: %s (portal table index 0, match bits 0x5)", r.addr+512, why))
		require.Equal(t, int64(1), r.c.Node(1).Stats().PacketsDropped)
		require.NoError(t, r.c.Node(1).NIC().Idle())
	}
}

// What a handler has got into host memory completes its entry, also by failing (COMPLETE_ENTRY).
func TestUnwritableReplyCompletesTheEntry(t *testing.T) {
	var x *rig
	r := conduct(t, setup{
		overrides: []string{"fabric.mtu=256"}, length: 100, build: func(r *rig) { x = r },
		header: []rec{do(hpu.OpGetFromHost, opAt(0)), end(hpu.ProceedPending)}, ops: []hpu.Operation{{Offset: 4096, Length: 600, TargetNID: 2, Options: 1}},
		cfg: onRank(1, forGood(host.Denied, func(a *host.Access, off int) bool { return writesTo(&x, 4096+256)(a, off) })),
	})
	put := only(t, r.targets, portals.EventPut)
	require.Equal(t, []any{portals.NISegv, uint64(100 + 600 - 256)}, []any{put.Fail, put.MLength})
	require.Contains(t, r.failure(), "1 of 3 packets (256 of 600 B) of a reply from rank 2 were dropped: memory at ")
}

// lateBy is a configuration in which writes to an offset of rank 1's entry fault so many times.
func lateBy(faults int, x **rig, off uint64) func(*runtime.Config) {
	return onRank(1, failing(faults, host.Fault, func(a *host.Access, o int) bool { return *x != nil && (*x).addr != 0 && writesTo(x, off)(a, o) }))
}

// The completion handler sees what the default action has deposited, however
// late: it copies it elsewhere.
func TestCompletionHandlerSeesLateData(t *testing.T) {
	eachProfile(t, func(t *testing.T, profile string) {
		for k := range 4 {
			var x *rig
			r := conduct(t, setup{
				profile: profile, overrides: []string{"fabric.mtu=256"}, message: solid(1024), build: func(r *rig) { x = r }, cfg: lateBy(5, &x, uint64(256*k)),
				completion: []rec{do(hpu.OpDMAFromHost, 0, 0, scratch2, 1024), do(hpu.OpDMAToHost, 0, 8192, scratch2, 1024), end(hpu.Success)},
			})
			r.noHandlerErrors()
			require.Equal(t, r.message, r.host[8192:][:1024])
			require.Equal(t, portals.NIOK, only(t, r.targets, portals.EventPut).Fail)
		}
	})
}

// PTDisable waits for a message of which a write is late; HPU memory is in use
// as long as a DMA operation of its handlers is tried again.
func TestWaitingForLateMemory(t *testing.T) {
	var x *rig
	var d disabling
	r := conduct(t, setup{
		length: 4096, target: d.disable, build: func(r *rig) { x = r }, cfg: lateBy(7, &x, 0),
		initiator: threeTimes(false, 4096), overrides: []string{"nic.fault_pause=500ns"},
	})
	put := all(r.targets, portals.EventPut)[0]
	require.Greater(t, put.at, 7*(500*sim.Nanosecond+2*r.prof.DMA.Latency))
	require.Equal(t, put.at+r.prof.Host.Poll, d.returned)
	require.Equal(t, 1, d.events)

	inUse := 0
	r = conduct(t, setup{
		length: 8, build: func(r *rig) { x = r }, cfg: lateBy(5, &x, 64), header: []rec{do(hpu.OpDMAToHostNB, 0, 64, scratch, 8), end(hpu.Proceed)},
		target: func(p *runtime.Proc, r *rig) error {
			for p.Node().Stats().HandlerCalls == 0 || p.NI().Objects().PTBusy(0) > 0 {
				if p.Node().Stats().LastHandler > 0 {
					require.ErrorIs(r, r.hpu.Free(), portals.ErrInUse)
					inUse++
				}
				p.Sleep(100 * sim.Nanosecond)
			}
			return r.hpu.Free()
		},
	})
	require.Greater(t, inUse, 50)
	require.Equal(t, pattern(8, 50), r.host[64:72])
	r.noHandlerErrors()
}

// On an entry with a locally managed offset events come in the order of
// matching, although the first message is late and comes from another source.
func TestLateMessageOfALocallyManagedEntry(t *testing.T) {
	var x *rig
	r := conduct(t, setup{
		build: func(r *rig) { x = r }, cfg: lateBy(9, &x, 0),
		entry: func(me *portals.ME, _ *rig) { me.Options |= portals.OptMEManageLocal },
		initiator: func(p *runtime.Proc, md portals.Handle, _ *rig) error {
			return p.NI().Put(portals.Put{MD: md, Length: 64, Target: portals.PhysID(1, 0), MatchBits: 1})
		},
		peer: func(p *runtime.Proc, _ *rig) error {
			p.Sleep(2 * sim.Microsecond)
			m := p.Alloc(64)
			m.CopyFrom(solid(64))
			md, err := p.NI().Objects().MDBind(&portals.MD{Start: m.Addr(), Length: 64})
			if err != nil {
				return err
			}
			return p.NI().Put(portals.Put{MD: md, Length: 64, Target: portals.PhysID(1, 0), MatchBits: 2})
		},
	})
	puts := all(r.targets, portals.EventPut)
	require.Equal(t, []uint64{1, 2}, []uint64{puts[0].MatchBits, puts[1].MatchBits})
	require.Equal(t, puts[0].at, puts[1].at, "the second has waited for the first")
	require.Equal(t, solid(64), r.host[64:128])
}

// Small messages of one process land in the order of sending
// (max_waw_ordered_size), although the first is late; so do their events. Those
// of another process do not wait.
func TestLateMessagesKeepTheirOrder(t *testing.T) {
	var x *rig
	seen := sim.Time(0)
	r := conduct(t, setup{
		build: func(r *rig) { x = r }, cfg: lateBy(9, &x, 0), message: solid(64),
		initiator: func(p *runtime.Proc, md portals.Handle, _ *rig) error {
			for i := range uint64(4) {
				// the second overlaps the first, and so on
				if err := p.NI().Put(portals.Put{MD: md, Offset: i, Length: 8, Target: portals.PhysID(1, 0), MatchBits: 1 + i, RemoteOffset: i % 2 * 4}); err != nil {
					return err
				}
			}
			return p.NI().Put(portals.Put{MD: md, Target: portals.PhysID(1, 0), MatchBits: 5})
		},
		peer: func(p *runtime.Proc, r *rig) error {
			p.Sleep(2 * sim.Microsecond)
			md, err := p.NI().Objects().MDBind(&portals.MD{Start: p.Alloc(64).Addr(), Length: 64})
			if err != nil {
				return err
			}
			seen = p.Now()
			return p.NI().Put(portals.Put{MD: md, Length: 64, Target: portals.PhysID(1, 0), MatchBits: 99, RemoteOffset: 1024})
		},
	})
	want := make([]byte, 12)
	for i := range 4 {
		copy(want[i%2*4:], r.message[i:i+8])
	}
	require.Equal(t, want, r.host[:12])
	var bits []uint64
	puts := all(r.targets, portals.EventPut)
	for _, e := range puts {
		bits = append(bits, e.MatchBits)
	}
	require.Equal(t, []uint64{99, 1, 2, 3, 4, 5}, bits)
	require.Less(t, puts[0].at, seen+3*sim.Microsecond)
	require.Greater(t, puts[1].at, 4*r.prof.NIC.FaultPause) // the third finds the same page absent
}

// An atomic whose write faults is applied once, and what it fetches is what was there.
func TestLateAtomicIsAppliedOnce(t *testing.T) {
	var x *rig
	r := conduct(t, setup{
		overrides: []string{"fabric.mtu=256"}, build: func(r *rig) { x = r }, message: solid(1024), cfg: lateBy(3, &x, 256),
		initiator: func(p *runtime.Proc, md portals.Handle, _ *rig) error {
			to := portals.PhysID(1, 0)
			if err := p.NI().Atomic(portals.Atomic{MD: md, Length: 1024, Ack: portals.Ack, Target: to, Op: portals.OpSUM, Type: portals.Uint8}); err != nil {
				return err
			}
			return p.NI().FetchAtomic(portals.FetchAtomic{GetMD: md, GetOffset: 2048, MD: md, Length: 1024, Target: to, Op: portals.OpSUM, Type: portals.Uint8})
		},
		target: func(*runtime.Proc, *rig) error { return nil },
	})
	for i, b := range r.message {
		require.Equal(t, 2*b, r.host[i], "byte %d", i)
	}
	require.Equal(t, portals.NIOK, only(t, r.inits, portals.EventReply).Fail)
}

// The reply to a get leaves when what the header handler has written is there:
// it did not wait for its write.
func TestReplyFollowsLateWrites(t *testing.T) {
	eachProfile(t, func(t *testing.T, profile string) {
		var x *rig
		var got runtime.View
		r := conduct(t, setup{
			profile: profile, build: func(r *rig) { x = r }, cfg: lateBy(4, &x, 128), target: filled,
			header: []rec{do(hpu.OpDMAToHostNB, 0, 128, scratch, 64), end(hpu.Proceed)},
			initiator: func(p *runtime.Proc, _ portals.Handle, r *rig) error {
				got = p.Alloc(256)
				md, err := p.NI().Objects().MDBind(&portals.MD{Start: got.Addr(), Length: 256, EQ: r.initEQ})
				if err != nil {
					return err
				}
				return p.NI().Get(portals.Get{MD: md, Length: 256, Target: portals.PhysID(1, 0)})
			},
		})
		r.noHandlerErrors()
		want := bytes.Repeat([]byte{0xee}, 256)
		copy(want[128:], pattern(64, 50))
		require.Equal(t, want, got.Snapshot())
	})
}

// A put from host waits for what has been written of its message, however late;
// nothing that is written afterwards holds it up.
func TestPutFromHostWaitsForLateWrites(t *testing.T) {
	eachProfile(t, func(t *testing.T, profile string) {
		var x *rig
		r := conduct(t, setup{
			profile: profile, overrides: []string{"fabric.mtu=64"}, length: 128, build: func(r *rig) { x = r }, cfg: lateBy(6, &x, 256),
			payload:    []rec{do(hpu.OpDMAToHostNB, 0, 256, scratch, 64), end(hpu.Success)},
			completion: []rec{do(hpu.OpPutFromHost, opAt(0)), end(hpu.Success)},
			ops:        []hpu.Operation{{Offset: 256, Length: 64, TargetNID: 2, RemoteOffset: 8192}},
		})
		r.noHandlerErrors()
		require.Equal(t, pattern(64, 50), r.peerMem[8192:][:64])
	})
}
