package handlerlab

import (
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/internal/manifest"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

//go:generate go run ../../../internal/build/cmd -o testdata/actions.wasm testdata/actions

// start returns a run of a handler of testdata/actions on one message of 8
// bytes.
func start(t *testing.T, payload string) *Config {
	t.Helper()
	m, err := handlers.Open("testdata/actions.wasm")
	require.NoError(t, err)
	p, err := profile.Load("spin-dis")
	require.NoError(t, err)
	return &Config{
		Module: m, Profile: p, Payload: payload, Messages: []Message{{Source: 1, Data: []byte("12345678")}},
		Host: make([]byte, 256), Watched: runtime.Config{Limits: sim.Limits{Until: sim.Millisecond}},
	}
}

func mustRun(t *testing.T, cfg *Config) *Report {
	t.Helper()
	r, err := Run(t.Context(), cfg)
	require.NoError(t, err)
	return r
}

// actionTime is the time at which an action ends, from the beginning of the
// handler.
type actionTime struct {
	name   string
	done   sim.Time // 0: at once
	landed sim.Time // 0: not a non-blocking operation
	answer string
}

func requireTimes(t *testing.T, got []ActionReport, want []actionTime) {
	t.Helper()
	require.Len(t, got, len(want))
	after := func(a *ActionReport, length sim.Time) *sim.Time {
		if length == 0 {
			return nil
		}
		at := a.At + length
		return &at
	}
	for i, w := range want {
		a := &got[i]
		require.Equal(t, w.name, a.Name)
		require.Equal(t, w.answer, a.Answer, w.name)
		require.Equal(t, after(a, w.done), a.Done, w.name)
		require.Equal(t, after(a, w.landed), a.Landed, w.name)
	}
}

// TestTimes derives the times of a run from the profile. They must be equal to
// the times of the simulator, because users see the latter.
func TestTimes(t *testing.T) {
	cfg := start(t, "dma")
	cfg.HandlerHost = []byte("0123456789abcdef")
	r := mustRun(t, cfg)
	require.NoError(t, r.Err())
	require.Len(t, r.Handlers, 1)
	h := r.Handlers[0]

	p := cfg.Profile
	L, cycle := p.DMA.Latency, p.HPU.Clock.Cycles(1)
	D := func(n int64) sim.Time { return p.DMA.Bandwidth.Time(n) }
	// o, the message's data fetched (two latencies), the wire, matching.
	arrival := p.NIC.Overhead + 2*L + D(8) + p.Fabric.Rate.Time(8) + 2*p.Fabric.Wire + p.Fabric.Switch + p.NIC.MatchHeader
	require.Equal(t, arrival, h.Start)

	a := h.Actions
	write, read := L+D(8), 2*L+D(16)
	// The read uses the bus when its request has crossed; nothing else reads
	// then.
	requireTimes(t, a, []actionTime{
		{"dma_to_host_nb", 0, write, "handle 0"},
		{"dma_from_host_nb", 0, read, "handle 1"},
		{"dma_test", 0, 0, "not yet"},
		{"dma_to_host_nb", 0, write, "handle 2"},
		{"dma_wait", a[1].At + read - a[4].At, 0, "OK"},
		{"dma_cas", 2*L + D(8), 0, "swapped"},
		{"dma_fadd_typed", 2*L + D(8), 0, "OK"},
	})
	// Up to the first suspension, the handler's time is the time of its cycles.
	for i := range 3 {
		require.Equal(t, sim.Time(a[i].Cycles)*cycle, a[i].At)
	}
	waited := sim.Time(0)
	for i := range a {
		if a[i].Done != nil {
			waited += *a[i].Done - a[i].At
		}
	}
	require.Equal(t, sim.Time(h.Cycles)*cycle+waited, h.Took)
	require.Equal(t, "PUT", r.Events[0].Type)
	require.Equal(t, h.Start+h.Took+L, r.Events[0].At, "the event is written behind the data")

	require.Equal(t, "12345678", string(r.Host[8:16]))
	require.Equal(t, "12345678", string(r.Host[32:40]))
	require.Equal(t, byte(12), r.Host[64])
	require.Equal(t, "0123456789abcdef", string(r.State[40:56]), "the buffer behind the fields of the state")
}

func TestFaults(t *testing.T) {
	cfg := start(t, "retry")
	cfg.Faults = map[int]int64{1: -1, 2: -1, 9: -2}
	r := mustRun(t, cfg)
	require.NoError(t, r.Err())
	var answers []string
	for _, a := range r.Handlers[0].Actions {
		answers = append(answers, a.Answer)
	}
	require.Equal(t, []string{"FAULT", "FAULT", "OK"}, answers)
	require.Equal(t, byte(2), r.State[20], "rounds")
	require.Equal(t, "12345678", string(r.Host[:8]))
	require.Equal(t, []string{"DMA operation 9 was to fail, but there were 3"}, r.Notes)

	// A failed operation moves no byte, atomics included.
	cfg = start(t, "dma")
	cfg.HandlerHost = make([]byte, 16)
	cfg.Faults = map[int]int64{3: -1, 4: -2}
	r = mustRun(t, cfg)
	require.ErrorContains(t, r.Err(), "returned FAIL")
	require.Equal(t, "FAULT", r.Handlers[0].Actions[3].Failed)
	require.Equal(t, "DENIED", r.Handlers[0].Actions[5].Answer)
	require.Equal(t, make([]byte, 256-32), r.Host[32:])
}

func TestActions(t *testing.T) {
	what := func(r *Report) (lines []string) {
		for _, a := range r.Handlers[0].Actions {
			lines = append(lines, strings.TrimSpace(a.Name+" "+a.What+": "+a.Answer))
		}
		return lines
	}
	cfg := start(t, "local")
	require.NoError(t, cfg.SetState("counter=ct1"))
	cfg.Ack = true
	r := mustRun(t, cfg)
	require.NoError(t, r.Err())
	require.Equal(t, []string{
		"cas state+0, if 0x1 then 0x2: not equal",
		"cas state+0, if 0x0 then 0x2: swapped",
		"fadd state+0, add 40: was 2",
		"yield :",
		`log "hello":`,
		"ct_inc ct1, success 3, failure 0: OK",
		"ct_get ct1 to state+24: OK",
		"ct_set ct1, success 10, failure 0: OK",
		"ack status 0: OK",
	}, what(r))
	require.Equal(t, byte(42), r.State[0])
	require.Equal(t, byte(3), r.State[24])
	require.Equal(t, []CounterReport{{"ct0", 0, 0}, {"ct1", 10, 0}}, r.Counters)
	require.Equal(t, "ACK", r.Events[len(r.Events)-1].Type)

	cfg = start(t, "messages")
	cfg.Nodes = 2
	r = mustRun(t, cfg)
	require.NoError(t, r.Err())
	require.Equal(t, []string{
		"put_from_device 8 B, packet+0 to node 1, pt 3, match bits 0xab, offset 100, hdr_data 0x5: OK",
		"put_from_host 32 B, entry+0 to node 2, pt 4, match bits 0x0, offset 0: OK",
		"get_from_device 4 B, state+40 for node 2, pt 0, match bits 0x0, offset 16: OK",
		"get_from_host 8 B, entry+40 for node 2, pt 0, match bits 0x0, offset 64: OK",
		"atomic_from_device 8 B, packet+0 to node 2, pt 0, match bits 0x0, offset 0, SUM of UINT64_T: OK",
	}, what(r))
	require.Equal(t, []byte{16, 17, 18, 19}, r.State[40:44], "what the get fetched")
	require.Equal(t, []byte{64, 65, 66, 67, 68, 69, 70, 71}, r.Host[40:48])
	types := map[string]int{}
	for _, e := range r.Events {
		types[e.Type]++
	}
	require.Equal(t, map[string]int{"PUT": 3, "GET": 2, "ATOMIC": 1}, types)
}

func TestMessagesAreTold(t *testing.T) {
	// Messages of two senders meet: each handler belongs to the right message.
	cfg := start(t, "retry")
	cfg.Messages = []Message{
		{Source: 2, Data: []byte("bb"), At: 5 * sim.Microsecond}, {Source: 1, Data: make([]byte, 5000)}, {Source: 2, Data: []byte("cccc")},
	}
	cfg.Host = make([]byte, 8192)
	r := mustRun(t, cfg)
	require.NoError(t, r.Err())
	sizes := map[int]uint64{}
	for _, h := range r.Handlers {
		sizes[h.Message] += h.Bytes
	}
	require.Equal(t, map[int]uint64{1: 2, 2: 5000, 3: 4}, sizes)

	// A handler's messages to its own node are not messages of the file.
	r = mustRun(t, start(t, "self"))
	require.NoError(t, r.Err())
	var numbers []int
	for _, h := range r.Handlers {
		numbers = append(numbers, h.Message)
	}
	require.Equal(t, []int{1, 0, 0}, numbers)
	require.Greater(t, r.Handlers[2].Start-r.Handlers[1].Start, sim.Microsecond, "the timer's delay")
}

func TestBadEnds(t *testing.T) {
	for payload, want := range map[string]string{
		"trap":     "module actions.wasm, function trap, offset 0x6de: out of bounds memory access",
		"forever":  "module actions.wasm, function forever, offset 0x6ea: killed: budget exceeded",
		"nonsense": "returned 77, which is no return code of a payload handler",
		"again":    "incomplete: stopped by the limit of 1 ms of virtual time, at ",
	} {
		r := mustRun(t, start(t, payload))
		require.ErrorContains(t, r.Err(), want)
	}
	r := mustRun(t, start(t, "outside"))
	require.NoError(t, r.Err())
	require.Equal(t, "DENIED", r.Handlers[0].Actions[0].Answer)
	require.Equal(t, "INVALID", r.Handlers[0].Actions[1].Answer)

	// A killed handler disables the entry. The next message is refused and
	// reported.
	cfg := start(t, "forever")
	cfg.Messages = append(cfg.Messages, Message{Source: 1, Data: []byte("late"), At: 900 * sim.Microsecond})
	r = mustRun(t, cfg)
	require.Equal(t, "PT_DISABLED", r.Messages[1].Refused)
	require.ErrorContains(t, r.Err(), "message 2 was refused: PT_DISABLED")
}

func TestConfigErrors(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"no handler is given: module actions.wasm has [0-9]+ payload handlers, dma, ": func(c *Config) { c.Payload = "" },
		"--payload: .*exports no handler nix":                                         func(c *Config) { c.Payload = "nix" },
		"--user-header: user header of 300 bytes, at most 256":                        func(c *Config) { c.UserHeader = 300 },
		"user header of 12 bytes, expected a multiple of 8":                           func(c *Config) { c.UserHeader = 12 },
		"--memory: state of 9 bytes in HPU memory of 8":                               func(c *Config) { c.State.Bytes, c.HPUMemory = make([]byte, 9), 8 },
		"HPU memory of 16777217 bytes, at most 16777216":                              func(c *Config) { c.HPUMemory = 16<<20 + 1 },
		"message 1 has 17 bytes, at most 16":                                          func(c *Config) { c.Messages[0].Data, c.Profile.Limits.MaxMsgSize = make([]byte, 17), 16 },
		"no wasm engine \"v8\"":                                                       func(c *Config) { c.Engine = "v8" },
		"not a WebAssembly module":                                                    func(c *Config) { c.Module.Wasm = []byte("hello") },
		"initial state of 70000 bytes, largest is 65536":                              func(c *Config) { c.State.Bytes = make([]byte, 70000) },
		"5 functions, at most 1 on this device|at most 1 ":                            func(c *Config) { c.Profile.HPU.MaxFunctions = 1 },
	} {
		cfg := start(t, "retry")
		change(cfg)
		_, err := Run(t.Context(), cfg)
		require.Error(t, err, want)
		require.Regexp(t, want, err.Error())
	}
}

// The result is the same on every run, in every format.
func TestReportIsDeterministic(t *testing.T) {
	var first []byte
	for range 3 {
		cfg := start(t, "messages")
		cfg.Nodes = 2
		r := mustRun(t, cfg)
		var b bytes.Buffer
		require.NoError(t, Text{}.Write(&b, r))
		require.NoError(t, json.NewEncoder(&b).Encode(r.values()))
		if first == nil {
			first = b.Bytes()
		}
		require.Equal(t, string(first), b.String())
	}
	require.True(t, json.Valid(first[bytes.IndexByte(first, '{'):]))
}

func TestText(t *testing.T) {
	cfg := start(t, "-")
	cfg.Module = withoutManifest(t, cfg.Module)
	cfg.Header, cfg.UserHeader = "drop", 8
	cfg.State.Bytes = bytes.Repeat([]byte("state!.."), 40)
	var b bytes.Buffer
	require.NoError(t, Text{Plain: true}.Write(&b, mustRun(t, cfg)))
	require.NoError(t, Compare("testdata/header.txt", read(t, "testdata/header.txt"), b.Bytes()))

	cfg = start(t, "dma")
	cfg.HandlerHost = []byte("0123456789abcdef")
	b.Reset()
	named := mustRun(t, cfg)
	require.NoError(t, Text{Plain: true}.Write(&b, named))
	require.NoError(t, Compare("testdata/dma.txt", read(t, "testdata/dma.txt"), b.Bytes()))
	require.Equal(t, FieldReport{Name: "found", Offset: 8, Type: manifest.U64, Before: "0", After: "7"}, named.Fields[1])

	// a list of types in place of the manifest
	var err error
	cfg.Format, err = ParseFormat("u64,u64,u32,u32,u64*2")
	require.NoError(t, err)
	b.Reset()
	require.NoError(t, Text{Plain: true}.Write(&b, mustRun(t, cfg)))
	require.NoError(t, Compare("testdata/types.txt", read(t, "testdata/types.txt"), b.Bytes()))
}

// withoutManifest returns the module without its manifest.
func withoutManifest(t *testing.T, l *handlers.Library) *handlers.Library {
	t.Helper()
	require.NotNil(t, l.Manifest())
	wasm, err := manifest.Keep(l.Wasm, func(s *manifest.Piece) bool { return s.Name != manifest.Section })
	require.NoError(t, err)
	plain := handlers.New(l.Name, wasm)
	require.Nil(t, plain.Manifest())
	return plain
}

// The default state is the state of the manifest on this device, with the
// memory behind it.
func TestStateOfManifest(t *testing.T) {
	cfg := start(t, "")
	cfg.Module = handlers.Must("accumulate")
	cfg.Messages[0].Data = make([]byte, 64)
	cfg.Profile.HPU.Cores, cfg.Profile.HPU.Contexts = 3, 2
	r := mustRun(t, cfg)
	require.NoError(t, r.Err())
	require.Equal(t, []FieldReport{
		{"free", 0, manifest.U64, "", "63", "63"},
		{"buffer_size", 8, manifest.U32, "bytes", "4096", "4096"},
		{"reserved", 12, manifest.U32, "", "0", "0"},
	}, r.Fields)
	require.Len(t, r.State, DefaultHPUMemory)
	cfg.Profile.HPU.Cores, cfg.Profile.HPU.Contexts, cfg.HPUMemory = 32, 2, 0
	require.Len(t, mustRun(t, cfg).State, 16+64*4096)

	cfg.Module, cfg.HPUMemory = handlers.Must("matching"), 0
	r = mustRun(t, cfg)
	require.NoError(t, r.Err())
	require.Equal(t, "header", r.Handlers[0].Kind)
	require.Equal(t, uint64(16), r.Handlers[0].Bytes, "of the user header")
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	return b
}

func TestInspect(t *testing.T) {
	m, err := handlers.Open("testdata/actions.wasm")
	require.NoError(t, err)
	p, err := profile.Load("spin-dis")
	require.NoError(t, err)
	in := Inspect(m, p, 4096)
	require.NoError(t, in.Err())
	suspends := map[string]bool{}
	for _, x := range in.Exports {
		suspends[x.Name] = x.MaySuspend
	}
	require.Equal(t, map[string]bool{
		"dma": true, "retry": true, "outside": true, "local": true, "messages": true, "self": false, "again": false, "trap": false,
		"forever": false, "nonsense": false, "drop": false,
	}, suspends)
	require.Equal(t, MemoryRange{"HPU memory", 65536, 4096}, in.Memory[1])
	for _, i := range in.Imports {
		require.Positive(t, i.Calls, i.Name)
	}

	// All reasons are reported at once, with the description.
	p.HPU.MaxFunctions, p.HPU.MaxCodeBytes = 2, 100
	in = Inspect(m, p, 1<<30)
	require.EqualError(t, in.Err(), "actions.wasm: a device of profile spin-dis rejects it for 3 reasons, see above")
	require.NotEmpty(t, in.Code)
	var b bytes.Buffer
	require.NoError(t, in.Write(&b))
	require.Contains(t, b.String(), "rejected by spin-dis")
	require.Equal(t, 3, strings.Count(b.String(), "too much"))
	for line := range strings.Lines(b.String()) {
		require.Equal(t, strings.TrimRight(line, " \n")+"\n", line)
	}
	require.EqualError(t, Inspect(handlers.New("x", nil), p, 0).Err(), "x: a device of profile spin-dis rejects it for 1 reason, see above")
}

// A limit ends an endless run. The report lists the beginning and counts the
// rest, also in cycles.
func TestReportIsBounded(t *testing.T) {
	cfg := start(t, "again")
	cfg.Watched.Limits = sim.Limits{Events: 1_000_000}
	r := mustRun(t, cfg)
	require.ErrorContains(t, r.Err(), "incomplete: stopped by the limit of 1000000 events")
	require.Len(t, r.Handlers, listedHandlers)
	require.LessOrEqual(t, len(r.Events), listedEvents)
	require.Greater(t, r.Omitted.Handlers, 1000)
	require.Equal(t, r.Omitted.Handlers, r.Omitted.Actions, "each does one thing")
	all := int64(r.Calls)
	require.InDelta(t, r.Handlers[0].Cycles*all, r.Cycles, float64(r.Handlers[0].Cycles), "all of a kind, the last of which may not have ended")
	var text, again bytes.Buffer
	require.NoError(t, Text{}.Write(&text, r))
	require.Less(t, text.Len(), 4<<20)
	require.Contains(t, text.String(), "not listed, because there are too many: ")
	require.NoError(t, Text{}.Write(&again, mustRun(t, cfg)))
	require.Equal(t, text.String(), again.String())
}

// Messages are bounded, even if their description is short.
func TestMessagesAreBounded(t *testing.T) {
	for text, want := range map[string]string{
		strings.Repeat("00*40000000\n", 8):    "p:7: more than 65536 messages or 268435456 bytes in all",
		strings.Repeat("00\n", 1<<16+1):       "p:65537: more than 65536 messages or 268435456 bytes in all",
		"00*67108865":                         "p:1: \"00*67108865\": expected a number up to 67108864 behind *",
		"00*67108864\n+ 00":                   "p:2: more than 67108864 bytes in a message",
		"00*99999999999999999999999999999999": "expected a number up to 67108864 behind *",
	} {
		_, err := ParsePackets("p", []byte(text))
		require.ErrorContains(t, err, want)
	}
	large := Message{Data: make([]byte, 1<<26+1)}
	require.ErrorContains(t, CheckMessages([]Message{large}), "message 1 has 67108865 bytes, expected at most 67108864")
	large.Data = large.Data[1:]
	require.NoError(t, CheckMessages([]Message{large, large, large, large}))
	require.ErrorContains(t, CheckMessages([]Message{large, large, large, large, {Data: []byte{1}}}), "or 268435456 bytes in all")
}

// A wrong offset computed by a handler is shown as negative, not as above 2^63.
func TestNegativeOffsets(t *testing.T) {
	const wrong = 1<<64 - 559038737
	require.Equal(t, "entry-559038737", hostPlace(0, wrong))
	require.Equal(t, "space 7+12", hostPlace(7, 12))
	cfg := start(t, "outside")
	cfg.Messages[0].Offset = wrong
	r := mustRun(t, cfg)
	var text bytes.Buffer
	require.NoError(t, Text{}.Write(&text, r))
	require.Contains(t, text.String(), "message 1 from node 1, 8 B for offset -559038737")
	require.NotContains(t, text.String(), "18446744073")
}

// A profile assigns pools by the name that a library declares, whatever its
// file is called. Without a declared name, the name of the file counts.
func TestPoolOfLibrary(t *testing.T) {
	p, err := profile.Load("spin-int", "pools.r5={kind: firmware, cores: 1, contexts: 1, invocation: 1us}", "serve.count={payload: r5}")
	require.NoError(t, err)
	count := handlers.Must("count")
	for name, x := range map[string]struct {
		module *handlers.Library
		pool   string
	}{
		"mine.wasm": {handlers.New("mine.wasm", count.Wasm), "r5"},
		"count":     {withoutManifest(t, count), "r5"},
		"other":     {withoutManifest(t, handlers.New("other", count.Wasm)), ""},
	} {
		cfg := start(t, "")
		cfg.Module, cfg.Profile = x.module, p
		r := mustRun(t, cfg)
		require.Equal(t, x.pool, r.Handlers[0].Pool, name)
		require.Empty(t, r.Handlers[1].Pool, "the completion handler")
		in := Inspect(x.module, p, 0)
		want := []PoolUse{{"payload", cmp.Or(x.pool, "hpu")}, {"completion", "hpu"}}
		if x.module.Name != "mine.wasm" { // no manifest: any export may be a header handler
			want = append([]PoolUse{{"header", "hpu"}}, want...)
		}
		require.Equal(t, want, in.Pools, name)
	}
}
