package runtime

import (
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/sim"
)

// dma is the path between a NIC and the memory of its host (sPIN'17 §4): transfers share the bandwidth of one bus, or of one
// in each direction, and every crossing takes the latency.
type dma struct {
	latency sim.Time
	rate    sim.Rate
	bare    bool         // host.ChargeLatency
	reads   *host.Server // the resource that data towards the NIC takes
	writes  *host.Server // the resource that data towards memory takes
	own     [2]host.Server
	landed  sim.Time // when the last write lands
	bytes   int64    // moved so far, both directions
}

func (d *dma) init(spec *host.BusSpec, memory *host.Server) {
	d.latency, d.rate = spec.Latency, spec.Bandwidth
	d.bare = spec.Charge == host.ChargeLatency
	d.reads, d.writes = &d.own[0], &d.own[0]
	if spec.FullDuplex {
		d.writes = &d.own[1]
	}
	if spec.SharedMemory {
		d.reads, d.writes = memory, memory
	}
}

// write sends n bytes to memory and returns when they have landed. Writes land in the order they are made.
func (d *dma) write(now sim.Time, n int) (landed sim.Time) {
	_, landed = d.begin(now, n)
	return landed
}

// begin is write; it also returns when the bus takes the first byte.
func (d *dma) begin(now sim.Time, n int) (begun, landed sim.Time) {
	d.bytes += int64(n)
	begun, end := now, now
	if !d.bare {
		begun, end = d.writes.Hold(now, d.rate.Time(int64(n)))
	}
	d.landed = max(d.landed, end+d.latency)
	return begun, d.landed
}

// request is when a read request that the NIC makes now reaches memory: it does not overtake writes made before.
func (d *dma) request(now sim.Time) sim.Time {
	if !d.bare && d.reads != d.writes {
		now = max(now, d.writes.Free())
	}
	return now + d.latency
}

// read is the data phase of a read whose request has reached memory now: n bytes take the bus until sent and are at the
// NIC at done.
func (d *dma) read(now sim.Time, n int) (sent, done sim.Time) {
	d.bytes += int64(n)
	if d.bare {
		sent = now + d.rate.Time(int64(n))
	} else {
		_, sent = d.reads.Hold(now, d.rate.Time(int64(n)))
	}
	return sent, sent + d.latency
}

// fetch is the data phase of a fetch for a put, as read is that of a handler's read.
func (d *dma) fetch(now sim.Time, n int) (sent, done sim.Time) {
	if d.bare {
		d.bytes += int64(n)
		return now, now
	}
	return d.read(now, n)
}
