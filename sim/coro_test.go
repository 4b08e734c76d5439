package sim

import (
	"errors"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCoroRunsJobsOneAfterTheOther(t *testing.T) {
	c := NewCoro()
	defer c.Close()
	var log []string
	for _, job := range []string{"a", "b"} {
		require.True(t, c.Idle())
		require.False(t, c.Start(func() {
			log = append(log, job+"1")
			c.Yield()
			log = append(log, job+"2")
			c.Yield()
			log = append(log, job+"3")
		}))
		require.False(t, c.Idle())
		log = append(log, "caller")
		require.False(t, c.Resume())
		require.True(t, c.Resume())
	}
	require.Equal(t, []string{"a1", "caller", "a2", "a3", "b1", "caller", "b2", "b3"}, log)
	require.True(t, c.Start(func() {}), "a job without a Yield is done at once")
}

func TestCoroPanicSurfacesAtTheCaller(t *testing.T) {
	c := NewCoro()
	defer c.Close()
	boom := errors.New("boom")
	surfaced := func(f func()) (p *PanicError) {
		defer func() { p = recover().(*PanicError) }()
		f()
		return nil
	}
	p := surfaced(func() { c.Start(func() { panic(boom) }) })
	require.ErrorIs(t, p, boom)
	require.Contains(t, p.Error(), "coro_test.go", "the message has the job's stack")
	c.Start(func() { c.Yield(); panic("text") })
	require.Equal(t, "text", surfaced(func() { c.Resume() }).Value)
	c.Start(func() {
		defer func() { panic("while unwinding") }()
		c.Yield()
	})
	require.Equal(t, "while unwinding", surfaced(c.Stop).Value)
	require.True(t, c.Start(func() {}), "the coroutine is as good as new")
}

func TestCoroStopUnwinds(t *testing.T) {
	c := NewCoro()
	defer c.Close()
	var log []string
	c.Start(func() {
		defer func() { log = append(log, "deferred") }()
		c.Yield()
		log = append(log, "never")
	})
	c.Stop()
	require.Equal(t, []string{"deferred"}, log)

	// Like wazero: a job recovers, continues, and is stopped at its next Yield.
	c.Start(func() {
		func() {
			defer func() { log = append(log, recover().(error).Error()) }()
			c.Yield()
		}()
		log = append(log, "goes on")
		c.Yield()
		log = append(log, "never")
	})
	c.Stop()
	require.Equal(t, []string{"deferred", "sim: the coroutine is being stopped", "goes on"}, log)

	c.Stop() // idle: no effect
	done := false
	c.Start(func() { c.Yield(); done = true })
	require.True(t, c.Resume(), "stopping is over")
	require.True(t, done)
}

func TestCoroSurvivesGoexit(t *testing.T) {
	c := NewCoro()
	ended := make(chan bool)
	go func() {
		defer close(ended)
		c.Start(runtime.Goexit)
		t.Error("Goexit of the job must end the caller, as a test's FailNow needs")
	}()
	<-ended
	require.False(t, c.Idle())
	c.Close()
}

func TestCoroMisuse(t *testing.T) {
	c := NewCoro()
	defer c.Close()
	require.Panics(t, func() { c.Resume() })
	require.Panics(t, c.Yield)
	c.Start(func() {
		require.Panics(t, func() { c.Start(func() {}) })
		require.Panics(t, c.Stop)
		c.Yield()
	})
	require.Panics(t, func() { c.Start(func() {}) })
}

func TestCorosNest(t *testing.T) {
	outer, inner := NewCoro(), NewCoro()
	defer outer.Close()
	defer inner.Close()
	outer.Start(func() {
		inner.Start(inner.Yield)
		outer.Yield()
		inner.Resume()
	})
	require.False(t, inner.Idle())
	require.True(t, outer.Resume())
	require.True(t, inner.Idle())
}

func TestCoroPool(t *testing.T) {
	var pool CoroPool
	a := pool.Get()
	b := pool.Get()
	require.NotSame(t, a, b)
	unwound := false
	a.Start(func() {
		defer func() { unwound = true }()
		a.Yield()
	})
	pool.Put(a)
	require.True(t, unwound)
	require.Same(t, a, pool.Get())
	pool.Put(a)
	pool.Put(b)
	pool.Close()
}

func TestCoroAllocatesNothing(t *testing.T) {
	var pool CoroPool
	defer pool.Close()
	var c *Coro
	job := func() { c.Yield() }
	require.Zero(t, testing.AllocsPerRun(100, func() {
		c = pool.Get()
		c.Start(job)
		c.Resume()
		pool.Put(c)
	}))
}
