package smmu_test

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/internal/smmutest"
	"github.com/spinsim/spinsim/sim"
	"github.com/spinsim/spinsim/smmu"
)

// Bounds of what a script may ask for.
const (
	maxLength = 16 << 20 // bytes of an access
	maxPages  = 1 << 14  // of a mapping
	maxFrame  = 1 << 48
)

// verb is a command: the words it takes, and what it does.
type verb struct {
	least, most int // words without =
	usage       string
	early       bool // it comes before those that use the SMMU
	run         func(w *scriptWorld, c *command) error
}

var verbs map[string]verb

func init() { // a table of functions that use it
	verbs = map[string]verb{
		"smmu":    {0, 0, "smmu field=value...", true, cmdSMMU},
		"memory":  {0, 0, "memory latency=TIME rate=RATE", true, cmdMemory},
		"bank":    {2, 2, "bank BANK PDID", false, cmdBank},
		"release": {1, 1, "release BANK", false, cmdRelease},
		"map":     {3, 4, "map PDID VA FRAME [ro] [size=...] [pages=...]", false, cmdMap},
		"unmap":   {2, 2, "unmap PDID VA", false, cmdUnmap},
		"protect": {3, 3, "protect PDID VA ro or rw", false, cmdProtect},
		"prune":   {2, 2, "prune PDID VA size=...", false, cmdPrune},
		"read":    {3, 3, "read NAME PDID VA [len=...]", false, cmdAccess},
		"write":   {3, 3, "write NAME PDID VA [len=...]", false, cmdAccess},
		"keep":    {0, 0, "keep", false, func(w *scriptWorld, _ *command) error { w.keep = true; return nil }},
		"done":    {1, 64, "done NAME...", false, cmdDone},
		"sync":    {2, 2, "sync BANK NAME", false, cmdSync},
		"get":     {2, 16, "get BANK REGISTER...", false, cmdGet},
		"set":     {1, 1, "set BANK REGISTER=VALUE...", false, cmdSet},
		"tlbi":    {0, 0, "tlbi", false, func(w *scriptWorld, _ *command) error { w.node.SMMU.InvalidateAll(); return nil }},
		"run":     {0, 0, "run", false, func(w *scriptWorld, c *command) error { return c.wrap(w.node.Engine.Run()) }},
		"wait":    {1, 1, "wait TIME", false, cmdWait},
		"trace":   {0, 0, "trace", false, func(w *scriptWorld, _ *command) error { w.trace = true; return nil }},
		"count":   {1, 32, "count COUNTER...", false, cmdCount},
	}
}

func cmdSMMU(w *scriptWorld, c *command) error {
	var overrides []string
	for _, a := range c.Args {
		overrides = append(overrides, a.Key+"="+a.Value)
	}
	spec, err := smmutest.Spec(overrides...)
	switch {
	case err != nil:
		return c.Errorf("%v", err)
	case !spec.On():
		return c.Errorf("kind: expected %s", smmu.MMU500)
	}
	w.spec = spec
	return nil
}

func cmdMemory(w *scriptWorld, c *command) error {
	for _, a := range c.Args {
		var err error
		switch a.Key {
		case "latency":
			w.latency, err = sim.ParseTime(a.Value)
			if err == nil && (w.latency < 0 || w.latency > sim.Second) {
				return c.Errorf("latency %v, expected 0 s to 1 s", w.latency)
			}
		case "rate":
			if w.rate, err = sim.ParseRate(a.Value); err == nil {
				err = w.rate.Check()
			}
		default:
			return c.Errorf("unknown key %q, expected latency or rate", a.Key)
		}
		if err != nil {
			return c.Errorf("%v", err)
		}
	}
	return nil
}

// only refuses keys that a command does not know.
func (c *command) only(keys ...string) error {
	for _, a := range c.Args {
		if !slices.Contains(keys, a.Key) {
			return c.Errorf("unknown key %q, expected %s", a.Key, verbs[c.Verb].usage)
		}
	}
	return nil
}

func (c *command) bank(w *scriptWorld, text string) (int, error) {
	v, err := c.number("bank", text, 16)
	if err == nil && int(v) >= w.spec.Banks {
		err = c.Errorf("bank %d, expected 0 to %d", v, w.spec.Banks-1)
	}
	return int(v), err
}

// place reads a PDID and a virtual address.
func (c *command) place(pdid, va string) (uint16, uint64, error) {
	p, err := c.number("PDID", pdid, 16)
	if err != nil {
		return 0, 0, err
	}
	v, err := c.number("address", va, 64)
	return uint16(p), v, err
}

func cmdBank(w *scriptWorld, c *command) error {
	if err := c.only(); err != nil {
		return err
	}
	bank, err := c.bank(w, c.Pos[0])
	if err != nil {
		return err
	}
	pdid, err := c.number("PDID", c.Pos[1], 16)
	if err != nil {
		return err
	}
	if err := w.node.SMMU.Assign(bank, uint16(pdid), w.of(uint16(pdid))); err != nil {
		return c.Errorf("%v", err)
	}
	return nil
}

func cmdRelease(w *scriptWorld, c *command) error {
	bank, err := c.bank(w, c.Pos[0])
	if err == nil {
		w.node.SMMU.Release(bank)
	}
	return err
}

// level reads the size of a page or block.
func (c *command) level(level int) (int, error) {
	for _, a := range c.Args {
		if a.Key != "size" {
			continue
		}
		n, err := c.size("size", a.Value, 1<<30)
		if err != nil {
			return 0, err
		}
		for level = 3; level > 0; level-- {
			if smmutest.Size(level) == uint64(n) {
				return level, nil
			}
		}
		return 0, c.Errorf("size %s, expected 4KiB, 2MiB or 1GiB", a.Value)
	}
	return level, nil
}

// mapped checks a virtual address that a mapping may have.
func (w *scriptWorld) mapped(c *command, va, n uint64) error {
	if limit := uint64(1) << w.spec.AddressBits; va >= limit || n > limit-va {
		return c.Errorf("%d bytes at %#x, expected an address below 2^%d", n, va, w.spec.AddressBits)
	}
	return nil
}

func cmdMap(w *scriptWorld, c *command) error {
	if err := c.only("size", "pages"); err != nil {
		return err
	}
	pdid, va, err := c.place(c.Pos[0], c.Pos[1])
	if err != nil {
		return err
	}
	frame, err := c.number("frame", c.Pos[2], 48)
	if err != nil {
		return err
	}
	readOnly := len(c.Pos) == 4
	if readOnly && c.Pos[3] != "ro" {
		return c.Errorf("%q, expected ro", c.Pos[3])
	}
	level, err := c.level(3)
	if err != nil {
		return err
	}
	pages := uint64(1)
	for _, a := range c.Args {
		if a.Key == "pages" {
			if pages, err = c.number("pages", a.Value, 16); err != nil {
				return err
			}
		}
	}
	size := smmutest.Size(level)
	switch {
	case pages < 1 || pages > maxPages:
		return c.Errorf("pages %d, expected 1 to %d", pages, maxPages)
	case (va|frame)%size != 0:
		return c.Errorf("%#x to %#x, expected multiples of %v", va, frame, sim.Size(size))
	case frame+pages*size > maxFrame:
		return c.Errorf("frame %#x, expected one below 2^48", frame)
	}
	if err := w.mapped(c, va, pages*size); err != nil {
		return err
	}
	for i := range pages {
		w.of(pdid).Map(va+i*size, level, frame+i*size, !readOnly)
	}
	return nil
}

// page reads a process and the address of a page that it has.
func (w *scriptWorld) page(c *command) (t *smmutest.Tables, va uint64, err error) {
	pdid, va, err := c.place(c.Pos[0], c.Pos[1])
	if err == nil {
		err = w.mapped(c, va, 1)
	}
	if err != nil {
		return nil, 0, err
	}
	t = w.of(pdid)
	if e, _ := t.Find(va); e.Kind != smmu.Page && c.Verb != "prune" {
		return nil, 0, c.Errorf("process %d has no page at %#x", pdid, va)
	}
	return t, va, c.only("size")
}

func cmdUnmap(w *scriptWorld, c *command) error {
	t, va, err := w.page(c)
	if err == nil {
		t.Unmap(va)
	}
	return err
}

func cmdProtect(w *scriptWorld, c *command) error {
	t, va, err := w.page(c)
	if err != nil {
		return err
	}
	how := c.Pos[2]
	if how != "ro" && how != "rw" {
		return c.Errorf("%q, expected ro or rw", how)
	}
	t.Protect(va, how == "rw")
	return nil
}

func cmdPrune(w *scriptWorld, c *command) error {
	t, va, err := w.page(c)
	if err != nil {
		return err
	}
	level, err := c.level(2)
	if err == nil {
		t.Prune(va, level)
	}
	return err
}

func cmdAccess(w *scriptWorld, c *command) error {
	name := c.Pos[0]
	pdid, va, err := c.place(c.Pos[1], c.Pos[2])
	if err != nil {
		return err
	}
	length := int64(64)
	for _, a := range c.Args {
		if a.Key == "len" {
			if length, err = c.size("len", a.Value, maxLength); err != nil {
				return err
			}
		}
	}
	if err := c.only("len"); err != nil {
		return err
	}
	a := w.access[name]
	if a != nil && (a.asked || a.inFlight) {
		return c.Errorf("access %s has not ended", name)
	}
	a = &scriptAccess{name: name, asked: true}
	w.access[name] = a
	a.Request = smmu.Request{PDID: pdid, Addr: va, Length: int(length), Write: c.Verb == "write", Client: w, Ref: a}
	if length > 0 {
		a.Frames = make([]uint64, (va%4096+uint64(length)+4095)/4096)
	}
	if res, answered := w.node.SMMU.Translate(&a.Request); answered {
		w.answered(a, res)
	}
	return nil
}

func cmdDone(w *scriptWorld, c *command) error {
	for _, name := range c.Pos {
		a := w.access[name]
		if a == nil || !a.inFlight {
			return c.Errorf("access %q is not in flight", name)
		}
		w.done(a)
	}
	return nil
}

func cmdSync(w *scriptWorld, c *command) error {
	bank, err := c.bank(w, c.Pos[0])
	if err != nil {
		return err
	}
	name := c.Pos[1]
	if w.syncs[name] {
		return c.Errorf("sync %s has not ended", name)
	}
	y := &smmu.Sync{Client: w, Ref: name}
	w.syncs[name] = true
	if w.node.SMMU.Bank(bank).Sync(y) {
		w.Synced(y)
	}
	return nil
}

func cmdWait(w *scriptWorld, c *command) error {
	d, err := sim.ParseTime(c.Pos[0])
	if err != nil || d < 0 || d > sim.Second {
		return c.Errorf("%q, expected a time up to 1 s", c.Pos[0])
	}
	return c.wrap(w.node.Engine.RunUntil(w.node.Engine.Now() + d))
}

// wrap makes an error of the simulation one of the script.
func (c *command) wrap(err error) error {
	if err == nil {
		return nil
	}
	return c.Errorf("%v", err)
}

func cmdCount(w *scriptWorld, c *command) error {
	v := reflect.ValueOf(w.node.SMMU.Counters())
	for _, name := range c.Pos {
		f := v.FieldByName(name)
		if !f.IsValid() {
			return c.Errorf("no counter %q, expected one of smmu.Counters", name)
		}
		w.printf("%s %v", name, f)
	}
	return nil
}

// words lists the names of a table, in order.
func words[V any](table map[string]V) string {
	return strings.Join(slices.Sorted(maps.Keys(table)), ", ")
}
