package exanet_test

import (
	"fmt"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/exanet"
	"github.com/spinsim/spinsim/handlers/mailbox"
	"github.com/spinsim/spinsim/handlers/rdma"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

func TestSizes(t *testing.T) {
	require.EqualValues(t, mailbox.PeerSize, unsafe.Sizeof(mailbox.Peer{}))
	require.EqualValues(t, mailbox.Word, unsafe.Sizeof(mailbox.Entry{}))
	require.Zero(t, unsafe.Sizeof(mailbox.Channel{})%8)
}

// idle is a program with an interface and nothing to do.
func (c *cluster) idle(rank int, pdid exanet.PDID, o exanet.Options) **exanet.Interface {
	var page *exanet.Interface
	c.spawn(rank, pdid, func(p *runtime.Proc) (err error) {
		page, err = c.system.Open(p, o)
		return err
	})
	return &page
}

// A message that cannot be delivered gives its sender the reason. The channel
// is then free for other messages.
func TestFailures(t *testing.T) {
	c := newCluster(t, 4, nil, "fabric.faults.down=[{node: 3, from: 0ns, to: 1s}]")
	fast := exanet.Options{State: map[string]any{"timeout": 10000, "retries": 3}}
	same, other, down := c.idle(1, 1, fast), c.idle(2, 7, fast), c.idle(3, 1, fast)
	var page *exanet.Interface
	c.spawn(0, 1, func(p *runtime.Proc) (err error) {
		if page, err = c.system.Open(p, fast); err != nil {
			return err
		}
		p.SleepUntil(sim.Microsecond)
		for range 3 {
			require.ErrorIs(t, page.Send((*other).Address(), []byte("x")), exanet.ErrForeign)
			require.ErrorIs(t, page.Send((*down).Address(), []byte("x")), exanet.ErrTimedOut)
			require.ErrorIs(t, page.Send(exanet.Address{NID: 4, PT: 3}, []byte("x")), exanet.ErrIllegal)
			require.NoError(t, page.Send((*same).Address(), []byte("x")))
		}
		require.ErrorContains(t, page.Send((*same).Address(), make([]byte, 65)), "message of 65 bytes")
		require.ErrorContains(t, page.Launch(4, (*same).Address(), nil), "channel 4")
		require.ErrorContains(t, page.Again(0), "no message that was refused")
		require.NoError(t, page.Launch(0, (*same).Address(), nil))
		require.ErrorIs(t, page.Launch(0, (*same).Address(), nil), exanet.ErrBusy)
		s, err := page.Await(0)
		require.Equal(t, exanet.Acknowledged, s)
		require.Equal(t, "acknowledged", s.String())
		return err
	})
	c.run()
	require.EqualValues(t, 3, (*other).Counts().Received.Foreign)
	require.Zero(t, (*other).Counts().Received.Messages)
	require.EqualValues(t, 4, (*same).Counts().Received.Messages)
	sent := page.Counts().Sent
	require.Equal(t, []uint64{3 * 3, 3, 4, 6}, []uint64{sent.Retransmitted, sent.TimedOut, sent.Acked, sent.Nacked})
}

// A process cannot change its protection domain by storing into its channels,
// and it cannot use the channels of other processes.
func TestForgedDomain(t *testing.T) {
	c := newCluster(t, 2, nil)
	victim := c.idle(1, 7, exanet.Options{})
	var forger *exanet.Interface
	c.spawn(0, 1, func(p *runtime.Proc) (err error) {
		if forger, err = c.system.Open(p, exanet.Options{}); err != nil {
			return err
		}
		md, err := forger.NI().Objects().MDBind(&portals.MD{Start: p.Alloc(64).Addr(), Length: 64})
		if err != nil {
			return err
		}
		p.SleepUntil(sim.Microsecond)
		to := (*victim).Address()
		h := mailbox.Header{Kind: mailbox.KindLaunch, PDID: 7, Length: 64}
		// through its own packetizer, and through the victim's
		for _, packetizer := range []exanet.Address{forger.Address(), to} {
			if err := forger.NI().Put(portals.Put{MD: md, Length: 64, Target: portals.PhysID(packetizer.NID, packetizer.PID), PT: packetizer.PT - 1, MatchBits: h.Bits(), HdrData: mailbox.Destination(to.NID, to.PID, to.PT)}); err != nil {
				return err
			}
		}
		return nil
	})
	c.run()
	got := (*victim).Counts()
	require.EqualValues(t, 1, got.Received.Foreign)
	require.EqualValues(t, 1, got.Sent.Strange)
	require.Zero(t, got.Received.Messages)
	require.EqualValues(t, 1, forger.Counts().Sent.Nacked)
}

// A full mailbox refuses messages. The sender waits until there is room, and no
// message is lost.
func TestFullMailbox(t *testing.T) {
	const messages = 40
	c := newCluster(t, 2, nil)
	var to *exanet.Interface
	var sender *exanet.Interface
	c.spawn(0, 1, func(p *runtime.Proc) (err error) {
		if sender, err = c.system.Open(p, exanet.Options{}); err != nil {
			return err
		}
		p.SleepUntil(sim.Microsecond)
		for i := range messages {
			if err := sender.Send(to.Address(), []byte{byte(i)}); err != nil {
				return err
			}
		}
		return nil
	})
	c.spawn(1, 1, func(p *runtime.Proc) (err error) {
		if to, err = c.system.Open(p, exanet.Options{Depth: 2}); err != nil {
			return err
		}
		b := make([]byte, 64)
		for i := range messages {
			p.Compute(20 * sim.Microsecond)
			m, err := to.Receive(b)
			if err != nil {
				return err
			}
			require.Equal(t, []int{1, i}, []int{m.Bytes, int(b[0])})
		}
		_, found, err := to.Poll(b)
		require.False(t, found)
		return err
	})
	c.run()
	require.Greater(t, to.Counts().Received.Full, uint64(messages))
	require.Equal(t, to.Counts().Received.Full, sender.Counts().Sent.Relaunched)
	require.EqualValues(t, messages, to.Counts().Received.Messages)
}

func TestSystem(t *testing.T) {
	device, err := profile.Load("spin-int")
	require.NoError(t, err)
	other, err := runtime.NewCluster(runtime.Config{Profile: device, Nodes: 1})
	require.NoError(t, err)
	_, err = exanet.Load(other)
	require.EqualError(t, err, "exanet: profile spin-int: hpu.dma_write: initiated, expected landed: what is acknowledged must be in the mailbox")
	require.NoError(t, other.Close())
	c := newCluster(t, 1, nil)
	require.NoError(t, c.Spawn(0, "nobody", func(p *runtime.Proc) error {
		_, err := c.system.Open(p, exanet.Options{})
		require.ErrorContains(t, err, "process nobody of rank 0 is in no protection domain")
		require.NoError(t, c.system.Admit(p, 5))
		require.ErrorContains(t, c.system.Admit(p, 6), "is in protection domain 5")
		for want, o := range map[string]exanet.Options{
			"depth of a mailbox: 3":      {Depth: 3},
			"depth of a mailbox: -1":     {Depth: -1},
			"depth of a mailbox: 131072": {Depth: 1 << 17},
			"state pdid is set by Open":  {State: map[string]any{"pdid": 3}},
			"peers need":                 {State: map[string]any{"peers": 5000}},
			"nonsense":                   {State: map[string]any{"nonsense": 1}},
			"timeout: 0":                 {State: map[string]any{"timeout": 0}},
			"retries":                    {State: map[string]any{"retries": 5000}},
		} {
			_, err := c.system.Open(p, o)
			require.ErrorContains(t, err, want)
		}
		return nil
	}))
	for i := range mailbox.Interfaces + 1 {
		c.spawn(0, 1, func(p *runtime.Proc) error {
			a, err := c.system.Open(p, exanet.Options{Depth: 512})
			if i == mailbox.Interfaces {
				require.ErrorIs(t, err, exanet.ErrNoInterface)
				return nil
			}
			if i == 0 {
				return err
			}
			require.Equal(t, exanet.Address{PID: uint32(i + 1), PT: 3}, a.Address())
			return err
		})
	}
	c.run()
}

// A program that names channels that do not exist, or that opens an interface
// too late or twice, gets an error or no effect.
func TestMisuse(t *testing.T) {
	c := newCluster(t, 1, nil)
	engine, err := rdma.Load(c.Cluster)
	require.NoError(t, err)
	c.spawn(0, 1, func(p *runtime.Proc) error {
		page, err := c.system.Open(p, exanet.Options{})
		require.NoError(t, err)
		_, err = engine.Open(p, rdma.Options{PDID: 1})
		require.NoError(t, err)
		_, err = engine.Open(p, rdma.Options{PDID: 1})
		require.ErrorContains(t, err, "rdma: portal table entry 0, of the page of channels that a process has: ")
		for _, channel := range []int{-1, exanet.Channels, 1 << 40} {
			want := fmt.Sprintf("exanet: channel %d, expected 0 to 3", channel)
			require.EqualError(t, page.Launch(channel, page.Address(), nil), want)
			require.EqualError(t, page.Reason(channel), want)
			_, err := page.Await(channel)
			require.EqualError(t, err, want)
			require.Error(t, page.Again(channel))
			require.Equal(t, exanet.Idle, page.State(channel))
			page.Forget(channel)
		}
		p.Sleep(sim.Microsecond)
		const late = "runtime: process p0 of rank 0 has waited already: this is to be opened before it first waits"
		_, err = c.system.Open(p, exanet.Options{})
		require.EqualError(t, err, "exanet: "+late)
		_, err = engine.Open(p, rdma.Options{PDID: 1})
		require.EqualError(t, err, "rdma: "+late)
		return nil
	})
	c.run()
}

// The sender to a mailbox whose program has ended learns that the mailbox is
// full for good, and not before it is full.
func TestLeftMailbox(t *testing.T) {
	c := newCluster(t, 2, nil)
	var to *exanet.Interface
	c.spawn(1, 1, func(p *runtime.Proc) (err error) {
		if to, err = c.system.Open(p, exanet.Options{Depth: 2}); err == nil {
			to.Leave()
		}
		return err
	})
	c.spawn(0, 1, func(p *runtime.Proc) error {
		page, err := c.system.Open(p, exanet.Options{})
		if err != nil {
			return err
		}
		p.SleepUntil(sim.Microsecond)
		require.Equal(t, exanet.First(1, 0), to.Address())
		for range 2 {
			require.NoError(t, page.Send(to.Address(), nil))
		}
		require.ErrorIs(t, page.Send(to.Address(), nil), exanet.ErrLeft)
		return nil
	})
	c.run()
}

// A process may have several interfaces.
func TestSecondInterface(t *testing.T) {
	c := newCluster(t, 1, nil)
	c.spawn(0, 1, func(p *runtime.Proc) error {
		a, err := c.system.Open(p, exanet.Options{})
		if err != nil {
			return err
		}
		b, err := c.system.Open(p, exanet.Options{})
		if err != nil {
			return err
		}
		if err := a.Send(b.Address(), []byte("to b")); err != nil {
			return err
		}
		var buffer [64]byte
		_, found, err := a.Poll(buffer[:])
		require.NoError(t, err)
		require.False(t, found)
		m, err := b.Receive(buffer[:])
		require.Equal(t, "to b", string(buffer[:m.Bytes]))
		return err
	})
	c.run()
}
