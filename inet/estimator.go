package inet

import "github.com/spinsim/spinsim/sim"

// estimator measures round trips and estimates the time-out (RFC 6298).
type estimator struct {
	c            *Config
	out          sim.Time // the time-out, RTO
	mean, spread sim.Time // SRTT, RTTVAR
	sa, sv       int64    // in ticks: eight times the mean, four times the deviation
	// a segment is being measured (RFC 6298 §3, Karn: not a retransmission)
	timed bool
	end   uint32
	at    sim.Time
}

func (e *estimator) init(c *Config) {
	e.c, e.out = c, c.RTOInitial
	if c.Tick > 0 {
		e.sv = int64(c.RTOInitial / c.Tick)
	}
}

// acknowledged measures the round trip if the timed segment is acknowledged (RFC
// 6298 §2).
func (e *estimator) acknowledged(now sim.Time, ack uint32) {
	if !e.timed || after(ack, e.end) < 0 {
		return
	}
	e.timed = false
	r := now - e.at
	switch {
	// Jacobson 1988, appendix A: whole ticks, eight times the mean and four
	// times the deviation
	case e.c.Tick > 0:
		m := int64(now/e.c.Tick-e.at/e.c.Tick) - e.sa>>3
		e.sa += m
		e.sv += max(m, -m) - e.sv>>2
		e.mean = max(sim.Time(e.sa)*e.c.Tick/8, 1)
	case e.mean == 0:
		e.mean, e.spread = r, r/2 // (2.2)
	default:
		e.spread = (3*e.spread + max(e.mean-r, r-e.mean)) / 4 // (2.3)
		e.mean = (7*e.mean + r) / 8
	}
	e.out = e.estimate()
}

// estimate returns the time-out from the measurements, without back-off.
func (e *estimator) estimate() sim.Time {
	var rto sim.Time
	switch {
	case e.c.Tick > 0:
		rto = sim.Time(e.sa>>3+e.sv) * e.c.Tick
	case e.mean == 0:
		return e.c.RTOInitial
	case e.c.RTOLeastOfVariance:
		rto = e.mean + max(4*e.spread, e.c.RTOLeast)
	default:
		rto = e.mean + 4*e.spread
	}
	return min(max(rto, e.c.RTOLeast), e.c.RTOMost)
}

// backOff doubles the time-out (RFC 6298 §5.5), as often as the Spec allows.
func (e *estimator) backOff(retries int) {
	if e.c.RTODoublings == 0 || retries <= e.c.RTODoublings {
		e.out = min(2*e.out, e.c.RTOMost)
	}
}
