package netstack

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/faketime"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/channel"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/waiter"

	"github.com/spinsim/spinsim/inet"
	"github.com/spinsim/spinsim/sim"
)

var (
	here  = inet.Addr{10, 0, 0, 1}
	there = inet.Addr{10, 0, 0, 2}
)

// step is the resolution of gVisor's times: virtual time advances by it between
// collections of gVisor's segments.
const step = 500 * sim.Microsecond

// patience is how long, in real time, gVisor's goroutine may take for a
// segment.
const patience = time.Minute

// end is gVisor's end of a connection, driven by a script.
type end struct {
	t      *testing.T
	clock  *faketime.ManualClock
	link   *channel.Endpoint
	ep     tcpip.Endpoint
	now    sim.Time
	iss    uint32 // the script counts from it
	theirs uint32 // gVisor's own
	began  bool
	probed *atomic.Int64
}

// optionsOfSACK is the bytes that gVisor takes off all segments of a connection
// with SACK: room for four blocks.
const optionsOfSACK = 36

func newEnd(t *testing.T, c inet.Config, iss uint32) *end {
	mtu := c.MSS + inet.HeaderBytes + inet.TCPHeaderBytes
	if c.SACK {
		mtu += optionsOfSACK
	}
	e := &end{t: t, clock: faketime.NewManualClock(), link: channel.New(10_000, uint32(mtu), ""), iss: iss, probed: new(atomic.Int64)}
	s := stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocolProbe(func(*tcp.TCPEndpointState) { e.probed.Add(1) })},
		Clock:              e.clock,
	})
	t.Cleanup(func() { s.Destroy() })
	ok := func(err tcpip.Error) {
		if err != nil {
			require.Fail(t, err.String())
		}
	}
	ok(s.CreateNIC(1, e.link))
	ok(s.AddProtocolAddress(1, tcpip.ProtocolAddress{Protocol: ipv4.ProtocolNumber, AddressWithPrefix: tcpip.AddrFrom4(here).WithPrefix()}, stack.AddressProperties{}))
	s.SetRouteTable([]tcpip.Route{{Destination: header.IPv4EmptySubnet, NIC: 1}})
	sack, least, most, none := tcpip.TCPSACKEnabled(c.SACK), tcpip.TCPMinRTOOption(nanoseconds(c.RTOLeast)), tcpip.TCPMaxRTOOption(nanoseconds(c.RTOMost)), tcpip.TCPRecovery(0)
	nagle := tcpip.TCPDelayEnabled(c.Nagle)
	moderate := tcpip.TCPModerateReceiveBufferOption(false)
	for _, o := range []tcpip.SettableTransportProtocolOption{&sack, &least, &most, &none, &nagle, &moderate} {
		ok(s.SetTransportProtocolOption(tcp.ProtocolNumber, o))
	}
	var err tcpip.Error
	e.ep, err = s.NewEndpoint(tcp.ProtocolNumber, ipv4.ProtocolNumber, &waiter.Queue{})
	ok(err)
	e.ep.SocketOptions().SetReceiveBufferSize(int64(c.ReceiveBuffer), true)
	ok(e.ep.Bind(tcpip.FullAddress{Addr: tcpip.AddrFrom4(here), Port: 1}))
	if err := e.ep.Connect(tcpip.FullAddress{Addr: tcpip.AddrFrom4(there), Port: 2}); err == nil || err.String() != (&tcpip.ErrConnectStarted{}).String() {
		require.Fail(t, "connect", "%v", err)
	}
	return e
}

func nanoseconds(t sim.Time) time.Duration { return time.Duration(t/sim.Nanosecond) * time.Nanosecond }

// advance lets time pass up to a point.
func (e *end) advance(now sim.Time) {
	if now > e.now {
		e.clock.Advance(nanoseconds(now - e.now))
		e.now = now
	}
}

// Deadline is the next step.
func (e *end) Deadline() sim.Time { return e.now + step }

// Expire lets time pass.
func (e *end) Expire(now sim.Time) { e.advance(now) }

// Input gives a segment to the stack and waits until gVisor's goroutine has
// processed it.
func (e *end) Input(now sim.Time, s *inet.Segment) {
	e.advance(now)
	c := *s
	c.SrcPort, c.DstPort = 2, 1
	c.Ack += e.theirs - e.iss
	for i := range c.Told {
		c.Blocks[i].From += e.theirs - e.iss
		c.Blocks[i].To += e.theirs - e.iss
	}
	before, state := e.probed.Load(), e.ep.State()
	p := inet.Packet{Src: there, Dst: here, Protocol: inet.ProtocolTCP, Payload: c.Append(nil, there, here)}
	e.link.InjectInbound(ipv4.ProtocolNumber, stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithData(p.Append(nil))}))
	for limit := time.Now().Add(patience); e.probed.Load() == before && e.ep.State() == state && e.link.NumQueued() == 0; runtime.Gosched() {
		if time.Now().After(limit) {
			require.Fail(e.t, "gVisor has said nothing of a segment", "at %v: %+v", now, s)
		}
	}
	locked := e.ep.(*tcp.Endpoint)
	locked.LockUser() // the processor holds this lock until it has sent its segments
	locked.UnlockUser()
}

// Output collects the sent segments.
func (e *end) Output(_ sim.Time, most int, emit func(*inet.Segment)) bool {
	for range most {
		p := e.link.Read()
		if p == nil {
			return false
		}
		view := p.ToView()
		packet, err := inet.Parse(view.AsSlice())
		require.NoError(e.t, err)
		s, err := inet.ParseTCP(&packet)
		require.NoError(e.t, err)
		if !e.began {
			e.began, e.theirs = true, s.Seq
		}
		s.Seq += e.iss - e.theirs
		emit(&s)
		view.Release()
		p.DecRef()
	}
	return true
}

// Write writes bytes.
func (e *end) Write(b []byte) int {
	n, err := e.ep.Write(bytes.NewReader(b), tcpip.WriteOptions{})
	if err != nil {
		return 0 // it is not established
	}
	return int(n)
}

// Read reads bytes.
func (e *end) Read(b []byte) int {
	n, err := e.ep.Read(io.Discard, tcpip.ReadOptions{})
	if err != nil {
		require.Fail(e.t, err.String())
	}
	return min(n.Count, len(b))
}

// Close sends a FIN.
func (e *end) Close() {
	if err := e.ep.Shutdown(tcpip.ShutdownWrite); err != nil {
		require.Fail(e.t, err.String())
	}
}

// Release closes.
func (e *end) Release(sim.Time) { e.ep.Close() }

// Abort resets.
func (e *end) Abort(sim.Time) { e.ep.Abort() }

// Err returns the failure of the connection.
func (e *end) Err() error {
	if s := tcp.EndpointState(e.ep.State()); s == tcp.StateError {
		return fmt.Errorf("state %v", s)
	}
	return nil
}
