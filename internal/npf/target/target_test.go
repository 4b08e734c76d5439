package target_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers/rnr"
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/internal/npf/target"
	"github.com/spinsim/spinsim/internal/pinning"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// small is a node with so little memory that caches of a few MiB matter.
var small = []string{"smmu.stale=poison", "os.watermark_min=128KiB", "os.watermark_low=256KiB", "os.watermark_high=384KiB", "storage.queue_depth=1"}

// serve runs a target and an initiator of each session.
func serve(t *testing.T, o target.Options, set []string, initiator func(p *runtime.Proc, session int, i *target.Initiator) error) (*target.Target, *runtime.Cluster, error) {
	t.Helper()
	return run(t, o, set, func(p *runtime.Proc, session int, tgt *target.Target, _ *rnr.Loaded) error {
		i, err := tgt.Connect(p, session)
		if err != nil {
			return err
		}
		return initiator(p, session, i)
	})
}

func run(t *testing.T, o target.Options, set []string, initiator func(p *runtime.Proc, session int, tgt *target.Target, lib *rnr.Loaded) error) (*target.Target, *runtime.Cluster, error) {
	t.Helper()
	prof, err := profile.Load("ib-npf", append(set, small...)...)
	require.NoError(t, err)
	c, err := runtime.NewCluster(runtime.Config{Profile: prof, Nodes: 3, Seed: 1})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	lib, err := rnr.Load(c, rnr.Options{})
	require.NoError(t, err)
	tgt, err := target.New(c, lib, o)
	require.NoError(t, err)
	for n := range o.Sessions {
		require.NoError(t, c.Spawn(1+n%2, fmt.Sprintf("initiator %d", n), func(p *runtime.Proc) error { return initiator(p, n, tgt, lib) }))
	}
	err = c.Run(context.Background())
	if err == nil {
		_, count := c.Failures()
		require.Zero(t, count)
		for n := range 3 {
			require.NoError(t, c.Node(n).Kernel().Audit())
		}
	}
	return tgt, c, err
}

// reads reads random blocks and compares every byte.
func reads(seed uint64, o *target.Options, block, count int) func(p *runtime.Proc, session int, i *target.Initiator) error {
	return func(p *runtime.Proc, session int, i *target.Initiator) error {
		r := rand.New(rand.NewPCG(seed, uint64(session)))
		for posted := 0; posted < count || !i.Idle(); {
			if posted < count && !i.Full() {
				if err := i.Post(r.IntN(o.Disk/block)*block, block); err != nil {
					return err
				}
				posted++
				continue
			}
			a, err := i.Next()
			if err != nil {
				return err
			}
			if err := target.Check(a.At, a.Data.Read()); err != nil {
				return err
			}
		}
		p.Sleep(sim.Millisecond) // the target learns that its last answer has arrived
		return nil
	}
}

// Initiators get exactly the bytes of the disk. The cases are each way to make
// buffers ready, little memory, and blocks smaller than buffers or as large.
func TestReads(t *testing.T) {
	for i, kind := range pinning.OwnKinds() {
		block := []int{64 << 10, 128 << 10}[i%2]
		o := target.Options{
			Disk: 8 << 20, Buffer: 128 << 10, Pool: 2 << 20, Sessions: 3, Depth: 4,
			Pinning: pinning.Options{Kind: kind, Bound: 512 << 10, Victims: 256 << 10, Buffer: 1 << 20},
		}
		tgt, c, err := serve(t, o, []string{"os.memory=12MiB"}, reads(1, &o, block, 16))
		require.NoError(t, err)
		s := tgt.Stats()
		require.EqualValues(t, 48, s.Requests)
		require.EqualValues(t, 48*block, s.Bytes)
		require.NotZero(t, s.Cached)
		k := c.Node(0).Kernel().Stats()
		if kind == pinning.FineKind || kind == pinning.NoneKind {
			require.Zero(t, k.PinsHeld)
		}
		if kind == pinning.StaticKind {
			require.EqualValues(t, o.Pool/o.Buffer/o.Sessions*o.Sessions*o.Buffer, s.Pinning.Pinned)
		}
	}
}

// A transaction has its own buffer of 128 KiB. Blocks of a quarter of that use
// only a quarter of the memory, unless all of it is pinned. The most recently
// used buffer is used first, so only as many buffers are used as there are
// requests at a time.
func TestResident(t *testing.T) {
	resident := func(kind string, block int) int64 {
		o := target.Options{Disk: 8 << 20, Buffer: 128 << 10, Pool: 4 << 20, Sessions: 2, Depth: 4, Pinning: pinning.Options{Kind: kind}}
		tgt, _, err := serve(t, o, nil, reads(1, &o, block, 60))
		require.NoError(t, err)
		return tgt.Stats().Resident
	}
	const depth, sessions = 4, 2
	little := resident(pinning.NoneKind, 32<<10)
	all := resident(pinning.NoneKind, 128<<10)
	buffers := (all - little) / (96 << 10)
	require.Zero(t, (all-little)%(96<<10))
	require.GreaterOrEqual(t, buffers, int64(depth*sessions))
	require.LessOrEqual(t, buffers, int64((depth+1)*sessions), "an answer may be there before the target knows")
	static := resident(pinning.StaticKind, 32<<10)
	require.Equal(t, static, resident(pinning.StaticKind, 128<<10))
	require.Equal(t, 4<<20-buffers*(128<<10), static-all)
}

// Pinned memory is lost for the cache. With 8 MiB of memory and a disk of 6
// MiB, a target that pins 4 MiB reads from the disk again and again. A target
// that pins nothing keeps the whole disk in memory.
func TestCache(t *testing.T) {
	major := map[string]int64{}
	for _, kind := range []string{pinning.StaticKind, pinning.NoneKind} {
		o := target.Options{Disk: 6 << 20, Buffer: 64 << 10, Pool: 4 << 20, Sessions: 1, Depth: 2, Pinning: pinning.Options{Kind: kind}}
		tgt, c, err := serve(t, o, []string{"os.memory=8MiB"}, reads(1, &o, 64<<10, 600))
		require.NoError(t, err)
		major[kind] = c.Node(0).Storage().Stats().Reads
		require.EqualValues(t, 600, tgt.Stats().Requests)
	}
	require.LessOrEqual(t, major[pinning.NoneKind], int64(96+10), "each block once, and hardly any again")
	require.Greater(t, major[pinning.StaticKind], int64(200))
}

// If buffers cannot be pinned, there is an error that explains it, before
// anybody is served.
func TestPinningFails(t *testing.T) {
	o := target.Options{Disk: 6 << 20, Buffer: 64 << 10, Pool: 16 << 20, Sessions: 1, Depth: 2, Pinning: pinning.Options{Kind: pinning.StaticKind}}
	_, _, err := serve(t, o, []string{"os.memory=8MiB"}, reads(1, &o, 64<<10, 1))
	require.ErrorIs(t, err, host.ErrNoMemory)
	require.ErrorContains(t, err, "target: communication buffers cannot be pinned")
}

// Requests outside the disk are refused, and the session goes on.
func TestRefused(t *testing.T) {
	o := target.Options{Disk: 1 << 20, Buffer: 64 << 10, Pool: 1 << 20, Sessions: 1, Depth: 2, Pinning: pinning.Options{Kind: pinning.NoneKind}}
	tgt, _, err := serve(t, o, nil, func(_ *runtime.Proc, _ int, i *target.Initiator) error {
		for _, bad := range [][2]int{{1 << 20, 4096}, {1<<20 - 4096, 8192}, {-4096, 4096}, {5, 4096}, {0, 100}, {0, 0}, {0, 128 << 10}, {1 << 62, 1 << 62}} {
			require.NoError(t, i.Post(bad[0], bad[1]))
			_, err := i.Next()
			require.ErrorIs(t, err, target.ErrRefused, "%v", bad)
		}
		require.NoError(t, i.Post(0, 4096))
		require.NoError(t, i.Post(4096, 4096))
		require.ErrorContains(t, i.Post(4096, 4096), "2 requests are under way")
		for range 2 {
			a, err := i.Next()
			require.NoError(t, err)
			require.NoError(t, target.Check(a.At, a.Data.Read()))
		}
		_, err := i.Next()
		require.ErrorContains(t, err, "no request is under way")
		return nil
	})
	require.NoError(t, err)
	require.EqualValues(t, 8, tgt.Stats().Refused)
}

// A foreign initiator may send anything. The number of a request is returned
// unchanged. A message that is not a request is refused, and so is a request
// for memory at addresses that do not exist.
func TestStrangers(t *testing.T) {
	o := target.Options{Disk: 1 << 20, Buffer: 64 << 10, Pool: 1 << 20, Sessions: 1, Depth: 2, Pinning: pinning.Options{Kind: pinning.NoneKind}}
	tgt, _, err := run(t, o, nil, func(p *runtime.Proc, _ int, _ *target.Target, lib *rnr.Loaded) error {
		c, err := lib.Connect(p, "session 0")
		if err != nil {
			return err
		}
		v, answer := p.Alloc(8192), p.Alloc(16)
		for i, length := range []int{32, 5, 32, 32, 32, 32} {
			b := v.Slice(0, 32).Write()
			to := []uint64{v.Addr() + 4096, v.Addr() + 4096, v.Addr() + 4096, 1 << 60, 1<<48 - 4095, ^uint64(0) - 4095}[i]
			for i, x := range []uint64{0, 4096, to, 1<<63 + 1<<62 + 5} {
				binary.LittleEndian.PutUint64(b[8*i:], x)
			}
			in, err := c.PostReceive(answer)
			if err != nil {
				return err
			}
			out, err := c.PostSend(v.Slice(0, length))
			if err != nil {
				return err
			}
			if _, err := in.Wait(); err != nil {
				return err
			}
			if _, err := out.Wait(); err != nil {
				return err
			}
			if length == 32 && i < 3 {
				require.Equal(t, uint64(1<<63+1<<62+5), binary.LittleEndian.Uint64(answer.Read()))
				require.NoError(t, target.Check(0, v.Slice(4096, 8192).Read()))
			} else {
				require.Equal(t, uint64(1), binary.LittleEndian.Uint64(answer.Read()[8:]))
			}
		}
		return nil
	})
	require.NoError(t, err)
	require.EqualValues(t, 4, tgt.Stats().Refused)
}

// An initiator that gives an invalid address ends its own session, which unpins
// its buffers. The other session goes on.
func TestBroken(t *testing.T) {
	for _, kind := range pinning.OwnKinds() {
		o := target.Options{
			Disk: 1 << 20, Buffer: 64 << 10, Pool: 1 << 20, Sessions: 2, Depth: 4,
			Pinning: pinning.Options{Kind: kind, Bound: 1 << 20, Victims: 64 << 10, Buffer: 1 << 20},
		}
		tgt, c, err := run(t, o, nil, func(p *runtime.Proc, session int, tgt *target.Target, lib *rnr.Loaded) error {
			if session == 1 {
				i, err := tgt.Connect(p, 1)
				if err != nil {
					return err
				}
				return reads(1, &o, 64<<10, 20)(p, 1, i)
			}
			c, err := lib.Connect(p, "session 0")
			if err != nil {
				return err
			}
			v := p.Alloc(4096)
			b := v.Write()
			for i, x := range []uint64{0, 64 << 10, 1 << 40, 0} {
				binary.LittleEndian.PutUint64(b[8*i:], x)
			}
			for range 3 {
				if _, err := c.PostSend(v.Slice(0, 32)); err != nil {
					return err
				}
			}
			in, err := c.PostReceive(v)
			if err != nil {
				return err
			}
			_, err = in.Wait()
			require.Error(t, err)
			p.Sleep(100 * sim.Millisecond)
			return nil
		})
		require.NoError(t, err, kind)
		s := tgt.Stats()
		require.Equal(t, 1, s.Broken)
		require.GreaterOrEqual(t, s.Requests, int64(21), "those of the other, and at least one")
		switch k := c.Node(0).Kernel().Stats(); kind {
		case pinning.NoneKind, pinning.FineKind:
			require.Zero(t, k.PinsHeld)
		case pinning.StaticKind:
			require.EqualValues(t, 1<<20/2/4096, k.PinsHeld, "of the other")
		}
	}
}

// Invalid options give errors that name their fields.
func TestOptions(t *testing.T) {
	o := target.Options{Disk: 5, Buffer: 100, Sessions: 0, Depth: 33}
	require.EqualError(t, o.Validate(), `target: buffer is 100, expected a multiple of 4096 from 4096
target: disk is 5, expected a multiple of 4096 from 4096
target: sessions is 0, expected 1 to 1024
target: depth is 33, expected 1 to 32`)
	o = target.Options{Disk: 1 << 20, Buffer: 64 << 10, Sessions: 4, Depth: 1, Pool: 64 << 10}
	require.EqualError(t, o.Validate(), "target: pool is 65536, expected a multiple of 4096 from 262144")
}
