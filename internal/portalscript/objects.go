package portalscript

import (
	"errors"
	"strings"

	"github.com/spinsim/spinsim/portals"
)

func cmdPT(w *world, c *command, f *iface) error {
	options, err := c.bits(portals.PTNames)
	if err != nil {
		return err
	}
	q, err := w.arg(c, f, "eq")
	if err != nil {
		return err
	}
	index := portals.PTAny
	if c.pos[0] != "any" {
		if index, err = word32(c, c.pos[0]); err != nil {
			return err
		}
	}
	got, err := f.ni.PTAlloc(portals.PTOptions(options), q, index)
	if err != nil {
		return w.result(c, err)
	}
	if index == portals.PTAny {
		return w.printf("%d: portal table entry %d", c.proc, got)
	}
	return nil
}

func word32(c *command, s string) (uint32, error) {
	v, err := number(s)
	if err != nil || v > 1<<32-1 {
		return 0, c.Errorf("%q is no number of 32 bits", s)
	}
	return uint32(v), nil
}

func cmdPTIndex(w *world, c *command, f *iface) error {
	index, err := word32(c, c.pos[0])
	if err != nil {
		return err
	}
	switch c.Verb {
	case "ptfree":
		return w.result(c, f.ni.PTFree(index))
	case "ptenable":
		return w.result(c, f.ni.PTEnable(index))
	}
	if err := w.result(c, f.ni.PTDisable(index)); err != nil {
		return err
	}
	if f.ni.PTBusy(index) > 0 {
		return w.printf("%d: messages are still being delivered", c.proc)
	}
	return nil
}

func cmdExhaust(w *world, c *command, f *iface) error {
	index, err := word32(c, c.pos[0])
	if err != nil {
		return err
	}
	return w.printf("%d: refuses messages: %v", c.proc, f.port.DisableForFlowControl(index))
}

func cmdEQ(w *world, c *command, f *iface) error {
	count, err := number(c.pos[1])
	if err != nil {
		return c.Errorf("%v", err)
	}
	h, err := f.ni.EQAlloc(count)
	if err != nil {
		return w.result(c, err)
	}
	f.bind(c.pos[0], h)
	return nil
}

func cmdEQFree(w *world, c *command, f *iface) error {
	h, err := w.handle(c, f, c.pos[0])
	if err != nil {
		return err
	}
	return w.result(c, f.ni.EQFree(h))
}

func cmdEvents(w *world, c *command, f *iface) error {
	h, err := w.handle(c, f, c.pos[0])
	if err != nil {
		return err
	}
	for n := 0; ; n++ {
		ev, err := f.ni.EQGet(h)
		if errors.Is(err, portals.ErrEQEmpty) {
			if n == 0 {
				return w.printf("%d: %s: no events", c.proc, c.pos[0])
			}
			return nil
		}
		if err != nil && !errors.Is(err, portals.ErrEQDropped) {
			return w.result(c, err)
		}
		if err != nil {
			if err := w.printf("%d: %s: EQ_DROPPED", c.proc, c.pos[0]); err != nil {
				return err
			}
		}
		if err := w.printf("%d: %s: %s", c.proc, c.pos[0], eventText(f.ni, &ev)); err != nil {
			return err
		}
	}
}

func cmdEQGet(w *world, c *command, f *iface) error {
	h, err := w.handle(c, f, c.pos[0])
	if err != nil {
		return err
	}
	ev, err := f.ni.EQGet(h)
	if err != nil {
		if err := w.result(c, err); err != nil || ev == (portals.Event{}) {
			return err
		}
	}
	return w.printf("%d: %s: %s", c.proc, c.pos[0], eventText(f.ni, &ev))
}

func cmdEQPoll(w *world, c *command, f *iface) error {
	var hs []portals.Handle
	for _, s := range c.pos {
		h, err := w.handle(c, f, s)
		if err != nil {
			return err
		}
		hs = append(hs, h)
	}
	ev, which, err := f.ni.EQPoll(hs)
	if err != nil {
		if err := w.result(c, err); err != nil || ev == (portals.Event{}) {
			return err
		}
	}
	return w.printf("%d: queue %d: %s", c.proc, which, eventText(f.ni, &ev))
}

func cmdCT(w *world, c *command, f *iface) error {
	h, err := f.ni.CTAlloc()
	if err != nil {
		return w.result(c, err)
	}
	f.bind(c.pos[0], h)
	return nil
}

func cmdCTFree(w *world, c *command, f *iface) error {
	h, err := w.handle(c, f, c.pos[0])
	if err != nil {
		return err
	}
	return w.result(c, f.ni.CTFree(h))
}

func cmdCTCancel(w *world, c *command, f *iface) error {
	h, err := w.handle(c, f, c.pos[0])
	if err != nil {
		return err
	}
	return w.result(c, f.ni.CTCancelTriggered(h))
}

func cmdCounter(w *world, c *command, f *iface) error {
	for _, s := range c.pos {
		h, err := w.handle(c, f, s)
		if err != nil {
			return err
		}
		v, err := f.ni.CTGet(h)
		if err != nil {
			return w.result(c, err)
		}
		if err := w.printf("%d: %s: success %d, failure %d", c.proc, s, v.Success, v.Failure); err != nil {
			return err
		}
	}
	return nil
}

func cmdCTPoll(w *world, c *command, f *iface) error {
	var hs []portals.Handle
	var tests []uint64
	for i, s := range c.pos {
		if i%2 == 1 {
			v, err := number(s)
			if err != nil {
				return c.Errorf("%v", err)
			}
			tests = append(tests, v)
			continue
		}
		h, err := w.handle(c, f, s)
		if err != nil {
			return err
		}
		hs = append(hs, h)
	}
	v, which, err := f.ni.CTPoll(hs, tests)
	if err != nil {
		return w.result(c, err)
	}
	return w.printf("%d: counter %d: success %d, failure %d", c.proc, which, v.Success, v.Failure)
}

// ctArgs reads counter, value, trigger and threshold.
func (w *world) ctArgs(c *command, f *iface) (h portals.Handle, v portals.CTEvent, trig portals.Handle, threshold uint64, err error) {
	if h, err = w.handle(c, f, c.pos[0]); err != nil {
		return
	}
	if err = c.nums([]numArg{{"success", &v.Success}, {"failure", &v.Failure}, {"threshold", &threshold}}); err != nil {
		return
	}
	trig, err = w.arg(c, f, "trig")
	return
}

func cmdCTSet(w *world, c *command, f *iface) error {
	h, v, trig, threshold, err := w.ctArgs(c, f)
	if err != nil {
		return err
	}
	if _, ok := c.Arg("trig"); ok {
		return w.result(c, f.ni.Triggered(portals.CTSet{CT: h, Value: v}, trig, threshold))
	}
	return w.result(c, f.ni.CTSet(h, v))
}

func cmdCTInc(w *world, c *command, f *iface) error {
	h, v, trig, threshold, err := w.ctArgs(c, f)
	if err != nil {
		return err
	}
	if _, ok := c.Arg("trig"); ok {
		return w.result(c, f.ni.Triggered(portals.CTInc{CT: h, Increment: v}, trig, threshold))
	}
	return w.result(c, f.ni.CTInc(h, v))
}

// iovec reads "base:len,base:len".
func (c *command) iovec(key string) ([]portals.IOVec, error) {
	s, ok := c.Arg(key)
	if !ok {
		return nil, nil
	}
	iov := []portals.IOVec{}
	for part := range strings.SplitSeq(s, ",") {
		if part == "" {
			continue
		}
		base, length, ok := strings.Cut(part, ":")
		b, err1 := number(base)
		n, err2 := number(length)
		if !ok || err1 != nil || err2 != nil {
			return nil, c.Errorf("%s: %q is no vector, want address:length", key, part)
		}
		iov = append(iov, portals.IOVec{Base: b, Length: n})
	}
	return iov, nil
}

func cmdMD(w *world, c *command, f *iface) error {
	var m portals.MD
	options, err := c.bits(portals.MDNames)
	if err != nil {
		return err
	}
	m.Options = portals.MDOptions(options)
	if err := c.nums([]numArg{{"start", &m.Start}, {"len", &m.Length}}); err != nil {
		return err
	}
	if m.IOVec, err = c.iovec("iov"); err != nil {
		return err
	}
	if m.EQ, err = w.arg(c, f, "eq"); err != nil {
		return err
	}
	if m.CT, err = w.arg(c, f, "ct"); err != nil {
		return err
	}
	h, err := f.ni.MDBind(&m)
	if err != nil {
		return w.result(c, err)
	}
	f.bind(c.pos[0], h)
	return nil
}

func cmdMDRelease(w *world, c *command, f *iface) error {
	h, err := w.handle(c, f, c.pos[0])
	if err != nil {
		return err
	}
	return w.result(c, f.ni.MDRelease(h))
}
