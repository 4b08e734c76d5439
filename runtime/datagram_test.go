package runtime_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// datagrams lets the header handler of rank 1 put 1,000 bytes from host memory
// to rank 2, in packets of 256 bytes.
func datagrams(options uint32, s *setup) setup {
	s.overrides = append(s.overrides, "fabric.mtu=256")
	s.header = []rec{do(hpu.OpPutFromHost, opAt(0)), end(hpu.Proceed)}
	s.ops = []hpu.Operation{{Offset: 100, Length: 1000, TargetNID: 2, RemoteOffset: 4096, HdrData: 7, MatchBits: 8, Options: options}}
	s.target = filled
	return *s
}

// Each packet of a put with DATAGRAMS is a message of its own, at its place.
func TestDatagramsAreMessages(t *testing.T) {
	r := conduct(t, datagrams(2, &setup{}))
	require.Len(t, r.peers, 4)
	for i, e := range r.peers {
		require.Equal(t, portals.EventPut, e.Type)
		require.Equal(t, []uint64{uint64(4096 + 256*i), []uint64{256, 256, 256, 232}[i], 7, 8}, []uint64{e.RemoteOffset, e.MLength, e.HdrData, e.MatchBits})
	}
	require.Equal(t, r.host[100:1100], r.peerMem[4096:5096])
	whole := conduct(t, datagrams(0, &setup{}))
	require.Len(t, whole.peers, 1)
	require.Equal(t, r.peerMem, whole.peerMem)
	for i := range r.c.Nodes() {
		require.NoError(t, r.c.Node(i).NIC().Idle())
	}
}

// What is lost of a put with DATAGRAMS is its handlers' business: it is counted
// and is no failure of the run, and the other packets arrive. What is damaged
// does not come to an entry that could not tell.
func TestLostDatagramsAreNoFailures(t *testing.T) {
	for _, spec := range []fabric.FaultSpec{{Loss: 1}, {Corrupt: 1}} {
		for _, options := range []uint32{0, 2} {
			n := 0
			spec.Only = func(p fabric.Packet) bool {
				if p.Dst == 2 {
					n++
				}
				return p.Dst == 2 && n == 2
			}
			var net *fabric.Faulty
			r := conduct(t, datagrams(options, &setup{cfg: func(cfg *runtime.Config) {
				cfg.Fabric = func(eng *sim.Engine, s fabric.Spec, nodes int) (fabric.Fabric, error) {
					inner, err := fabric.New(eng, s, nodes)
					if err != nil {
						return nil, err
					}
					net, err = fabric.NewFaulty(eng, inner, spec)
					return net, err
				}
			}}))
			require.Equal(t, int64(1), net.Counts().Lost+net.Counts().Corrupted)
			_, failures := r.c.Failures()
			if options == 0 {
				require.Equal(t, 1, failures)
				require.Empty(t, r.peers, "a message that lacks a packet is never complete")
				continue
			}
			require.Zero(t, failures)
			if spec.Corrupt > 0 {
				require.Len(t, r.peers, 4)
				require.Equal(t, []any{portals.NIDropped, uint64(0)}, []any{r.peers[1].Fail, r.peers[1].MLength})
			} else {
				require.Len(t, r.peers, 3)
			}
			require.Equal(t, r.host[100:356], r.peerMem[4096:4352])
			require.Equal(t, pattern(peerBytes, 100)[4352:4608], r.peerMem[4352:4608])
			require.Equal(t, r.host[612:1100], r.peerMem[4608:5096])
		}
	}
}

// Data of a put with DATAGRAMS that is absent is not waited for: nothing of it
// is sent, and that is no failure of the run.
func TestAbsentDatagramsAreNotSent(t *testing.T) {
	for _, status := range []host.Status{host.Fault, host.Denied} {
		var x *rig
		r := conduct(t, datagrams(2, &setup{
			build: func(r *rig) { x = r },
			cfg: onRank(1, forGood(status, func(a *host.Access, off int) bool {
				addr, _ := a.At(off)
				return a.Direction() == host.FromMemory && addr >= x.addr+100+512
			})),
		}))
		require.Len(t, r.peers, 2)
		_, failures := r.c.Failures()
		require.Zero(t, failures)
		require.Equal(t, int64(2), r.c.Node(1).Stats().PacketsDropped)
		require.NoError(t, r.c.Node(1).NIC().Idle())
	}
}

// DATAGRAMS is an option of puts that nobody acknowledges.
func TestDatagramsOfNothingElse(t *testing.T) {
	r := conduct(t, setup{
		header: []rec{
			also(opSkip, scratch2, 5), also(opStore, scratch2, 1),
			do(hpu.OpPutFromHost, opAt(0)), do(hpu.OpGetFromHost, opAt(1)), do(hpu.OpToSelf, opAt(1)), do(hpu.OpTimer, 1, opAt(1)), do(hpu.OpAtomicFromHost, opAt(1)),
			end(hpu.Proceed),
		},
		ops: []hpu.Operation{{Length: 8, TargetNID: 2, Options: 2, AckReq: 1}, {Local: scratch, Length: 8, TargetNID: 2, Options: 2, FetchOffset: 1<<64 - 1}},
	})
	for i := range 5 {
		require.Equal(t, hpu.Invalid, r.result(headerAt, 2+i))
	}
}
