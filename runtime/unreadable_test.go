package runtime_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
)

// packet256 chooses the accesses to packet i of a message of packets of 256 B: reads of its data.
func packet256(i int) func(a *host.Access, off int) bool {
	return func(a *host.Access, off int) bool { return a.Direction() == host.FromMemory && off == 256*i }
}

// forGood is failing without end.
func forGood(s host.Status, which func(a *host.Access, off int) bool) func(a *host.Access, off int) host.Status {
	return failing(1<<30, s, which)
}

// filled fills the memory of rank 1's entry, so that zeros show.
func filled(_ *runtime.Proc, r *rig) error {
	for i, b := 0, r.memory.host.Raw(); i < len(b); i++ {
		b[i] = 0xee
	}
	return nil
}

// failure is the one thing in the failures of the run.
func (r *rig) failure() string {
	list, n := r.c.Failures()
	require.Equal(r, 1, n, "%v", list)
	return list[0].Error()
}

// A message whose data cannot be read fails at both ends. What was read before
// is there, of the rest nothing: no zeros, no handlers, and no element of an
// atomic. The run says which memory it was and why, once.
func TestUnreadableDataIsNotDelivered(t *testing.T) {
	const n = 5 * 256
	to := portals.PhysID(1, 0)
	for _, c := range []struct {
		name string
		send func(ni *runtime.NI, md portals.Handle) error
		at   portals.EventType
	}{
		{"put", func(ni *runtime.NI, md portals.Handle) error {
			return ni.Put(portals.Put{MD: md, Length: n, Ack: portals.Ack, Target: to, MatchBits: 5, UserPtr: 9})
		}, portals.EventPut},
		{"atomic", func(ni *runtime.NI, md portals.Handle) error {
			return ni.Atomic(portals.Atomic{MD: md, Length: n, Ack: portals.Ack, Target: to, MatchBits: 5, UserPtr: 9, Op: portals.OpBXOR, Type: portals.Uint64})
		}, portals.EventAtomic},
	} {
		for k := range 5 {
			r := conduct(t, setup{
				overrides: []string{"fabric.mtu=256", "nic.fault_tries=2", "nic.fault_pause=100ns"}, message: solid(n), target: filled,
				cfg:       onRank(0, forGood(host.Fault, packet256(k))),
				initiator: func(p *runtime.Proc, md portals.Handle, _ *rig) error { return c.send(p.NI(), md) },
			})
			read := 256 * k
			want := append(bytes.Clone(r.message[:read]), bytes.Repeat([]byte{0xee}, n-read)...)
			if c.at == portals.EventAtomic {
				for i := range read {
					want[i] ^= 0xee
				}
			}
			require.Equal(t, want, r.host[:n], "%s, packet %d", c.name, k)
			ev := only(t, r.targets, c.at)
			require.Equal(t, []any{portals.NISegv, uint64(read)}, []any{ev.Fail, ev.MLength})
			require.Equal(t, portals.NISegv, only(t, r.inits, portals.EventSend).Fail)
			require.Equal(t, portals.NISegv, only(t, r.inits, portals.EventAck).Fail, "and not a second time when the target answers")
			require.Regexp(t, `^rank 0 at .*: \d of 5 packets \(\d+ of 1280 B\) of an? (put|atomic) from rank 0 were dropped: `+
				`memory at 0x[0-9a-f]+ could not be read: FAULT, 3 times \(nic.fault_tries, 2\) \(portal table index 0, match bits 0x5\)$`, r.failure())
			stats := r.c.Stats()
			require.Equal(t, []int64{int64(5 - k), 1}, []int64{stats.PacketsDropped, stats.MessagesLost})
			require.NoError(t, r.c.Node(1).NIC().Idle())
		}
	}
}

// What the target of a get cannot read is not in the initiator's memory; REPLY
// and GET say so. A fetching atomic whose operand cannot be read changes
// nothing and fetches nothing.
func TestUnreadableAnswers(t *testing.T) {
	const n = 4 * 256
	for _, k := range []int{0, 2} {
		var got runtime.View
		r := conduct(t, setup{
			overrides: []string{"fabric.mtu=256"}, message: solid(n), target: filled, cfg: onRank(1, forGood(host.Denied, packet256(k))),
			initiator: func(p *runtime.Proc, md portals.Handle, r *rig) error {
				got = p.Alloc(n)
				got.CopyFrom(bytes.Repeat([]byte{0x11}, n))
				into, err := p.NI().Objects().MDBind(&portals.MD{Start: got.Addr(), Length: n, EQ: r.initEQ})
				if err != nil {
					return err
				}
				return p.NI().Get(portals.Get{MD: into, Length: n, Target: portals.PhysID(1, 0)})
			},
		})
		require.Equal(t, append(bytes.Repeat([]byte{0xee}, 256*k), bytes.Repeat([]byte{0x11}, n-256*k)...), got.Snapshot())
		for _, ev := range []event{only(t, r.inits, portals.EventReply), only(t, r.targets, portals.EventGet)} {
			require.Equal(t, portals.NISegv, ev.Fail)
		}
		require.Equal(t, uint64(256*k), only(t, r.inits, portals.EventReply).MLength)
		require.Regexp(t, `^rank 1 at .*: \d of 4 packets \(\d+ of 1024 B\) of a reply from rank 1 were dropped: memory at 0x[0-9a-f]+ could not be read: DENIED \(`, r.failure())
	}
	r := conduct(t, setup{
		overrides: []string{"fabric.mtu=256"}, message: solid(n), target: filled, cfg: onRank(0, forGood(host.Denied, packet256(1))),
		initiator: func(p *runtime.Proc, md portals.Handle, _ *rig) error {
			return p.NI().FetchAtomic(portals.FetchAtomic{GetMD: md, MD: md, Length: n, Target: portals.PhysID(1, 0), Op: portals.OpBXOR, Type: portals.Uint64})
		},
	})
	require.Equal(t, bytes.Repeat([]byte{0xee}, n-256), r.host[256:n])
	require.Equal(t, portals.NISegv, only(t, r.targets, portals.EventFetchAtomic).Fail)
	require.Equal(t, portals.NISegv, only(t, r.inits, portals.EventReply).Fail)
	r.failure()
}

// Handlers see the packets that carry data; the completion handler is told of
// the others. A message without its header packet has no handlers.
func TestHandlersSeeNoUnreadData(t *testing.T) {
	for k := range 4 {
		r := conduct(t, setup{
			overrides: []string{"fabric.mtu=256"}, message: solid(4 * 256), userHdr: 16, cfg: onRank(0, forGood(host.Denied, packet256(k))),
			header: []rec{end(hpu.ProcessData)}, payload: []rec{end(hpu.Success)}, completion: []rec{end(hpu.Success)},
		})
		r.noHandlerErrors()
		header, payload, completion := r.handlersRun()
		put := only(t, r.targets, portals.EventPut)
		require.Equal(t, portals.NISegv, put.Fail)
		require.Equal(t, uint64(256*k), put.MLength)
		if k == 0 {
			require.Zero(t, header+payload+completion)
			continue
		}
		require.Equal(t, [3]int{1, k, 1}, [3]int{header, payload, completion})
		for _, s := range r.stepsOf(nic.StepBegan, hpu.OpNone) {
			if s.Handler == "completion" {
				require.Equal(t, uint64(1024-256*k), binary.LittleEndian.Uint64(s.Record), "dropped_bytes")
				require.Equal(t, uint32(1), binary.LittleEndian.Uint32(s.Record[12:]), "failed")
			}
		}
	}
}

// A handler that gets data from a node that cannot read it is told DENIED, and
// its memory is left alone from there on.
func TestHandlerGetsUnreadableData(t *testing.T) {
	r := conduct(t, setup{
		overrides: []string{"fabric.mtu=256"}, length: 8, cfg: onRank(2, forGood(host.Denied, packet256(2))),
		header: []rec{do(hpu.OpGetFromDevice, opAt(0)), end(hpu.Drop)}, ops: []hpu.Operation{{Local: scratch2, Length: 1000, TargetNID: 2}},
	})
	r.noHandlerErrors()
	require.Equal(t, hpu.Denied, r.result(headerAt, 0))
	require.Equal(t, append(pattern(512, 100), make([]byte, 488)...), r.hpu.Bytes()[scratch2-hpuBase:][:1000])
	require.Contains(t, r.failure(), "of a reply from rank 2")
}

// A descriptor may name memory that is not there. The message that it sends has not its data.
func TestDescriptorOfNoMemory(t *testing.T) {
	r := conduct(t, setup{
		length: 64, target: filled,
		initiator: func(p *runtime.Proc, _ portals.Handle, r *rig) error {
			md, err := p.NI().Objects().MDBind(&portals.MD{Start: 1 << 40, Length: 4096, EQ: r.initEQ})
			if err != nil {
				return err
			}
			return p.NI().Put(portals.Put{MD: md, Offset: 16, Length: 64, Target: portals.PhysID(1, 0), MatchBits: 5})
		},
	})
	require.Equal(t, bytes.Repeat([]byte{0xee}, 64), r.host[:64])
	require.Equal(t, portals.NISegv, only(t, r.targets, portals.EventPut).Fail)
	require.Contains(t, r.failure(), "were dropped: there is no memory at 0x10000000010 (portal table index 0, match bits 0x5)")
}
