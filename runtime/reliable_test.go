package runtime_test

import (
	"context"
	"encoding/binary"
	"flag"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
)

var stormMessages = flag.Int("transport.messages", 12_000, "messages of TestReliableStorm, over all networks; the promise is a million")

// The ranks of a storm send each other messages of every kind over a bad
// network. A rank sends a batch, each message of it in a lane of its own, waits
// for the ends of all, and looks at the memory of both sides.
const (
	lanes     = 8
	longLane  = 1 << 20 // bytes of lane 0
	shortLane = 16 << 10
	// of an initiator at a target; between lanes nobody writes
	laneSpace = longLane + (lanes-1)*shortLane + 64*lanes
	words     = 256 // that atomics add to: two packets
	// the upper half of a word counts the operations
	unit = 1 << 32
)

// Match bits of the entries that every rank has.
const (
	plainEntry    = 1 + iota // one for each initiator
	getEntry                 // what gets read
	atomicEntry              // words that atomics add to
	ticketEntry              // words that fetching atomics count
	multiplyEntry            // handlers multiply into the lanes of an initiator
	pongEntry                // handlers send the message back
	pongs                    // where that arrives
)

type stormKind uint8

const (
	stormPut stormKind = iota
	stormMultiply
	stormPong
	stormGet
	stormAtomic
	stormTicket
	stormKinds
)

var stormKindNames = [...]string{"put", "put to multiplying handlers", "put to answering handlers", "get", "atomic", "fetching atomic"}

// badWeather is a cluster in one.
type badWeather struct {
	testing.TB
	prof     *profile.Profile
	c        *runtime.Cluster
	messages int // of each rank
	ranks    []*stormRank
	// rank, message and packet of payload handlers; packet 1<<32 stands for the
	// completion handler
	began    map[[3]uint64]bool
	payloads int // packets that payload handlers must see
	sent     [stormKinds]int
	longest  int
}

// stormRank is the program of a rank.
type stormRank struct {
	*badWeather
	rank    int
	rng     *rand.Rand
	p       *runtime.Proc
	ni      *runtime.NI
	eq, md  portals.Handle
	local   []byte // one area of lanes to send from, one to receive into
	lanes   []byte // laneSpace of every initiator
	source  []byte // what gets read
	sums    []byte // words
	tickets []byte
	pongs   []byte

	work    [lanes]stormOp
	expect  []uint64           // of sums, added by all initiators
	drawn   map[uint64][]int32 // by the target and word: tickets that have been given out
	pending int                // lanes in use
}

// stormOp is what a lane is doing.
type stormOp struct {
	kind       stormKind
	target     *stormRank
	length     int
	word       int
	wantAck    bool
	sent, done bool
	pong       uint64 // bytes of the answer so far
	busy       bool
}

var zeros [4096]byte

func laneAt(lane int) int {
	if lane == 0 {
		return 32
	}
	return longLane + 64 + 32 + (lane-1)*(shortLane+64)
}

// stormNetworks are the networks on which a storm breaks out, with the number of ranks.
var stormNetworks = map[string]struct {
	ranks     int
	profile   string
	overrides []string
}{
	"fat tree":         {6, "spin-dis", []string{"fabric.radix=4"}},
	"crossbar, credit": {5, "spin-dis", []string{"fabric.kind=crossbar", "fabric.buffer=[2KiB, 4KiB]", "nic.egress_packets=3"}},
	"torus, credit":    {6, "spin-int", []string{"fabric.kind=torus", "fabric.dims=[3, 2]", "fabric.buffer=1KiB", "fabric.inject_buffer=2000", "transport.window=8"}},
	"torus":            {5, "spin-int", []string{"fabric.kind=torus", "fabric.dims=[5, 1]", "fabric.store_and_forward=true", "dma.event_bytes=64", "hpu.dma_write=landed"}},
	"file":             {12, "spin-dis", []string{"fabric.kind=file", "fabric.topology=../docs/networks/dragonfly.yaml", "transport.window=16"}},
	"file, credit":     {9, "spin-int", []string{"fabric.kind=file", "fabric.topology=../docs/networks/dragonfly.yaml", "fabric.buffer=3KiB"}},
	"one at a time":    {3, "spin-int", []string{"transport.window=1", "nic.egress_packets=1", "hpu.contexts=1", "transport.ack_bytes=0"}},
	"formulas":         {4, "spin-int-sc17", []string{"fabric.header=20"}},
}

// Messages of all kinds, with and without handlers, over networks that lose,
// damage, double and delay one packet in a hundred each: every byte is right,
// every atomic is applied once, every handler is called once for each packet,
// every event comes once, and at the end nothing is left. 12,000 messages in go
// test, a million in .ci/run deep.
func TestReliableStorm(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(stormNetworks)) {
		n := stormNetworks[name]
		t.Run(name, func(t *testing.T) {
			s := newBadWeather(t, n.ranks, n.profile, append([]string{
				"fabric.mtu=1024", "transport.kind=reliable", "transport.timeout=30us", "transport.retries=1000", "hpu.cores=4",
				"fabric.faults.loss=0.01", "fabric.faults.corrupt=0.01", "fabric.faults.duplicate=0.01", "fabric.faults.delay=0.01", "fabric.faults.max_delay=40us",
			}, n.overrides...))
			s.messages = max(1, *stormMessages/len(stormNetworks)/n.ranks)
			s.run()
			s.check()
			counts := s.c.Fabric().(*fabric.Faulty).Counts()
			stats := s.c.Stats()
			t.Logf("%d messages %v, the longest of %d B; %+v; sent again %d, came twice %d", s.messages*n.ranks, s.sent, s.longest, counts, stats.Retransmitted, stats.Duplicates)
			require.Positive(t, min(counts.Lost, counts.Corrupted, counts.Duplicated, counts.Delayed, stats.Retransmitted, stats.Duplicates))
			require.Equal(t, stats.PacketsSent, stats.PacketsReceived+counts.Lost+counts.Corrupted-counts.Duplicated)
			require.GreaterOrEqual(t, stats.Retransmitted+1, (counts.Lost+counts.Corrupted)/4, "about half of the packets are acknowledgements")
		})
	}
}

func newBadWeather(t testing.TB, ranks int, prof string, overrides []string) *badWeather {
	p, err := profile.Load(prof, overrides...)
	require.NoError(t, err)
	s := &badWeather{TB: t, prof: p, began: map[[3]uint64]bool{}}
	s.c, err = runtime.NewCluster(runtime.Config{Profile: p, Nodes: ranks, Engine: labEngine, Seed: 11, Watch: s.watch})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.c.Close()) })
	for rank := range ranks {
		s.ranks = append(s.ranks, &stormRank{
			badWeather: s, rank: rank, rng: rand.New(rand.NewPCG(uint64(rank), 5)), expect: make([]uint64, words), drawn: map[uint64][]int32{},
		})
	}
	return s
}

// watch sees that no handler is called twice for the same.
func (s *badWeather) watch(h *nic.HandlerStep) {
	if h.What != nic.StepBegan {
		return
	}
	key := [3]uint64{uint64(h.Rank), h.Message, uint64(h.Packet)}
	if h.Handler == "completion" {
		key[2] = 1 << 32
	} else {
		s.payloads--
	}
	require.False(s, s.began[key], "%s handler of rank %d is called twice for packet %d of message %d", h.Handler, h.Rank, h.Packet, h.Message)
	s.began[key] = true
}

func (s *badWeather) run() {
	for _, r := range s.ranks {
		require.NoError(s, s.c.Spawn(r.rank, "storm", r.run))
	}
	require.NoError(s, s.c.Run(context.Background()))
}

// check looks at what the whole run has left.
func (s *badWeather) check() {
	require.Zero(s, s.payloads, "packets that payload handlers have not seen")
	failures, n := s.c.Failures()
	require.Zero(s, n, "%v", failures)
	for _, r := range s.ranks {
		for k, want := range r.expect {
			require.Equal(s, want, binary.LittleEndian.Uint64(r.sums[8*k:]), "word %d of rank %d", k, r.rank)
		}
		require.NoError(s, s.c.Node(r.rank).NIC().Idle())
	}
	given := map[uint64][]int32{}
	for _, r := range s.ranks {
		for key, list := range r.drawn {
			given[key] = append(given[key], list...)
		}
	}
	for key, list := range given {
		slices.Sort(list)
		for i, ticket := range list {
			require.Equal(s, int32(i), ticket, "tickets of word %d of rank %d", key%words, key/words)
		}
	}
	require.NoError(s, s.c.Core().Balanced())
}
