package portalscript

import (
	"strconv"
	"strings"

	"github.com/spinsim/spinsim/portals"
)

// xfer is the arguments of a command that moves data.
type xfer struct {
	md, get, trig             portals.Handle
	off, goff, n              uint64
	ack                       portals.AckReq
	to                        portals.ID
	pt                        uint32
	bits, roff, user, hdr, th uint64
	op                        portals.AtomicOp
	typ                       portals.Datatype
	operand                   []byte
	triggered                 bool
}

func (w *world) xfer(c *command, f *iface) (x xfer, err error) {
	if x.md, err = w.handle(c, f, c.pos[0]); err != nil {
		return
	}
	if x.get, err = w.arg(c, f, "get"); err != nil {
		return
	}
	if x.trig, err = w.arg(c, f, "trig"); err != nil {
		return
	}
	_, x.triggered = c.Arg("trig")
	err = c.nums([]numArg{
		{"off", &x.off},
		{"goff", &x.goff},
		{"len", &x.n},
		{"bits", &x.bits},
		{"roff", &x.roff},
		{"user", &x.user},
		{"hdr", &x.hdr},
		{"threshold", &x.th},
	})
	if err != nil {
		return
	}
	if err = c.common(&x); err != nil {
		return
	}
	x.to, err = w.destination(c, f)
	return
}

// common reads acknowledgement, index, operation, type and operand.
func (c *command) common(x *xfer) (err error) {
	if x.pt, err = c.num32("pt", 0); err != nil {
		return err
	}
	if s, ok := c.Arg("ack"); ok {
		i, known := lookup(portals.AckNames, s)
		if !known {
			v, err := number(s)
			if err != nil || v > 255 {
				return c.Errorf("ack %q, want one of %s", s, strings.Join(portals.AckNames, " "))
			}
			i = int(v)
		}
		x.ack = portals.AckReq(i)
	}
	if s, ok := c.Arg("op"); ok {
		i, known := lookup(portals.AtomicOpNames, s)
		if !known {
			v, err := number(s)
			if err != nil || v > 255 {
				return c.Errorf("op %q, want one of %s", s, strings.Join(portals.AtomicOpNames, " "))
			}
			i = int(v)
		}
		x.op = portals.AtomicOp(i)
	}
	if x.typ, err = c.datatype(); err != nil {
		return err
	}
	if s, ok := c.Arg("operand"); ok {
		if x.operand, err = encode(x.typ, s); err != nil {
			return c.Errorf("operand: %v", err)
		}
	}
	return nil
}

func (c *command) datatype() (portals.Datatype, error) {
	s, ok := c.Arg("type")
	if !ok {
		return 0, nil
	}
	i, known := lookup(portals.DatatypeNames, s)
	if !known {
		v, err := number(s)
		if err != nil || v > 255 {
			return 0, c.Errorf("type %q, want one of %s", s, strings.Join(portals.DatatypeNames, " "))
		}
		i = int(v)
	}
	return portals.Datatype(i), nil
}

func (w *world) destination(c *command, f *iface) (portals.ID, error) {
	if s, ok := c.Arg("to"); ok {
		return w.processID(c, f, s)
	}
	nid, err := c.num32("nid", 0)
	if err != nil {
		return portals.ID{}, err
	}
	pid, err := c.num32("pid", 0)
	if err != nil {
		return portals.ID{}, err
	}
	return portals.ID{NID: nid, PID: pid, Rank: nid}, nil
}

func cmdTransfer(w *world, c *command, f *iface) error {
	x, err := w.xfer(c, f)
	if err != nil {
		return err
	}
	ni := f.ni
	if x.triggered {
		switch c.Verb {
		case "put":
			err = ni.Triggered(portals.Put{MD: x.md, Offset: x.off, Length: x.n, Ack: x.ack, Target: x.to, PT: x.pt, MatchBits: x.bits, RemoteOffset: x.roff, UserPtr: x.user, HdrData: x.hdr}, x.trig, x.th)
		case "get":
			err = ni.Triggered(portals.Get{MD: x.md, Offset: x.off, Length: x.n, Target: x.to, PT: x.pt, MatchBits: x.bits, RemoteOffset: x.roff, UserPtr: x.user}, x.trig, x.th)
		case "atomic":
			err = ni.Triggered(portals.Atomic{MD: x.md, Offset: x.off, Length: x.n, Ack: x.ack, Target: x.to, PT: x.pt, MatchBits: x.bits, RemoteOffset: x.roff, UserPtr: x.user, HdrData: x.hdr, Op: x.op, Type: x.typ}, x.trig, x.th)
		case "fetch":
			err = ni.Triggered(portals.FetchAtomic{GetMD: x.get, GetOffset: x.goff, MD: x.md, Offset: x.off, Length: x.n, Target: x.to, PT: x.pt, MatchBits: x.bits, RemoteOffset: x.roff, UserPtr: x.user, HdrData: x.hdr, Op: x.op, Type: x.typ}, x.trig, x.th)
		default:
			err = ni.Triggered(portals.Swap{GetMD: x.get, GetOffset: x.goff, MD: x.md, Offset: x.off, Length: x.n, Target: x.to, PT: x.pt, MatchBits: x.bits, RemoteOffset: x.roff, UserPtr: x.user, HdrData: x.hdr, Operand: x.operand, Op: x.op, Type: x.typ}, x.trig, x.th)
		}
		return w.result(c, err)
	}
	switch c.Verb {
	case "put":
		err = ni.Put(portals.Put{MD: x.md, Offset: x.off, Length: x.n, Ack: x.ack, Target: x.to, PT: x.pt, MatchBits: x.bits, RemoteOffset: x.roff, UserPtr: x.user, HdrData: x.hdr})
	case "get":
		err = ni.Get(portals.Get{MD: x.md, Offset: x.off, Length: x.n, Target: x.to, PT: x.pt, MatchBits: x.bits, RemoteOffset: x.roff, UserPtr: x.user})
	case "atomic":
		err = ni.Atomic(portals.Atomic{MD: x.md, Offset: x.off, Length: x.n, Ack: x.ack, Target: x.to, PT: x.pt, MatchBits: x.bits, RemoteOffset: x.roff, UserPtr: x.user, HdrData: x.hdr, Op: x.op, Type: x.typ})
	case "fetch":
		err = ni.FetchAtomic(portals.FetchAtomic{GetMD: x.get, GetOffset: x.goff, MD: x.md, Offset: x.off, Length: x.n, Target: x.to, PT: x.pt, MatchBits: x.bits, RemoteOffset: x.roff, UserPtr: x.user, HdrData: x.hdr, Op: x.op, Type: x.typ})
	default:
		err = ni.Swap(portals.Swap{GetMD: x.get, GetOffset: x.goff, MD: x.md, Offset: x.off, Length: x.n, Target: x.to, PT: x.pt, MatchBits: x.bits, RemoteOffset: x.roff, UserPtr: x.user, HdrData: x.hdr, Operand: x.operand, Op: x.op, Type: x.typ})
	}
	return w.result(c, err)
}

// cmdIssue sends an operation as a handler does.
func cmdIssue(w *world, c *command, f *iface) error {
	kinds := []string{"put", "get", "atomic", "fetch", "swap"}
	kind, ok := lookup(kinds, c.pos[0])
	if !ok {
		return c.Errorf("%q, want one of %s", c.pos[0], strings.Join(kinds, " "))
	}
	var x xfer
	if err := c.common(&x); err != nil {
		return err
	}
	o := portals.HandlerOp{
		Kind: portals.OpKind(kind), AckReq: x.ack, PT: x.pt, Op: x.op, Type: x.typ, Operand: x.operand,
	}
	var err error
	if o.Target, err = w.destination(c, f); err != nil {
		return err
	}
	if o.MD, err = w.arg(c, f, "md"); err != nil {
		return err
	}
	if s, ok := c.Arg("data"); ok {
		text, err := strconv.Unquote(s)
		if err != nil {
			return c.Errorf("data %s is no quoted string", s)
		}
		o.Data = []byte(text)
	}
	var slen uint64
	err = c.nums([]numArg{
		{"len", &o.Length},
		{"bits", &o.MatchBits},
		{"roff", &o.RemoteOffset},
		{"user", &o.UserPtr},
		{"hdr", &o.HdrData},
		{"cookie", &o.Cookie},
		{"src", &o.Source.Start},
		{"soff", &o.SourceOffset},
		{"dst", &o.Dest.Start},
		{"doff", &o.DestOffset},
		{"dlen", &o.Dest.Length},
		{"off", &slen},
	})
	if err != nil {
		return err
	}
	o.Source.Length = o.SourceOffset + o.Length
	return w.result(c, f.port.Issue(&o))
}
