package runtime_test

import (
	"encoding/binary"
	"fmt"

	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/sim"
)

// draw makes an access to some of the shared bytes; what it writes, nobody else does.
func (m *memoryRun) draw(who string, kind accessKind) *access {
	m.slots++
	a := &access{what: fmt.Sprintf("%s #%d", who, m.slots), kind: kind, swapped: -1}
	switch kind {
	case reads, writes:
		a.at = rapid.IntRange(0, shared-1).Draw(m.t, "at")
		a.n = rapid.IntRange(1, shared-a.at).Draw(m.t, "bytes")
	case adds, swaps:
		a.at, a.n = 8*rapid.IntRange(0, shared/8-1).Draw(m.t, "word"), 8
	}
	le := binary.LittleEndian
	switch kind {
	case reads:
	case writes:
		for i := range a.n {
			a.data = append(a.data, byte(m.slots*37+i*5+1))
		}
	case adds:
		a.data = le.AppendUint64(nil, uint64(m.slots)<<32|1)
	case swaps:
		a.data = le.AppendUint64(nil, uint64(rapid.SampledFrom([]int{0, 0, 0, 1}).Draw(m.t, "compare")))
		a.data = le.AppendUint64(a.data, uint64(m.slots))
	}
	m.accesses = append(m.accesses, a)
	return a
}

func (m *memoryRun) drawTime() sim.Time {
	return sim.Time(rapid.IntRange(0, 2000).Draw(m.t, "ns")) * sim.Nanosecond
}

// drawScript draws what the payload handler of a packet does.
func (m *memoryRun) drawScript(packet int) {
	var script []line
	open := map[int]bool{}
	for range rapid.IntRange(1, 6).Draw(m.t, "lines") {
		l := line{handle: -1, packet: packet}
		nonBlocking := rapid.Bool().Draw(m.t, "non-blocking")
		what := rapid.IntRange(0, 8).Draw(m.t, "line")
		switch what {
		case 0, 1, 2, 3:
			m.drawDMA(&l, accessKind(what))
		case 4: // keep the bus busy
			l.rec = do(hpu.OpDMAToHost, 0, 4096, hpuBase, uint64(rapid.IntRange(64, 60000).Draw(m.t, "long")))
			l.write = true
		case 5:
			l.rec = do(hpu.OpDMAFromHost, 0, 4096, hpuBase+0xe000, uint64(rapid.IntRange(64, 4096).Draw(m.t, "long")))
		case 6:
			nonBlocking = false
			l.rec = also(opSpin, uint64(rapid.IntRange(1, 2000).Draw(m.t, "cycles")))
		case 7: // wait for one that is open
			nonBlocking = false
			for h := range 16 {
				if open[h] {
					l.rec = do(hpu.OpDMAWait, uint64(h))
					delete(open, h)
					break
				}
			}
			if l.op == 0 {
				l.rec = also(opSpin, 1)
			}
		case 8: // send some of it to rank 2
			nonBlocking = false
			m.drawPut(&l)
		}
		if what <= 5 && rapid.IntRange(0, 3).Draw(m.t, "asks for faults") == 0 {
			l.args[0] = tell
		}
		if nonBlocking {
			l.op = int(map[hpu.Op]hpu.Op{
				hpu.OpDMAToHost: hpu.OpDMAToHostNB, hpu.OpDMAFromHost: hpu.OpDMAFromHostNB, hpu.OpDMAFAdd: hpu.OpDMAFAddNB, hpu.OpDMACAS: hpu.OpDMACASNB,
			}[hpu.Op(l.op)])
			for l.handle = 0; open[l.handle]; l.handle++ {
			}
			open[l.handle] = true
		}
		script = append(script, l)
	}
	m.scripts[packet] = script
}

// drawDMA is an access of a handler; data and answer have places of their own in HPU memory.
func (m *memoryRun) drawDMA(l *line, kind accessKind) {
	a := m.draw(fmt.Sprintf("packet %d", l.packet), kind)
	l.access = a
	out, back := scratch+64*m.slots, scratch2+64*m.slots
	le := binary.LittleEndian
	switch kind {
	case reads:
		l.rec, l.local = do(hpu.OpDMAFromHost, 0, uint64(a.at), uint64(back), uint64(a.n)), back
	case writes:
		l.rec, l.write = do(hpu.OpDMAToHost, 0, uint64(a.at), uint64(out), uint64(a.n)), true
		m.fills = append(m.fills, func(mem []byte) { copy(mem[out-hpuBase:], a.data) })
	case adds:
		l.rec, l.local = do(hpu.OpDMAFAdd, 0, uint64(a.at), le.Uint64(a.data), uint64(back)), back
	case swaps:
		l.rec, l.local = do(hpu.OpDMACAS, 0, uint64(a.at), le.Uint64(a.data), le.Uint64(a.data[8:]), uint64(back)), back
	}
}

// drawPut is a put from host memory: it reads some of the shared bytes.
func (m *memoryRun) drawPut(l *line) {
	if len(m.ops) == 16 {
		l.rec = also(opSpin, 1)
		return
	}
	a := m.draw(fmt.Sprintf("put of packet %d", l.packet), reads)
	l.access, l.remote = a, 64*m.slots
	m.bits[uint64(m.slots)] = a
	l.rec = do(hpu.OpPutFromHost, opAt(len(m.ops)))
	m.ops = append(m.ops, hpu.Operation{
		Offset: uint64(a.at), Length: uint64(a.n), TargetNID: 2, PTIndex: 0, RemoteOffset: uint64(l.remote), MatchBits: uint64(m.slots),
	})
}

// drawMessage is an access of rank 2 by Portals, or a long put that keeps the bus busy.
func (m *memoryRun) drawMessage() {
	msg := message{wait: m.drawTime()}
	if what := rapid.IntRange(0, 5).Draw(m.t, "message"); what < 4 {
		msg.access = m.draw("message", accessKind(what))
		msg.bits, msg.slot = uint64(m.slots), 128*m.slots
		m.bits[msg.bits] = msg.access
	} else {
		msg.length = rapid.IntRange(1, 1<<14).Draw(m.t, "long")
	}
	m.messages = append(m.messages, msg)
}
