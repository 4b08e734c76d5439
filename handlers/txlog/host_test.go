package txlog

import (
	"context"
	"flag"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

var (
	histories = flag.Int("txlog.histories", 60, "histories of TestSerialisable")
	firstSeed = flag.Uint64("txlog.seed", 1, "seed of the first")
)

// access is what a transaction has read or written.
type access struct {
	offset int
	data   []byte
}

// outcome is a transaction.
type outcome struct {
	reads, writes []access
	number        uint64
}

// history is a run of random transactions.
type history struct {
	rng     *rand.Rand
	o       Options
	places  []int // where transactions read and write: few, so that they meet
	length  int
	clients int
	all     []outcome
	pause   int
	each    int // transactions of a client
}

// run runs it, and returns the region at the end.
func (h *history) run(t *testing.T, device string, overrides ...string) (end []byte, stats ServerStats) {
	p, err := profile.Load(device, overrides...)
	require.NoError(t, err)
	c, err := runtime.NewCluster(runtime.Config{Profile: p, Nodes: h.clients + 1, Seed: h.rng.Uint64()})
	require.NoError(t, err)
	library, err := Load(c)
	require.NoError(t, err)
	var server *Server
	require.NoError(t, c.SpawnService(0, "home", func(p *runtime.Proc) (err error) {
		if server, err = library.Open(p, h.o); err != nil {
			return err
		}
		return server.Serve()
	}))
	for i := range h.clients {
		rng := rand.New(rand.NewPCG(h.rng.Uint64(), uint64(i)))
		require.NoError(t, c.Spawn(i+1, "client", func(p *runtime.Proc) error { return h.client(p, rng) }))
	}
	require.NoError(t, c.Run(context.Background()))
	_, failures := c.Failures()
	require.Zero(t, failures)
	end, stats = server.region.Snapshot(), server.Stats()
	require.NoError(t, c.Close())
	return end, stats
}

func (h *history) client(p *runtime.Proc, rng *rand.Rand) error {
	c, err := Join(p, portals.PhysID(0, 0), h.o)
	if err != nil {
		return err
	}
	for range h.each {
		p.Sleep(sim.Time(rng.IntN(h.pause)) * sim.Nanosecond)
		tx := c.Begin()
		var done outcome
		for range rng.IntN(4) {
			at := h.places[rng.IntN(len(h.places))] + rng.IntN(h.length)
			b := make([]byte, 1+rng.IntN(min(h.length, 9000)))
			if err := tx.Read(at, b); err != nil {
				return err
			}
			done.reads = append(done.reads, access{at, own(b, at, done.writes)})
			if rng.IntN(2) == 0 && len(done.writes) == 0 || h.length < 10000 && rng.IntN(2) == 0 {
				w := make([]byte, 1+rng.IntN(h.length))
				for i := range w {
					w[i] = byte(rng.Uint32())
				}
				at := h.places[rng.IntN(len(h.places))]
				if err := tx.Write(at, w); err != nil {
					return err
				}
				done.writes = append(done.writes, access{at, w})
			}
		}
		if done.number, err = tx.commit(); err != nil {
			return err
		}
		h.all = append(h.all, done)
	}
	return nil
}

// own is nil where a read has seen writes of its own transaction: what it has
// read of others is not known then.
func own(b []byte, at int, writes []access) []byte {
	for _, w := range writes {
		if w.offset < at+len(b) && at < w.offset+len(w.data) {
			return nil
		}
	}
	return b
}

// check runs the transactions that have committed one after the other, in the
// order of their numbers: each reads what it has read. It returns how many of
// the others would have read something else at the end.
func (h *history) check(t *testing.T, end []byte) (stale int) {
	memory := make([]byte, h.o.Region)
	byNumber := map[uint64]*outcome{}
	for i := range h.all {
		if h.all[i].number&aborted == 0 {
			byNumber[h.all[i].number] = &h.all[i]
		}
	}
	for n := range uint64(len(byNumber)) {
		done := byNumber[n+1]
		require.NotNil(t, done, "commits are numbered from 1")
		for _, r := range done.reads {
			if r.data != nil {
				require.Equal(t, memory[r.offset:r.offset+len(r.data)], r.data, "commit %d at %d", n+1, r.offset)
			}
		}
		for _, w := range done.writes {
			copy(memory[w.offset:], w.data)
		}
	}
	require.Equal(t, memory, end)
	for _, done := range h.all {
		for _, r := range done.reads {
			if done.number&aborted != 0 && r.data != nil && string(memory[r.offset:r.offset+len(r.data)]) != string(r.data) {
				stale++
				break
			}
		}
	}
	return stale
}

func newHistory(seed uint64) *history {
	rng := rand.New(rand.NewPCG(seed, 1))
	h := &history{rng: rng, each: 8, clients: 1 + rng.IntN(6), length: []int{1, 8, 200, 9000, 40000}[rng.IntN(5)], pause: []int{1, 1000, 5000}[rng.IntN(3)]}
	h.o = Options{PT: 3, Region: 64 << 10, Log: []int{64, 4096}[rng.IntN(2)]}
	for range 1 + rng.IntN(6) {
		h.places = append(h.places, rng.IntN(h.o.Region-49000))
	}
	return h
}

// Random transactions of several clients, short and of several packets, at
// places that overlap, on both devices and on networks that lose packets: those
// that commit are serialisable, in the order of their commits.
func TestSerialisable(t *testing.T) {
	commits, aborts, stale := uint64(0), uint64(0), 0
	for i := range *histories {
		seed := *firstSeed + uint64(i)
		h := newHistory(seed)
		h.o.ByHost = h.rng.IntN(3) == 0
		var set []string
		if h.rng.IntN(2) == 0 {
			set = []string{"transport.kind=reliable", "fabric.faults={loss: 0.02, corrupt: 0.01, duplicate: 0.02, delay: 0.1, max_delay: 2us}"}
		}
		end, stats := h.run(t, []string{"spin-int", "spin-dis"}[h.rng.IntN(2)], set...)
		commits, aborts = commits+stats.Commits, aborts+stats.Aborts
		stale += h.check(t, end)
		require.Len(t, h.all, h.each*h.clients, "seed %d", seed)
	}
	t.Log(commits, aborts, stale)
	require.Positive(t, stale, "some that do not commit had to be stopped")
	require.Greater(t, commits, aborts)
}

// Where memory may be absent, and is far, records of several clients land in
// any order: what the host has written may lie in the log behind a record that
// is still under way when a transaction is looked at that has read before. It
// does not commit. In a small log records are written over, too.
func TestRecordsThatAreLate(t *testing.T) {
	for _, records := range []int{4096, 32} {
		for seed := range uint64(5) {
			h := newHistory(seed)
			h.clients, h.each, h.length, h.pause, h.o.Log = 8, 40, 2000, 1, records
			h.places = []int{0, 600, 1200, 1800, 2400, 3000, 3600, 4200}
			end, _ := h.run(t, "exanest")
			h.check(t, end)
		}
	}
}

// A transaction that takes longer than the log is long does not commit, also if
// the host has read every record in time: it has forgotten the first writes.
func TestLongTransaction(t *testing.T) {
	for _, byHost := range []bool{false, true} {
		p, err := profile.Load("spin-int")
		require.NoError(t, err)
		c, err := runtime.NewCluster(runtime.Config{Profile: p, Nodes: 3})
		require.NoError(t, err)
		library, err := Load(c)
		require.NoError(t, err)
		o := Options{PT: 3, Region: 64, Log: 4, ByHost: byHost}
		var server *Server
		require.NoError(t, c.SpawnService(0, "home", func(p *runtime.Proc) (err error) {
			if server, err = library.Open(p, o); err != nil {
				return err
			}
			return server.Serve()
		}))
		commits := func(tx *Tx, read, write int) bool {
			require.NoError(t, tx.Read(read, make([]byte, 8)))
			require.NoError(t, tx.Write(write, make([]byte, 8)))
			done, err := tx.Commit()
			require.NoError(t, err)
			return done
		}
		require.NoError(t, c.Spawn(1, "slow", func(p *runtime.Proc) error {
			c, err := Join(p, portals.PhysID(0, 0), o)
			require.NoError(t, err)
			tx := c.Begin()
			require.NoError(t, tx.Read(0, make([]byte, 8)))
			p.Sleep(sim.Millisecond)
			require.False(t, commits(tx, 8, 0), "what it has read first was written")
			require.True(t, commits(c.Begin(), 0, 0))
			return nil
		}))
		require.NoError(t, c.Spawn(2, "busy", func(p *runtime.Proc) error {
			c, err := Join(p, portals.PhysID(0, 0), o)
			require.NoError(t, err)
			p.Sleep(10 * sim.Microsecond)
			require.True(t, commits(c.Begin(), 0, 0))
			for range 20 {
				require.True(t, commits(c.Begin(), 16, 16))
			}
			return nil
		}))
		require.NoError(t, c.Run(context.Background()))
		require.Zero(t, server.Stats().Overruns)
		require.NoError(t, c.Close())
	}
}

// alone runs a client beside a home that has other options.
func alone(t *testing.T, home, own Options, client func(*Client)) {
	p, err := profile.Load("spin-int")
	require.NoError(t, err)
	c, err := runtime.NewCluster(runtime.Config{Profile: p, Nodes: 2})
	require.NoError(t, err)
	library, err := Load(c)
	require.NoError(t, err)
	require.NoError(t, c.SpawnService(0, "home", func(p *runtime.Proc) error {
		s, err := library.Open(p, home)
		if err != nil {
			return err
		}
		return s.Serve()
	}))
	require.NoError(t, c.Spawn(1, "client", func(p *runtime.Proc) error {
		joined, err := Join(p, portals.PhysID(0, 0), own)
		if err == nil {
			client(joined)
		}
		return err
	}))
	require.NoError(t, c.Run(context.Background()))
	require.NoError(t, c.Close())
}

// A commit that speaks of reads which nobody has logged does not keep the home
// waiting, and does not commit.
func TestReadsThatWereNot(t *testing.T) {
	o := Options{PT: 3, Region: 64}
	alone(t, o, o, func(c *Client) {
		tx := c.Begin()
		require.NoError(t, tx.Read(0, make([]byte, 8)))
		tx.reads++
		committed, err := tx.Commit()
		require.NoError(t, err)
		require.False(t, committed)
		committed, err = c.Begin().Commit()
		require.NoError(t, err)
		require.True(t, committed, "the home serves on")
	})
}

// What is wrong is an error, and nothing counts as committed then.
func TestWrongUse(t *testing.T) {
	for text, o := range map[string]Options{
		"txlog: a region of 0 B, expected 1 to 1099511627776":               {},
		"txlog: a log of 3 records, expected a power of two up to 16777216": {Region: 1, Log: 3},
		"txlog: commits of -1 B, expected 0 to 1099511627776":               {Region: 1, Commit: -1},
	} {
		require.EqualError(t, o.check(), text)
	}
	home, own := Options{PT: 3, Region: 64}, Options{PT: 3, Region: 64, ByHost: true}
	alone(t, home, own, func(c *Client) {
		tx := c.Begin()
		require.ErrorContains(t, tx.Read(0, make([]byte, 8)), "txlog: a read of 8 B at 0 was refused")
		require.ErrorIs(t, tx.Read(60, make([]byte, 8)), ErrRange)
		require.ErrorIs(t, tx.Read(-1, make([]byte, 8)), ErrRange)
		require.ErrorIs(t, tx.Write(64, make([]byte, 1)), ErrRange)
		require.NoError(t, tx.Read(64, nil))
		c.answers = portals.EQNone
		committed, err := tx.Commit()
		require.Error(t, err)
		require.False(t, committed)
		require.Zero(t, c.Stats().Commits)
	})
}

// A log of four records is written over while transactions run: they do not
// commit then, and nothing waits.
func TestLogThatIsTooSmall(t *testing.T) {
	overruns := uint64(0)
	for seed := range uint64(20) {
		h := newHistory(seed)
		h.o.Log, h.clients = 4, 5
		end, stats := h.run(t, "spin-int")
		h.check(t, end)
		overruns += stats.Overruns
	}
	require.Positive(t, overruns)
}
