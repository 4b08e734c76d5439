package runtime_test

import (
	"encoding/binary"
	"fmt"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// tell is the space of an entry's memory for a handler that wants to know of faults.
const tell = uint64(hpu.TellFaults)

// A handler that asks for it learns of a fault when the device does: in a
// blocking call, in dma_wait and in dma_test, two latencies after the access.
// The write has not begun then, whatever hpu.dma_write says. It may try again.
func TestHandlerIsToldOfFaults(t *testing.T) {
	for _, until := range []string{nic.Initiated, nic.Landed} {
		for _, c := range []struct {
			name string
			acts []rec
			wait hpu.Op
			want []int64
		}{
			{"write", []rec{do(hpu.OpDMAToHost, tell, 4096, scratch, 8), do(hpu.OpDMAToHost, tell, 4096, scratch, 8)}, hpu.OpDMAToHost, []int64{hpu.Fault, hpu.OK}},
			{"read", []rec{do(hpu.OpDMAFromHost, tell, 4096, scratch2, 8), do(hpu.OpDMAFromHost, 0, 4096, scratch2, 8)}, hpu.OpDMAFromHost, []int64{hpu.Fault, hpu.OK}},
			{"add", []rec{do(hpu.OpDMAFAdd, tell, 4096, 1, scratch2), do(hpu.OpDMAFAdd, tell, 4096, 1, scratch2)}, hpu.OpDMAFAdd, []int64{hpu.Fault, hpu.OK}},
			{"compare", []rec{do(hpu.OpDMACAS, tell, 4096, 0, 1, scratch2), do(hpu.OpDMACAS, 0, 4096, 0, 1, scratch2)}, hpu.OpDMACAS, []int64{hpu.Fault, hpu.OK}},
			{
				"write that is waited for",
				[]rec{do(hpu.OpDMAToHostNB, tell, 4096, scratch, 8), do(hpu.OpDMAWait, 0), do(hpu.OpDMAToHostNB, tell, 4096, scratch, 8), do(hpu.OpDMAWait, 0)},
				hpu.OpDMAWait,
				[]int64{0, hpu.Fault, 0, hpu.OK},
			},
			{ // the fault has come before the handler looks: it is told at once
				"write that is looked for later", []rec{do(hpu.OpDMAToHostNB, tell, 4096, scratch, 8), also(opSpin, 2000), do(hpu.OpDMAWait, 0)}, 0, []int64{0, 0, hpu.Fault},
			},
			{"write that is tested later", []rec{do(hpu.OpDMAToHostNB, tell, 4096, scratch, 8), also(opSpin, 2000), do(hpu.OpDMATest, 0)}, 0, []int64{0, 0, hpu.Fault}},
		} {
			t.Run(c.name+" "+until, func(t *testing.T) {
				r := conduct(t, setup{
					overrides: []string{"hpu.dma_write=" + until, "nic.fault_pause=100us"}, length: 8, header: append(c.acts, end(hpu.Proceed)), target: filled,
					cfg: onRank(1, failing(1, host.Fault, func(a *host.Access, _ int) bool { return a.Order != nil })),
				})
				r.noHandlerErrors()
				require.Equal(t, c.want, r.results(c.acts))
				ended := r.stepsOf(nic.StepEnded, hpu.OpNone)[0].At
				require.Less(t, ended, 50*sim.Microsecond, "nothing was tried again")
				if c.wait != 0 {
					asked := r.stepsOf(nic.StepActed, hpu.OpNone)[0].At
					require.Equal(t, asked+2*r.prof.DMA.Latency, r.stepsOf(nic.StepAnswered, c.wait)[0].At)
				}
				_, failures := r.c.Failures()
				require.Zero(t, failures)
				if c.name == "add" {
					require.Equal(t, uint64(0xeeeeeeeeeeeeeeef), binary.LittleEndian.Uint64(r.host[4096:]), "once")
				}
			})
		}
	}
}

// results are what the lines of the header handler's script have returned;
// those that are no import return nothing.
func (r *rig) results(acts []rec) (got []int64) {
	for i := range acts {
		if acts[i].op == opSpin {
			got = append(got, 0)
		} else {
			got = append(got, r.result(headerAt, i))
		}
	}
	return got
}

// A handler that does not ask for faults waits for the page, without its core:
// the NIC tries again by its policy, each time a round trip and a pause. A look
// in between finds the operation in flight. A failed operation is a FAULT, and a
// handler that gives up because of it reports it.
func TestHandlerWaitsForAbsentMemory(t *testing.T) {
	const faults = 3
	for _, c := range []struct {
		name string
		acts []rec
		want int64
	}{
		{"write", []rec{do(hpu.OpDMAToHost, 0, 4096, scratch, 8)}, hpu.OK},
		{"read", []rec{do(hpu.OpDMAFromHost, 0, 4096, scratch2, 8)}, hpu.OK},
		{"add", []rec{do(hpu.OpDMAFAdd, 0, 4096, 1, scratch2)}, hpu.OK},
		{"compare", []rec{do(hpu.OpDMACAS, 0, 4096, 0xeeeeeeeeeeeeeeee, 1, scratch2)}, 1},
		{"write that is waited for", []rec{do(hpu.OpDMAToHostNB, 0, 4096, scratch, 8), do(hpu.OpDMAWait, 0)}, hpu.OK},
		{"write that is tested", []rec{do(hpu.OpDMAToHostNB, 0, 4096, scratch, 8), also(opSpin, 4000), do(hpu.OpDMATest, 0), do(hpu.OpDMAWait, 0)}, hpu.OK},
	} {
		for _, tries := range []int{faults, faults - 1} {
			t.Run(fmt.Sprintf("%s, %d tries", c.name, tries), func(t *testing.T) {
				s := setup{
					overrides: []string{"hpu.dma_write=landed", "nic.fault_pause=5us", fmt.Sprintf("nic.fault_tries=%d", tries)}, length: 8, target: filled,
					header: append(c.acts, end(hpu.Fail)),
				}
				without := conduct(t, s)
				s.cfg = onRank(1, failing(faults, host.Fault, func(a *host.Access, _ int) bool { return a.Order != nil && a.Space != nil }))
				r := conduct(t, s)
				answered := func(r *rig) sim.Time { return r.stepsOf(nic.StepAnswered, hpu.OpNone)[0].At }
				last := r.result(headerAt, len(c.acts)-1)
				if tries < faults {
					require.Equal(t, hpu.Fault, last)
					require.Contains(t, r.failure(), "header handler of actions: returned FAIL, after a")
					require.Contains(t, r.failure(), fmt.Sprintf(" 8 bytes of host memory at %#x had failed: FAULT, 3 times (nic.fault_tries, 2)", r.addr+4096))
					return
				}
				require.Equal(t, c.want, last)
				if c.name == "write that is tested" {
					require.Zero(t, r.result(headerAt, 2), "it is under way")
					require.Equal(t, int64(1), without.result(headerAt, 2))
					return
				}
				require.Equal(t, answered(without)+faults*(2*r.prof.DMA.Latency+5*sim.Microsecond), answered(r))
				require.Equal(t, without.host, r.host, "once")
				require.Regexp(t, "header handler of actions: returned FAIL$", r.failure())
			})
		}
	}
}

// What a handler does not look for is tried again, whether it still runs or has
// ended, unless it has asked for faults. Its message waits.
func TestUnlookedFaultsAreTriedAgain(t *testing.T) {
	// it ends before the first fault, during the pause, after all
	for _, spin := range []uint64{1, 1000, 100_000} {
		for _, act := range []rec{
			do(hpu.OpDMAToHostNB, 0, 4096, scratch, 64), do(hpu.OpDMAFromHostNB, 0, 4096, scratch2, 64), do(hpu.OpDMAFAddNB, 0, 4096, 1, scratch2),
		} {
			var x *rig
			r := conduct(t, setup{
				length: 8, header: []rec{act, also(opSpin, spin), end(hpu.Proceed)}, build: func(r *rig) { x = r }, target: filled,
				overrides: []string{"nic.fault_pause=2us"},
				cfg: onRank(1, failing(4, host.Fault, func(a *host.Access, _ int) bool {
					addr, _ := a.At(0)
					return addr == x.addr+4096
				})),
			})
			r.noHandlerErrors()
			landed := r.stepsOf(nic.StepLanded, hpu.OpNone)
			require.Len(t, landed, 1)
			asked := r.stepsOf(nic.StepActed, hpu.OpNone)[0].At
			require.GreaterOrEqual(t, landed[0].At, asked+4*(2*sim.Microsecond+2*r.prof.DMA.Latency))
			require.Zero(t, landed[0].Result)
			if hpu.Op(act.op) == hpu.OpDMAToHostNB {
				require.Equal(t, pattern(64, 50), r.host[4096:][:64])
				require.Greater(t, only(t, r.targets, portals.EventPut).at, landed[0].At, "the record is behind the data")
			}
		}
	}
}

// What has failed for good, and nobody has looked for, is among the failures,
// and a message that lacks a write has failed. The same once if the handler has
// ended before the last try, and if it ends after it without having looked. One
// that looks is told, and that is all.
func TestUnlookedFailuresAreReported(t *testing.T) {
	for _, c := range []struct {
		name  string
		acts  []rec
		named string
		fail  portals.FailType
	}{
		{"write, ended before", []rec{do(hpu.OpDMAToHostNB, 0, 4096, scratch, 64)}, "rank 1 at .*: a handler of actions: a write of 64 bytes", portals.NISegv},
		{"write, ended after", []rec{do(hpu.OpDMAToHostNB, 0, 4096, scratch, 64), also(opSpin, 100_000)}, "rank 1 at .*: header handler of actions: a write of 64 bytes", portals.NISegv},
		{"read", []rec{do(hpu.OpDMAFromHostNB, 0, 4096, scratch2, 64)}, "a handler of actions: a read of 64 bytes", portals.NIOK},
		{"atomic", []rec{do(hpu.OpDMACASNB, 0, 4096, 0, 1, scratch2), also(opSpin, 100_000)}, "header handler of actions: an atomic on 8 bytes", portals.NIOK},
		{"write that is looked for", []rec{do(hpu.OpDMAToHostNB, 0, 4096, scratch, 64), also(opSpin, 100_000), do(hpu.OpDMAWait, 0)}, "", portals.NIOK},
		{"blocking write", []rec{do(hpu.OpDMAToHost, 0, 4096, scratch, 64)}, "", portals.NIOK},
		{"write of one that asked to be told", []rec{do(hpu.OpDMAToHostNB, tell, 4096, scratch, 64)}, "rank 1 at .*: a handler of actions: a write of 64 bytes", portals.NISegv},
	} {
		for why, s := range map[string]host.Status{"FAULT, 4 times (nic.fault_tries, 3)": host.Fault, "DENIED": host.Denied} { //lint:maporder each by itself
			if s == host.Fault && c.acts[0].args[0] == tell {
				why = "FAULT"
			}
			t.Run(c.name+" "+why, func(t *testing.T) {
				var x *rig
				r := conduct(t, setup{
					length: 8, header: append(c.acts, end(hpu.Proceed)), build: func(r *rig) { x = r }, overrides: []string{"nic.fault_tries=3", "nic.fault_pause=100ns"},
					cfg: onRank(1, forGood(s, func(a *host.Access, _ int) bool {
						addr, _ := a.At(0)
						return addr == x.addr+4096
					})),
				})
				require.Equal(t, c.fail, only(t, r.targets, portals.EventPut).Fail)
				if c.named == "" {
					r.noHandlerErrors()
					return
				}
				require.Regexp(t, c.named+fmt.Sprintf(" of host memory at %#x that it did not wait for failed: %s$", r.addr+4096, regexp.QuoteMeta(why)), r.failure())
			})
		}
	}
}

// A handler writes data without waiting for it, and then a flag. A core that
// sees the flag sees the data, although the page of the data was absent: what
// is made for one source keeps its order, whatever the handlers are.
func TestLateDataIsThereBeforeItsFlag(t *testing.T) {
	eachProfile(t, func(t *testing.T, profile string) {
		for _, split := range []bool{false, true} { // flag and data are of two handlers
			var x *rig
			data, flag := do(hpu.OpDMAToHostNB, 0, 4096, scratch, 64), do(hpu.OpDMAToHost, 0, 8192, scratch, 8)
			payloads := map[int][]rec{0: {data, flag, end(hpu.Success)}, 1: {end(hpu.Success)}}
			if split {
				payloads = map[int][]rec{0: {data, end(hpu.Success)}, 1: {also(opSpin, 2000), flag, end(hpu.Success)}}
			}
			looks := 0
			r := conduct(t, setup{
				profile: profile, overrides: []string{"fabric.mtu=64"}, length: 128, payloads: payloads, build: func(r *rig) { x = r }, cfg: lateBy(5, &x, 4096),
				target: func(p *runtime.Proc, r *rig) error {
					for r.memory.host.Slice(8192, 8200).Read()[0] == 0 {
						looks++
						p.Sleep(10 * sim.Nanosecond)
					}
					require.Equal(r, pattern(64, 50), append([]byte(nil), r.memory.host.Slice(4096, 4096+64).Read()...))
					return nil
				},
			})
			r.noHandlerErrors()
			require.Greater(t, looks, 300)
		}
	})
}

// A read and an atomic find what was written before them, however late it was;
// and a blocking write that is late holds its handler until it begins.
func TestHandlersFindLateWrites(t *testing.T) {
	eachProfile(t, func(t *testing.T, profile string) {
		var x *rig
		r := conduct(t, setup{
			profile: profile, length: 8, build: func(r *rig) { x = r }, cfg: lateBy(5, &x, 4096),
			header: []rec{
				do(hpu.OpDMAToHostNB, 0, 4096, scratch, 64),      // late
				do(hpu.OpDMAFromHost, 0, 4096, scratch2, 32),     // 1
				do(hpu.OpDMAFAdd, 0, 4128, 1, scratch2+32),       // 2
				do(hpu.OpDMAToHost, 0, 4096+40, scratch+1024, 8), // 3
				do(hpu.OpDMAFromHost, 0, 4096, scratch2+64, 64),
				end(hpu.Proceed),
			},
		})
		r.noHandlerErrors()
		want := pattern(64, 50)
		require.Equal(t, want[:32], r.hpu.Bytes()[scratch2-hpuBase:][:32])
		word := binary.LittleEndian.Uint64(want[32:])
		require.Equal(t, word, r.word(scratch2+32))
		binary.LittleEndian.PutUint64(want[32:], word+1)
		copy(want[40:48], pattern(4096, 50)[1024:])
		require.Equal(t, want, r.hpu.Bytes()[scratch2+64-hpuBase:][:64])
		require.Equal(t, want, r.host[4096:][:64])
	})
}
