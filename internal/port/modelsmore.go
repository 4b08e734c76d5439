package port

import (
	"encoding/binary"

	"github.com/spinsim/spinsim/inet"
)

// The perceptron of the example slp: vectors of eight numbers, of which two are
// not zero.
const (
	inputs  = 8
	samples = 24 // vectors in a packet: eight, three times
)

// learned: one message teaches a perceptron, the next asks it.
func learned(t *trial) {
	weights := make([]int32, inputs+1)
	says := func(v []int32) int32 {
		sum := weights[inputs]
		for i, x := range v {
			sum += x * weights[i]
		}
		if sum >= 0 {
			return 1
		}
		return 0
	}
	var vectors [][]int32
	for i := range int32(samples) {
		vectors = append(vectors, []int32{2 + i%8, (i + 3) * 5 % 8 / 2, 0, 0, 0, 0, 0, 0})
	}
	packet := func(kind uint32, answers []int32) []byte {
		b := sums([]uint32{kind, samples})
		for _, v := range append(vectors, answers) {
			for _, x := range v {
				b = binary.LittleEndian.AppendUint32(b, uint32(x))
			}
		}
		return plainUDP(0, b)
	}
	var right []int32
	for _, v := range vectors {
		r := int32(0)
		if v[0]-2*v[1] > 1 {
			r = 1
		}
		right = append(right, r)
		wrong := r - says(v)
		for i := range v {
			weights[i] += wrong * v[i]
		}
		weights[inputs] += wrong
	}
	ask := packet(1, nil)
	t.packets, t.each, t.define = [][]byte{packet(0, right), ask}, true, append(t.define, "NB_CLUSTERS=1")
	answer := exchanged(ask, 0)
	for i, v := range vectors {
		binary.LittleEndian.PutUint32(answer[ipUDPBytes+8+4*i:], uint32(says(v)))
	}
	n := ipUDPBytes + 8 + 4*samples
	binary.LittleEndian.PutUint16(answer[2:], uint16(n))
	binary.LittleEndian.PutUint16(answer[24:], uint16(n-inet.HeaderBytes))
	t.replies = answer[:n]
	var final []uint32
	for _, w := range weights {
		final = append(final, uint32(w))
	}
	one(t)
	t.wantPads, t.wantBefore = []piece{{0, sums(final)}}, "the weights, and what they say"
}

// echoed: an echo request is answered, with the checksum of the answer.
func echoed(t *trial) {
	t.each, t.wantBefore = true, "echo replies with their checksums"
	for k := range t.packets {
		body := words(k, (packetBytes-ethernetBytes-inet.HeaderBytes-8)/4)
		t.packets[k] = echo(8, uint16(k), body)
		t.replies = append(t.replies, answered(echo(0, uint16(k), body), [3]int{0, 6, 6}, [3]int{ethernetBytes + 12, ethernetBytes + 16, 4})...)
	}
}

// sent: the protocol SLMP brings a message to host memory behind the pages of
// the HPUs; the packet with SYN is acknowledged.
func sent(t *trial) {
	const (
		eom, syn, ack = 0x8000, 0x4000, 0x2000
		pages         = 2 * 8 * 4096
		body          = packetBytes - ethernetBytes - ipUDPBytes - 10
	)
	be := binary.BigEndian
	header := func(flags uint16, offset int) []byte {
		b := be.AppendUint16(nil, flags)
		return be.AppendUint32(be.AppendUint32(b, 7), uint32(offset))
	}
	var whole []byte
	for k := range t.packets {
		flags := uint16(0)
		if k == 0 {
			flags = syn
		} else if k == len(t.packets)-1 {
			flags = eom
		}
		piece := words(k, body/4)
		t.packets[k] = udp(uint16(k), append(header(flags, len(whole)), piece...))
		whole = append(whole, piece...)
	}
	d := inet.Datagram{SrcPort: toPort, DstPort: fromPort, Data: header(ack, 0)}
	b := d.Append(nil, receiver, sender)
	be.PutUint16(b[6:], 0) // none
	p := inet.Packet{Src: receiver, Dst: sender, Protocol: inet.ProtocolUDP, Payload: b}
	t.replies = frame(2, 1, p.Append(nil))
	t.hostBytes = pages + hostBytes
	t.wantHost, t.wantBefore = []piece{{pages, whole}}, "the message in host memory and an acknowledgement"
}

// OSMOSIS' kernels take their parameters from the packet: bytes, requests and
// bytes of a part.
const (
	requestBytes = 64
	requests     = 2
	requestPart  = 32
)

// withParameters puts parameters into the packets, whose handlers may read them.
func withParameters(t *trial) {
	for _, p := range t.packets {
		copy(data(p), sums([]uint32{requestBytes, requests, requestPart}))
	}
}

// requestedToHost: the packet's first bytes are in host memory.
func requestedToHost(t *trial) {
	withParameters(t)
	last := data(t.packets[len(t.packets)-1])[:requestBytes]
	t.each, t.wantHost, t.wantBefore = true, []piece{{0, last}}, "the first bytes of the last packet"
}

// requestedFromHost: host memory is read and stays as it is.
func requestedFromHost(t *trial) {
	withParameters(t)
	t.host = pattern(packetBytes)
	t.wantHost, t.wantCalls, t.wantBefore = []piece{{0, t.host}}, int64(len(t.packets)), "a handler for each packet, host memory as it was"
}

// requestedFromL2: memory of the device is read; host memory stays as it is.
func requestedFromL2(t *trial) {
	nothing(t)
	t.handlerMem = pattern(packetBytes)
}

// requestedSends: the packet's first bytes come back as often as it says.
func requestedSends(t *trial) {
	withParameters(t)
	t.each, t.wantBefore = true, "the first bytes of each packet, as often as it says"
	for _, p := range t.packets {
		for range requests {
			t.replies = append(t.replies, data(p)[:requestBytes]...)
		}
	}
}

// The TCP stack of OSMOSIS keeps a connection in its memory: fields of 32 bits
// at these offsets, packed, and behind them the pool for what came out of order.
const (
	tcpHost       = 0xdeadbeef // where it tells the host the next sequence number
	tcpBuffer     = 4          // address of the receive buffer in host memory, and its length
	tcpState      = 24
	tcpListens    = 1
	tcpNext       = 44 // next sequence number to receive
	tcpPool       = 68 + 72
	tcpNodes      = 68 + 152 // behind the connection
	tcpNodeBytes  = 12
	tcpCapacity   = 64
	tcpBufferAt   = 4096
	tcpBufferSize = 32768
)

// served: a connection is opened, brings segments, of which some come out of
// order, and is closed. The stream is in the receive buffer, and SYN and FIN are
// answered.
func served(t *trial) {
	memory := make([]byte, tcpNodes+tcpCapacity*tcpNodeBytes)
	le := binary.LittleEndian
	le.PutUint64(memory[tcpBuffer:], tcpHost+tcpBufferAt)
	le.PutUint32(memory[tcpBuffer+8:], tcpBufferSize)
	le.PutUint32(memory[tcpState:], tcpListens)
	le.PutUint32(memory[tcpNext:], 1)
	pool := []uint32{tcpCapacity, tcpNodeBytes, tcpNodes - 68, uint32(len(memory)) - 68}
	copy(memory[tcpPool:], sums(pool))
	const each, count = 512, 16
	stream := words(3, each*count/4)
	padded := func(segment []byte) {
		t.packets = append(t.packets, append(segment, make([]byte, packetBytes-len(segment))...))
	}
	t.packets = nil
	padded(segment(0, 0, 0, inet.SYN, nil))
	for i := range count {
		at := (i ^ 1) * each // each two exchanged
		padded(segment(uint16(i+1), uint32(at)+1, 1, inet.ACK, stream[at:at+each]))
	}
	padded(segment(count+1, uint32(len(stream))+1, 1, inet.ACK|inet.FIN, nil))
	for _, k := range []int{0, len(t.packets) - 1} {
		answer := exchanged(t.packets[k][:inet.HeaderBytes+inet.TCPHeaderBytes], 0)
		answer[inet.HeaderBytes+13] |= inet.ACK
		t.replies = append(t.replies, answer...)
	}
	t.handlerMem, t.define = memory, append(t.define, "PSPIN_HOST_BASE=0xdeadbeef")
	one(t)
	t.wantHost = []piece{{0, u64(uint64(len(stream)) + 1)}, {tcpBufferAt + 1, stream}}
	t.wantBefore = "the stream of a connection, its end, and answers to SYN and FIN"
}

// paperModels has the models of the paper's toolchain, by the name of the set. Its
// handlers give NULL for their own buffers, because its simulator moves no
// data. Here NULL stands for the packet's payload, in a header handler for the
// user header, in a completion handler for zeros (docs/porting.md).
var paperModels = map[string]model{
	"accumulate": deposited,
	"accumulate_pong": func(t *trial) {
		deposited(t)
		t.replies = payload(t)
	},
	"bcast": func(t *trial) { // to the child 3 of 4 ranks, and once more from the host
		t.where, t.elsewhere = 3, append(payload(t), t.host[:paperMessage]...)
	},
	"cache_test": func(t *trial) { // its sum is of memory that nobody has written: C leaves it open
		deposited(t)
		t.wantCalls, t.wantBefore = 1, "a header handler, and the message where it goes without others"
	},
	"dataserver_acknowledgement": func(t *trial) { t.replies = t.packets[0][:1] },
	"dataserver_read": func(t *trial) { // a request has no payload: host memory stays as it is
		t.packets[0] = t.packets[0][:t.user]
		t.replies = t.host[:paperArgument]
	},
	"dataserver_write": func(t *trial) {
		deposited(t)
		t.where, t.elsewhere = 1, payload(t)
	},
	"ddtvec":     func(t *trial) { t.wantHost = []piece{{0, payload(t)[:paperArgument]}} },
	"kvs_insert": acknowledged,
	"kvs_read": func(t *trial) { // finds the key; insert's own host memory is zero
		t.after = "kvs_insert"
		t.replies = append([]byte{0}, t.host[:len(t.packets[0])]...)
	},
	"kvs_update": acknowledged, // no such key
	"parity_update": func(t *trial) {
		deposited(t)
		t.replies = []byte{0}
	},
	"pingpong":       func(t *trial) { t.replies = append(payload(t), t.host[:paperMessage]...) },
	"pingpong_empty": func(t *trial) { t.wantHost, t.wantCalls = []piece{{0, t.host}}, 1 },
}

const (
	paperMessage  = 256 // bytes of a message: fits a packet of every network
	paperArgument = 64  // first argument in the user header: a length
	paperDevice   = 2   // rank of the handlers: others have 0 and 1 for targets
)

// payload is the data of the message behind the user header.
func payload(t *trial) []byte { return append([]byte(nil), t.packets[0][t.user:]...) }

// deposited: the payload is in host memory.
func deposited(t *trial) { t.wantHost = []piece{{0, payload(t)}} }

// acknowledged: a byte of host memory comes back.
func acknowledged(t *trial) { t.replies = t.host[:1] }

// paperTrial makes the message of the paper's toolchain: a user header with
// small numbers, and data.
func paperTrial(t *trial, s *set) {
	b := words(1, paperMessage/4)
	if s.handlers[0] != "" {
		t.user = 32
		b = append(sums([]uint32{paperArgument, 0, 1, 0, 2, 0, 3, 0}), b...)
	}
	t.packets, t.host = [][]byte{b}, pattern(2*paperMessage)
	t.set = append(t.set, "hpu.stack_bytes: 16KiB")
	t.wantBefore = "what the handlers make of NULL for a buffer"
}
