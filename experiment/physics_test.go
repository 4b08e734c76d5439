package experiment

import (
	"context"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	acchandler "github.com/spinsim/spinsim/handlers/accumulate"
	bcasthandler "github.com/spinsim/spinsim/handlers/bcast"
	pphandler "github.com/spinsim/spinsim/handlers/pingpong"
	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/sim"
	"github.com/spinsim/spinsim/spin"
)

// The tests of this file compute the zero-load latency of every mode from the
// parameters of a profile, by hand, and compare it with the simulation to the
// picosecond. The cycles of handlers are taken from package hpu alone, without
// a simulation.

// params are the parameters of a profile under the names of sPIN'17 §4.
type params struct {
	*testing.T
	p          *profile.Profile
	o, g       sim.Time
	net        sim.Time // both wires and the switch between two nodes
	mH, mP     sim.Time // matching
	L          sim.Time // of the DMA
	poll, scan sim.Time // host: a look at a completion, software matching
	cycle      sim.Time
	mtu        int
}

func load(t *testing.T, name string) *params {
	p, err := profile.Load(name)
	require.NoError(t, err)
	return &params{
		T: t, p: p, o: p.NIC.Overhead, g: p.Fabric.Gap, net: 2*p.Fabric.Wire + p.Fabric.Switch, mH: p.NIC.MatchHeader, mP: p.NIC.MatchPacket,
		L: p.DMA.Latency, poll: p.Host.Poll, scan: p.Host.Match, cycle: p.HPU.Clock.Cycles(1), mtu: int(p.Fabric.MTU),
	}
}

func (q *params) G(bytes int) sim.Time { return q.p.Fabric.Rate.Time(int64(bytes)) }
func (q *params) D(bytes int) sim.Time { return q.p.DMA.Bandwidth.Time(int64(bytes)) }

// fetched is the time from an operation at the NIC until its first packet is
// ready to enter the wire.
func (q *params) fetched(packet int) sim.Time { return 2*q.L + q.D(packet) }

// across is the time from the first byte of the first packet on the wire until
// the arrival of the last byte of the last packet. Packets follow each other
// without a gap, since the wire is slower than the DMA and a full packet takes
// longer than g.
func (q *params) across(packet, packets int) sim.Time { return sim.Time(packets)*q.G(packet) + q.net }

// found is the time from the arrival of a message's last packet until the bus
// takes it. The bus may be busy until then: matching takes longest for the
// first packet, and each later packet needs the bus for less time than the
// link.
func (q *params) found(packet, packets int) sim.Time {
	if packets == 1 {
		return q.mH
	}
	return max(q.mP, q.mH+sim.Time(packets-1)*(q.D(packet)-q.G(packet)))
}

// landed is the deposit of one packet.
func (q *params) landed(packet int) sim.Time { return q.D(packet) + q.L }

// delivered is the time from an operation at the NIC until its message is in
// the memory of the other host.
func (q *params) delivered(packet, packets int) sim.Time {
	return q.fetched(packet) + q.across(packet, packets) + q.found(packet, packets) + q.landed(packet)
}

// shapes are messages of one, two and three packets.
func (q *params) shapes() map[int]int {
	return map[int]int{64: 1, q.mtu: 1, 2 * q.mtu: 2, 3 * q.mtu: 3}
}

func (q *params) measure(e *Experiment, mode string, ranks, bytes int) sim.Time {
	p, err := e.At(q.p, Values{"mode": mode, "ranks": ranks, "size": bytes})
	require.NoError(q, err)
	p.Seed = 7
	r, err := e.Measure(context.Background(), p)
	require.NoError(q, err)
	return r.Time("latency")
}

func eachProfile(t *testing.T, f func(q *params)) {
	for _, name := range []string{"spin-dis", "spin-int"} {
		t.Run(name, func(t *testing.T) { f(load(t, name)) })
	}
}

func TestPingpongIsTheClosedForm(t *testing.T) {
	eachProfile(t, func(q *params) {
		for bytes, n := range q.shapes() {
			packet := bytes / n
			ping := q.o + q.delivered(packet, n)

			// The host of rank 1 looks, matches and posts. The host of rank 0
			// does the same, but does not post.
			require.Equal(q, ping+q.poll+q.scan, q.measure(builtin("pingpong"), ModeRDMA, 2, bytes), "rdma %d B", bytes)

			// The counter reaches the threshold when the ping has landed. No
			// core at rank 1 works.
			require.Equal(q, (ping+q.delivered(packet, n)+q.poll)/2, q.measure(builtin("pingpong"), ModeP4, 2, bytes), "p4 %d B", bytes)

			// Every packet is put as soon as the handler reaches that. The
			// first waits longest, for the search of the list. By then the
			// others have caught up, so they follow at the pace of the wire.
			// Each pong is a message of one packet.
			state := pphandler.State{MatchBits: ReplyBits, PT: ReplyPT, MaxPayload: uint32(q.mtu)}
			put := q.handler(pphandler.Library.Wasm, pphandler.StreamPayload, spin.EncodeState(&state), packet, bytes).at(hpu.OpPutFromDevice)
			arrived := q.o + q.fetched(packet) + q.across(packet, 1)
			pong := q.mH + put + q.across(packet, n) + q.mH + q.landed(packet)
			require.Equal(q, (arrived+pong+q.poll)/2, q.measure(builtin("pingpong"), ModeSpinStream, 2, bytes), "spin-stream %d B", bytes)

			require.Equal(q, q.storePingpong(&state, packet, n), q.measure(builtin("pingpong"), ModeSpinStore, 2, bytes), "spin-store %d B", bytes)
		}
	})
}

// storePingpong replies to a single packet from the device. It replies to a
// larger message from host memory, after the handler of the last packet has
// deposited it and the completion handler has run.
func (q *params) storePingpong(state *pphandler.State, packet, n int) sim.Time {
	bytes := packet * n
	payload := q.handler(pphandler.Library.Wasm, pphandler.StorePayload, spin.EncodeState(state), packet, bytes)
	arrived := q.o + q.fetched(packet) + q.across(packet, n) + q.found(packet, n)
	if n == 1 {
		return (arrived + payload.at(hpu.OpPutFromDevice) + q.across(packet, 1) + q.mH + q.landed(packet) + q.poll) / 2
	}
	completion := q.completion(pphandler.Library.Wasm, pphandler.StoreCompletion, spin.EncodeState(state), bytes)
	// The handler goes on when its write has begun. The put waits until the
	// data is in host memory.
	landed := arrived + payload.at(hpu.OpDMAToHost) + q.landed(packet)
	answered := max(landed, arrived+payload.end+completion.at(hpu.OpPutFromHost))
	return (answered + q.delivered(packet, n) + q.poll) / 2
}

func TestAccumulateIsTheClosedForm(t *testing.T) {
	eachProfile(t, func(q *params) {
		for bytes, n := range q.shapes() {
			packet := bytes / n
			host := sim.Time(0)
			for left := int64(3 * bytes); left > 0; left -= int64(q.p.Host.CopyChunk) {
				piece := min(left, int64(q.p.Host.CopyChunk))
				lines := (piece + int64(q.p.Host.LineBytes) - 1) / int64(q.p.Host.LineBytes)
				host += max(q.p.Host.MemoryBandwidth.Time(piece), q.p.Host.CoreBandwidth.Time(lines*int64(q.p.Host.LineBytes)))
			}
			require.Equal(q, q.o+q.delivered(packet, n)+q.poll+q.scan+host, q.measure(builtin("accumulate"), ModeRDMA, 2, bytes), "rdma %d B", bytes)

			// Three packets run on three HPUs, and the last to arrive ends
			// last. Its record crosses the bus after its data; the handler has
			// only waited for the write to begin.
			buffers := min(q.p.HPU.Cores*q.p.HPU.Contexts, acchandler.MaxBuffers)
			state, memory := acchandler.NewState(buffers, q.mtu)
			initial := append(spin.EncodeState(&state), make([]byte, memory-16)...)
			work := q.handler(acchandler.Library.Wasm, acchandler.Payload, initial, packet, bytes)
			read := 2*q.L + q.D(packet)
			took := read + max(work.at(hpu.OpDMAToHost)+q.landed(packet), work.end+q.L)
			want := q.o + q.fetched(packet) + q.across(packet, n) + q.found(packet, n) + took + q.poll
			require.Equal(q, want, q.measure(builtin("accumulate"), ModeSpinStream, 2, bytes), "spin %d B", bytes)
		}
	})
}

func TestBroadcastIsTheClosedForm(t *testing.T) {
	eachProfile(t, func(q *params) {
		for bytes, n := range q.shapes() {
			packet := bytes / n
			hop := q.o + q.delivered(packet, n) + q.poll + q.scan
			require.Equal(q, hop, q.measure(builtin("bcast"), ModeRDMA, 2, bytes), "rdma %d B", bytes)
			require.Equal(q, q.o+q.delivered(packet, n)+q.poll, q.measure(builtin("bcast"), ModeP4, 2, bytes), "p4 %d B", bytes)
			if n > 1 {
				continue // further down, parts of one message meet parts of another
			}
			// Four ranks: the root puts to rank 2 first, which puts to rank 3.
			require.Equal(q, 2*hop, q.measure(builtin("bcast"), ModeRDMA, 4, bytes), "rdma %d B", bytes)
			require.Equal(q, q.o+2*q.delivered(packet, 1)+q.poll, q.measure(builtin("bcast"), ModeP4, 4, bytes), "p4 %d B", bytes)

			state := bcasthandler.State{MatchBits: RequestBits, PT: RequestPT, Rank: 2, Ranks: 4}
			stream := q.handler(bcasthandler.Library.Wasm, bcasthandler.StreamPayload, spin.EncodeState(&state), packet, bytes)
			done := q.completion(bcasthandler.Library.Wasm, bcasthandler.StreamCompletion, spin.EncodeState(&state), bytes)
			arrived := q.o + q.fetched(packet) + q.across(packet, 1) + q.mH
			leaf := state
			leaf.Rank = 3
			last := q.handler(bcasthandler.Library.Wasm, bcasthandler.StreamPayload, spin.EncodeState(&leaf), packet, bytes)
			written := last.at(hpu.OpDMAToHostNB) + q.landed(packet)
			ended := last.end + done.end + q.L // the record of the message's end follows the data
			want := arrived + stream.at(hpu.OpPutFromDevice) + q.across(packet, 1) + q.mH + max(written, ended) + q.poll
			require.Equal(q, want, q.measure(builtin("bcast"), ModeSpinStream, 4, bytes), "spin-stream %d B", bytes)
		}
	})
}

// cost is when a handler acts and ends, from its start, without the time of its
// waits.
type cost struct {
	acts map[hpu.Op]sim.Time
	end  sim.Time
}

func (c cost) at(op hpu.Op) sim.Time { return c.acts[op] }

// recorder answers every action at once. It notes the cycles of the first
// action of each kind.
type recorder struct {
	q    *params
	cost cost
}

func (r *recorder) Act(_ *hpu.Context, a *hpu.Action) (int64, bool) {
	if _, seen := r.cost.acts[a.Op]; !seen {
		r.cost.acts[a.Op] = sim.Time(a.Cycles) * r.q.cycle
	}
	return 0, false
}

// handler runs a payload handler once on a packet of its own device and returns
// its cost.
func (q *params) handler(wasm []byte, export string, state []byte, packet, message int) cost {
	return q.execute(wasm, export, state, func(c *hpu.Context) {
		rec := c.Program().Memory()[c.ArgsAddr():]
		binary.LittleEndian.PutUint32(rec[0:], c.PacketAddr(packet))
		binary.LittleEndian.PutUint32(rec[4:], uint32(packet))
		binary.LittleEndian.PutUint64(rec[56:], uint64(message))
	})
}

func (q *params) completion(wasm []byte, export string, state []byte, message int) cost {
	return q.execute(wasm, export, state, func(c *hpu.Context) {
		binary.LittleEndian.PutUint64(c.Program().Memory()[c.ArgsAddr()+56:], uint64(message))
	})
}

func (q *params) execute(wasm []byte, export string, state []byte, record func(*hpu.Context)) cost {
	module, err := hpu.Load("handler", wasm, q.p.Device())
	require.NoError(q, err)
	engine, err := hpu.NewEngine("wazero")
	require.NoError(q, err)
	defer func() { require.NoError(q, engine.Close()) }()
	image, err := engine.Compile(module, uint32(len(state)))
	require.NoError(q, err)
	r := &recorder{q: q, cost: cost{acts: map[hpu.Op]sim.Time{}}}
	program, err := image.Instantiate("test", r)
	require.NoError(q, err)
	fn, err := module.Export(export)
	require.NoError(q, err)
	c := program.Context(0)
	addr, _ := program.HPUMemory()
	copy(program.Memory()[addr:], state)
	record(c)
	require.Equal(q, hpu.Done, c.Start(fn, c.ArgsAddr(), addr, 1<<40))
	require.Nil(q, c.Outcome().Err)
	r.cost.end = sim.Time(c.Outcome().Cycles) * q.cycle
	return r.cost
}
