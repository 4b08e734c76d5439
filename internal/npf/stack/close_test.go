package stack_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers/backupring"
	"github.com/spinsim/spinsim/inet"
	"github.com/spinsim/spinsim/internal/npf/stack"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// lodgers open and close stacks repeatedly, in the middle of their work.
type lodgers struct {
	t         *testing.T
	network   *stack.Network
	providers [2]*backupring.Provider
	lengths   [2]int // bytes sent and received
	accepted  int
	left      bool // the client has left
}

const stays = 100 // stacks of the client

// server opens stacks until the client has left. That takes some hundred of
// them.
func (l *lodgers) server(p *runtime.Proc) error {
	for i := 0; !l.left; i++ {
		require.Less(l.t, i, 100*stays, "the client does not leave")
		if err := l.stays(p, 0, "lwip", stack.Options{Addr: serverAddr, Ring: backupring.RingOptions{Size: 16, BitmapSize: 64}}, func(s *stack.Stack) error {
			listener, err := s.Listen(echoPort, 4)
			if err != nil {
				return err
			}
			b := make([]byte, 100)
			for until := p.Now() + sim.Time(50+i%7*30)*sim.Microsecond; p.Now() < until; {
				if err := s.Wait(until); err != nil {
					return err
				}
				for x := listener.Accept(); x != nil; x = listener.Accept() {
					l.accepted++
				}
				for x := s.Next(); x != nil; x = s.Next() {
					l.lengths[1] += x.Read(b)
				}
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// client opens one stack after the other, each with a connection.
func (l *lodgers) client(p *runtime.Proc) error {
	for i := range stays {
		if err := l.stays(p, 1, "linux", stack.Options{Addr: clientAddr, Ring: backupring.RingOptions{Size: 16, Pinned: true}}, func(s *stack.Stack) error {
			p.Sleep(sim.Time(i%5) * 10 * sim.Microsecond)
			x, err := s.Dial(serverAddr, echoPort)
			if err != nil {
				return err
			}
			for until := p.Now() + sim.Time(i%11*10)*sim.Microsecond; p.Now() < until; {
				if err := s.Wait(until); err != nil {
					return err
				}
				if x.Established() {
					l.lengths[0] += x.Write(make([]byte, 1000))
				}
			}
			return nil
		}); err != nil {
			return err
		}
	}
	l.left = true
	return nil
}

// stays is the life of a stack of a process: opening, some work, closing.
func (l *lodgers) stays(p *runtime.Proc, node int, set string, o stack.Options, work func(s *stack.Stack) error) error {
	spec, err := inet.Load(set)
	if err != nil {
		return err
	}
	resident := p.OS().Resident()
	o.Spec, o.Send = *spec, 8
	s, err := l.network.Open(p, l.providers[node], o)
	if err != nil {
		return err
	}
	if err := errors.Join(work(s), s.Close()); err != nil {
		return err
	}
	require.LessOrEqual(l.t, p.OS().Resident(), resident, "its memory is given back")
	require.Zero(l.t, s.Host().Conns())
	require.ErrorIs(l.t, s.Close(), stack.ErrClosed)
	require.ErrorIs(l.t, s.Wait(p.Now()), stack.ErrClosed)
	require.ErrorIs(l.t, s.Flush(), stack.ErrClosed)
	_, err = s.Dial(serverAddr, echoPort)
	require.ErrorIs(l.t, err, stack.ErrClosed)
	_, err = s.Listen(echoPort, 1)
	require.ErrorIs(l.t, err, stack.ErrClosed)
	_, err = s.UDP(echoPort)
	require.ErrorIs(l.t, err, stack.ErrClosed)
	return nil
}

// A process opens and closes a hundred stacks in turn, on an interface with
// handles for only a few. Closing a stack frees its resources, also in the
// middle of connections, with frames in flight in both directions. The peer of
// a closed stack gets a reset or no answer.
func TestStacksAreClosed(t *testing.T) {
	prof, err := profile.Load("eth-npf", "limits.max_cts=12", "limits.max_mds=12", "limits.max_entries=12", "smmu.stale=poison", "os.gup_fault=10us")
	require.NoError(t, err)
	c, err := runtime.NewCluster(runtime.Config{Profile: prof, Nodes: 2})
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	lib, err := backupring.Load(c)
	require.NoError(t, err)
	l := &lodgers{t: t, network: stack.New(lib)}
	for i := range l.providers {
		l.providers[i], err = lib.Serve(i, backupring.Options{Slots: 32})
		require.NoError(t, err)
	}
	require.NoError(t, c.SpawnService(0, "server", l.server))
	require.NoError(t, c.Spawn(1, "client", l.client))
	require.NoError(t, c.Run(context.Background()))
	require.NoError(t, c.Node(0).Kernel().Audit())
	require.Zero(t, c.Node(0).Kernel().Stats().PinsHeld)
	require.Greater(t, l.accepted, stays/10)
	require.Positive(t, l.lengths[0])
	require.Positive(t, l.lengths[1])
}
