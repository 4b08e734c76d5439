package portals

// pendingOp is the initiator's state of a request until it is complete.
type pendingOp struct {
	pendingState
	dest Region // issued by a handler: where the reply goes
}

// pendingState has the fields that every request needs.
type pendingState struct {
	gen      uint32
	used     bool
	sent     bool // SEND is done or there is none
	waiting  bool // an acknowledgement or reply is due
	replying bool // the reply is arriving
	issued   bool // by a handler: replies go to dest, not to a descriptor
	kind     OpKind
	ack      AckReq
	putMD    Handle
	getMD    Handle
	length   uint64
	userPtr  uint64
	getOff   uint64
	cookie   uint64
}

// pendingTable has the incomplete requests. A reference is a position and a
// generation, so that a late answer finds nothing.
type pendingTable struct {
	ops   []pendingOp
	free  []uint32
	first uint32 // generation of a new place
}

func (t *pendingTable) add() (*pendingOp, uint64) {
	var i uint32
	if n := len(t.free); n > 0 {
		i = t.free[n-1]
		t.free = t.free[:n-1]
	} else {
		i = uint32(len(t.ops))
		t.ops = append(t.ops, pendingOp{pendingState: pendingState{gen: t.first}})
	}
	p := &t.ops[i]
	p.pendingState = pendingState{gen: p.gen, used: true}
	return p, uint64(p.gen)<<32 | uint64(i)
}

// at returns the request of a reference, nil if it is complete.
func (t *pendingTable) at(ref uint64) *pendingOp {
	i := ref & 0xffffffff
	if i >= uint64(len(t.ops)) {
		return nil
	}
	p := &t.ops[i]
	if !p.used || p.gen != uint32(ref>>32) {
		return nil
	}
	return p
}

func (t *pendingTable) remove(p *pendingOp, ref uint64) {
	p.used = false
	if p.issued && p.kind.fetches() {
		p.dest = Region{}
	}
	if p.gen++; p.gen == 0 {
		p.gen = 1
	}
	t.free = append(t.free, uint32(ref))
}

// clear makes every reference stale, and returns an unused generation.
func (t *pendingTable) clear() (next uint32) {
	next = t.first
	for i := range t.ops {
		t.ops[i].used = false
		t.ops[i].gen++
		next = max(next, t.ops[i].gen)
	}
	return next
}
