package gemm

import (
	"context"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/handlers"
	_ "github.com/spinsim/spinsim/internal/rapidtest" // fewer checks
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
	"github.com/spinsim/spinsim/spin"
)

const device = "exanest-gemm"

// cluster is of devices without an SMMU: all memory is there, and no look-up of
// addresses takes time.
func cluster(t require.TestingT, name string, nodes int, watch func(*nic.HandlerStep), set ...string) (*runtime.Cluster, *Loaded) {
	p, err := profile.Load(name, append(set, "smmu.kind=none", "os.kind=none")...)
	require.NoError(t, err)
	c, err := runtime.NewCluster(runtime.Config{Profile: p, Nodes: nodes, Watch: watch})
	require.NoError(t, err)
	l, err := Load(c)
	require.NoError(t, err)
	return c, l
}

// matrix is a matrix in the layout of tiles, from a function of its elements.
func matrix(p *runtime.Proc, rows, columns int, f func(i, j int) float32) runtime.View {
	v := p.Alloc(Bytes(rows, columns))
	b := v.Write()
	for i := range rows {
		for j := range columns {
			binary.LittleEndian.PutUint32(b[Place(columns, i, j):], math.Float32bits(f(i, j)))
		}
	}
	return v
}

func element(v runtime.View, columns, i, j int) float32 {
	return math.Float32frombits(binary.LittleEndian.Uint32(v.Read()[Place(columns, i, j):]))
}

// Results have the bits of three loops, for all sizes, on the accelerator and on HPUs.
func TestMultiplies(t *testing.T) {
	for _, on := range [][]string{{device}, {"spin-int", "hpu.max_cycles=100000000"}} {
		t.Run(on[0], func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) { multiplies(rt, on[0], on[1:]) })
		})
	}
}

func multiplies(rt *rapid.T, name string, set []string) {
	size := rapid.IntRange(1, 2*Side)
	rows, inner, columns := size.Draw(rt, "rows"), size.Draw(rt, "inner"), size.Draw(rt, "columns")
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "data"), 0))
	of := func(rows, columns int) (list [][]float32) {
		for range rows {
			line := make([]float32, columns)
			for j := range line {
				line[j] = float32(rng.NormFloat64() * math.Pow(10, float64(rng.IntN(6))))
			}
			list = append(list, line)
		}
		return list
	}
	a, b, c := of(rows, inner), of(inner, columns), of(rows, columns)
	at := func(m [][]float32) func(i, j int) float32 { return func(i, j int) float32 { return m[i][j] } }
	cl, l := cluster(rt, name, 1, nil, set...)
	defer func() { require.NoError(rt, cl.Close()) }()
	require.NoError(rt, cl.Spawn(0, "host", func(p *runtime.Proc) error {
		x, err := l.Open(p, Options{PDID: 7})
		if err != nil {
			return err
		}
		call := Call{matrix(p, rows, inner, at(a)), matrix(p, inner, columns, at(b)), matrix(p, rows, columns, at(c)), rows, inner, columns}
		require.NoError(rt, x.Begin(call))
		require.ErrorIs(rt, x.Begin(call), ErrBusy)
		require.NoError(rt, x.Wait())
		for i := range rows {
			for j := range columns {
				want := c[i][j]
				for k := range inner {
					want += float32(a[i][k] * b[k][j])
				}
				if got := element(call.C, columns, i, j); got != want {
					require.Failf(rt, "another result", "element %d, %d: %v, expected %v", i, j, got, want)
				}
			}
		}
		require.EqualValues(rt, tiles(rows)*tiles(inner)*tiles(columns), x.Counts().Products)
		return nil
	}))
	require.NoError(rt, cl.Run(context.Background()))
}

// A tile takes: three ports load 64 KiB each at once, in 4,096 cycles and a round
// trip; the kernel its 4,200 cycles; and the port of C stores in 4,096 cycles and
// a way. With 64 bits the ports take twice as long.
func TestTimeOfATile(t *testing.T) {
	const way = 60 * sim.Nanosecond
	loads := 4096 * sim.Microsecond / 300
	for _, c := range []struct {
		set  []string
		load sim.Time
	}{{nil, loads}, {[]string{"pools.gemm-load.port_rate=19.2Gb/s", "pools.gemm-store.port_rate=19.2Gb/s"}, 2 * loads}} {
		took := map[string]sim.Time{}
		began := map[string]sim.Time{}
		cl, l := cluster(t, device, 1, func(s *nic.HandlerStep) {
			switch s.What {
			case nic.StepBegan:
				began[s.Pool] = s.At
			case nic.StepEnded:
				took[s.Pool] = s.At - began[s.Pool]
			}
		}, c.set...)
		var all sim.Time
		require.NoError(t, cl.Spawn(0, "host", func(p *runtime.Proc) error {
			x, err := l.Open(p, Options{})
			if err != nil {
				return err
			}
			one := func(int, int) float32 { return 1 }
			call := Call{matrix(p, Side, Side, one), matrix(p, Side, Side, one), matrix(p, Side, Side, one), Side, Side, Side}
			before := p.Now()
			require.NoError(t, x.Begin(call))
			require.NoError(t, x.Wait())
			all = p.Now() - before
			require.InDelta(t, Side+1, element(call.C, Side, 3, 4), 0)
			return nil
		}))
		require.NoError(t, cl.Run(context.Background()))
		require.NoError(t, cl.Close())
		require.InDelta(t, int64(c.load+2*way), int64(took["gemm-load"]), 1)
		require.Equal(t, 14*sim.Microsecond, took["gemm"], "4,200 cycles of 300 MHz")
		status := sim.Time(1667) // 8 B
		if c.set != nil {
			status *= 2
		}
		require.InDelta(t, int64(c.load+way+status+way), int64(took["gemm-store"]), 2, "the tile, then the status")
		require.Less(t, all-took["gemm-load"]-took["gemm"]-took["gemm-store"], 500*sim.Nanosecond, "to program it, and to see the result")
	}
}

// With eight products of a tile of C, what takes longer hides the rest: the
// kernel, or with ports of half the width the loads.
func TestLoadsHideBehindProducts(t *testing.T) {
	const products, way = 8, 60 * sim.Nanosecond
	load, kernel := 4096*sim.Microsecond/300, 14*sim.Microsecond
	for _, c := range []struct {
		set  []string
		want sim.Time
	}{
		{nil, load + 2*way + products*kernel + load},
		{[]string{"pools.gemm-load.port_rate=19.2Gb/s"}, products*(2*load+2*way) + kernel + load},
	} {
		cl, l := cluster(t, device, 1, nil, c.set...)
		var took sim.Time
		require.NoError(t, cl.Spawn(0, "host", func(p *runtime.Proc) error {
			x, err := l.Open(p, Options{Times: true})
			if err != nil {
				return err
			}
			row, column, tile := p.Alloc(Bytes(1, products*Side)), p.Alloc(Bytes(products*Side, 1)), p.Alloc(Bytes(1, 1))
			before := p.Now()
			require.NoError(t, x.Begin(Call{row, column, tile, 1, products * Side, 1}))
			require.NoError(t, x.Wait())
			took = p.Now() - before
			return nil
		}))
		require.NoError(t, cl.Run(context.Background()))
		require.NoError(t, cl.Close())
		require.Greater(t, took, c.want)
		require.Less(t, took, c.want+sim.Microsecond, "messages to self and the host")
	}
}

// A message of another node begins a call as the own host does, like any put of a
// handler; one of another protection domain does not. The counter counts the end.
func TestOthersCall(t *testing.T) {
	cl, l := cluster(t, device, 2, nil)
	defer func() { require.NoError(t, cl.Close()) }()
	d := Descriptor{Rows: 1, Inner: 1, Columns: 1, Tag: 9}
	require.NoError(t, cl.Spawn(0, "owner", func(p *runtime.Proc) error {
		x, err := l.Open(p, Options{PDID: 7})
		if err != nil {
			return err
		}
		one := func(int, int) float32 { return 1 }
		a, b, c := matrix(p, Side, Side, one), matrix(p, Side, Side, one), matrix(p, Side, Side, one)
		d.A, d.B, d.C = a.Addr(), b.Addr(), c.Addr()
		_, err = x.ni.CTWait(x.done, 1)
		require.InDelta(t, Side+1, element(c, Side, 100, 100), 0)
		require.Equal(t, Counts{Calls: 1, Products: 1, Foreign: 1}, x.Counts())
		return err
	}))
	require.NoError(t, cl.Spawn(1, "caller", func(p *runtime.Proc) error {
		u := handlers.NewListSetup("caller", p)
		v := u.Locked(message)
		md := u.Bind(v, portals.MD{})
		p.Compute(sim.Microsecond) // the owner has memory
		copy(v.Write(), spin.EncodeState(&d))
		put := portals.Put{MD: md, Length: message, Target: portals.PhysID(0, 0), PT: PT}
		for _, domain := range []uint64{8, 7} {
			put.MatchBits = domain<<pdidShift | KindBegin
			if err := u.NI.Put(put); err != nil {
				return err
			}
		}
		return u.Err
	}))
	require.NoError(t, cl.Run(context.Background()))
}

// What cannot be multiplied is one clear error.
func TestBadCalls(t *testing.T) {
	cl, l := cluster(t, device, 1, nil)
	defer func() { require.NoError(t, cl.Close()) }()
	require.NoError(t, cl.Spawn(0, "host", func(p *runtime.Proc) error {
		x, err := l.Open(p, Options{})
		if err != nil {
			return err
		}
		v := p.Alloc(Bytes(1, 1))
		require.EqualError(t, x.Begin(Call{v, v, v, 0, 5, 6}), "gemm: 0 x 5 by 5 x 6, expected 1 to 1048576 rows and columns")
		require.EqualError(t, x.Begin(Call{v, v, v, 1, 2, Most + 1}), "gemm: 1 x 2 by 2 x 1048577, expected 1 to 1048576 rows and columns")
		require.EqualError(t, x.Begin(Call{v, v, v, 1, 129, 1}), "gemm: 65536 B for A of 1 x 129, expected 131072 B")
		return nil
	}))
	require.NoError(t, cl.Run(context.Background()))
}
