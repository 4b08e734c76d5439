package mpi

import (
	"fmt"

	"github.com/spinsim/spinsim/runtime"
)

// Persistent is a send or a receive with stored, checked arguments (MPI 4.1
// §3.9). Each Start is one operation, with a request to wait for like any
// other.
type Persistent struct {
	c        *Comm
	v        runtime.View
	peer     int
	tag      uint32
	receives bool
	mode     mode
	active   bool
}

// SendInit prepares an Isend.
func (c *Comm) SendInit(v runtime.View, target int, tag uint32) (*Persistent, error) {
	return c.persistent(&Persistent{v: v, peer: target, tag: tag})
}

// SsendInit prepares an Issend.
func (c *Comm) SsendInit(v runtime.View, target int, tag uint32) (*Persistent, error) {
	return c.persistent(&Persistent{v: v, peer: target, tag: tag, mode: mode{synchronous: true}})
}

// RsendInit prepares an Irsend.
func (c *Comm) RsendInit(v runtime.View, target int, tag uint32) (*Persistent, error) {
	return c.persistent(&Persistent{v: v, peer: target, tag: tag})
}

// RecvInit prepares an Irecv.
func (c *Comm) RecvInit(v runtime.View, source int, tag uint32) (*Persistent, error) {
	return c.persistent(&Persistent{v: v, peer: source, tag: tag, receives: true})
}

func (c *Comm) persistent(p *Persistent) (*Persistent, error) {
	p.c = c
	what, least := "persistent send", 0
	if p.receives {
		what, least = "persistent receive", AnySource
	}
	if err := c.message(what, p.v, p.peer, least, p.tag, p.receives); err != nil || p.peer == ProcNull {
		return p, err
	}
	return p, c.r.own(p.v)
}

// Start starts the operation. Its previous request must have been given back.
func (p *Persistent) Start() (*Request, error) {
	if p.active {
		return nil, fmt.Errorf("mpi: rank %d: a persistent operation with rank %d of %s, tag %d, is started while it is active", p.c.r.rank, p.peer, p.c.name, p.tag)
	}
	var q *Request
	var err error
	if p.receives {
		q, err = p.c.Irecv(p.v, p.peer, p.tag)
	} else {
		q, err = p.c.isend("persistent send", p.v, p.peer, p.tag, p.mode)
	}
	if err != nil {
		return nil, err
	}
	q.persistent, p.active = p, true
	return q, nil
}

// StartAll starts the operations in order and appends their requests to qs.
func (r *Rank) StartAll(qs []*Request, ps ...*Persistent) ([]*Request, error) {
	for _, p := range ps {
		q, err := p.Start()
		if err != nil {
			return qs, err
		}
		qs = append(qs, q)
	}
	return qs, nil
}
