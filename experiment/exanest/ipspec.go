package exanest

import (
	"fmt"

	network "github.com/spinsim/spinsim/exanet/ip"
	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/report"
)

// ipSpec is a value of exanet/ip/ip.yaml that TR-488 leaves open and that is an
// axis of ip.
type ipSpec struct {
	axis, field string
	kind        report.Kind
	most        string
	help        string
	of          func(s *network.Spec) int64 // its default
}

var ipSpecs = []ipSpec{
	{"packet-out", "packet_out", report.Duration, "1ms", "the kernel's code for a packet on its way out", func(s *network.Spec) int64 { return int64(s.PacketOut) }},
	{"packet-in", "packet_in", report.Duration, "1ms", "the kernel's code for a packet that has come", func(s *network.Spec) int64 { return int64(s.PacketIn) }},
	{"syscall", "syscall", report.Duration, "1ms", "a system call, there and back", func(s *network.Spec) int64 { return int64(s.Syscall) }},
	{"wake", "wake", report.Duration, "1ms", "from an event to a program that slept in a system call", func(s *network.Spec) int64 { return int64(s.Wake) }},
	{"interrupt", "management.interrupt", report.Duration, "1ms", "from the arrival of a frame of the Ethernet to its driver's code", func(s *network.Spec) int64 { return int64(s.Management.Interrupt) }},
	{"spin", "spin", report.Duration, "10ms", "how long an idle service polls before it sleeps", func(s *network.Spec) int64 { return int64(s.Spin) }},
	{"sleep", "sleep", report.Duration, "100us", "length of its first sleep; the next are twice as long", func(s *network.Spec) int64 { return int64(s.Sleep) }},
	{"batch-packets", "batch_packets", report.Count, "65536", "packets of a transfer at most", func(s *network.Spec) int64 { return int64(s.BatchPackets) }},
	{"ring", "ring", report.Size, "16MiB", "a ring of a service, one for each peer and direction", func(s *network.Spec) int64 { return int64(s.Ring) }},
}

// ipSpecAxes are the axes of ip for values of ip.yaml, with its values as
// defaults.
func ipSpecAxes() (axes []experiment.Axis) {
	s, err := network.Load()
	if err != nil {
		panic("experiment: " + err.Error()) //lint:panic programmer's mistake: tests load the file
	}
	for _, f := range ipSpecs {
		axes = append(axes, experiment.Axis{Name: f.axis, Kind: f.kind, Least: "1", Most: f.most, Default: f.text(f.of(s)), Help: f.help + " (exanet/ip/ip.yaml)"})
		if f.kind == report.Duration {
			axes[len(axes)-1].Least = "1ps"
		}
	}
	return axes
}

func ipSpecNames() (names []string) {
	for _, f := range ipSpecs {
		names = append(names, f.axis)
	}
	return names
}

// text writes a value as ip.yaml and the axis read it.
func (f *ipSpec) text(v int64) string {
	switch f.kind {
	case report.Duration:
		return fmt.Sprintf("%dps", v)
	case report.Size:
		return fmt.Sprintf("%dB", v)
	}
	return fmt.Sprint(v)
}

// ipSpecSet is what a point changes in ip.yaml.
func ipSpecSet(p *experiment.Point) (set []string) {
	for _, f := range ipSpecs {
		var v int64
		if f.kind == report.Duration {
			v = int64(p.Time(f.axis))
		} else {
			v = int64(p.Int(f.axis))
		}
		set = append(set, f.field+"="+f.text(v))
	}
	return set
}
