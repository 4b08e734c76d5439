package nic

import (
	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/portals"
)

// answer is a wait for a reply. The reply lets a suspended handler continue
// when the data is in HPU memory, or completes a message, or both.
type answer struct {
	run        *run // nil: no handler waits
	generation uint32
	program    *hpu.Program
	local      uint32
	length     uint64
	completes  *pending
}

// requests are what handlers have asked for and what has not ended.
type requests struct {
	answers  []answer // waits for replies; a cookie is the index plus 1
	unused   []uint64 // free cookies
	promised int      // puts for a later moment
	commands int      // operations from host memory and timers that have not left
	sched    resuming
	tenants  *tenants
}

// commandRead counts down when the data of a handler's operation has been read.
func (s *requests) commandRead(m *Memory) { s.command(m, -1) }

// command notes that handlers of a memory have n commands more.
func (s *requests) command(m *Memory, n int) {
	if s.commands += n; s.tenants != nil {
		s.tenants.list[m.tenant].commands += n
	}
}

// promise notes that handlers of a memory have promised n packets more.
func (s *requests) promise(m *Memory, n int) {
	if s.promised += n; s.tenants != nil {
		s.tenants.list[m.tenant].promised += n
	}
}

// full reports whether the device, or the tenant of a memory, has as many commands
// as it may.
func (s *requests) full(m *Memory, most int) bool {
	if s.commands == most || s.tenants == nil {
		return s.commands == most
	}
	o := &s.tenants.list[m.tenant]
	return o.HandlerCommands > 0 && o.commands == o.HandlerCommands
}

// issueWaiting sends a get or a fetching atomic from the device. Its handler
// waits until the reply is in HPU memory.
func (d *act) issueWaiting(r *run) (result int64, ready bool) {
	w := &r.wait
	ho, result := d.handlerOp(r, w.op, &r.desc)
	if result != hpu.OK {
		return result, true
	}
	local := r.desc.Local
	if w.op == hpu.OpAtomicFromDevice {
		local = r.desc.Fetch
	}
	ho.Cookie = d.requests.remember(answer{
		run: r, generation: r.generation, program: r.ctx.Program(), local: local, length: r.desc.Length,
	})
	result = d.issueOp(r, w.op, &r.desc, &ho, d.now())
	return result, result != hpu.OK
}

// remember stores a wait for a reply. It returns the wait's cookie, which is
// not 0.
func (s *requests) remember(a answer) (cookie uint64) {
	if k := len(s.unused) - 1; k >= 0 {
		cookie = s.unused[k]
		s.unused = s.unused[:k]
		s.answers[cookie-1] = a
		return cookie
	}
	s.answers = append(s.answers, a)
	return uint64(len(s.answers))
}

// note adds the message that the reply completes to a cookie, or to a new one
// if cookie is 0.
func (s *requests) note(cookie uint64, u *pending) uint64 {
	if cookie == 0 {
		return s.remember(answer{completes: u})
	}
	s.answers[cookie-1].completes = u
	return cookie
}

// forget drops the wait of an operation that has ended or did not leave.
func (s *requests) forget(cookie uint64) {
	if cookie != 0 {
		s.unused = append(s.unused, cookie)
	}
}

// awaited reports whether a handler waits for the reply of a cookie.
func (s *requests) awaited(cookie uint64) bool { return s.answers[cookie-1].run != nil }

// answered copies bytes of a reply into HPU memory, from offset from, up to
// length bytes in all. It returns how many it has copied and how many lie
// beyond.
func (s *requests) answered(cookie uint64, from int, data []byte, length uint64) (taken, beyond int) {
	a := &s.answers[cookie-1]
	k := min(int(min(a.length, length))-from, len(data))
	if k <= 0 {
		return 0, len(data)
	}
	return copy(a.program.Present()[uint64(a.local)+uint64(from):], data[:k]), len(data) - k
}

// answerThere lets the handler that waits for a reply continue: the bytes are
// in HPU memory, or the request was refused. A reply shorter than requested,
// such as a get beyond the end of an entry, is DENIED, because the handler
// cannot see how many bytes came.
func (s *requests) answerThere(cookie, bytes uint64, fail portals.FailType) {
	a := &s.answers[cookie-1]
	r := a.run
	a.run = nil
	if r == nil || !r.active || r.generation != a.generation {
		return
	}
	result := hpu.OK
	if fail != portals.NIOK || bytes < a.length {
		result = hpu.Denied
	}
	s.sched.resumable(r, result)
}

// replied ends the wait of a cookie: it completes the message that waits for
// the reply. It runs when the record of the reply's end has landed.
func (s *requests) replied(cookie, bytes uint64, fail portals.FailType) {
	completes := s.answers[cookie-1].completes
	s.forget(cookie)
	if completes != nil {
		completes.operationEnded(bytes, fail)
	}
}
