package host

import "github.com/spinsim/spinsim/sim"

// ports are a device's own ways to memory, beside the bus: each carries reads
// and writes at the same time. They have the bus's latency and its translator.
type ports struct {
	rate   sim.Rate
	reads  []Server
	writes []Server
	landed sim.Time // when the last write lands
}

// moreBus is what few buses have.
type moreBus struct {
	watch func(a *Access, toMemory bool, from, to sim.Time, bytes int) // nil: nobody does
	ports []ports
	// of streams; nil: the oldest has the next turn
	shares *shares
}

func (b *Bus) extend() *moreBus {
	if b.more == nil {
		b.more = new(moreBus)
	}
	return b.more
}

// AddPorts adds n ports with a rate for each direction, and returns their number
// for Access.Ports. Call it before the first access.
//
// An access takes the port that is free first, the lowest in a tie, when its
// bytes begin to move. A read does not overtake earlier writes through the same
// ports, and these land in the order in which they are made. Between accesses
// through others there is no order, not even for accesses of an Order.
func (b *Bus) AddPorts(n int, rate sim.Rate) uint8 {
	more := b.extend()
	more.ports = append(more.ports, ports{rate: rate, reads: make([]Server, n), writes: make([]Server, n)})
	return uint8(len(more.ports))
}

// write moves the bytes of an access to memory, and returns when they begin to
// move, and when they have landed.
func (p *ports) write(now sim.Time, bytes int, landing sim.Time) (start, landed sim.Time) {
	start, end := freeFirst(p.writes).Hold(now, p.rate.Time(int64(bytes)))
	p.landed = max(p.landed, end+landing)
	return start, p.landed
}

// read returns when the bytes of an access that is at memory have been sent.
func (p *ports) read(now sim.Time, bytes int) sim.Time {
	_, sent := freeFirst(p.reads).Hold(now, p.rate.Time(int64(bytes)))
	return sent
}

func freeFirst(list []Server) *Server {
	first := &list[0]
	for i := range list {
		if list[i].free < first.free {
			first = &list[i]
		}
	}
	return first
}
