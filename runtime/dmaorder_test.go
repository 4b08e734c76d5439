package runtime_test

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// flooded lets rank 2 keep the bus to rank 1's memory busy: it puts 20 x 64 KiB
// to an entry without handlers. It is a setup's target and peer.
func flooded(s setup) setup {
	const bytes = 1 << 16
	s.target = func(p *runtime.Proc, _ *rig) error {
		addr := p.Alloc(bytes).Addr()
		if _, err := p.NI().Objects().PTAlloc(0, 0, 1); err != nil {
			return err
		}
		_, err := p.NI().MEAppend(1, &portals.ME{
			Start: addr, Length: bytes, UID: portals.UIDAny, MatchID: portals.AnyID, IgnoreBits: portals.SizeMax, Options: portals.OptMEOpPut,
		}, portals.PriorityList, 0)
		return err
	}
	s.peer = func(p *runtime.Proc, _ *rig) error {
		addr := p.Alloc(bytes).Addr()
		md, err := p.NI().Objects().MDBind(&portals.MD{Start: addr, Length: bytes})
		if err != nil {
			return err
		}
		for range 20 {
			if err := p.NI().Put(portals.Put{MD: md, Length: bytes, Target: portals.PhysID(1, 0), PT: 1}); err != nil {
				return err
			}
		}
		return nil
	}
	return s
}

// Each atomic takes effect once and before its answer, whatever else is on the
// bus: handlers that add 1 to one word, 100 times in all, leave 100, and each
// of them finds another number below that.
func TestDMAAtomicsUnderLoad(t *testing.T) {
	eachProfile(t, func(t *testing.T, profile string) {
		payloads := map[int][]rec{}
		for packet := range 5 {
			for i := range 20 {
				payloads[packet] = append(payloads[packet], do(hpu.OpDMAFAdd, 0, 64, 1, uint64(scratch2+8*(20*packet+i))))
			}
			payloads[packet] = append(payloads[packet], end(hpu.Success))
		}
		r := conduct(t, flooded(setup{profile: profile, overrides: []string{"fabric.mtu=4096"}, payloads: payloads, length: 5 * 4096}))
		r.noHandlerErrors()
		require.Equal(t, uint64(100), binary.LittleEndian.Uint64(r.host[64:]))
		seen := map[uint64]bool{}
		for i := range 100 {
			v := r.word(scratch2 + 8*i)
			require.Less(t, v, uint64(100))
			require.False(t, seen[v], "two adds found %d", v)
			seen[v] = true
		}
	})
}

// A compare-and-swap that says it has swapped has, and one that says it has not
// has not: of handlers that take a lock without ever giving it back one gets
// it.
func TestDMASwapUnderLoad(t *testing.T) {
	eachProfile(t, func(t *testing.T, profile string) {
		payloads := map[int][]rec{}
		for packet := range 8 {
			payloads[packet] = []rec{
				also(opSpin, 1+uint64(packet)*7919%5000),
				do(hpu.OpDMACAS, 0, 64, 0, uint64(packet+1), uint64(scratch2+8*packet)),
				do(hpu.OpDMAFromHost, 0, 64, uint64(scratch2+64+8*packet), 8),
				end(hpu.Success),
			}
		}
		r := conduct(t, flooded(setup{profile: profile, overrides: []string{"fabric.mtu=4096"}, payloads: payloads, length: 8 * 4096}))
		r.noHandlerErrors()
		owner := binary.LittleEndian.Uint64(r.host[64:])
		require.NotZero(t, owner)
		for packet := range 8 {
			script := payloadAt + packet*scriptBytes
			if uint64(packet+1) == owner {
				require.Equal(t, int64(1), r.result(script, 1))
				require.Zero(t, r.word(scratch2+8*packet))
			} else {
				require.Zero(t, r.result(script, 1))
				require.Equal(t, owner, r.word(scratch2+8*packet))
			}
			require.Equal(t, owner, r.word(scratch2+64+8*packet), "what a read behind the swap sees")
		}
	})
}

// A non-blocking atomic of a handler that has returned still takes effect,
// once, and its answer does not reach into anything that was made since: here
// reads of single bytes, which an atomic would overrun.
func TestDMAAtomicsOutliveTheirHandler(t *testing.T) {
	eachProfile(t, func(t *testing.T, profile string) {
		payloads := map[int][]rec{}
		for packet := range 16 {
			for i := range 14 {
				act := do(hpu.OpDMAFAddNB, 0, 8, 1<<(3*i), uint64(scratch2+8*i))
				if i%2 == 1 {
					act = do(hpu.OpDMAFromHostNB, 0, uint64(i), uint64(scratch2+1024+i), 1)
				}
				payloads[packet] = append(payloads[packet], act, also(opSpin, 150))
			}
			payloads[packet] = append(payloads[packet], end(hpu.Success))
		}
		r := conduct(t, flooded(setup{profile: profile, payloads: payloads, length: 16 * 4096}))
		r.noHandlerErrors()
		require.Equal(t, uint64(0o20202020202020), binary.LittleEndian.Uint64(r.host[8:]), "16 times the sum of 64^i, i < 7")
		require.Len(t, r.stepsOf(nic.StepLanded, hpu.OpDMAFAdd), 16*7)
		require.Len(t, r.stepsOf(nic.StepLanded, hpu.OpDMAFromHost), 16*7)
	})
}

// An atomic follows the writes issued before it and no others: with the bus
// towards memory filled by a write issued while its request was on the way, it
// takes 2L + D(8) like on an idle bus (full duplex).
func TestDMAAtomicWaitsForItsOwnWrites(t *testing.T) {
	r := conduct(t, setup{profile: "spin-dis", payloads: map[int][]rec{
		0: {do(hpu.OpDMAFAdd, 0, 0, 1, scratch2), end(hpu.Success)},
		1: {also(opSpin, 20), do(hpu.OpDMAToHost, 0, 64, hpuBase, 60000), end(hpu.Success)},
	}, overrides: []string{"fabric.mtu=64"}, length: 128})
	r.noHandlerErrors()
	add, write := r.stepsOf(nic.StepActed, hpu.OpDMAFAdd)[0], r.stepsOf(nic.StepActed, hpu.OpDMAToHost)[0]
	require.Less(t, add.At, write.At)
	require.Less(t, write.At, add.At+r.prof.DMA.Latency)
	answered := r.stepsOf(nic.StepAnswered, hpu.OpDMAFAdd)[0].At
	require.Equal(t, 2*r.prof.DMA.Latency+r.prof.DMA.Bandwidth.Time(8), answered-add.At)
	var landed sim.Time
	for _, s := range r.stepsOf(nic.StepLanded, hpu.OpDMAToHost) {
		landed = s.At
	}
	require.Less(t, answered, landed)
	require.Zero(t, r.word(scratch2), "what the add found")
	require.Equal(t, uint64(1), binary.LittleEndian.Uint64(r.host))
}

// The record of a message's end waits for writes of its handlers that take turns
// with those of other tenants, and are not on the bus yet.
func TestRecordIsBehindTurns(t *testing.T) {
	const bytes = 4096
	eachProfile(t, func(t *testing.T, name string) {
		p, err := profile.Load(name)
		require.NoError(t, err)
		device := *p
		device.HPU.Arbiter, device.HPU.ClusterTasks, device.HPU.Fragment = nic.WFQ, 0, 64
		device.Tenants = nic.Tenants{"light": {UID: 0, Weight: 1}, "heavy": {UID: 1, Weight: 8}}
		seen := 0
		r := conduct(t, setup{
			loaded: &device, length: 8,
			payload: []rec{do(hpu.OpDMAToHostNB, 0, 0, scratch, bytes), do(hpu.OpDMAToHostNB, 0, bytes, scratch, bytes), end(hpu.Success)},
			target: func(p *runtime.Proc, r *rig) error {
				_, err := p.NI().EQWait(r.eq)
				require.Equal(r, pattern(bytes, 50), r.memory.host.Slice(bytes, 2*bytes).Read(), "at the event")
				seen++
				return err
			},
		})
		r.noHandlerErrors()
		require.Equal(t, 1, seen)
	})
}
