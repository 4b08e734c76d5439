package part

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers/rdma"
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// A process that has opened a page forks: what it shares with its device does
// not become copy on write, so that its driver goes on with it. What is the
// program's own does, and is brought in as any other page.
func TestForkWithAPage(t *testing.T) {
	fork := func(p *runtime.Proc, _ uint64) error {
		_, err := p.OS().Fork(p.Thread(), "child")
		return err
	}
	for _, by := range []Method{GetUserPages, Touch, InKernel} {
		o := run{Options: Options{Method: by}, bytes: 1 << 16, source: true, dest: true, wreck: fork, wreckSource: fork}.do(t)
		require.NotZero(t, o.stats(1).Requests, by)
		for i := range 2 {
			require.NoError(t, o.c.Node(i).Kernel().Audit(), by)
		}
		unmapped := func(p *runtime.Proc, addr uint64) error {
			require.NoError(t, fork(p, addr))
			return p.OS().Unmap(p.Thread(), addr+4096, 4096)
		}
		run{Options: Options{Method: by}, bytes: 1 << 16, wreckSource: unmapped, fails: rdma.ErrDenied}.do(t)
	}
}

// A process that ends during a transfer, at any time and on either side: the
// transfer ends with an error at its initiator, and the node goes on.
func TestExitDuringATransfer(t *testing.T) {
	ends := map[string]int{}
	for _, by := range []Method{GetUserPages, Touch, InKernel} {
		for at := 95 * sim.Microsecond; at < 300*sim.Microsecond; at += 15*sim.Microsecond + 300*sim.Nanosecond {
			for side := range 2 {
				for _, read := range []bool{false, true} {
					ends[exits(t, by, side, at, read)]++
				}
			}
		}
	}
	t.Log(ends)
	require.Greater(t, ends["denied"], 10)
	require.Zero(t, ends["well"])
}

// exits has a process of a rank end at a time during a write to rank 1, or a
// read from there, and returns how the transfer has ended.
func exits(t *testing.T, by Method, side int, at sim.Time, read bool) (end string) {
	// so that tasklets do not keep the program from ending
	prof := must(profile.Load("exanest-qfdb", "os.interrupt_core=2"))
	c := must(runtime.NewCluster(runtime.Config{Profile: prof, Nodes: 2}))
	defer func() { require.NoError(t, c.Close()) }()
	parts := must(Load(c, Options{Method: by}))
	const length = 1 << 17
	var src, dst runtime.View
	require.NoError(t, c.Spawn(0, "writer", func(p *runtime.Proc) error {
		src = p.Alloc(length)
		if side == 1 {
			src.Raw()
		}
		g, err := parts.Open(p, rdma.Options{PDID: 9})
		if err != nil {
			return err
		}
		p.SleepUntil(90 * sim.Microsecond)
		post, of := g.Write, rdma.Transfer{NID: 1, Source: src.Addr(), Destination: dst.Addr(), Length: length}
		if read {
			post, of.Source, of.Destination = g.Read, of.Destination, of.Source
		}
		w, err := post(of)
		if err != nil {
			return err
		}
		if side == 0 {
			p.SleepUntil(at)
			if err := p.OS().Exit(p.Thread()); err != nil {
				return err
			}
			end = "initiator"
			return nil
		}
		end, err = ended(w.Wait())
		return err
	}))
	require.NoError(t, c.Spawn(1, "target", func(p *runtime.Proc) error {
		dst = p.Alloc(length)
		if _, err := parts.Open(p, rdma.Options{PDID: 9}); err != nil {
			return err
		}
		p.SleepUntil(at)
		if side == 0 {
			return nil
		}
		return p.OS().Exit(p.Thread())
	}))
	require.NoError(t, c.Run(context.Background()))
	for i := range 2 {
		require.NoError(t, c.Node(i).Kernel().Audit())
	}
	require.Less(t, c.Engine().Now(), 5*sim.Millisecond, "%v, side %d at %v: nobody goes on for a process that has ended", by, side, at)
	for i, v := range []runtime.View{src, dst} {
		require.Equal(t, i == side, v.Snapshot() == nil, "memory goes with its process, and who looks is told so")
	}
	return end
}

// ended names the end of a transfer; an error of another kind is one of the test.
func ended(err error) (string, error) {
	switch {
	case err == nil:
		return "well", nil
	case errors.Is(err, rdma.ErrDenied):
		return "denied", nil
	case errors.Is(err, rdma.ErrTimedOut):
		return "timed out", nil
	}
	return "", err
}

// A program that goes on when it has ended its process ends with an error.
func TestProgramBehindItsExit(t *testing.T) {
	for name, use := range map[string]func(p *runtime.Proc, v runtime.View){ //lint:maporder each by itself
		"read": func(_ *runtime.Proc, v runtime.View) { v.Read() }, "alloc": func(p *runtime.Proc, _ runtime.View) { p.Alloc(5) },
	} {
		c := must(runtime.NewCluster(runtime.Config{Profile: must(profile.Load("exanest-qfdb")), Nodes: 2}))
		require.NoError(t, c.Spawn(0, "program", func(p *runtime.Proc) error {
			v := p.Alloc(100)
			if err := p.OS().Exit(p.Thread()); err != nil {
				return err
			}
			use(p, v)
			return nil
		}))
		require.ErrorIs(t, c.Run(context.Background()), host.ErrGone, name)
		require.NoError(t, c.Close())
	}
}
