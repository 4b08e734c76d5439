package pspin

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/handlers"
	examples "github.com/spinsim/spinsim/internal/pspin"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

var pings = &experiment.Experiment{
	Name:  "fpspin",
	Short: "cycles and round trips of packets that handlers like FPsPIN's examples answer",
	Long: `Rank 0 sends rank 1 a packet of ICMP or UDP and waits for the answer, which a handler makes of the packet itself. Then it does so once more. The first
handler in a cluster is cold. The packets have headers of Ethernet and IP, and each answer is compared with what it ought to be, checksum included.
  icmp_ping       echo, with the checksum of FPsPIN's header: each word in the host's order, its carry added at once
  icmp_ping_fast  the same with a sum that is folded once, as FPsPIN's example has it since May 2024
  udp_ping        addresses and ports change places: no checksum
The round trip has the time of rank 0's host, of PCIe and of Corundum, all in nic.overhead and host.poll: one published number sets it (docs/pspin.md).`,
	Source:   "FPsPIN, HOTI'25",
	Profiles: []string{"fpspin"},
	Smoke:    []experiment.Values{{}},
	Axes: []experiment.Axis{
		{Name: handlerAxis, Kind: report.Text, Of: examples.PingNames(), Help: "handler: the name of FPsPIN's example"},
		{Name: "data", Kind: report.Size, Least: "0", Most: "1472", Default: "56,216,616,1016,1416", Help: "bytes of data behind the headers of 42 bytes"},
	},
	Columns: []report.Column{
		{Name: "warm", Unit: "cycles", Kind: report.Count, Help: "cycles of a run whose code is in the cache"},
		{Name: "cold", Unit: "cycles", Kind: report.Count, Help: "cycles of the first run in a cluster"},
		{Name: "device", Unit: "us", Kind: report.Duration, Scale: "latency", Help: "from the request for the handler until the device knows of its end"},
		{Name: roundTrip, Unit: "us", Kind: report.Duration, Scale: "latency", Help: "from rank 0's call until its host has seen the answer, warm"},
	},
	Run: runPings,
	Memory: func(p *experiment.Point) int64 {
		return p.Footprint(2) + 8<<20
	},
	Slots: func(p *experiment.Point) []*handlers.Slot {
		return []*handlers.Slot{examples.Slot(p.Text(handlerAxis))}
	},
	Undivided: "its columns are the parts of a round trip",
	Untraced:  true,
	Ledger:    ledgerPings(),
	View: experiment.View{
		Value: roundTrip, Series: []string{handlerAxis}, X: "data",
		Summary: []string{experiment.ProfileColumn, handlerAxis, "data", "warm", "cold", "device", roundTrip},
	},
	Notes: []string{
		"FPsPIN's compiler knows Xpulp's loops without branches, ours does not: a round of a sum takes longer here (docs/pspin.md).",
		"What the host, PCIe and Corundum take is one number for all sizes, of ICMP.",
	},
}

const roundTrip = "round_trip"

// Offsets in a packet and lengths of its headers.
const (
	ethernetBytes = 14
	ipBytes       = 20
	transportAt   = ethernetBytes + ipBytes
	headerBytes   = transportAt + 8 // of ICMP or UDP
	icmp, udp     = 1, 17           // protocols
)

// pingRun is a running simulation.
type pingRun struct {
	*experiment.Point
	steps
	trips []sim.Time
}

// runPings measures a point.
func runPings(ctx context.Context, p *experiment.Point) (experiment.Values, error) {
	w := &pingRun{Point: p}
	cfg := p.Config(ctx, 2)
	cfg.Watch = w.watch
	_, err := experiment.Simulate(ctx, cfg, func(c *runtime.Cluster) error {
		return errors.Join(c.Spawn(0, "client", w.client), c.Spawn(1, "device", w.device))
	}, func() error { return nil })
	if err != nil {
		return nil, err
	}
	if n := len(w.ended); n != 2 || len(w.requested) != n {
		return nil, fmt.Errorf("%d handlers ended after %d requests, expected 2", n, len(w.requested))
	}
	return experiment.Values{"warm": w.cycles[1], "cold": w.cycles[0], "device": w.ended[1] - w.requested[1], roundTrip: w.trips[1]}, nil
}

// client sends a packet twice, and waits for each answer.
func (w *pingRun) client(proc *runtime.Proc) error {
	packet := w.packet()
	answer := proc.Alloc(len(packet))
	arrived, err := experiment.AppendEntry(proc.NI(), experiment.RequestPT, experiment.RequestBits, answer, nil)
	if err != nil {
		return err
	}
	for i := range 2 {
		proc.SleepUntil(sim.Time(i+1) * apart)
		began := proc.Now()
		if err := experiment.Send(proc, 1, packet); err != nil {
			return err
		}
		if err := arrived.Wait((i + 1) * len(packet)); err != nil {
			return err
		}
		w.trips = append(w.trips, proc.Now()-began)
		if want := answerTo(packet); !bytes.Equal(want, answer.Snapshot()) {
			return fmt.Errorf("answer to packet %d is %x, expected %x", i, answer.Snapshot(), want)
		}
	}
	return nil
}

// packet is a packet of ICMP or UDP as it is on the wire.
func (w *pingRun) packet() []byte {
	b := make([]byte, headerBytes+w.Int("data"))
	experiment.Pattern(b, w.Seed)
	protocol := byte(icmp)
	if w.Text(handlerAxis) == examples.UDPPing {
		protocol = udp
	}
	ip := b[ethernetBytes:]
	ip[0], ip[9] = 0x45, protocol
	binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)))
	if protocol == icmp {
		b[transportAt], b[transportAt+1] = 8, 0 // echo request
	}
	return b
}

// answerTo is the answer to a packet (RFC 792 for ICMP).
func answerTo(packet []byte) []byte {
	b := bytes.Clone(packet)
	swap := func(at, n int) {
		copy(b[at:], packet[at+n:at+2*n])
		copy(b[at+n:], packet[at:at+n])
	}
	swap(0, 6)
	swap(ethernetBytes+12, 4)
	if packet[ethernetBytes+9] == udp {
		swap(transportAt, 2)
		return b
	}
	b[transportAt] = 0 // echo reply
	binary.BigEndian.PutUint16(b[transportAt+2:], 0)
	binary.BigEndian.PutUint16(b[transportAt+2:], checksum(b[transportAt:]))
	return b
}

// checksum is the Internet checksum (RFC 1071).
func checksum(b []byte) uint16 {
	sum := uint32(0)
	for i, v := range b {
		sum += uint32(v) << (8 * (1 - i%2))
	}
	for sum > 0xffff {
		sum = sum&0xffff + sum>>16
	}
	return ^uint16(sum)
}

// device runs the handlers.
func (w *pingRun) device(proc *runtime.Proc) error {
	_, err := installed(w.Point, proc, proc.Alloc(headerBytes+w.Int("data")))
	return err
}
