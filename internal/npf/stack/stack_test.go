package stack_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers/backupring"
	"github.com/spinsim/spinsim/inet"
	"github.com/spinsim/spinsim/internal/npf/stack"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

var (
	serverAddr = inet.Addr{10, 0, 0, 1}
	clientAddr = inet.Addr{10, 0, 0, 2}
)

const echoPort = 7

// pair is a server on node 0 and a client on node 1.
type pair struct {
	loss   float64                // share of the packets that the network loses
	ring   backupring.RingOptions // the server's
	send   int
	seed   uint64
	server func(p *runtime.Proc, s *stack.Stack) error
	client func(p *runtime.Proc, s *stack.Stack) error

	stacks [2]*stack.Stack
	stats  backupring.Stats // of the server's ring, at the end
	faults int64            // of its interface
	end    sim.Time
}

func (w *pair) run(t *testing.T) {
	prof, err := profile.Load("eth-npf", "smmu.stale=poison", fmt.Sprintf("fabric.faults={loss: %v}", w.loss))
	require.NoError(t, err)
	c, err := runtime.NewCluster(runtime.Config{Profile: prof, Nodes: 2, Seed: w.seed})
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	lib, err := backupring.Load(c)
	require.NoError(t, err)
	network := stack.New(lib)
	var providers [2]*backupring.Provider
	for i := range providers {
		providers[i], err = lib.Serve(i, backupring.Options{Slots: 256})
		require.NoError(t, err)
	}
	open := func(p *runtime.Proc, i int, set string, o stack.Options) (err error) {
		spec, err := inet.Load(set)
		if err != nil {
			return err
		}
		o.Spec, o.Send = *spec, w.send
		w.stacks[i], err = network.Open(p, providers[i], o)
		return err
	}
	require.NoError(t, c.SpawnService(0, "server", func(p *runtime.Proc) error {
		if err := open(p, 0, "lwip", stack.Options{Addr: serverAddr, Ring: w.ring}); err != nil {
			return err
		}
		return w.server(p, w.stacks[0])
	}))
	require.NoError(t, c.Spawn(1, "client", func(p *runtime.Proc) error {
		if err := open(p, 1, "linux", stack.Options{Addr: clientAddr, Ring: backupring.RingOptions{Size: 256, Pinned: true}}); err != nil {
			return err
		}
		defer func() { w.end = p.Now() }()
		return w.client(p, w.stacks[1])
	}))
	require.NoError(t, c.Run(context.Background()))
	failures, count := c.Failures()
	if w.loss == 0 {
		require.Zero(t, count, failures)
	} else {
		require.Positive(t, count)
	}
	require.NoError(t, c.Node(0).Kernel().Audit())
	w.stats, w.faults = w.stacks[0].Ring().Stats(), c.Node(0).Driver().Stats().Faults
}

// echo sends back all bytes that arrive.
func echo(p *runtime.Proc, s *stack.Stack) error {
	l, err := s.Listen(echoPort, 16)
	if err != nil {
		return err
	}
	b := make([]byte, 4096)
	for {
		if err := s.Wait(runtime.Forever); err != nil {
			return err
		}
		for c := l.Accept(); c != nil; c = l.Accept() {
			c.Of = true
		}
		for c := s.Next(); c != nil; c = s.Next() {
			if c.Of == nil {
				return fmt.Errorf("a connection that nobody has accepted")
			}
			if c.Err() != nil { // the client ended before the end was acknowledged
				c.Forget()
				continue
			}
			for c.Room() > 0 {
				n := c.Read(b[:min(len(b), c.Room())])
				if c.Write(b[:n]); n == 0 {
					break
				}
			}
			if n, ended := c.Readable(); n == 0 && ended {
				c.Close()
			}
		}
	}
}

// stream returns n bytes of a stream from its byte at on.
func stream(of, at, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(of*57 + (at+i)*7>>3)
	}
	return b
}

// call is a connection of a client of echo.
type call struct {
	number, sent, got int
	closed            bool
}

// calls sends streams and compares the bytes that come back.
func calls(conns, bytes int) func(p *runtime.Proc, s *stack.Stack) error {
	return func(p *runtime.Proc, s *stack.Stack) error {
		p.Sleep(10 * sim.Microsecond) // the server listens
		var list []*stack.Conn
		for i := range conns {
			c, err := s.Dial(serverAddr, echoPort)
			if err != nil {
				return err
			}
			c.Of = &call{number: i}
			list = append(list, c)
		}
		b := make([]byte, 3000)
		for done := 0; done < conns; {
			if err := s.Wait(runtime.Forever); err != nil {
				return err
			}
			done = 0
			for _, c := range list {
				x := c.Of.(*call)
				if c.Err() != nil {
					return c.Err()
				}
				for n := 1; n > 0 && x.sent < bytes; x.sent += n {
					n = c.Write(stream(x.number, x.sent, min(len(b), bytes-x.sent)))
				}
				for n := c.Read(b); n > 0; n = c.Read(b) {
					if string(b[:n]) != string(stream(x.number, x.got, n)) {
						return fmt.Errorf("connection %d: other bytes than were sent from %d on", x.number, x.got)
					}
					x.got += n
				}
				if x.sent == bytes && !x.closed {
					x.closed = true
					c.Close()
				}
				if n, ended := c.Readable(); ended && n == 0 {
					if x.got != bytes {
						return fmt.Errorf("connection %d: ended after %d bytes", x.number, x.got)
					}
					done++
				}
			}
		}
		return nil
	}
}

// Every byte comes back, in order, for all treatments of absent memory by the
// ring, and over a network that loses 5% of the packets. A ring that keeps
// frames causes no time-outs; one that drops them does.
func TestEcho(t *testing.T) {
	rings := map[string]backupring.RingOptions{
		"drop": {Size: 32, Buffer: 4096}, "backup": {Size: 32, BitmapSize: 256, Buffer: 4096}, "pinned": {Size: 32, Buffer: 4096, Pinned: true},
	}
	ends := map[string]sim.Time{}
	for _, name := range []string{"drop", "backup", "pinned"} {
		for _, loss := range []float64{0, 0.05} {
			t.Run(fmt.Sprint(name, " ", loss), func(t *testing.T) {
				w := pair{loss: loss, ring: rings[name], server: echo, client: calls(3, 60_000), seed: 5}
				w.run(t)
				stats := w.stats
				t.Logf("%v %+v %+v %+v", w.end, w.stacks[0].Stats, stats, w.stacks[1].Stats)
				require.Equal(t, name != "pinned", stats.Absent > 0)
				require.Equal(t, name == "drop", stats.Dropped > stats.NoBuffer)
				require.Equal(t, name == "backup", stats.Backed > 0)
				if loss == 0 {
					ends[name] = w.end
				}
			})
		}
	}
	require.Less(t, ends["backup"], sim.Second, "no time-out that a connection begins with")
	require.Less(t, ends["pinned"], sim.Second)
	require.Greater(t, ends["drop"], sim.Second, "a lost SYN waits a second")
}

// Pages of sent frames are not in the interface's tables before their first
// use. The first frame of each new page waits for the kernel, 220 us, once.
// Nothing is lost. With a pinned ring these pages are pinned, too.
func TestWhatIsSentFromComesByFaults(t *testing.T) {
	var ends [2]sim.Time
	for i, pinned := range []bool{true, false} {
		w := pair{send: 8, ring: backupring.RingOptions{Size: 64, BitmapSize: 64, Buffer: 2048, Pinned: pinned}, client: calls(1, 400), seed: 5}
		w.server = func(p *runtime.Proc, s *stack.Stack) error {
			if !pinned {
				s.Ring().Memory().Raw() // page faults come only from sent frames
			}
			return echo(p, s)
		}
		w.run(t)
		faults := w.faults
		require.Zero(t, w.stats.Absent)
		if ends[i] = w.end; pinned {
			require.Zero(t, faults)
			continue
		}
		pages := int64(8*1500+4095) / 4096
		require.Positive(t, faults)
		require.LessOrEqual(t, faults, pages)
		require.InDelta(t, float64(sim.Time(faults)*220*sim.Microsecond), float64(ends[1]-ends[0]), float64(sim.Time(faults)*20*sim.Microsecond))
	}
}

// An interface with room for one frame sends the frames one after the other.
// Nothing is lost or overwritten.
func TestTheInterfaceIsFull(t *testing.T) {
	w := pair{send: 1, ring: backupring.RingOptions{Size: 32, Pinned: true}, server: echo, client: calls(2, 40_000)}
	w.run(t)
	require.Positive(t, w.stacks[1].Stats.Full)
}

// A program waits for datagrams, for other events, and for a time.
func TestOtherEvents(t *testing.T) {
	var came string
	w := pair{ring: backupring.RingOptions{Size: 32, BitmapSize: 32}}
	w.server = func(_ *runtime.Proc, s *stack.Stack) error {
		u, err := s.UDP(53)
		if err != nil {
			return err
		}
		for {
			if err := s.Wait(runtime.Forever); err != nil {
				return err
			}
			for d, is := u.Receive(); is; d, is = u.Receive() {
				if err := u.Send(d.From, d.Port, append([]byte("re: "), d.Data...)); err != nil {
					return err
				}
			}
		}
	}
	w.client = func(p *runtime.Proc, s *stack.Stack) error {
		u, err := s.UDP(1053)
		require.NoError(t, err)
		_, err = s.UDP(1053)
		require.ErrorIs(t, err, inet.ErrInUse)
		require.ErrorIs(t, u.Send(serverAddr, 53, make([]byte, 1473)), inet.ErrTooLong)
		p.Sleep(10 * sim.Microsecond)
		require.NoError(t, u.Send(inet.Addr{1, 2, 3, 4}, 53, nil))
		require.NoError(t, u.Send(serverAddr, 53, []byte("hello")))
		require.NoError(t, s.Wait(runtime.Forever))
		d, is := u.Receive()
		require.True(t, is)
		came = string(d.Data)
		now := p.Now()
		require.NoError(t, s.Wait(now+sim.Millisecond))
		require.GreaterOrEqual(t, p.Now(), now+sim.Millisecond)
		ct, err := p.NI().Objects().CTAlloc()
		require.NoError(t, err)
		require.NoError(t, p.NI().Objects().CTInc(ct, portals.CTEvent{Success: 2}))
		now = p.Now()
		require.NoError(t, s.Wait(now+sim.Millisecond, stack.Other{Counter: ct, Value: 2}))
		require.Less(t, p.Now(), now+sim.Microsecond)
		require.NoError(t, s.Wait(now+sim.Millisecond, stack.Other{Counter: ct, Value: 3}))
		require.GreaterOrEqual(t, p.Now(), now+sim.Millisecond)
		return nil
	}
	w.run(t)
	require.Equal(t, "re: hello", came)
	require.Equal(t, int64(1), w.stacks[1].Stats.Unroutable)
}
