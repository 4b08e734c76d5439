package handlerlab

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

//go:generate go run ../../../internal/build/cmd -o testdata/p4spin.wasm testdata/p4spin
//go:generate go run ../../../internal/build/cmd -o testdata/pspin.wasm testdata/pspin
//go:generate go run ../../../internal/build/cmd -o testdata/fpspin.wasm testdata/fpspin
//go:generate go run ../../../internal/build/cmd -o testdata/clibrary.wasm testdata/clibrary

// module returns the configuration of a run of a committed module.
func module(t *testing.T, name string, overrides ...string) *Config {
	t.Helper()
	m, err := handlers.Open("testdata/" + name + ".wasm")
	require.NoError(t, err)
	p, err := profile.Load("spin-dis", overrides...)
	require.NoError(t, err)
	return &Config{Module: m, Profile: p, Host: make([]byte, 256), Watched: runtime.Config{Limits: sim.Limits{Until: 10 * sim.Millisecond}}}
}

func words(v ...uint32) (b []byte) {
	for _, w := range v {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return b
}

// returns lists the return codes of the handlers of a kind.
func returns(r *Report, kind string) (codes []hpu.Code) {
	for _, h := range r.Handlers {
		if h.Kind == kind {
			codes = append(codes, hpu.Code(h.Code))
		}
	}
	return codes
}

// logs lists the lines that handlers have written.
func logs(r *Report) (lines []string) {
	for _, h := range r.Handlers {
		for _, a := range h.Actions {
			if a.Name == "log" {
				lines = append(lines, strings.Trim(a.What, `"`))
			}
		}
	}
	return lines
}

// The return codes of the paper's toolchain have other numbers than in
// docs/abi.md. The test compares its portals.h with ours, by name.
func TestP4spinCodes(t *testing.T) {
	const fail = hpu.Fail
	for _, c := range []struct {
		name                        string
		theirs                      uint32
		header, payload, completion hpu.Code
	}{
		// a header handler that returns it goes on
		{"SUCCESS", 0, hpu.ProcessData, hpu.Success, hpu.Success},
		{"PROCEED", 1, hpu.Proceed, fail, fail},
		{"PROCESS_DATA", 2, hpu.ProcessData, fail, fail}, // 2 is DROP here
		{"PROCESS_DATA_PENDING", 3, hpu.ProcessDataPending, fail, fail},
		{"DROP", 4, hpu.Drop, hpu.Drop, fail}, // 4 is PROCESS_DATA here
		{"DROP_PENDING", 5, hpu.DropPending, fail, fail},
		{"SUCCESS_PENDING", 6, hpu.ProcessDataPending, fail, hpu.SuccessPending},
		{"none", 7, fail, fail, fail},
	} {
		for i, want := range []hpu.Code{c.header, c.payload, c.completion} {
			cfg := module(t, "p4spin")
			codes := []uint32{2, 0, 0} // PROCESS_DATA, SUCCESS, SUCCESS
			codes[i] = c.theirs
			cfg.State.Bytes = append(words(codes...), make([]byte, 64)...)
			cfg.Messages = []Message{{Source: 1, Data: make([]byte, 8)}}
			got := returns(mustRun(t, cfg), Kinds[i])
			require.Equal(t, []hpu.Code{want}, got, "%s of a %s handler", c.name, Kinds[i])
		}
	}
}

// Handlers of the paper's toolchain get the operations that they ask for, in
// their own numbers.
func TestP4spinActions(t *testing.T) {
	act := func(act uint32) *Report {
		cfg := module(t, "p4spin")
		cfg.UserHeader = 32
		cfg.Host, cfg.HandlerHost = append([]byte("ABCDEFGH"), make([]byte, 248)...), []byte("abcdefgh........")
		cfg.State.Bytes = append(words(2, 0, 0, act), make([]byte, 48)...)
		cfg.State.Counters = []CounterRef{{Offset: 24}}
		cfg.Messages = []Message{{Source: 2, Data: append(words(77, 0, 0, 0, 0, 0, 0, 0), "payload!"...), MatchBits: 5, HdrData: 6}}
		return mustRun(t, cfg)
	}
	run := func(number uint32) *Report {
		r := act(number)
		require.NoError(t, r.Err())
		return r
	}
	r := run(1)
	require.Equal(t, "payload!abcdefghpayload!", string(r.Host[16:40]))
	require.Equal(t, "ABCDEFGH", string(r.Handler[8:16]))
	require.Equal(t, words(0, 40, 2, 0, 5, 0, 6, 77), r.State[32:64], "type, length, source, target, match bits, offset, header data, user header")

	r = run(2)
	require.Equal(t, uint64(7), binary.LittleEndian.Uint64(r.Host[40:]))
	require.Equal(t, words(0, 2), r.Host[56:64], "32 bits: the neighbour stays as it was")
	require.Equal(t, uint64(1<<40+1), binary.LittleEndian.Uint64(r.Host[64:]), "64 bits")
	require.Equal(t, []uint64{42, 2}, []uint64{binary.LittleEndian.Uint64(r.State[16:]), binary.LittleEndian.Uint64(r.State[24:])})

	run(4)

	sent := func(act uint32) (sent []string) {
		for _, e := range run(act).Events {
			if e.Node == 1 {
				sent = append(sent, fmt.Sprintf("%s %d B, bits %#x, offset %d, data %d", e.Type, e.Length, e.MatchBits, e.Offset, e.HdrData))
			}
		}
		return sent
	}
	require.ElementsMatch(t, []string{
		"PUT 8 B, bits 0x11, offset 64, data 1", "PUT 4 B, bits 0x12, offset 0, data 2", "PUT 8 B, bits 0x13, offset 0, data 3", "GET 4 B, bits 0x14, offset 5, data 0",
	}, sent(3))
	require.ElementsMatch(t, []string{
		"ATOMIC 8 B, bits 0x15, offset 16, data 4", "ATOMIC 8 B, bits 0x16, offset 24, data 5", "ATOMIC 4 B, bits 0x17, offset 0, data 6",
		"GET 4 B, bits 0x19, offset 8, data 0", "GET 4 B, bits 0x1a, offset 12, data 0", "GET 4 B, bits 0x1b, offset 5, data 0",
	}, sent(5))
	require.Equal(t, []string{"PUT 4 B, bits 0x18, offset 0, data 7"}, sent(6), "an answer of a completion handler, from NULL")

	// NULL stands for memory of limited size. The memory beyond it is the
	// handler's own, and an access there fails.
	for _, number := range []uint32{7, 8} {
		require.ErrorContains(t, act(number).Err(), "out of bounds memory access: local: 65 bytes at 0xffffffff")
	}
	require.ErrorContains(t, act(10).Err(), "out of bounds memory access: local: 9 bytes at 0xffffffff", "more than the packet has")
}

// Handlers that suspend let others run, for example in the heap. The port does
// not notice. Each of them still returns its own code.
func TestP4spinHandlersTakeTurns(t *testing.T) {
	cfg := module(t, "p4spin", "fabric.mtu=64")
	cfg.State.Bytes = append(words(2, 0, 0, 9), make([]byte, 48)...)
	var data []byte
	var want []hpu.Code
	for i := range 4 {
		data = append(data, byte(i))
		data = append(data, make([]byte, 63)...)
		want = append(want, []hpu.Code{hpu.Success, hpu.Drop}[i%2])
	}
	cfg.Messages = []Message{{Source: 1, Data: data}}
	cfg.Race = true
	r := mustRun(t, cfg)
	require.NoError(t, r.Err(), "no race, either: the port shares nothing")
	require.ElementsMatch(t, want, returns(r, Kinds[1]))
}

// ipv4 returns a packet as PsPIN's handlers see it. The first byte differs from
// the wire.
func ipv4(data ...uint32) []byte {
	b := []byte{5<<4 | 4, 0}
	b = binary.LittleEndian.AppendUint16(b, uint16(28+4*len(data)))
	b = append(b, make([]byte, 16)...)
	for _, n := range []uint16{1000, 2000, uint16(8 + 4*len(data)), 0} {
		b = binary.LittleEndian.AppendUint16(b, n)
	}
	return append(b, words(data...)...)
}

// A message of eight packets runs on eight HPUs of two clusters. The test
// covers atomics, locks, commands, and the packets that header and tail handler
// see.
func TestPsPIN(t *testing.T) {
	for _, clusters := range []string{"1", "2", "4"} {
		testPsPIN(t, module(t, "pspin", "fabric.mtu=128", "hpu.cores=32", "hpu.clusters="+clusters))
	}
}

func testPsPIN(t *testing.T, cfg *Config) {
	var data []byte
	for i := range uint32(8) {
		data = append(data, ipv4(append([]uint32{10 + i}, make([]uint32, 24)...)...)...)
	}
	cfg.Host = make([]byte, len(data))
	cfg.Messages = []Message{{Source: 2, Data: data}}
	require.NoError(t, cfg.SetState("handler_mem[0]=0xaa,send_pt=3,send_bits=9"))
	r := mustRun(t, cfg)
	require.NoError(t, r.Err())
	// 10+…+17
	require.Equal(t, []string{"sum 108, 8 packets, first 10, last 0x11, numbers 9 10 10"}, logs(r))
	require.Equal(t, uint64(0x1122334455667788), binary.LittleEndian.Uint64(r.Host[8:]))
	require.Equal(t, uint64(5), binary.LittleEndian.Uint64(r.Host[16:]))
	require.Equal(t, data[:8], r.Host[:8])
	require.Equal(t, data[:8], r.Host[24:32])
	for _, h := range r.Handlers {
		waits := 0
		for _, a := range h.Actions {
			if a.Name == "dma_wait" {
				waits++
			}
		}
		require.Equal(t, h.Kind == "payload", waits == 3, "%d waits of a %s handler: its end waits for nothing again", waits, h.Kind)
	}
	puts := map[string]int{}
	for _, e := range r.Events {
		if e.Node != 0 {
			puts[fmt.Sprintf("%d: %s %d B, pt %d, bits %d", e.Node, e.Type, e.Length, e.PT, e.MatchBits)]++
		}
	}
	require.Equal(t, map[string]int{
		"2: PUT 40 B, pt 3, bits 9": 8, "1: PUT 4 B, pt 3, bits 9": 8,
	}, puts)
}

// A handler fails if one of its accesses failed and it does not check that.
func TestPsPINFailures(t *testing.T) {
	cfg := module(t, "pspin", "fabric.mtu=128")
	cfg.Host = make([]byte, 4)
	cfg.Messages = []Message{{Source: 1, Data: ipv4(make([]uint32, 25)...)}}
	require.NoError(t, cfg.SetState("handler_mem[0]=0xaa"))
	require.Equal(t, []hpu.Code{hpu.Fail}, returns(mustRun(t, cfg), "payload"))
}

// slmpPacket returns a packet of FPsPIN's message protocol, as on the wire.
func slmpPacket(flags uint16, at uint32, data []byte) []byte {
	be := binary.BigEndian
	b := append(bytes.Repeat([]byte{2}, 6), bytes.Repeat([]byte{1}, 6)...)
	b = append(b, 8, 0, 0x45, 0)
	b = be.AppendUint16(b, uint16(20+8+10+len(data)))
	b = append(b, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2)
	for _, n := range []uint16{1000, 9330, uint16(18 + len(data)), 0, flags} {
		b = be.AppendUint16(b, n)
	}
	return append(be.AppendUint32(be.AppendUint32(b, 7), at), data...)
}

func TestFPsPIN(t *testing.T) {
	const mtu, head, data = 128, 52, 128 - 52
	const pages = 16 * 4096
	cfg := module(t, "fpspin", "fabric.mtu=128")
	cfg.Host = make([]byte, pages+4096)
	random := rand.New(rand.NewPCG(1, 2))
	content := make([]byte, 3*data)
	for i := range content {
		content[i] = byte(random.Uint32())
	}
	var message []byte
	for i, flags := range []uint16{0x4000, 0, 0x8000} { // SYN, none, EOM
		message = append(message, slmpPacket(flags, uint32(i*data), content[i*data:][:data])...)
	}
	require.Len(t, message, 3*mtu)
	cfg.Messages = []Message{{Source: 1, Data: message}}
	// The tail handler waits for the host's answer to its first request to HPU
	// 0: number 1, its length in bytes 1 to 4.
	require.NoError(t, cfg.SetState(fmt.Sprintf("host_data.flag[0]=%d", 1|uint64(len(content))<<8)))
	r := mustRun(t, cfg)
	require.NoError(t, r.Err())
	require.Equal(t, []string{fmt.Sprintf("host: %d bytes for HPU 0", len(content))}, logs(r))
	require.Equal(t, content, r.Host[pages:][:len(content)])
	require.Equal(t, uint64(1|len(content)<<8), binary.LittleEndian.Uint64(r.Host), "the request on the page of HPU 0")
	state, err := cfg.Layout()
	require.NoError(t, err)
	for name, want := range map[string]string{"host_data.counters[0].count": "3", "host_data.counters[1].sum": "15"} {
		n, err := state.state.Lookup(name)
		require.NoError(t, err)
		require.Equal(t, want, n.Text(r.State), name)
	}
}

// The test compares arithmetic of 128 bits with package big.
func TestWideArithmetic(t *testing.T) {
	const results = 8 * 16
	random := rand.New(rand.NewPCG(3, 4))
	number := func() []byte { // of any magnitude
		b := make([]byte, 16)
		for i := range random.IntN(17) {
			b[i] = byte([]uint32{random.Uint32(), 0, 255}[random.IntN(3)])
		}
		return b
	}
	cfg := module(t, "clibrary")
	cfg.Payload = "wide"
	var operands [][3]*big.Int
	for i := range 200 {
		a, b, shift := number(), number(), uint32(random.IntN(128))
		if little(b).Sign() == 0 {
			b[0] = 1
		}
		data := append(append(append([]byte{}, a...), b...), words(shift)...)
		cfg.Messages = append(cfg.Messages, Message{Source: 1, Data: data, Offset: uint64(i * results)})
		operands = append(operands, [3]*big.Int{little(a), little(b), big.NewInt(int64(shift))})
	}
	cfg.Host = make([]byte, len(operands)*results)
	r := mustRun(t, cfg)
	require.NoError(t, r.Err())
	for i, o := range operands {
		a, b, shift := o[0], o[1], uint(o[2].Uint64())
		sa, sb := signed(a), signed(b)
		for k, want := range []*big.Int{
			new(big.Int).Mul(a, b), new(big.Int).Quo(a, b), new(big.Int).Rem(a, b), new(big.Int).Quo(sa, sb), new(big.Int).Rem(sa, sb),
			new(big.Int).Lsh(a, shift), new(big.Int).Rsh(a, shift), new(big.Int).Rsh(sa, shift),
		} {
			got := little(r.Host[i*results+16*k:][:16])
			require.Equal(t, modulo(want).String(), got.String(), "result %d of %x, %x, %d", k, a, b, shift)
		}
	}
}

func little(b []byte) *big.Int {
	v := new(big.Int)
	for i := len(b) - 1; i >= 0; i-- {
		v.Or(v.Lsh(v, 8), big.NewInt(int64(b[i])))
	}
	return v
}

func signed(v *big.Int) *big.Int {
	if v.Bit(127) == 0 {
		return v
	}
	return new(big.Int).Sub(v, new(big.Int).Lsh(big.NewInt(1), 128))
}

func modulo(v *big.Int) *big.Int { return v.Mod(v, new(big.Int).Lsh(big.NewInt(1), 128)) }

// The test compares printf with package fmt, whose verbs mean the same.
func TestPrintf(t *testing.T) {
	for _, v := range []int64{0, 1, -1, 42, -99999, 1<<31 - 1, -1 << 31, 1<<63 - 1, -1 << 63, 0x123456789abcdef} {
		cfg := module(t, "clibrary")
		cfg.Payload = "format"
		cfg.Messages = []Message{{Source: 1, Data: binary.LittleEndian.AppendUint64(nil, uint64(v))}}
		r := mustRun(t, cfg)
		require.NoError(t, r.Err())
		n, u := int32(v), uint32(v)
		require.Equal(t, []string{
			fmt.Sprintf("%d|%d|%5d|%-5d|%05d|%+d|% d|%d", n, n, n%1000, n%1000, n%1000, n, n, u),
			fmt.Sprintf("%x|%X|%#x|%o|%08x|%c", u, u, u|1, u, u, 'a'+(n&15)),
			fmt.Sprintf("%d|%d|%x|%20d|%-20d|%.7d", v, uint64(v), uint64(v), v, v, n%1000),
			fmt.Sprintf("%s|%8s|%-8s|%.3s|%d|%d|%%", "text", "right", "left", "cut off", int8(n), int16(n)),
			"1234 7", "a line",
		}, logs(r))
	}
}

// After any order of allocations and frees, blocks do not overlap. At the end
// the heap is whole.
func TestHeap(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	cfg := module(t, "clibrary", "hpu.max_cycles=10000000")
	cfg.Payload = "heap"
	for range 20 {
		orders := make([]byte, 100)
		for i := range orders {
			orders[i] = byte(random.Uint32())
		}
		cfg.Messages = append(cfg.Messages, Message{Source: 1, Data: orders})
	}
	require.NoError(t, mustRun(t, cfg).Err())
}

func TestBytes(t *testing.T) {
	cfg := module(t, "clibrary")
	cfg.Payload = "bytes"
	cfg.Messages = []Message{{Source: 1, Data: []byte("123456789")}}
	require.NoError(t, mustRun(t, cfg).Err())
}

// An entry with whole packets shows the header handler the part of the first
// packet that it takes, and the completion handler the part of the last packet,
// user header included. A last packet that found no room is not shown.
func TestWholePackets(t *testing.T) {
	const mtu = 128
	data := make([]byte, 5*mtu)
	for i := range data {
		data[i] = byte(i*7 + i/mtu)
	}
	for _, c := range []struct {
		sent, entry, user int
		buffer            string
		first, last       []byte
	}{
		{sent: 0, entry: 1000},
		{sent: 10, entry: 1000, first: data[:10], last: data[:10]},
		{sent: mtu, entry: 1000, user: 16, first: data[:mtu], last: data[:mtu]},
		{sent: mtu + 1, entry: 1000, user: 16, first: data[:mtu], last: data[mtu : mtu+1]},
		{sent: 5 * mtu, entry: 1000, first: data[:mtu], last: data[4*mtu:]},
		{sent: 5 * mtu, entry: 2*mtu + 3, first: data[:mtu], last: data[2*mtu : 2*mtu+3]}, // truncated
		{sent: 5 * mtu, entry: 2 * mtu, first: data[:mtu], last: data[mtu : 2*mtu]},
		{sent: 3 * mtu, entry: 1000, buffer: "128B", first: data[:mtu]},
	} {
		overrides := []string{"fabric.mtu=128"}
		if c.buffer != "" {
			overrides = append(overrides, "nic.packet_buffer="+c.buffer)
		}
		cfg := module(t, "clibrary", overrides...)
		cfg.Header, cfg.Payload, cfg.Completion = "first", "wait", "last"
		cfg.UserHeader, cfg.Host, cfg.HandlerHost = c.user, make([]byte, c.entry), make([]byte, 2048)
		cfg.Messages = []Message{{Source: 1, Data: data[:c.sent]}}
		r := mustRun(t, cfg)
		for i, want := range [][]byte{c.first, c.last} {
			seen := r.Handler[1024*i:]
			n := binary.LittleEndian.Uint64(seen)
			require.Equal(t, len(want), int(n), "%+v, packet %d", c, i)
			require.Equal(t, string(want), string(seen[8:8+n]))
		}
	}
}

// An unknown atomic, or one that is not on a word, ends the handler.
func TestAtomicsRefused(t *testing.T) {
	for _, c := range []struct {
		operation, at uint32
		code          hpu.Code
		trap          string
	}{
		{2, 8, hpu.Success, ""},
		{10, 8, hpu.Fail, "atomic32: wrong argument: operation 10, expected 0 to 9"},
		{2, 6, hpu.Segv, "atomic32: misaligned address: "},
		{2, 1 << 31, hpu.Segv, "atomic32: out of bounds memory access: addr: 4 bytes at "},
	} {
		cfg := module(t, "clibrary")
		cfg.Payload = "refused"
		cfg.Messages = []Message{{Source: 1, Data: words(c.operation, c.at)}}
		r := mustRun(t, cfg)
		require.Equal(t, []hpu.Code{c.code}, returns(r, "payload"))
		require.Contains(t, r.Handlers[0].Trap, c.trap)
	}
}

// A device may be any node. A handler that answers node 0 reaches it, and the
// sender is never the device.
func TestDeviceNode(t *testing.T) {
	run := func(node int, m Message) (*Report, error) {
		cfg := module(t, "p4spin")
		cfg.Node, cfg.Bytes = node, true
		cfg.State.Bytes = append(words(2, 0, 0, 3), make([]byte, 48)...) // its puts go to node 1
		cfg.Messages = []Message{m}
		r, err := Run(t.Context(), cfg)
		require.Equal(t, m, cfg.Messages[0], "the caller's messages are its own")
		return r, err
	}
	for node, source := range map[int]int{0: 1, 2: 0} {
		r, err := run(node, Message{Source: AnySource, Data: []byte("payload!")})
		require.NoError(t, err)
		require.NoError(t, r.Err())
		require.Equal(t, source, r.Messages[0].Source)
		puts := 0
		for _, e := range r.Events {
			if e.Type == "PUT" && e.Node == 1 && e.Source == node {
				puts++
			}
		}
		require.Equal(t, 3, puts)
		for i, want := range []string{"70 61 79 6c 6f 61 64 21", "70 61 79 6c", "", ""} {
			require.Equal(t, want, r.Handlers[1].Actions[i].Bytes)
		}
		var text bytes.Buffer
		require.NoError(t, new(Text).Write(&text, r))
		require.Contains(t, text.String(), "\n        70 61 79 6c\n")
		require.Contains(t, text.String(), "device   PUT")
	}
	_, err := run(2, Message{Source: 2, Data: []byte("payload!")})
	require.EqualError(t, err, "message 1 comes from node 2, which is the device")
	_, err = run(64, Message{Source: 1})
	require.EqualError(t, err, "the device at node 64, expected 0 to 63")
}
