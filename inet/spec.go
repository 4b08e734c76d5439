package inet

import (
	"embed"
	"fmt"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/internal/fields"
	"github.com/spinsim/spinsim/internal/strictyaml"
	"github.com/spinsim/spinsim/sim"
)

//go:embed sets/*.yaml
var sets embed.FS

// Spec is the behaviour of a host's TCP where RFCs leave a choice, and where
// hosts differ from the RFCs. Folder sets has the values of known hosts, each
// with its source. Where zero is allowed, it means no limit or rule, unless the
// field says otherwise.
type Spec struct {
	// RTOInitial is the time-out before the first measurement (RFC 6298 §2.1),
	// RTOLeast to 100 s.
	RTOInitial sim.Time `yaml:"rto_initial"`
	// RTOAfterSYN is the time-out after a handshake that had to repeat its SYN, if
	// RTOInitial is less (RFC 6298 §5.7), at most 100 s; 0: unchanged.
	RTOAfterSYN sim.Time `yaml:"rto_after_syn"`
	// RTOLeast is the least time-out (RFC 6298 §2.4), 1 ps to 100 s.
	RTOLeast sim.Time `yaml:"rto_least"`
	// RTOLeastOfVariance makes RTOLeast the least of the deviation term instead;
	// the round trip is added.
	RTOLeastOfVariance bool `yaml:"rto_least_of_variance"`
	// RTOMost is the limit to which time-outs double (RFC 6298 §5.5), RTOInitial
	// to 100,000 s.
	RTOMost sim.Time `yaml:"rto_most"`
	// RTODoublings is how often a time-out doubles at most, 0 to 100; 0: no limit.
	RTODoublings int `yaml:"rto_doublings"`
	// RTOResets makes every new acknowledgement end the back-off, not only one
	// that is a measurement (RFC 6298 §5.7, Karn).
	RTOResets bool `yaml:"rto_resets"`
	// Tick is the period of coarse timers. Time-outs end at a tick, and
	// measurements are whole ticks, estimated in integers (Jacobson 1988). At most
	// 10 s; 0: timers are exact.
	Tick sim.Time `yaml:"tick"`
	// DelayedAck is the longest delay of an acknowledgement that waits for another
	// segment (RFC 5681 §4.2: below 500 ms), 1 ps to 100 s.
	DelayedAck sim.Time `yaml:"delayed_ack"`
	// DelayedAckTick makes delayed acknowledgements leave at its next multiple. At
	// most 10 s; 0: after DelayedAck.
	DelayedAckTick sim.Time `yaml:"delayed_ack_tick"`
	// AckPushed makes the receiver acknowledge a segment with PSH at once.
	AckPushed bool `yaml:"ack_pushed"`

	// InitialWindow is the initial congestion window in segments, 0 to 1,000; 0:
	// RFC 5681 §3.1. It is limited to InitialWindowBytes, or to two segments if
	// they are more (RFC 3390, 6928).
	InitialWindow int `yaml:"initial_window"`
	// InitialWindowBytes is at most 1 GiB.
	InitialWindowBytes int `yaml:"initial_window_bytes" unit:"B"`
	// RestartAfterIdle makes a sender begin with the initial window if it has sent
	// nothing for a time-out (RFC 5681 §4.1).
	RestartAfterIdle bool `yaml:"restart_after_idle"`
	// LimitedTransmit sends new segments after the first two duplicate
	// acknowledgements (RFC 3042).
	LimitedTransmit bool `yaml:"limited_transmit"`
	// SACK offers selective acknowledgements (RFC 2018) and uses them for recovery
	// (RFC 6675).
	SACK bool `yaml:"sack"`
	// TailLossProbe sends a segment before the time-out when no acknowledgement
	// comes, to provoke one (RFC 8985 §7, and of §6 the consequences of a probe
	// that has arrived). It needs SACK.
	TailLossProbe bool `yaml:"tail_loss_probe,omitempty"`
	// TailLossLeast is the least time until the probe, which is otherwise two
	// round trips, at most 100 s.
	TailLossLeast sim.Time `yaml:"tail_loss_least,omitempty"`
	// TailLossAckDelay is the additional wait for a flight of one segment, since
	// its acknowledgement may be delayed (RFC 8985 §7.2, TLP.max_ack_delay), at
	// most 100 s.
	TailLossAckDelay sim.Time `yaml:"tail_loss_ack_delay,omitempty"`
	// WindowScale offers the option (RFC 7323 §2).
	WindowScale bool `yaml:"window_scale"`
	// Nagle makes bytes that do not fill a segment wait for acknowledgements (RFC
	// 9293 §3.7.4).
	Nagle bool `yaml:"nagle"`
	// Challenge challenges resets, SYNs and acknowledgements that may be forged
	// (RFC 5961).
	Challenge bool `yaml:"challenge"`
	// ChallengeInterval is the least time between challenges of a connection
	// (RFC 5961 §7), at most 100 s; 0: none.
	ChallengeInterval sim.Time `yaml:"challenge_interval"`
	// LimitUnacceptable applies ChallengeInterval to answers to segments that are
	// not acceptable, among them and together with challenges. Segments with data
	// or a FIN and no SYN are exempt: they are no answers to ours. Without the
	// limit two sides with different sequence numbers would answer each other for
	// ever.
	LimitUnacceptable bool `yaml:"limit_unacceptable"`

	// SynLinear is how many time-outs of a SYN do not double the next, 0 to 100.
	SynLinear int `yaml:"syn_linear"`
	// SynRetries is how often a SYN is sent again, 0 to 100; 0: for ever.
	SynRetries int `yaml:"syn_retries"`
	// SynAckRetries is how often the answer to a SYN is sent again, 0 to 100; 0:
	// for ever.
	SynAckRetries int `yaml:"syn_ack_retries"`
	// SynReceivedMost is how long SYN-RECEIVED lasts, at most 100,000 s; 0: for ever.
	SynReceivedMost sim.Time `yaml:"syn_received_most"`
	// Retries is how often other segments are sent again, 0 to 100; 0: for ever.
	Retries int `yaml:"retries"`
	// RetriesAsTime makes Retries stand for a time: the time in which a connection
	// with time-out RTOLeast would send again so often.
	RetriesAsTime bool `yaml:"retries_as_time"`
	// LastWait is the wait for an answer to the last retry, at most 100,000 s; 0:
	// a time-out.
	LastWait sim.Time `yaml:"last_wait"`
	// PersistFirst is the time to the first probe of a closed window (RFC 9293
	// §3.8.6.1), at most 100,000 s; 0: a time-out.
	PersistFirst sim.Time `yaml:"persist_first"`
	// PersistMost is the limit to which it doubles, at most 100,000 s; 0: RTOMost.
	PersistMost sim.Time `yaml:"persist_most"`
	// PersistRetries is how many probes without an answer are sent, 0 to 100; 0:
	// for ever.
	PersistRetries int `yaml:"persist_retries"`
	// FinWait2 is how long FIN-WAIT-2 lasts after Release, at most 100,000 s; 0:
	// for ever.
	FinWait2 sim.Time `yaml:"fin_wait_2"`
	// TimeWait is how long TIME-WAIT lasts, two maximum segment lifetimes (RFC
	// 9293 §3.4.2), at most 100,000 s; 0: for ever.
	TimeWait sim.Time `yaml:"time_wait"`

	// SendBuffer is how many bytes a program may write ahead of acknowledgements,
	// 1 B to 1 GiB.
	SendBuffer int `yaml:"send_buffer" unit:"B"`
	// ReceiveBuffer is how many received bytes may wait to be read, 1 B to 1 GiB.
	ReceiveBuffer int `yaml:"receive_buffer" unit:"B"`
}

// Sets returns the names of the known sets of parameters.
func Sets() []string {
	entries, err := sets.ReadDir("sets")
	if err != nil {
		panic(err) //lint:panic they are embedded
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = strings.TrimSuffix(e.Name(), ".yaml")
	}
	return names
}

// Load returns a set of parameters by its name (Sets), with overrides such as
// "retries=5". The error lists everything that is wrong.
func Load(name string, overrides ...string) (*Spec, error) {
	if names := Sets(); !slices.Contains(names, name) {
		return nil, fmt.Errorf("inet: set of parameters %q, expected one of %s", name, strings.Join(names, ", "))
	}
	file := name + ".yaml"
	text, err := sets.ReadFile("sets/" + file)
	if err != nil {
		return nil, fmt.Errorf("inet: %w", err)
	}
	s := new(Spec)
	if err := strictyaml.Load(file, text, s, "inet", overrides); err != nil {
		return nil, err
	}
	if err := s.Validate(); err != nil {
		return nil, fmt.Errorf("inet: %s: %w", name, err)
	}
	return s, nil
}

// Bounds of a Spec.
const (
	longest    = 100 * sim.Second
	longestAll = 100_000 * sim.Second
	mostTick   = 10 * sim.Second
	mostTries  = 100
	mostBuffer = 1 << 30
)

// Validate returns every violation, each with the field's name.
func (s *Spec) Validate() error {
	var wrong fields.Errors
	fields.Between(&wrong, "rto_least", s.RTOLeast, 1, longest)
	fields.Between(&wrong, "rto_initial", s.RTOInitial, s.RTOLeast, longest)
	fields.Between(&wrong, "rto_most", s.RTOMost, s.RTOInitial, longestAll)
	fields.Between(&wrong, "delayed_ack", s.DelayedAck, 1, longest)
	for _, t := range []struct {
		name string
		v    sim.Time
		most sim.Time
	}{
		{"rto_after_syn", s.RTOAfterSYN, longest},
		{"tick", s.Tick, mostTick},
		{"delayed_ack_tick", s.DelayedAckTick, mostTick},
		{"tail_loss_least", s.TailLossLeast, longest},
		{"tail_loss_ack_delay", s.TailLossAckDelay, longest},
		{"challenge_interval", s.ChallengeInterval, longest},
		{"syn_received_most", s.SynReceivedMost, longestAll},
		{"last_wait", s.LastWait, longestAll},
		{"persist_first", s.PersistFirst, longestAll},
		{"persist_most", s.PersistMost, longestAll},
		{"fin_wait_2", s.FinWait2, longestAll},
		{"time_wait", s.TimeWait, longestAll},
	} {
		fields.Between(&wrong, t.name, t.v, 0, t.most)
	}
	for _, n := range []struct {
		name    string
		v, most int
	}{
		{"rto_doublings", s.RTODoublings, mostTries},
		{"initial_window", s.InitialWindow, 1000},
		{"initial_window_bytes", s.InitialWindowBytes, mostBuffer},
		{"syn_linear", s.SynLinear, mostTries},
		{"syn_retries", s.SynRetries, mostTries},
		{"syn_ack_retries", s.SynAckRetries, mostTries},
		{"retries", s.Retries, mostTries},
		{"persist_retries", s.PersistRetries, mostTries},
	} {
		fields.Between(&wrong, n.name, n.v, 0, n.most)
	}
	fields.Between(&wrong, "send_buffer", s.SendBuffer, 1, mostBuffer)
	fields.Between(&wrong, "receive_buffer", s.ReceiveBuffer, 1, mostBuffer)
	return wrong.Join()
}
