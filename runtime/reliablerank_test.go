package runtime_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers/accumulate"
	"github.com/spinsim/spinsim/handlers/pingpong"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
	"github.com/spinsim/spinsim/spin"
)

func (r *stormRank) run(p *runtime.Proc) error {
	r.p, r.ni = p, p.NI()
	if err := r.prepare(); err != nil {
		return err
	}
	p.Sleep(20 * sim.Microsecond) // until all have their entries
	for left := r.messages; left > 0; {
		batch := min(left, 1+r.rng.IntN(lanes))
		left -= batch
		for lane := range batch {
			if err := r.start(lane); err != nil {
				return err
			}
			if r.rng.IntN(4) == 0 {
				p.Sleep(sim.Time(r.rng.IntN(3000)) * sim.Nanosecond)
			}
		}
		for r.pending > 0 {
			ev, err := r.ni.EQWait(r.eq)
			if err != nil {
				return err
			}
			r.event(&ev)
		}
		for lane := range batch {
			r.verify(lane)
		}
	}
	p.Sleep(sim.Millisecond) // what comes twice would have come by now
	if _, err := r.ni.Objects().EQGet(r.eq); !errors.Is(err, portals.ErrEQEmpty) {
		return fmt.Errorf("rank %d: one event too many: %w", r.rank, err)
	}
	return nil
}

// prepare makes the memory and the entries of a rank.
func (r *stormRank) prepare() (err error) {
	if r.eq, err = r.ni.Objects().EQAlloc(4096); err != nil {
		return err
	}
	if _, err := r.ni.Objects().PTAlloc(0, portals.EQNone, 0); err != nil {
		return err
	}
	// for answers of handlers, which are awaited
	if _, err := r.ni.Objects().PTAlloc(0, r.eq, 1); err != nil {
		return err
	}
	var at [6]uint64
	at[0], r.local = r.p.Observed(2 * laneSpace)
	if r.md, err = r.ni.Objects().MDBind(&portals.MD{Start: at[0], Length: 2 * laneSpace, EQ: r.eq}); err != nil {
		return err
	}
	at[1], r.lanes = r.p.Observed(len(r.ranks) * laneSpace)
	at[2], r.source = r.p.Observed(longLane)
	for i := range r.source {
		r.source[i] = byte(i*7+i>>8) ^ byte(r.rank)
	}
	at[3], r.sums = r.p.Observed(8 * words)
	at[4], r.tickets = r.p.Observed(8 * words)
	at[5], r.pongs = r.p.Observed(longLane)
	multiply, pong, err := r.handlers()
	if err != nil {
		return err
	}
	for from := range r.ranks {
		space, id := at[1]+uint64(from*laneSpace), portals.PhysID(uint32(from), portals.PIDAny)
		if err := errors.Join(
			r.append(0, plainEntry, space, laneSpace, id, nil), r.append(0, multiplyEntry, space, laneSpace, id, multiply),
		); err != nil {
			return err
		}
	}
	return errors.Join(
		r.append(0, getEntry, at[2], longLane, portals.AnyID, nil), r.append(0, atomicEntry, at[3], 8*words, portals.AnyID, nil),
		r.append(0, ticketEntry, at[4], 8*words, portals.AnyID, nil), r.append(0, pongEntry, at[2], longLane, portals.AnyID, pong),
		r.append(1, pongs, at[5], longLane, portals.AnyID, nil),
	)
}

func (r *stormRank) append(pt uint32, bits, start, length uint64, from portals.ID, s *portals.Spin) error {
	_, err := r.ni.MEAppend(pt, &portals.ME{
		Start: start, Length: length, UID: portals.UIDAny, MatchID: from, MatchBits: bits, Spin: s,
		Options: portals.OptMEOpPut | portals.OptMEOpGet | portals.OptMEEventLinkDisable,
	}, portals.PriorityList, 0)
	return err
}

// handlers loads the two libraries.
func (r *stormRank) handlers() (multiply, pong *portals.Spin, err error) {
	load := func(name string, module, state []byte, more int, payload, completion string) (*portals.Spin, error) {
		m, err := r.c.LoadModule(name, module)
		if err != nil {
			return nil, err
		}
		memory, err := r.p.HPUAllocMem(m, len(state)+more)
		if err != nil {
			return nil, err
		}
		s, err := memory.Spin("", payload, completion)
		if err == nil {
			s.InitialState = state
		}
		return s, err
	}
	mtu := int(r.prof.Fabric.MTU)
	buffers := r.prof.HPU.Cores * r.prof.HPU.Contexts
	multiply, err = load("accumulate", accumulate.Library.Wasm, spin.EncodeState(&accumulate.State{Free: 1<<buffers - 1, BufferSize: uint32(mtu)}), buffers*mtu, accumulate.Payload, "")
	if err != nil {
		return nil, nil, err
	}
	pong, err = load("pingpong", pingpong.Library.Wasm, spin.EncodeState(&pingpong.State{MatchBits: pongs, PT: 1, MaxPayload: uint32(mtu)}), 0, pingpong.StreamPayload, pingpong.StreamCompletion)
	return multiply, pong, err
}

// size draws the length of a message in a lane: mostly short, some long.
func (r *stormRank) size(lane int) (n int) {
	switch x := r.rng.IntN(1000); {
	case x < 50:
		n = 0
	case x < 300:
		n = r.rng.IntN(64)
	case x < 800:
		n = r.rng.IntN(2 << 10)
	case x < 995 || lane > 0:
		n = r.rng.IntN(shortLane + 1)
	default:
		n = int(math.Exp2(14 + 6*r.rng.Float64()))
	}
	return n
}

// start sends a message in a lane.
func (r *stormRank) start(lane int) error {
	o := &r.work[lane]
	*o = stormOp{kind: stormKind(r.rng.IntN(int(stormKinds))), target: r.ranks[r.rng.IntN(len(r.ranks))], length: r.size(lane), busy: true}
	switch {
	case r.longest == 0: // the first of all
		o.kind, o.length = stormPut, longLane
	case o.kind == stormPong && lane > 0: // the answer goes to the beginning of its entry
		o.kind = stormPut
	}
	r.pending++
	r.sent[o.kind]++
	at := laneAt(lane)
	switch o.kind {
	case stormMultiply:
		o.length &^= accumulate.ElementSize - 1
		one := o.target.lanes[r.rank*laneSpace+at:]
		for i := 0; i < o.length; i += 16 {
			r.complex(r.local[at+i:], 1+float64(r.rng.IntN(100)), float64(r.rng.IntN(100)))
			r.complex(one[i:], 1, 0)
		}
		fallthrough
	case stormPong:
		r.payloads += (o.length + int(r.prof.Fabric.MTU) - 1) / int(r.prof.Fabric.MTU)
	case stormAtomic, stormTicket:
		o.length = 8 * min(words, 1+o.length/8)
		o.word = r.rng.IntN(words - o.length/8 + 1)
	default:
	}
	r.longest = max(r.longest, o.length)
	return r.post(o, lane)
}

// post posts what a lane is to do.
func (r *stormRank) post(o *stormOp, lane int) error {
	at := laneAt(lane)
	out, in := r.local[at:], r.local[laneSpace+at:]
	local, back, remote := uint64(at), uint64(laneSpace+at), uint64(at)
	to := portals.PhysID(uint32(o.target.rank), 0)
	user := uint64(lane)
	n := uint64(o.length)
	switch o.kind {
	case stormPut:
		r.fill(out[:o.length])
		o.wantAck = true
		return r.ni.Put(portals.Put{MD: r.md, Offset: local, Length: n, Ack: portals.Ack, Target: to, MatchBits: plainEntry, RemoteOffset: remote, UserPtr: user, HdrData: user})
	case stormMultiply:
		o.wantAck = true
		return r.ni.Put(portals.Put{MD: r.md, Offset: local, Length: n, Ack: portals.Ack, Target: to, MatchBits: multiplyEntry, RemoteOffset: remote, UserPtr: user, HdrData: user})
	case stormPong:
		r.fill(out[:o.length])
		clear(r.pongs[:o.length])
		return r.ni.Put(portals.Put{MD: r.md, Offset: local, Length: n, Target: to, MatchBits: pongEntry, UserPtr: user, HdrData: user})
	case stormGet:
		clear(in[:o.length])
		o.sent = true
		return r.ni.Get(portals.Get{MD: r.md, Offset: back, Length: n, Target: to, MatchBits: getEntry, RemoteOffset: uint64(lane), UserPtr: user})
	case stormAtomic:
		o.wantAck = r.rng.IntN(2) == 0
		o.done = !o.wantAck
		for k := range o.length / 8 {
			v := unit + uint64(r.rng.IntN(1000))
			binary.LittleEndian.PutUint64(out[8*k:], v)
			o.target.expect[o.word+k] += v
		}
		ack := portals.NoAck
		if o.wantAck {
			ack = portals.Ack
		}
		return r.ni.Atomic(portals.Atomic{MD: r.md, Offset: local, Length: n, Ack: ack, Target: to, MatchBits: atomicEntry, RemoteOffset: uint64(8 * o.word), UserPtr: user, HdrData: user, Op: portals.OpSUM, Type: portals.Uint64})
	default:
		for k := range o.length / 8 {
			binary.LittleEndian.PutUint64(out[8*k:], 1)
			binary.LittleEndian.PutUint64(in[8*k:], math.MaxUint64)
		}
		return r.ni.FetchAtomic(portals.FetchAtomic{GetMD: r.md, GetOffset: back, MD: r.md, Offset: local, Length: n, Target: to, MatchBits: ticketEntry, RemoteOffset: uint64(8 * o.word), UserPtr: user, HdrData: user, Op: portals.OpSUM, Type: portals.Uint64})
	}
}

func (r *stormRank) complex(b []byte, re, im float64) {
	binary.LittleEndian.PutUint64(b, math.Float64bits(re))
	binary.LittleEndian.PutUint64(b[8:], math.Float64bits(im))
}

func (r *stormRank) fill(b []byte) {
	for i := 0; i < len(b); i += 8 {
		var word [8]byte
		binary.LittleEndian.PutUint64(word[:], r.rng.Uint64())
		copy(b[i:], word[:])
	}
}

// event takes one of the events that a lane waits for; each comes once.
func (r *stormRank) event(ev *portals.Event) {
	lane := ev.UserPtr
	if ev.Type == portals.EventPut {
		lane = ev.HdrData
	}
	o := &r.work[lane]
	require.True(r, o.busy && ev.Fail == portals.NIOK, "rank %d: %v of a %s", r.rank, ev, stormKindNames[o.kind])
	switch ev.Type {
	case portals.EventSend:
		require.False(r, o.sent, "a second %v", ev)
		o.sent = true
	case portals.EventAck:
		require.True(r, o.wantAck && !o.done, "a second %v", ev)
		o.done = true
		require.Equal(r, uint64(o.length), ev.MLength)
	case portals.EventReply:
		require.False(r, o.done, "a second %v", ev)
		o.done = true
		require.Equal(r, uint64(o.length), ev.MLength)
	case portals.EventPut:
		require.True(r, o.kind == stormPong && !o.done, "a second %v", ev)
		o.pong += ev.MLength
		o.done = o.pong == uint64(o.length)
	default:
		require.Fail(r, "unexpected", "%v", ev)
	}
	if o.sent && o.done {
		o.busy = false
		r.pending--
	}
}

// verify compares memory.
func (r *stormRank) verify(lane int) {
	o := &r.work[lane]
	at := laneAt(lane)
	out, in := r.local[at:][:o.length], r.local[laneSpace+at:][:o.length]
	equal := func(want, got []byte) {
		if !bytes.Equal(want, got) {
			require.Fail(r, "wrong bytes", "%s of %d B from rank %d to %d", stormKindNames[o.kind], o.length, r.rank, o.target.rank)
		}
	}
	switch o.kind {
	case stormPut, stormMultiply:
		there := o.target.lanes[r.rank*laneSpace:][:laneSpace]
		equal(out, there[at:][:o.length])
		equal(zeros[:32], there[at-32:at])
		if o.kind == stormMultiply { // so that what is beyond a later message is known
			clear(there[at:][:o.length])
		} else {
			end := longLane + 32
			if lane > 0 {
				end = at + shortLane
			}
			beyond := there[at+o.length : min(end, at+o.length+len(zeros))]
			equal(zeros[:len(beyond)], beyond)
			clear(there[at:][:o.length])
		}
	case stormPong:
		equal(out, r.pongs[:o.length])
	case stormGet:
		equal(o.target.source[lane:][:o.length], in)
	case stormTicket:
		for k := range o.length / 8 {
			key := uint64(o.target.rank*words + o.word + k)
			r.drawn[key] = append(r.drawn[key], int32(binary.LittleEndian.Uint64(in[8*k:])))
		}
	default:
	}
}
