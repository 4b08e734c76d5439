package nic

// pause lets a handler that can go on wait for its core.
func pause(s *schedule, r *run) {
	if r.core.resume.push(r); arbitrates(s, r.core.pool) {
		s.tenants.owner(r.task).paused++
	}
}

// serve gives a core that is free what is next by the order of tenants: a handler
// whose suspension has ended, or one that waits to begin. Of one tenant those that
// have begun go first. gave is a handler that offers its core, or nil: others of its
// tenant go before it. serve reports whether the core has got a handler.
func (t *tenants) serve(s *schedule, c *core, gave *run) bool {
	c.running = false
	t.full = int(c.active) == len(c.runs)
	for r := c.resume.head; r != nil; r = r.next {
		if i := t.owner(r.task).number; t.ready[i] == nil || t.ready[i] == gave {
			t.ready[i] = r
		}
	}
	r, i := c.resume.head, 0 // the order of arrival
	if t.pick != nil {
		if i = t.pick(t); i >= 0 { // or a module wants none, but what has begun ends
			r = t.ready[i]
		}
	}
	if r == gave && i >= 0 && !t.full && t.list[i].tasks.len() > 0 && (t.pick == nil || t.begin(&t.list[i])) {
		r = nil
	}
	begins := r == nil && i >= 0 && !t.full && t.list[i].tasks.len() > 0
	clear(t.ready)
	t.full = false
	switch {
	case r != nil:
		c.resume.remove(r)
		t.owner(r.task).paused--
		s.resume(r)
	case begins:
		s.waiting--
		c.follows = true
		s.start(c, t.popOf(i))
		c.follows = false
	default:
		return false
	}
	return true
}

// remove takes a context out that is in the queue.
func (q *runQueue) remove(r *run) {
	if q.head == r {
		q.pop()
		return
	}
	before := q.head
	for before.next != r {
		before = before.next
	}
	if before.next, r.next = r.next, nil; q.tail == r {
		q.tail = before
	}
}
