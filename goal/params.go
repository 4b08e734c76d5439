package goal

import (
	"errors"
	"fmt"

	"github.com/spinsim/spinsim/internal/fields"
)

// Model is one of the models of a schedule's time.
type Model uint8

// The models.
const (
	LogGOPS Model = iota // of the LogGOPS'10 simulator
	// ATLAHS is the model of the simulator of ATLAHS (SC'25): the bytes of a
	// message take their time at the sender only, and a receive its overhead
	// behind the gap. Simultaneous events are in the order of that simulator.
	ATLAHS
)

// Params are the parameters of the LogGOPS model (LogGOPS'10, section 2). All
// times are in nanoseconds.
type Params struct {
	// Model is the model that the parameters are for.
	Model Model `json:"model,omitempty"`
	// L is the latency: from the end of the sender's overhead to the arrival at the receiver.
	L int64 `json:"L"`
	// Overhead (o) is the time a message keeps the processor busy at each end.
	Overhead int64 `json:"o"`
	// Gap (g) is the time a message keeps the network interface busy at each
	// end.
	Gap int64 `json:"g"`
	// ByteGap (G) is the time each byte after the first adds to Gap.
	ByteGap ByteTime `json:"G"`
	// ByteOverhead (O) is the time each byte after the first adds to Overhead.
	ByteOverhead ByteTime `json:"O"`
	// Eager (S) is the size of the largest message that does not wait for its
	// receive, in bytes.
	Eager uint64 `json:"S"`
}

// DefaultParams returns the default parameters of the LogGOPS'10 simulator.
func DefaultParams() Params {
	return Params{L: 2500, Overhead: 1500, Gap: 1000, ByteGap: PerByte(6), Eager: 65535}
}

// ErrOverflow is wrapped by the errors of runs with times above 2^62 ns, which
// is 146 years.
var ErrOverflow = errors.New("time exceeds 2^62 ns")

const (
	maxTime = int64(1) << 62
	// MaxCost bounds each term of a cost, so that a clock cannot wrap around
	// before maxTime is checked.
	MaxCost = int64(1) << 59
)

// Validate reports parameters that are negative or too large.
func (p Params) Validate() error {
	var errs []error
	if p.Model > ATLAHS {
		errs = append(errs, &fields.Wrong{Package: "goal", Option: "model", Err: fmt.Errorf("%d, expected 0 (LogGOPS) or 1 (ATLAHS)", p.Model)})
	}
	for _, f := range []struct {
		name string
		v    ByteTime
	}{{"L", PerByte(p.L)}, {"o", PerByte(p.Overhead)}, {"g", PerByte(p.Gap)}, {"G", p.ByteGap}, {"O", p.ByteOverhead}} {
		if f.v.whole < 0 || !f.v.fits(2) {
			errs = append(errs, &fields.Wrong{Package: "goal", Option: f.name, Err: fmt.Errorf("%v ns, expected 0 to %d", f.v, MaxCost)})
		}
	}
	return errors.Join(errs...)
}

// fits checks that the costs of the largest message and computation stay below
// MaxCost.
func (p Params) fits(bytes, calc uint64) error {
	if calc > uint64(MaxCost) {
		return fmt.Errorf("a computation of %d ns: %w", calc, ErrOverflow)
	}
	for _, perByte := range []ByteTime{p.ByteGap, p.ByteOverhead} {
		if !perByte.fits(bytes) {
			return fmt.Errorf("a message of %d bytes at %v ns a byte: %w", bytes, perByte, ErrOverflow)
		}
	}
	return nil
}
