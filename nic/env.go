package nic

import (
	"fmt"

	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/sim"
)

// env is the common part of all stages: the clock, the engine for events, the
// parameters of the device, and the report.
type env struct {
	// The fields that every event needs, then those that most events need:
	engine *sim.Engine
	core   *Core
	bus    *host.Bus
	trace  *timeline
	watch  *watch
	spec   *Spec
	id     sim.ID
	rank   int32
	queued bool // an interface has operations to send
	// an event of the node is being handled; the interfaces are drained after
	// it
	handling bool
	lookers  int32 // handlers and processes that wait for a change of HPU memory

	account account // begins a cache line

	hpu     *HPUSpec
	fabric  *fabric.Spec
	record  int       // bytes of the record of an event
	flows   numberSet // of messages that handlers see
	ordered int       // bytes of the longest message whose data keeps its order
	report  *Report
}

func (e *env) now() sim.Time { return e.engine.Now() }

func (e *env) post(at sim.Time, kind sim.Kind, a uint64, ref any) {
	e.engine.Post(at, e.id, e.id, kind, a, 0, ref)
}

// faultTries is nic.fault_tries, for an access that has met an absent page.
func (e *env) faultTries() int {
	e.core.used.Add(used.AbsentPage)
	return e.spec.FaultTries
}

// writeRecord writes the record of an event to host memory that the driver
// holds. It goes behind the accesses in line, if there are any.
func (e *env) writeRecord(ni *Interface, c host.Client, op uint8, index int, ref any, line *host.Order, together bool) {
	a := e.core.access()
	a.Order, a.Length, a.Client, a.Op, a.Index, a.Ref, a.Together = line, e.record, c, op, index, ref, together
	ni.write(a)
}

// The events of each stage, by the upper bits of their kinds. The events of the
// bus come before these. Each kind has a comment with its argument A and its
// reference P.
const (
	stageBits       = 8
	stageOf         = 1 << stageBits
	kindsOfTransmit = 2 * stageOf
	kindsOfLink     = 3 * stageOf
	kindsOfReliable = 4 * stageOf
	kindsOfReceive  = 5 * stageOf
	kindsOfMatch    = 6 * stageOf
	kindsOfSchedule = 7 * stageOf
	kindsOfAct      = 8 * stageOf
	kindsOfDeposit  = 9 * stageOf
)

// unknown panics at an event that no stage has sent.
func unknown(stage string, e *sim.Event) {
	panic(fmt.Sprintf("nic: event of unknown kind %#x for %s", uint32(e.Kind), stage)) //lint:panic a bug of this package
}
