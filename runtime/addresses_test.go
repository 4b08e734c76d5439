package runtime_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/internal/hosttest"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// touched is a range of memory that a device has asked for.
type touched struct {
	dir    host.Direction
	addr   uint64
	length int
}

func reading(addr, n uint64) touched { return touched{host.FromMemory, addr, int(n)} }

func writing(addr, n uint64) touched { return touched{host.ToMemory, addr, int(n)} }

// recorders are the translators of a cluster's ranks.
type recorders []*hosttest.Recorder

func (r *recorders) make(eng *sim.Engine, _ int, _ *host.Bus) host.Translator {
	*r = append(*r, &hosttest.Recorder{Engine: eng})
	return (*r)[len(*r)-1]
}

// ranges are what a rank's translator was asked about, in that order; what
// follows its neighbour, packet by packet, is one range.
func (r recorders) ranges(rank int) (list []touched) {
	for _, q := range r[rank].Questions {
		if k := len(list) - 1; k >= 0 && list[k].dir == q.Direction && list[k].addr+uint64(list[k].length) == q.Addr {
			list[k].length += q.Length
			continue
		}
		list = append(list, touched{q.Direction, q.Addr, q.Length})
	}
	return list
}

// fetchedAt is where an initiator's memory for answers begins.
const fetchedAt = 40000

// places are pieces of scattered memory that no packet ends with.
func places(base uint64) []portals.IOVec {
	return []portals.IOVec{{Base: base + 10000, Length: 100}, {Base: base + 20001, Length: 1}, {Base: base + 5, Length: 0}, {Base: base + 30000, Length: 5000}}
}

// call is a program that has descriptors of the kinds there are.
type call struct {
	ni                     *runtime.NI
	plain, vector, fetched portals.Handle
}

// asking is an operation, and the memory that it takes at its initiator, from a
// on, and at its target, from b on.
type asking struct {
	name      string
	do        func(c *call) error
	initiator func(a uint64) []touched
	target    func(b uint64) []touched
}

// The portal table entries of the target: of contiguous memory, and of pieces.
const plain, vector = 0, 1

var there = portals.PhysID(1, 0)

var askings = []asking{
	{
		"put", func(c *call) error {
			return c.ni.Put(portals.Put{MD: c.plain, Offset: 7, Length: 3000, Ack: portals.Ack, Target: there, PT: plain, RemoteOffset: 100})
		},
		func(a uint64) []touched { return []touched{reading(a+7, 3000)} },
		func(b uint64) []touched { return []touched{writing(b+100, 3000)} },
	},
	{
		"put of nothing", func(c *call) error {
			return c.ni.Put(portals.Put{MD: c.plain, Offset: 7, Ack: portals.Ack, Target: there, PT: plain, RemoteOffset: 100})
		}, nil, nil,
	},
	{
		"truncated put", func(c *call) error {
			return c.ni.Put(portals.Put{MD: c.plain, Length: 3000, Ack: portals.Ack, Target: there, PT: plain, RemoteOffset: 16000})
		},
		func(a uint64) []touched { return []touched{reading(a, 3000)} },
		func(b uint64) []touched { return []touched{writing(b+16000, 384)} },
	},
	{
		"put to where there is nothing", func(c *call) error {
			return c.ni.Put(portals.Put{MD: c.plain, Length: 100, Ack: portals.Ack, Target: there, PT: plain, RemoteOffset: 20000})
		},
		func(a uint64) []touched { return []touched{reading(a, 100)} }, nil,
	},
	{
		"put from pieces to pieces", func(c *call) error {
			return c.ni.Put(portals.Put{MD: c.vector, Offset: 90, Length: 2000, Ack: portals.Ack, Target: there, PT: vector, RemoteOffset: 40})
		},
		func(a uint64) []touched {
			return []touched{reading(a+10090, 10), reading(a+20001, 1), reading(a+30000, 1989)}
		},
		func(b uint64) []touched {
			return []touched{writing(b+10040, 60), writing(b+20001, 1), writing(b+30000, 1939)}
		},
	},
	{
		"get", func(c *call) error {
			return c.ni.Get(portals.Get{MD: c.fetched, Offset: 5, Length: 3000, Target: there, PT: plain, RemoteOffset: 100})
		},
		func(a uint64) []touched { return []touched{writing(a+fetchedAt+5, 3000)} },
		func(b uint64) []touched { return []touched{reading(b+100, 3000)} },
	},
	{
		"get from pieces to pieces", func(c *call) error {
			return c.ni.Get(portals.Get{MD: c.vector, Offset: 100, Length: 300, Target: there, PT: vector, RemoteOffset: 99})
		},
		func(a uint64) []touched { return []touched{writing(a+20001, 1), writing(a+30000, 299)} },
		func(b uint64) []touched {
			return []touched{reading(b+10099, 1), reading(b+20001, 1), reading(b+30000, 298)}
		},
	},
	{
		"atomic", func(c *call) error {
			return c.ni.Atomic(portals.Atomic{MD: c.plain, Offset: 8, Length: 2048, Ack: portals.Ack, Target: there, PT: plain, RemoteOffset: 16, Op: portals.OpSUM, Type: portals.Uint64})
		},
		func(a uint64) []touched { return []touched{reading(a+8, 2048)} },
		func(b uint64) []touched { return []touched{writing(b+16, 2048)} },
	},
	{
		"fetching atomic", func(c *call) error {
			return c.ni.FetchAtomic(portals.FetchAtomic{GetMD: c.fetched, GetOffset: 24, MD: c.plain, Offset: 8, Length: 512, Target: there, PT: plain, RemoteOffset: 16, Op: portals.OpSUM, Type: portals.Uint64})
		},
		func(a uint64) []touched { return []touched{reading(a+8, 512), writing(a+fetchedAt+24, 512)} },
		func(b uint64) []touched { return []touched{writing(b+16, 512)} },
	},
	{
		"atomic on pieces", func(c *call) error {
			return c.ni.Atomic(portals.Atomic{MD: c.vector, Offset: 98, Length: 16, Ack: portals.Ack, Target: there, PT: vector, RemoteOffset: 96, Op: portals.OpSUM, Type: portals.Uint16})
		},
		func(a uint64) []touched {
			return []touched{reading(a+10098, 2), reading(a+20001, 1), reading(a+30000, 13)}
		},
		func(b uint64) []touched {
			return []touched{writing(b+10096, 4), writing(b+20001, 1), writing(b+30000, 11)}
		},
	},
	{
		"swap", func(c *call) error {
			return c.ni.Swap(portals.Swap{GetMD: c.fetched, MD: c.plain, Offset: 64, Length: 8, Target: there, PT: plain, RemoteOffset: 32, Operand: make([]byte, 8), Op: portals.OpCSWAP, Type: portals.Uint64})
		},
		func(a uint64) []touched { return []touched{reading(a+64, 8), writing(a+fetchedAt, 8)} },
		func(b uint64) []touched { return []touched{writing(b+32, 8)} },
	},
}

// A device asks the translator for the bytes of the buffers and for no others:
// of puts, gets, replies and atomics, with contiguous and scattered memory at
// either side, whatever the packets are. It asks for nothing where the NIC has
// the data itself.
func TestDevicesAskForTheBuffers(t *testing.T) {
	for _, c := range askings {
		t.Run(c.name, func(t *testing.T) {
			var r recorders
			device, err := profile.Load("spin-dis", "fabric.mtu=1024")
			require.NoError(t, err)
			cluster, err := runtime.NewCluster(runtime.Config{Profile: device, Nodes: 2, Translator: r.make})
			require.NoError(t, err)
			defer func() { require.NoError(t, cluster.Close()) }()
			var base [2]uint64
			require.NoError(t, cluster.Spawn(1, "target", func(p *runtime.Proc) error {
				base[1] = p.Alloc(1 << 16).Addr()
				return offer(p.NI(), base[1])
			}))
			require.NoError(t, cluster.Spawn(0, "initiator", func(p *runtime.Proc) error {
				base[0] = p.Alloc(1 << 16).Addr()
				x, err := describe(p.NI(), base[0])
				if err != nil {
					return err
				}
				return c.do(x)
			}))
			require.NoError(t, cluster.Run(context.Background()))
			for rank, want := range []func(uint64) []touched{c.initiator, c.target} {
				var list []touched
				if want != nil {
					list = want(base[rank])
				}
				require.Equal(t, list, r.ranges(rank), "rank %d", rank)
				require.Len(t, r[rank].Passed, len(r[rank].Questions), "rank %d: all have ended", rank)
			}
		})
	}
}

// offer appends the entries of the target.
func offer(ni *runtime.NI, b uint64) error {
	options := portals.OptMEOpPut | portals.OptMEOpGet
	for pt, me := range []portals.ME{{Start: b, Length: 16384, Options: options}, {IOVec: places(b), Options: options | portals.OptMEIOVec}} {
		me.UID, me.MatchID = portals.UIDAny, portals.AnyID
		if _, err := ni.Objects().PTAlloc(0, portals.EQNone, uint32(pt)); err != nil {
			return err
		}
		if _, err := ni.MEAppend(uint32(pt), &me, portals.PriorityList, 0); err != nil {
			return err
		}
	}
	return nil
}

// describe binds the descriptors of the initiator.
func describe(ni *runtime.NI, a uint64) (x *call, err error) {
	x = &call{ni: ni}
	if x.plain, err = ni.Objects().MDBind(&portals.MD{Start: a, Length: 8192}); err != nil {
		return nil, err
	}
	if x.fetched, err = ni.Objects().MDBind(&portals.MD{Start: a + fetchedAt, Length: 8192}); err != nil {
		return nil, err
	}
	x.vector, err = ni.Objects().MDBind(&portals.MD{IOVec: places(a), Options: portals.OptMDIOVec})
	return x, err
}

// What a descriptor says is volatile, and what comes from HPU memory, the NIC
// has: it asks nobody for it, not even if it has to wait behind messages whose
// data is being read.
func TestWhatTheNICHasIsNotAskedFor(t *testing.T) {
	var r recorders
	var first uint64
	rig := conduct(t, setup{
		length: 1 << 15, cfg: func(cfg *runtime.Config) { cfg.Translator = r.make },
		initiator: func(p *runtime.Proc, md portals.Handle, _ *rig) error {
			ni := p.NI()
			m := p.Alloc(1 << 15)
			first = m.Addr()
			long, err := ni.Objects().MDBind(&portals.MD{Start: first, Length: 1 << 15})
			if err != nil {
				return err
			}
			brief, err := ni.Objects().MDBind(&portals.MD{Start: first, Length: 64, Options: portals.OptMDVolatile})
			if err != nil {
				return err
			}
			if err := ni.Put(portals.Put{MD: long, Length: 1 << 15, Target: portals.PhysID(1, 0)}); err != nil {
				return err
			}
			if err := ni.Put(portals.Put{MD: brief, Length: 64, Target: portals.PhysID(1, 0)}); err != nil {
				return err
			}
			return ni.Put(portals.Put{MD: long, Target: portals.PhysID(1, 0)})
		},
	})
	require.Equal(t, []touched{reading(first, 1<<15)}, r.ranges(0))
	require.Equal(t, []touched{writing(rig.addr, 1<<15), writing(rig.addr, 64)}, r.ranges(1))

	r = nil
	rig = conduct(t, setup{
		length: 64, cfg: func(cfg *runtime.Config) { cfg.Translator = r.make }, header: []rec{do(hpu.OpPutFromDevice, opAt(0)), end(hpu.Drop)},
		ops: []hpu.Operation{{Local: scratch, Length: 100, TargetNID: 2, RemoteOffset: 32}},
	})
	require.Empty(t, r.ranges(1))
	require.Equal(t, []touched{writing(rig.memory.peer.Addr()+32, 100)}, r.ranges(2))
}

// The default action deposits behind a user header, or the whole message if the
// header handler says PROCEED.
func TestUserHeadersAreNotDeposited(t *testing.T) {
	for code, want := range map[hpu.Code]func(r *rig) []touched{ //lint:maporder each by itself
		hpu.ProcessData: func(r *rig) []touched { return []touched{writing(r.addr, 9000-48)} },
		hpu.Proceed:     func(r *rig) []touched { return []touched{writing(r.addr, 9000)} },
		hpu.Drop:        func(*rig) []touched { return nil },
	} {
		var r recorders
		rig := conduct(t, setup{length: 9000, userHdr: 48, header: []rec{end(code)}, cfg: func(cfg *runtime.Config) { cfg.Translator = r.make }})
		require.Equal(t, want(rig), r.ranges(1), "%v", code)
	}
}

// DMA of handlers, and what they have the NIC read and write: in the entry's
// memory and in the handler host memory, which is scattered here.
func TestHandlersAskForTheirMemory(t *testing.T) {
	atomic := func(addr, n uint64) touched { return touched{host.AtMemory, addr, int(n)} }
	pieces := func(r *rig) []portals.IOVec {
		return []portals.IOVec{{Base: r.addr + 4096, Length: 16}, {Base: r.addr + 24, Length: 20}, {Base: r.addr + 8}, {Base: r.addr + 512, Length: 28}}
	}
	for _, c := range []struct {
		name string
		act  rec
		op   hpu.Operation
		want func(a uint64) []touched
	}{
		{"write", do(hpu.OpDMAToHost, 0, 100, scratch, 3000), hpu.Operation{}, func(a uint64) []touched { return []touched{writing(a+100, 3000)} }},
		{"write nothing", do(hpu.OpDMAToHost, 0, 100, scratch, 0), hpu.Operation{}, nil},
		{"write pieces", do(hpu.OpDMAToHostNB, 1, 10, scratch, 40), hpu.Operation{}, func(a uint64) []touched {
			return []touched{writing(a+4106, 6), writing(a+24, 20), writing(a+512, 14)}
		}},
		{"read", do(hpu.OpDMAFromHost, 0, 0, scratch2, 8), hpu.Operation{}, func(a uint64) []touched { return []touched{reading(a, 8)} }},
		{"read pieces", do(hpu.OpDMAFromHost, 1, 35, scratch2, 10), hpu.Operation{}, func(a uint64) []touched {
			return []touched{reading(a+43, 1), reading(a+512, 9)}
		}},
		{"add", do(hpu.OpDMAFAdd, 0, 64, 1, scratch2), hpu.Operation{}, func(a uint64) []touched { return []touched{atomic(a+64, 8)} }},
		{"swap in a piece", do(hpu.OpDMACASNB, 1, 16, 0, 1, scratch2), hpu.Operation{}, func(a uint64) []touched { return []touched{atomic(a+24, 8)} }},
		{"refused", do(hpu.OpDMAToHost, 1, 60, scratch, 5), hpu.Operation{}, nil},
		{
			"put from host", do(hpu.OpPutFromHost, opAt(0)),
			hpu.Operation{Space: 1, Offset: 30, Length: 30, TargetNID: 2},
			func(a uint64) []touched { return []touched{reading(a+38, 6), reading(a+512, 24)} },
		},
		{
			"get from host", do(hpu.OpGetFromHost, opAt(0)),
			hpu.Operation{Offset: 300, Length: 20, TargetNID: 2},
			func(a uint64) []touched { return []touched{writing(a+300, 20)} },
		},
		{
			"atomic from host", do(hpu.OpAtomicFromHost, opAt(0)),
			hpu.Operation{
				Offset: 8, Length: 16, FetchOffset: 1024, TargetNID: 2, AtomicOp: uint32(portals.OpSUM), Datatype: uint32(portals.Uint64),
			},
			func(a uint64) []touched { return []touched{reading(a+8, 16), writing(a+1024, 16)} },
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var r recorders
			rig := conduct(t, setup{
				header: []rec{c.act, end(hpu.Drop)}, length: 8, ops: []hpu.Operation{c.op}, cfg: func(cfg *runtime.Config) { cfg.Translator = r.make },
				entry: func(me *portals.ME, r *rig) { scatter(me, 64, pieces(r)) },
			})
			rig.noHandlerErrors()
			var want []touched
			if c.want != nil {
				want = c.want(rig.addr)
			}
			require.Equal(t, want, r.ranges(1))
			for _, q := range r[1].Questions {
				require.NotNil(t, q.Space)
				require.Same(t, r[1].Questions[0].Space, q.Space)
			}
		})
	}
}
