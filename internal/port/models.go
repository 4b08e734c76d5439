package port

import (
	"encoding/binary"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/inet"
)

// trial is what a scenario sends to a set of handlers, and what it expects.
type trial struct {
	packets    [][]byte
	each       bool   // each packet is a message, sent when the one before is done; false: one message
	host       []byte // what host memory holds at the beginning; the rest is zero
	hostBytes  int64
	handlerMem []byte  // likewise, of handler_mem; nil: zero
	pointers   []int64 // 32-bit words of handlerMem that are offsets there, and get its address added
	define     []string
	profile    string   // "": as the toolchain has it
	set        []string // values of the profile
	user       int      // bytes of user header
	after      string   // set on the same memory that gets the message first; "": none
	tail       bool     // the set has a tail handler

	known      bool    // the rest is what is expected; false: nobody knows
	wantHost   []piece // bytes of host memory
	replies    []byte  // what the sender gets back, in this order
	elsewhere  []byte  // what another rank gets
	where      int     // that rank
	wantPads   []piece // 32-bit sums of the scratchpads of all clusters
	wantCalls  int64   // handlers that run; 0: not checked
	wantBefore string  // what the checks say, for people
}

// piece is bytes at an offset.
type piece struct {
	offset int64
	bytes  []byte
}

// Sizes of packets where nobody else decides: PsPIN's generic driver has the
// same.
const (
	packetBytes = 1024
	packetCount = 32
	hostBytes   = 65536 // what handlers are told
)

// scratchpadBytes is the scratchpad in each cluster.
const scratchpadBytes = 4096

// model makes the trial of a set. It fills in what its handlers compute.
type model func(t *trial)

// models are what the published examples compute, by the name of their packet
// handler: PsPIN's, those of FPsPIN's that have the same name in PsPIN, and
// OSMOSIS', whose names may begin with osmosis_. The sets of FPsPIN and of the
// paper's toolchain are below.
var models = map[string]model{
	"aggregate_global_ph": aggregated,
	"copy_from_host_ph":   copiedFromHost,
	"copy_to_host_ph":     copiedToHost,
	"empty_ph":            nothing,
	"filtering_ph":        filtered,
	"histogram_l1_ph":     counted,
	"hostdirect_ph":       written,
	"ooorb_ph":            reordered,
	"pingpong_ph":         returned,
	"reduce_l1_ph":        reduced,
	"slp_l1_ph":           learned,
	"synthetic_ph":        mixed,

	"dma_from_host_ph": requestedFromHost,
	"dma_l2_read_ph":   requestedFromL2,
	"dma_to_host_ph":   requestedToHost,
	"io_read_ph":       readAndSent,
	"io_write_ph":      copiedToHost,
	"send_packet_ph":   requestedSends,
	"spinner_ph":       nothing,
	"tcp_ph":           served,
}

var fpspinModels = map[string]model{"datatypes_ph": unpacked, "slmp_ph": sent}

// modelOf finds the model of a set.
func modelOf(p *program, s *set) model {
	name := strings.TrimPrefix(s.handlers[1], "osmosis_")
	switch {
	case p.toolchain == paper:
		return paperModels[s.name]
	case p.toolchain == fpsPIN && name == "pingpong_ph":
		if regexp.MustCompile(`\bicmp_hdr\b`).MatchString(p.bodies(s)) {
			return echoed
		}
		return framesReturned
	case p.toolchain == fpsPIN:
		return fpspinModels[name]
	}
	if name == "synthetic_ph" && !strings.Contains(p.bodies(s), "spin_send_packet") {
		return looped
	}
	return models[name]
}

// trialOf makes the trial of a set: without a model, packets only.
func trialOf(p *program, s *set) *trial {
	t := &trial{hostBytes: hostBytes, tail: s.handlers[2] != ""}
	p.fill(t, s)
	if m := modelOf(p, s); m != nil {
		t.known = true
		m(t)
	}
	return t
}

// fill makes the packets that a set gets if no model has others.
func (p *program) fill(t *trial, s *set) {
	sequence := uint32(1000)
	for k := range packetCount {
		id := uint16(k)
		switch {
		case p.toolchain == paper:
			paperTrial(t, s)
			return
		case p.toolchain == fpsPIN:
			t.packets = append(t.packets, udp(id, words(k, (packetBytes-ethernetBytes-ipUDPBytes)/4)))
		case slices.ContainsFunc(p.sources, func(s *source) bool { return s.includesFile("tcp.h") }):
			data := words(k, (packetBytes-inet.HeaderBytes-inet.TCPHeaderBytes)/4)
			t.packets = append(t.packets, segment(id, sequence, 1, inet.ACK, data))
			sequence += uint32(len(data))
		default:
			t.packets = append(t.packets, plainUDP(id, words(k, (packetBytes-ipUDPBytes)/4)))
		}
	}
}

// data is the payload of a packet of PsPIN.
func data(packet []byte) []byte { return packet[ipUDPBytes:] }

// word is the 32-bit number i of bytes.
func word(b []byte, i int) uint32 { return binary.LittleEndian.Uint32(b[4*i:]) }

// pattern is n bytes that are not zero.
func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7+i>>8) | 1
	}
	return b
}

func u64(v uint64) []byte { return binary.LittleEndian.AppendUint64(nil, v) }

// sums are one 32-bit sum after the other.
func sums(v []uint32) (b []byte) {
	for _, w := range v {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return b
}

// aggregated: the words of all packets are added up, and the sum is written to
// host memory; without a tail handler it stays in the scratchpads.
func aggregated(t *trial) {
	total := uint32(0)
	for _, p := range t.packets {
		for i := range len(data(p)) / 4 {
			total += word(data(p), i)
		}
	}
	t.wantBefore = "the sum of all words"
	if t.tail {
		t.wantHost = []piece{{0, u64(uint64(total))}}
		return
	}
	one(t) // else each cluster has a part of the sum
	t.wantPads = []piece{{0, sums([]uint32{total})}}
}

// reduced: word i of all packets is added up in word i of a scratchpad, and
// host memory is told that it is done.
func reduced(t *trial) {
	total := make([]uint32, len(data(t.packets[0]))/4)
	for _, p := range t.packets {
		for i := range total {
			total[i] += word(data(p), i)
		}
	}
	t.wantPads, t.wantBefore = []piece{{0, sums(total)}}, "the sums of words"
	done(t)
}

// done: a tail handler tells the host that the result is there.
func done(t *trial) {
	if t.tail {
		t.wantHost, t.wantBefore = []piece{{0, u64(1)}}, t.wantBefore+", and that they are done"
	}
}

// counted: word v of a scratchpad counts the words v of the packets, but for
// the last of each.
func counted(t *trial) {
	total := make([]uint32, 1024)
	for _, p := range t.packets {
		for i := range len(data(p))/4 - 1 {
			total[word(data(p), i)]++
		}
	}
	t.wantPads, t.wantBefore = []piece{{0, sums(total)}}, "the counts of words"
	done(t)
}

// copiedToHost: the packet with its headers is in host memory, the last one.
func copiedToHost(t *trial) {
	t.each, t.wantHost, t.wantBefore = true, []piece{{0, t.packets[len(t.packets)-1]}}, "the last packet in host memory"
}

// copiedFromHost: each packet is answered with as many bytes of host memory.
func copiedFromHost(t *trial) {
	t.each, t.host, t.wantBefore = true, pattern(packetBytes), "answers with host memory"
	for range t.packets {
		t.replies = append(t.replies, t.host...)
	}
}

// readAndSent: the same, once and once more for each whole KiB of the packet.
func readAndSent(t *trial) {
	copiedFromHost(t)
	t.replies = append(t.replies, t.replies...)
}

// returned: each packet comes back with its addresses and ports exchanged.
func returned(t *trial) {
	t.each, t.wantBefore = true, "answers with addresses and ports exchanged"
	for _, p := range t.packets {
		t.replies = append(t.replies, exchanged(p, 0)...)
	}
}

// framesReturned: the same for Ethernet frames.
func framesReturned(t *trial) {
	t.each, t.wantBefore = true, "answers with addresses and ports exchanged"
	for _, p := range t.packets {
		t.replies = append(t.replies, exchanged(p, ethernetBytes)...)
	}
}

// nothing: handlers run, and leave no trace.
func nothing(t *trial) {
	withParameters(t)
	t.wantHost, t.wantCalls, t.wantBefore = []piece{{0, make([]byte, packetBytes)}}, int64(len(t.packets)), "a handler for each packet, host memory as it was"
}

// looped: the same, with the number of rounds in the handlers' memory.
func looped(t *trial) {
	nothing(t)
	t.handlerMem = sums([]uint32{10, 0, 0, 0, 0})
}

// written: a constant is in host memory.
func written(t *trial) {
	t.wantHost, t.wantBefore = []piece{{0, u64(0xcafebebe)}}, "the constant in host memory"
}

// tableWords are the words of the table of a filter, a power of two.
const tableWords = 1 << 18

// filtered: the first word of a packet is replaced by the word of a table at
// the hash of the packet's first eight bytes, and the packet written to host
// memory.
func filtered(t *trial) {
	t.each = true
	table := make([]byte, 0, 4*tableWords)
	for i := range uint32(tableWords) {
		table = binary.LittleEndian.AppendUint32(table, i*2654435761+1)
	}
	t.handlerMem, t.define = table, append(t.define, fmt.Sprintf("SPIN_HANDLER_MEM=%d", len(table)))
	last := append([]byte(nil), t.packets[len(t.packets)-1]...)
	copy(last, table[4*(jenkins(last[:8])%tableWords):][:4])
	t.wantHost, t.wantBefore = []piece{{0, last}}, "the last packet with the table's word"
}

// jenkins is the hash function of Bob Jenkins (1997) for less than twelve bytes,
// in the order of a little-endian machine.
func jenkins(key []byte) uint32 {
	var whole [12]byte
	copy(whole[:], key)
	const golden = 0x9e3779b9
	a, b := golden+word(whole[:], 0), golden+word(whole[:], 1)
	c := uint32(0xfeedbeef) + uint32(len(key))
	for _, shifts := range [3][3]uint{{13, 8, 13}, {12, 16, 5}, {3, 10, 15}} {
		a = (a - b - c) ^ c>>shifts[0]
		b = (b - c - a) ^ a<<shifts[1]
		c = (c - a - b) ^ b>>shifts[2]
	}
	return c
}

// The example ooorb keeps ranges of bytes in a list of fixed size, and behind it
// the first byte that is still missing.
const (
	ranges     = 11 // packets that bring a range of ten bytes
	rangeBytes = 10
	ooorbNext  = 12 + 130*20 + 128 // offset of that number
)

// reordered: packets bring ranges, in an order that is not theirs, and then ask
// for the first. All ranges have become one, whose end is the answer.
func reordered(t *trial) {
	for i, p := range t.packets {
		op := [3]uint32{1, 0, 0} // asks
		if i < ranges {
			at := uint32(i*7%ranges) * rangeBytes
			op = [3]uint32{0, at, at + rangeBytes - 1}
		}
		copy(p, sums(op[:]))
	}
	one(t)
	t.wantPads, t.wantBefore = []piece{{ooorbNext, sums([]uint32{ranges * rangeBytes})}}, "the first byte behind all ranges"
}

// one runs a trial on a device with one HPU: the order of its packets decides
// the result.
func one(t *trial) { t.profile, t.set = "spin-dis", append(t.set, "hpu.cores: 1") }

// mixed: a packet goes to host memory in part, several times, and comes back as
// often.
func mixed(t *trial) {
	const part, times = 64, 3
	t.each, t.handlerMem = true, sums([]uint32{10, part, times, part, times})
	for _, p := range t.packets {
		answer := exchanged(p, 0)
		copy(answer, p[:part]) // as it went to host memory
		for range times {
			t.replies = append(t.replies, answer...)
		}
	}
	t.wantHost, t.wantBefore = []piece{{0, t.packets[len(t.packets)-1][:part]}}, "parts of packets there and back"
}
