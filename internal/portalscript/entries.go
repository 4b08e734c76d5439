package portalscript

import (
	"strings"

	"github.com/spinsim/spinsim/portals"
)

// entry reads the arguments of an entry.
func (w *world) entry(c *command, f *iface) (m portals.ME, pt uint32, list portals.List, user uint64, err error) {
	options, err := c.bits(portals.EntryNames)
	if err != nil {
		return
	}
	m.Options = portals.EntryOptions(options)
	m.MatchID = portals.AnyID
	err = c.nums([]numArg{
		{"start", &m.Start},
		{"len", &m.Length},
		{"bits", &m.MatchBits},
		{"ignore", &m.IgnoreBits},
		{"minfree", &m.MinFree},
		{"user", &user},
	})
	if err != nil {
		return
	}
	if m.IOVec, err = c.iovec("iov"); err != nil {
		return
	}
	if m.CT, err = w.arg(c, f, "ct"); err != nil {
		return
	}
	if m.UID, err = c.num32("uid", portals.UIDAny); err != nil {
		return
	}
	if from, ok := c.Arg("from"); ok && from != "any" {
		if m.MatchID, err = w.processID(c, f, from); err != nil {
			return
		}
	}
	if m.MatchID.NID, err = c.num32("nid", m.MatchID.NID); err != nil {
		return
	}
	if m.MatchID.PID, err = c.num32("pid", m.MatchID.PID); err != nil {
		return
	}
	if pt, err = c.num32("pt", 0); err != nil {
		return
	}
	switch l := c.Value("list"); l {
	case "", "priority":
	case "overflow":
		list = portals.OverflowList
	default:
		var v uint64
		if v, err = number(l); err != nil || v > 255 {
			err = c.Errorf("list %q, want priority, overflow or a number", l)
			return
		}
		list = portals.List(v)
	}
	m.Spin, err = c.spin()
	return
}

// spin reads the sPIN fields of an entry.
func (c *command) spin() (*portals.Spin, error) {
	var s portals.Spin
	given := false
	for _, a := range []struct {
		key string
		p   *uint32
	}{
		{"hh", &s.Handlers.Header}, {"ph", &s.Handlers.Payload}, {"ch", &s.Handlers.Completion}, {"hpumem", &s.HPUMem},
	} {
		v, err := c.num32(a.key, 0)
		if err != nil {
			return nil, err
		}
		*a.p = v
		given = given || c.Value(a.key) != ""
	}
	err := c.nums([]numArg{{"hpuoff", &s.HPUMemOffset}, {"uhdr", &s.UserHdrLen}, {"hstart", &s.HostMem.Start}, {"hlen", &s.HostMem.Length}})
	if err != nil {
		return nil, err
	}
	if s.HostMem.IOVec, err = c.iovec("hiov"); err != nil {
		return nil, err
	}
	if n, err := c.num("state", 0); err != nil || n > 1<<16 {
		return nil, c.Errorf("state of %q bytes, want 0 to 65536", c.Value("state"))
	} else if n > 0 {
		s.InitialState = make([]byte, n)
		given = true
	}
	if !given && s.UserHdrLen == 0 {
		return nil, nil
	}
	return &s, nil
}

// processID parses the name of a process of the script, for an interface.
func (w *world) processID(c *command, f *iface, s string) (portals.ID, error) {
	if strings.Contains(s, "/") {
		return idOf(c, s)
	}
	i, err := number(s)
	if err != nil || i > 1<<32-1 {
		return portals.ID{}, c.Errorf("%q is no process, want its number, or nid/pid", s)
	}
	if f.ni.Kind().Logical() {
		return portals.RankID(uint32(i)), nil
	}
	if i >= uint64(len(w.procs)) {
		return portals.ID{}, c.Errorf("process %d does not exist, there are %d", i, len(w.procs))
	}
	for _, other := range w.ifaces {
		if other.owner == w.procs[i] {
			if id, err := other.ni.PhysID(); err == nil {
				return id, nil
			}
		}
	}
	return portals.PhysID(uint32(i), 0), nil
}

func cmdME(w *world, c *command, f *iface) error {
	m, pt, list, user, err := w.entry(c, f)
	if err != nil {
		return err
	}
	var h portals.Handle
	if _, ok := c.Arg("trig"); ok {
		trig, err := w.arg(c, f, "trig")
		if err != nil {
			return err
		}
		threshold, err := c.num("threshold", 0)
		if err != nil {
			return err
		}
		h, err = f.ni.TriggeredMEAppend(pt, &m, list, user, trig, threshold)
		if err != nil {
			return w.result(c, err)
		}
	} else if h, err = f.ni.MEAppend(pt, &m, list, user); err != nil {
		return w.result(c, err)
	}
	f.bind(c.pos[0], h)
	return nil
}

// asLE returns the fields of an entry that list entries have.
func asLE(m *portals.ME) *portals.LE {
	return &portals.LE{
		Start: m.Start, Length: m.Length, IOVec: m.IOVec, CT: m.CT, UID: m.UID, Options: m.Options, Spin: m.Spin,
	}
}

func cmdLE(w *world, c *command, f *iface) error {
	m, pt, list, user, err := w.entry(c, f)
	if err != nil {
		return err
	}
	h, err := f.ni.LEAppend(pt, asLE(&m), list, user)
	if err != nil {
		return w.result(c, err)
	}
	f.bind(c.pos[0], h)
	return nil
}

func cmdUnlink(w *world, c *command, f *iface) error {
	h, err := w.handle(c, f, c.pos[0])
	if err != nil {
		return err
	}
	if c.Verb == "leunlink" {
		return w.result(c, f.ni.LEUnlink(h))
	}
	if _, ok := c.Arg("trig"); !ok {
		return w.result(c, f.ni.MEUnlink(h))
	}
	trig, err := w.arg(c, f, "trig")
	if err != nil {
		return err
	}
	threshold, err := c.num("threshold", 0)
	if err != nil {
		return err
	}
	return w.result(c, f.ni.Triggered(portals.MEUnlink{ME: h}, trig, threshold))
}

func cmdSearch(w *world, c *command, f *iface) error {
	m, pt, _, user, err := w.entry(c, f)
	if err != nil {
		return err
	}
	op := portals.SearchOnly
	switch c.pos[0] {
	case "only":
	case "delete":
		op = portals.SearchDelete
	default:
		v, err := number(c.pos[0])
		if err != nil || v > 255 {
			return c.Errorf("%q, want only, delete or a number", c.pos[0])
		}
		op = portals.SearchOp(v)
	}
	if c.Verb == "lesearch" {
		return w.result(c, f.ni.LESearch(pt, asLE(&m), op, user))
	}
	return w.result(c, f.ni.MESearch(pt, &m, op, user))
}
