package part

import (
	"fmt"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/handlers/pagein"
	"github.com/spinsim/spinsim/handlers/part"
	"github.com/spinsim/spinsim/handlers/rdma"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
)

// makeWay makes the way for the policy.
func (w *faulting) makeWay() (pagefaultWay, error) {
	if w.policy == policyNaive {
		return &putWay{w: w}, nil
	}
	nto, timeout, err := blockTimeout(w.Point)
	if err != nil {
		return nil, err
	}
	e := &engineWay{w: w, options: rdma.Options{PDID: 1, State: map[string]any{}}}
	if nto {
		e.options.State["nto"] = 1
	} else {
		e.options.State["rdma.timeout"] = int64(timeout.Nanoseconds())
	}
	if !resolves(w.policy) { // nothing is absent, or the kernel alone deals with it
		e.opener, err = part.LoadEngine(w.c)
		return e, err
	}
	e.parts, err = loadPart(w.c, w.policy, pagefaultMethods[w.Text("by")])
	e.opener = e.parts
	return e, err
}

// resolves reports whether PART's driver resolves faults with a policy.
func resolves(policy string) bool {
	return policy == policyHandler || pagefaultPlans[policy] != nil
}

// loadPart makes PART ready for a run, with a policy that resolves faults.
func loadPart(c *runtime.Cluster, policy string, by part.Method) (*part.Part, error) {
	plan := pagefaultPlans[policy]
	if policy == policyHandler {
		var err error
		if plan, err = pagein.Load(c); err != nil {
			return nil, err
		}
	}
	return part.Load(c, part.Options{Policy: plan, Method: by})
}

var pagefaultPlans = map[string]part.Policy{
	policyPIO: part.PIO, policyPI4: part.PI4, policyPIA: part.PIA, policyTouchAPage: part.PIO, policyTouchAhead: part.TouchAhead,
}

// thesisBy are the methods of Psistakis'19 (§3.2.1) that bring in pages.
var thesisBy = map[string]string{policyTouchAPage: byTouch, policyTouchAhead: byKernel}

var pagefaultMethods = map[string]part.Method{byKernel: part.GetUserPages, byTouch: part.Touch, byKernelOnly: part.InKernel}

// engineWay is the RDMA engine with PART, or with another resolution of faults.
type engineWay struct {
	w       *faulting
	options rdma.Options
	parts   *part.Part // nil: without PART
	opener  interface {
		Open(p *runtime.Proc, o rdma.Options) (*rdma.Page, error)
	}
	pages   [2]*rdma.Page // by node
	ready   runtime.View  // of the source: the number of the exchange that may begin
	flag    runtime.View  // of the destination: the number of the exchange that has arrived
	pending *rdma.Pending
	asked   *rdma.Pending // the destination's invitation
}

func (e *engineWay) target() int { return e.w.Int("nodes") - 1 }

func (e *engineWay) open(p *runtime.Proc) (err error) {
	words := []*runtime.View{}
	if p.Rank() == 0 {
		words = append(words, &e.ready)
	}
	if p.Rank() == e.target() {
		words = append(words, &e.flag)
	}
	for _, word := range words {
		*word = p.Alloc(8)
		clear(word.Raw())
	}
	e.pages[p.Rank()], err = e.opener.Open(p, e.options)
	return err
}

func (e *engineWay) invite(p *runtime.Proc, i int) (err error) {
	e.asked, err = e.pages[p.Rank()].Write(rdma.Transfer{NID: 0, Notify: e.ready.Addr(), Value: uint64(i + 1)})
	return err
}

func (e *engineWay) invited(p *runtime.Proc, i int) error {
	return e.pages[p.Rank()].AwaitNotification(e.ready, uint64(i+1))
}

func (e *engineWay) begin(p *runtime.Proc, i int) (err error) {
	x := &e.w.exchanges[i]
	e.pending, err = e.pages[p.Rank()].Write(rdma.Transfer{
		NID: uint32(e.target()), Source: x.src.Addr(), Destination: x.dst.Addr(), Length: uint64(x.src.Len()), Notify: e.flag.Addr(), Value: uint64(i + 1),
	})
	return err
}

func (e *engineWay) end(*runtime.Proc, int) error { return e.pending.Wait() }

func (e *engineWay) arrived(p *runtime.Proc, i int) error {
	return e.pages[p.Rank()].AwaitNotification(e.flag, uint64(i+1))
}

// settled waits for the acknowledgement of the invitation. With a fast pool the
// data may arrive earlier.
func (e *engineWay) settled() error { return e.asked.Wait() }

func (e *engineWay) count(into *pagefaultCounts) {
	for _, g := range e.pages {
		if g != nil {
			c := g.Counts()
			into.timeouts += int64(c.Sent.Timeouts)
			into.resent += int64(c.Sent.Retransmitted)
		}
	}
	for i := range e.w.c.Nodes() {
		if e.parts == nil || e.parts.Driver(i) == nil {
			continue
		}
		s := e.parts.Driver(i).Stats()
		into.tasklets += s.Receives + s.Sends
		into.idleRuns += s.Idle
		into.messages += s.Messages
		into.requests += s.Requests
		into.entries += s.Entries
		into.refused += s.Refused
	}
}

// putWay is a put of Portals. The NIC repeats writes that memory does not
// accept.
type putWay struct {
	w     *faulting
	ready *experiment.Entry // of the source
	data  []*experiment.Entry
	acked *experiment.Entry // of the source: counts acknowledged bytes
	sent  uint64
}

func (u *putWay) target() int { return u.w.Int("nodes") - 1 }

func (u *putWay) open(p *runtime.Proc) (err error) {
	ni := p.NI()
	if p.Rank() == 0 {
		if u.ready, err = experiment.AppendEntry(ni, experiment.ReplyPT, experiment.ReplyBits, runtime.View{}, nil); err != nil {
			return err
		}
		u.acked = &experiment.Entry{NI: ni}
		if u.acked.CT, err = ni.Objects().CTAlloc(); err != nil {
			return err
		}
		ni.Objects().Label(u.acked.CT, "acknowledgements")
	}
	if p.Rank() != u.target() {
		return nil
	}
	if _, err := ni.Objects().PTAlloc(0, portals.EQNone, experiment.RequestPT); err != nil {
		return err
	}
	for i := range u.w.exchanges {
		x := &u.w.exchanges[i]
		in := &experiment.Entry{NI: ni}
		if in.CT, err = ni.Objects().CTAlloc(); err != nil {
			return err
		}
		ni.Objects().Label(in.CT, fmt.Sprintf("transfer %d", i))
		_, err = ni.MEAppend(experiment.RequestPT, &portals.ME{
			Start: x.dst.Addr(), Length: uint64(x.dst.Len()), CT: in.CT, UID: portals.UIDAny, MatchID: portals.AnyID, MatchBits: experiment.RequestBits + uint64(i),
			Options: portals.OptMEOpPut | portals.OptMEEventCTComm | portals.OptMEEventCTBytes,
		}, portals.PriorityList, 0)
		if err != nil {
			return err
		}
		u.data = append(u.data, in)
	}
	return nil
}

func (u *putWay) invite(p *runtime.Proc, _ int) error {
	md, err := p.NI().Objects().MDBind(&portals.MD{})
	if err != nil {
		return err
	}
	return p.NI().Put(portals.Put{MD: md, Target: experiment.Peer(0), PT: experiment.ReplyPT, MatchBits: experiment.ReplyBits})
}

func (u *putWay) invited(_ *runtime.Proc, i int) error { return u.ready.Wait(i + 1) }

func (u *putWay) begin(p *runtime.Proc, i int) error {
	x := &u.w.exchanges[i]
	size := uint64(x.src.Len())
	md, err := p.NI().Objects().MDBind(&portals.MD{
		Start: x.src.Addr(), Length: size, CT: u.acked.CT, Options: portals.OptMDEventCTAck | portals.OptMDEventCTBytes,
	})
	if err != nil {
		return err
	}
	u.sent += size
	return p.NI().Put(portals.Put{MD: md, Length: size, Ack: portals.Ack, Target: experiment.Peer(u.target()), PT: experiment.RequestPT, MatchBits: experiment.RequestBits + uint64(i)})
}

func (u *putWay) end(*runtime.Proc, int) error { return u.acked.Wait(int(u.sent)) }

func (u *putWay) arrived(_ *runtime.Proc, i int) error {
	return u.data[i].Wait(u.w.exchanges[i].dst.Len())
}

func (u *putWay) settled() error { return nil }

func (u *putWay) count(*pagefaultCounts) {}
