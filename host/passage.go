package host

import "github.com/spinsim/spinsim/smmu"

// passage is one question of the bus to an IOMMU, about an access or a piece of
// a stream. It has one request per contiguous range. The usual question, one
// range that hits, needs no passage.
type passage struct {
	iommu    *IOMMU
	access   *Access
	off      int
	requests []smmu.Request
	open     int           // requests without an answer
	failed   *smmu.Request // request that decides the result; nil: all are OK so far
	result   smmu.Result   // of failed
	next     *passage      // of the same access, or in the free list
}

func (m *IOMMU) take() *passage {
	p := m.free
	if p == nil {
		return &passage{iommu: m, requests: make([]smmu.Request, 0, 1)}
	}
	m.free = p.next
	return p
}

func (m *IOMMU) release(p *passage) {
	p.access, p.failed, p.requests = nil, nil, p.requests[:0]
	p.next, m.free = m.free, p
}

// hit is Translate without a passage. It is for the bus only, which keeps the
// flight until the end. If it returns false, it has had no effect.
func (m *IOMMU) hit(a *Access, off, n int) bool {
	addr, k := a.At(off)
	if k < n {
		return false
	}
	a.flight = m.smmu.Hit(a.Space.pdid, addr, n, a.way.changes())
	return a.flight != 0
}

// Translate implements Translator.
func (m *IOMMU) Translate(a *Access, off, n int) (Status, bool) {
	if a.Space.pdid == 0 {
		return Denied, true
	}
	p := m.take()
	p.access, p.off, p.result, p.open = a, off, smmu.OK, 1 // the last one is Translate itself
	p.divide(a, off, n)
	for i := range p.requests {
		r := &p.requests[i]
		p.open++
		if res, answered := m.smmu.Translate(r); answered {
			p.open--
			p.note(r, res)
		}
	}
	if p.open--; p.open > 0 || p.unbound() {
		return 0, false
	}
	return p.settle(), true
}

// unbound reports whether the process has no bank but will get one from the
// driver. The question then waits.
func (p *passage) unbound() bool {
	m, a := p.iommu, p.access
	if p.result != smmu.Denied || m.driver == nil || m.smmu.BankOf(a.Space.pdid) >= 0 {
		return false
	}
	p.land()
	a.Space.parked = append(a.Space.parked, p)
	m.driver.Unbound(a.Space)
	return true
}

// unpark repeats the questions that waited for a bank.
func (m *IOMMU) unpark(space *AddressSpace) {
	parked := space.parked
	space.parked = nil
	for _, p := range parked {
		m.again(p)
	}
}

func (m *IOMMU) again(p *passage) {
	a, off, n := p.access, p.off, 0
	for i := range p.requests {
		n += p.requests[i].Length
	}
	m.release(p)
	a.Space.asked = m.engine.Now()
	if s, answered := m.Translate(a, off, n); answered {
		m.bus.Translated(a, s)
	}
}

// divide makes the requests. All exist before the first is sent, so their
// addresses stay valid.
func (p *passage) divide(a *Access, off, n int) {
	for end := off + n; off < end; {
		addr, k := a.At(off)
		k = min(k, end-off)
		p.requests = append(p.requests, smmu.Request{
			Addr: addr, Length: k, Flow: a.Flow, Client: p, Write: a.way.changes(), PDID: a.Space.pdid,
		})
		off += k
	}
}

// Translated implements smmu.Client.
func (p *passage) Translated(r *smmu.Request, res smmu.Result) {
	p.note(r, res)
	if p.open--; p.open > 0 || p.unbound() {
		return
	}
	m, a := p.iommu, p.access
	// it had no bank when the request failed, and has one now
	if p.result == smmu.Denied && m.driver != nil {
		p.land()
		m.again(p)
		return
	}
	m.bus.Translated(a, p.settle())
}

// rank orders results: an access ends with the highest result of its ranges.
var rank = [...]int{smmu.OK: 0, smmu.Ignored: 1, smmu.Terminated: 2, smmu.Permission: 3, smmu.Fault: 3, smmu.Denied: 4, smmu.Stale: 5}

func (p *passage) note(r *smmu.Request, res smmu.Result) {
	if res != smmu.OK {
		r.Op = failedRequest
	}
	if rank[res] > rank[p.result] {
		p.result, p.failed = res, r
	}
}

const failedRequest = 1 // for smmu.Request.Op

// settle ends the question. Its flights stay with the access until Done.
func (p *passage) settle() Status {
	m, a := p.iommu, p.access
	if p.result == smmu.OK {
		p.next, a.passages = a.passages, p
		return OK
	}
	s := m.status(a, p)
	p.land()
	m.release(p)
	return s
}

// status converts an SMMU result to a bus status.
func (m *IOMMU) status(a *Access, p *passage) Status {
	switch p.result {
	case smmu.Ignored:
		return Ignored
	// because of another access's fault, or because the driver did not resolve
	// this one
	case smmu.Terminated:
		if m.driver != nil && m.driver.Unresolvable(a.Space, p.failed.Failed(), p.failed.Write) {
			return Denied
		}
		return Fault
	case smmu.Fault, smmu.Permission:
		if m.driver == nil || m.driver.Unresolvable(a.Space, p.failed.Failed(), p.failed.Write) {
			return Denied
		}
		return Fault
	}
	return Denied
}

// land ends all flights of the passage.
func (p *passage) land() {
	for i := range p.requests {
		if p.requests[i].Op != failedRequest {
			p.iommu.smmu.Done(&p.requests[i])
		}
	}
}

// Done implements Translator.
func (m *IOMMU) Done(a *Access, off, _ int) {
	at := &a.passages
	for *at != nil && (*at).off != off {
		at = &(*at).next
	}
	p := *at
	if p == nil { // it was ignored
		return
	}
	*at = p.next
	p.land()
	m.release(p)
}
