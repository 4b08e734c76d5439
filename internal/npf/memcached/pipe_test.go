package memcached_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/internal/npf/memcached"
	"github.com/spinsim/spinsim/internal/npf/memcached/memaslap"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// pipe is a connection between processes of a node, without a network.
type pipe struct {
	b      []byte
	closed bool
	reader *runtime.Proc
}

// side is an end of two pipes.
type side struct {
	in, out *pipe
	room    int
}

func (s *side) Readable() (n int, ended bool) { return len(s.in.b), s.in.closed }

func (s *side) Read(b []byte) int {
	n := copy(b, s.in.b)
	s.in.b = s.in.b[n:]
	return n
}

func (s *side) Write(b []byte) int {
	n := min(len(b), s.room-len(s.out.b))
	s.out.b = append(s.out.b, b[:n]...)
	if s.out.reader != nil {
		s.out.reader.Thread().Wake()
	}
	return n
}

func (s *side) Close() {
	s.out.closed = true
	if s.out.reader != nil {
		s.out.reader.Thread().Wake()
	}
}

// bench is a server with clients on a node.
type bench struct {
	profile string
	set     []string
	config  memcached.Config
	loads   []memaslap.Config
	ops     int64 // of each client
	// stores the windows before time begins
	fill bool
	// called on the server before it serves
	begin func(p *runtime.Proc, s *memcached.Server)

	clients []*memaslap.Client
	server  *memcached.Server
	proc    *runtime.Proc
	took    sim.Time
}

func (b *bench) run(t testing.TB) *runtime.Cluster {
	prof, err := profile.Load(b.profile, b.set...)
	require.NoError(t, err)
	c, err := runtime.NewCluster(runtime.Config{Profile: prof, Nodes: 1})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	var servers, users []*side
	for i, load := range b.loads {
		up, down := &pipe{}, &pipe{}
		servers, users = append(servers, &side{up, down, 64 << 10}), append(users, &side{down, up, 64 << 10})
		client, err := memaslap.New(load, i)
		require.NoError(t, err)
		b.clients = append(b.clients, client)
	}
	require.NoError(t, c.Spawn(0, "server", func(p *runtime.Proc) error { return b.serve(p, servers) }))
	for i := range users {
		require.NoError(t, c.Spawn(0, "client", func(p *runtime.Proc) error { return b.load(p, users[i], b.clients[i]) }))
	}
	require.NoError(t, c.Run(context.Background()))
	b.took = c.Engine().Now()
	return c
}

func (b *bench) serve(p *runtime.Proc, conns []*side) error {
	s, err := memcached.NewServer(p, b.config)
	if err != nil {
		return err
	}
	b.server, b.proc = s, p
	if b.fill {
		for _, c := range b.clients {
			if err := c.Each(func(key, value []byte) error { s.Store.Set(key, value); return nil }); err != nil {
				return err
			}
		}
	}
	s.Begin()
	if b.begin != nil {
		b.begin(p, s)
	}
	var sessions []*memcached.Session
	for _, c := range conns {
		c.in.reader = p
		sessions = append(sessions, memcached.NewSession(s.Store))
	}
	for left := len(conns); left > 0; {
		for i, x := range sessions {
			if x != nil && s.Advance(x, conns[i]) {
				sessions[i] = nil
				left--
			}
		}
		if left > 0 {
			p.Thread().Wait("clients")
		}
	}
	return nil
}

func (b *bench) load(p *runtime.Proc, c *side, x *memaslap.Client) error {
	c.in.reader = p
	buf := make([]byte, 5000)
	for {
		if x.Stats.Ops() >= b.ops {
			x.Stop()
		}
		x.Sent(c.Write(x.Output()))
		if x.Idle() {
			c.Close()
			return x.Err()
		}
		if n := c.Read(buf); n > 0 {
			x.Feed(buf[:n])
		} else if _, over := c.Readable(); over {
			return nil
		} else {
			p.Thread().Wait("answers")
		}
		if x.Err() != nil {
			return x.Err()
		}
	}
}
