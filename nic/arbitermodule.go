package nic

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/laws"
	"github.com/spinsim/spinsim/spin"
)

// tenantBytes is the length of the record (docs/abi.md, Tenant record).
const tenantBytes = 56

// ArbiterMemory is how many bytes of HPU memory a module in place of
// HPUSpec.Arbiter needs.
const ArbiterMemory = tenantBytes + laws.Words*8

// arbiterModule is such a module. It runs beside the HPUs: its cycles are bounded by
// hpu.max_cycles, but take no time.
type arbiterModule struct {
	load func() (*LawModule, error)
	*LawModule
	calls, cycles int64
}

// Arbitrate puts the module that load returns, with the first handler of a tenant
// that waits, in the place of HPUSpec.Arbiter. Call it before the first event.
func (n *NIC) Arbitrate(load func() (*LawModule, error)) {
	if t := n.schedule.tenants; t != nil {
		t.module, t.limit = &arbiterModule{load: load}, false
		t.pick = t.module.pickBy
	}
}

// pickBy returns the tenant whose record gets the least key; a negative number:
// none may begin. If the module fails, the run fails, and the first that waits is
// next.
func (m *arbiterModule) pickBy(t *tenants) int {
	if m.LawModule == nil {
		made, err := m.load()
		if err != nil {
			t.env.report.handlerFailed(HandlerError{Rank: int(t.env.rank), At: t.env.now(), Program: "tenants", Handler: laws.ExportKey, Err: err})
			return slices.IndexFunc(t.list, func(o tenant) bool { return t.may(int(o.number)) })
		}
		m.LawModule = made
	}
	best, least, first, all := -1, uint64(spin.NotNow), -1, t.weights()
	for i := range t.list {
		if !t.may(i) {
			continue
		}
		if first < 0 {
			first = i
		}
		key, err := m.key(t, &t.list[i], all)
		if err != nil {
			t.env.report.handlerFailed(HandlerError{Rank: int(t.env.rank), At: t.env.now(), Program: m.Program.Module().Name(), Handler: laws.ExportKey, Err: err})
			return first
		}
		if key < least {
			best, least = i, key
		}
	}
	return best
}

func (m *arbiterModule) key(t *tenants, o *tenant, all int) (uint64, error) {
	addr, _ := m.Program.HPUMemory()
	b := m.Program.Present()[addr:][:tenantBytes]
	for i, w := range [...]int{int(o.number), o.Weight, o.waiting, o.handlers, all, t.env.hpu.Cores} {
		binary.LittleEndian.PutUint32(b[4*i:], uint32(w))
	}
	for i, w := range [...]uint64{uint64(t.env.now()), uint64(o.Time), uint64(t.wantedBy(o)), 0} {
		binary.LittleEndian.PutUint64(b[24+8*i:], w)
	}
	c := m.Program.Context(0)
	c.Start(m.Law, addr, addr+tenantBytes, t.env.hpu.MaxCycles)
	end := c.Outcome()
	m.calls++
	m.cycles += end.Cycles
	switch {
	case end.Err != nil:
		return 0, end.Err
	case end.Cycles > t.env.hpu.MaxCycles:
		return 0, fmt.Errorf("took %d cycles, hpu.max_cycles allows %d", end.Cycles, t.env.hpu.MaxCycles)
	case end.Code != hpu.Success:
		return 0, fmt.Errorf("returned %s, expected %s", end.Code.Name(), hpu.Success.Name())
	}
	return binary.LittleEndian.Uint64(m.Program.Present()[addr+tenantBytes-8:]), nil
}
