package runtime_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/internal/hosttest"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// The operations of one process on the same bytes of another take effect there
// in the order in which they were started, if they are no longer than the
// limits that the interface grants (Portals 4.x §3.6.1): a write after a write
// and a read after a write up to max_waw_ordered_size, a write after a read up
// to max_war_ordered_size. Who draws them here waits for none of them.

// dataOrder is a target whose memory some ranks use, each a part of its own,
// and what they should find there.
type dataOrder struct {
	t     *rapid.T
	ranks int
	most  int // bytes of an operation
	mem   []byte
	ops   [][]orderedOp // by rank, from 1
	found []error
}

const orderedBytes = 8 << 10 // of each rank

type orderedKind uint8

const (
	orderedPut orderedKind = iota
	orderedGet
	orderedSum
	orderedFetch
	orderedSwap
	orderedKinds
)

// orderedOp is an operation; data is what it carries, want what it should bring back.
type orderedOp struct {
	kind       orderedKind
	at         int
	data, want []byte
	n          int
	pause      sim.Time
}

// draw makes the operations of a rank, and a memory on which they happened one after the other.
func (x *dataOrder) draw(rank int) (ops []orderedOp) {
	t := x.t
	le := binary.LittleEndian
	mem := x.mem[orderedBytes*rank:][:orderedBytes]
	for i := range rapid.IntRange(1, 14).Draw(t, "operations") {
		o := orderedOp{kind: orderedKind(rapid.IntRange(0, int(orderedKinds)-1).Draw(t, "kind"))}
		o.pause = sim.Time(rapid.SampledFrom([]int{0, 0, 0, 100, 300, 1000}).Draw(t, "pause")) * sim.Nanosecond
		o.n = 8 * rapid.IntRange(1, x.most/8).Draw(t, "words")
		if o.kind >= orderedSum {
			o.n = min(o.n, 64)
		}
		o.at = 8 * rapid.SampledFrom([]int{0, 0, 1, 100, (orderedBytes - o.n) / 8}).Draw(t, "at")
		if o.kind != orderedGet {
			for k := range o.n / 8 {
				o.data = le.AppendUint64(o.data, uint64(rank)<<56|uint64(i+1)<<32|uint64(k))
			}
		}
		there := mem[o.at:][:o.n]
		if o.kind == orderedGet || o.kind >= orderedFetch {
			o.want = append(o.want, there...)
		}
		switch o.kind {
		case orderedPut, orderedSwap:
			copy(there, o.data)
		case orderedSum, orderedFetch:
			for k := 0; k < o.n; k += 8 {
				le.PutUint64(there[k:], le.Uint64(there[k:])+le.Uint64(o.data[k:]))
			}
		default:
		}
		ops = append(ops, o)
	}
	return ops
}

// start starts operation i of a rank. Each has places of its own for what it
// sends and for what it brings.
func (o *orderedOp) start(p *runtime.Proc, md portals.Handle, i, rank int) error {
	ni, to := p.NI(), portals.PhysID(0, 0)
	out, in := uint64(2*i*orderedBytes), uint64((2*i+1)*orderedBytes)
	n, remote, user := uint64(o.n), uint64(orderedBytes*rank+o.at), uint64(i)
	switch o.kind {
	case orderedPut:
		return ni.Put(portals.Put{MD: md, Offset: out, Length: n, Ack: portals.Ack, Target: to, RemoteOffset: remote, UserPtr: user})
	case orderedGet:
		return ni.Get(portals.Get{MD: md, Offset: in, Length: n, Target: to, RemoteOffset: remote, UserPtr: user})
	case orderedSum:
		return ni.Atomic(portals.Atomic{MD: md, Offset: out, Length: n, Ack: portals.Ack, Target: to, RemoteOffset: remote, UserPtr: user, Op: portals.OpSUM, Type: portals.Uint64})
	case orderedFetch:
		return ni.FetchAtomic(portals.FetchAtomic{GetMD: md, GetOffset: in, MD: md, Offset: out, Length: n, Target: to, RemoteOffset: remote, UserPtr: user, Op: portals.OpSUM, Type: portals.Uint64})
	default:
		return ni.Swap(portals.Swap{GetMD: md, GetOffset: in, MD: md, Offset: out, Length: n, Target: to, RemoteOffset: remote, UserPtr: user, Op: portals.OpSWAP, Type: portals.Uint64})
	}
}

// initiate is the program of a rank.
func (x *dataOrder) initiate(p *runtime.Proc) error {
	ops := x.ops[p.Rank()]
	eq, err := p.NI().Objects().EQAlloc(256)
	if err != nil {
		return err
	}
	addr, mem := p.Observed(2 * len(ops) * orderedBytes)
	for i := range ops {
		copy(mem[2*i*orderedBytes:], ops[i].data)
	}
	md, err := p.NI().Objects().MDBind(&portals.MD{Start: addr, Length: uint64(len(mem)), EQ: eq, Options: portals.OptMDEventSendDisable})
	if err != nil {
		return err
	}
	p.SleepUntil(2 * sim.Microsecond) // the entry is there
	for i := range ops {
		if err := ops[i].start(p, md, i, p.Rank()); err != nil {
			return err
		}
		p.Sleep(ops[i].pause)
	}
	for range ops {
		ev, err := p.NI().EQWait(eq)
		if err != nil {
			return err
		}
		if o := &ops[ev.UserPtr]; ev.Fail != portals.NIOK || ev.MLength != uint64(o.n) {
			return fmt.Errorf("%v", ev)
		}
	}
	for i := range ops {
		o := &ops[i]
		if got := mem[(2*i+1)*orderedBytes:][:len(o.want)]; string(got) != string(o.want) {
			x.found = append(x.found, fmt.Errorf("operation %d of rank %d, kind %d, %d bytes at %d: what it found was not what the ones before it have left", i, p.Rank(), o.kind, o.n, o.at))
		}
	}
	return nil
}

// target is the program of rank 0.
func (x *dataOrder) target(mem *[]byte) func(p *runtime.Proc) error {
	return func(p *runtime.Proc) (err error) {
		if _, err := p.NI().Objects().PTAlloc(0, portals.EQNone, 0); err != nil {
			return err
		}
		var addr uint64
		addr, *mem = p.Observed(orderedBytes * (x.ranks + 1))
		_, err = p.NI().MEAppend(0, &portals.ME{
			Start: addr, Length: uint64(len(*mem)), UID: portals.UIDAny, MatchID: portals.AnyID, Options: portals.OptMEOpPut | portals.OptMEOpGet,
		}, portals.PriorityList, 0)
		return err
	}
}

// run carries out what was drawn, and compares memory.
func (x *dataOrder) run(name string, faults *hosttest.Chances, overrides ...string) error {
	p, err := profile.Load(name, overrides...)
	require.NoError(x.t, err)
	cfg := runtime.Config{Profile: p, Nodes: x.ranks + 1, Seed: uint64(rapid.IntRange(0, 1000).Draw(x.t, "seed"))}
	if faults != nil {
		cfg.Translator = (&hosttest.Nodes{Chances: *faults}).Make
	}
	c, err := runtime.NewCluster(cfg)
	require.NoError(x.t, err)
	defer func() { require.NoError(x.t, c.Close()) }()
	var mem []byte
	require.NoError(x.t, c.Spawn(0, "target", x.target(&mem)))
	for rank := 1; rank <= x.ranks; rank++ {
		require.NoError(x.t, c.Spawn(rank, "initiator", x.initiate))
	}
	require.NoError(x.t, c.Run(context.Background()))
	for i := range c.Nodes() {
		require.NoError(x.t, c.Node(i).NIC().Idle())
	}
	if string(mem) != string(x.mem) {
		x.found = append(x.found, errors.New("the memory is not what the last writes have left"))
	}
	return errors.Join(x.found...)
}

func drawDataOrder(t *rapid.T, most int) *dataOrder {
	x := &dataOrder{t: t, ranks: rapid.IntRange(1, 3).Draw(t, "ranks"), most: most}
	x.mem = make([]byte, orderedBytes*(x.ranks+1))
	for rank := range x.ranks + 1 {
		var ops []orderedOp
		if rank > 0 {
			ops = x.draw(rank)
		}
		x.ops = append(x.ops, ops)
	}
	return x
}

// orderedOn are the devices: each direction of the bus its own, one for both,
// no charge for bytes; short packets; a network that repeats what it has lost;
// buffers that push back.
var orderedOn = map[string][]string{
	"full duplex":    {"spin-dis"},
	"one bus":        {"spin-int"},
	"latency":        {"spin-dis", "dma.charge=latency"},
	"short packets":  {"spin-dis", "fabric.mtu=256"},
	"slow bus":       {"spin-dis", "fabric.mtu=1024", "dma.bandwidth=1ns/B"},
	"slow and alone": {"spin-int", "fabric.mtu=512", "dma.bandwidth=1ns/B", "dma.shared_memory=false"},
	"serial receive": {"spin-dis", "nic.receive=serial"},
	"slow CAM":       {"spin-dis", "fabric.mtu=256", "nic.match_packet=200ns"},
	"lossy": {
		"spin-dis", "fabric.mtu=512", "transport.kind=reliable", "transport.timeout=5us", "transport.retries=100", "fabric.faults.loss=0.05", "fabric.faults.delay=0.1", "fabric.faults.max_delay=3us",
	},
	"credits": {"spin-int", "fabric.mtu=512", "fabric.buffer=[1KiB, 600B]", "transport.kind=reliable", "transport.window=2"},
}

func TestDataOrder(t *testing.T) {
	for name, device := range orderedOn { //lint:maporder each by itself
		for _, faults := range []*hosttest.Chances{nil, {Fault: 0.2, Most: 3, Late: 0.2, Delay: 2 * sim.Microsecond}} {
			t.Run(fmt.Sprintf("%s, memory that fails: %t", name, faults != nil), func(t *testing.T) {
				rapid.Check(t, func(t *rapid.T) {
					require.NoError(t, drawDataOrder(t, 4096).run(device[0], faults, device[1:]...))
				})
			})
		}
	}
}
