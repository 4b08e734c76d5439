package portalscript

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/portals"
)

// spec describes the arguments and the action of a command.
type spec struct {
	pos  int    // positional arguments: the minimum
	most int    // and the maximum
	keys string // names of arguments, separated by blanks
	opts []string
	run  func(w *world, c *command, f *iface) error
	// global commands need no process, others need an interface.
	global, processOnly bool
}

const (
	entryKeys = "pt bits ignore start len iov ct uid from nid pid minfree list user options trig threshold " +
		"hh ph ch hpumem hpuoff uhdr state hstart hlen hiov"
	transferKeys = "off len ack to nid pid pt bits roff user hdr trig threshold "
)

// specs are the commands by name.
var specs = map[string]spec{
	"device":   {keys: limitKeys(), run: cmdDevice, global: true, opts: portals.FeatureNames},
	"procs":    {pos: 1, most: 1, keys: "uid samenode pid map fixed " + limitKeys(), run: cmdProcs, global: true, opts: portals.NINames},
	"explain":  {pos: 1, most: 1, run: cmdExplain, global: true},
	"manual":   {run: func(w *world, _ *command, _ *iface) error { w.manual = true; return nil }, global: true},
	"auto":     {run: func(w *world, _ *command, _ *iface) error { w.manual = false; return nil }, global: true},
	"run":      {run: func(w *world, _ *command, _ *iface) error { return w.run() }, global: true},
	"init":     {run: cmdInit, processOnly: true},
	"fini":     {run: cmdFini, processOnly: true},
	"abort":    {run: cmdAbort, processOnly: true},
	"ni":       {most: 1, keys: "pid iface options map " + limitKeys(), run: cmdNI, opts: portals.NINames, processOnly: true},
	"nihandle": {pos: 1, most: 1, run: cmdNIHandle},
	"nifini":   {run: cmdNIFini},
	"status":   {most: 1, run: cmdStatus},
	"limits":   {most: 32, run: cmdLimits},
	"id":       {run: cmdID},
	"setmap":   {most: 64, run: cmdSetMap},
	"getmap":   {most: 1, run: cmdGetMap},
	"equal":    {pos: 2, most: 2, run: cmdEqual},
	"startbundle": {run: func(w *world, c *command, f *iface) error {
		return w.result(c, f.ni.StartBundle())
	}},
	"endbundle": {run: func(w *world, c *command, f *iface) error {
		return w.result(c, f.ni.EndBundle())
	}},
	"atomicsync": {run: func(w *world, c *command, f *iface) error {
		return w.result(c, f.ni.AtomicSync())
	}},

	"pt":        {pos: 1, most: 1, keys: "eq options", run: cmdPT, opts: portals.PTNames},
	"ptfree":    {pos: 1, most: 1, run: cmdPTIndex},
	"ptenable":  {pos: 1, most: 1, run: cmdPTIndex},
	"ptdisable": {pos: 1, most: 1, run: cmdPTIndex},
	"exhaust":   {pos: 1, most: 1, run: cmdExhaust},

	"eq":     {pos: 2, most: 2, run: cmdEQ},
	"eqfree": {pos: 1, most: 1, run: cmdEQFree},
	"events": {pos: 1, most: 1, run: cmdEvents},
	"get1":   {pos: 1, most: 1, run: cmdEQGet},
	"eqpoll": {pos: 1, most: 16, run: cmdEQPoll},

	"ct":       {pos: 1, most: 1, run: cmdCT},
	"ctfree":   {pos: 1, most: 1, run: cmdCTFree},
	"ctcancel": {pos: 1, most: 1, run: cmdCTCancel},
	"counter":  {pos: 1, most: 16, run: cmdCounter},
	"ctpoll":   {pos: 2, most: 32, run: cmdCTPoll},
	"ctset":    {pos: 1, most: 1, keys: "success failure trig threshold", run: cmdCTSet},
	"ctinc":    {pos: 1, most: 1, keys: "success failure trig threshold", run: cmdCTInc},

	"md":        {pos: 1, most: 1, keys: "start len iov eq ct options", run: cmdMD, opts: portals.MDNames},
	"mdrelease": {pos: 1, most: 1, run: cmdMDRelease},
	"me":        {pos: 1, most: 1, keys: entryKeys, run: cmdME, opts: portals.EntryNames},
	"le":        {pos: 1, most: 1, keys: entryKeys, run: cmdLE, opts: portals.EntryNames},
	"unlink":    {pos: 1, most: 1, keys: "trig threshold", run: cmdUnlink},
	"leunlink":  {pos: 1, most: 1, run: cmdUnlink},
	"search":    {pos: 1, most: 1, keys: entryKeys, run: cmdSearch, opts: portals.EntryNames},
	"lesearch":  {pos: 1, most: 1, keys: entryKeys, run: cmdSearch, opts: portals.EntryNames},

	"put":    {pos: 1, most: 1, keys: transferKeys, run: cmdTransfer},
	"get":    {pos: 1, most: 1, keys: transferKeys, run: cmdTransfer},
	"atomic": {pos: 1, most: 1, keys: transferKeys + "op type", run: cmdTransfer},
	"fetch":  {pos: 1, most: 1, keys: transferKeys + "op type get goff", run: cmdTransfer},
	"swap":   {pos: 1, most: 1, keys: transferKeys + "op type get goff operand", run: cmdTransfer},
	"issue":  {pos: 1, most: 1, keys: transferKeys + "op type operand data src soff dst doff dlen md cookie", run: cmdIssue},

	"fill":  {pos: 2, most: 64, run: cmdFill},
	"mem":   {pos: 2, most: 2, run: cmdMem},
	"store": {pos: 2, most: 64, keys: "type", run: cmdStore},
	"load":  {pos: 1, most: 2, keys: "type", run: cmdLoad},
	"hole":  {pos: 2, most: 3, run: cmdHole},

	"send":        {most: 1, keys: "fail late", run: cmdSend},
	"sent":        {pos: 1, most: 1, keys: "fail", run: cmdSent},
	"receive":     {pos: 1, most: 1, run: cmdReceive},
	"land":        {pos: 1, most: 1, keys: "off n", run: cmdLand},
	"finish":      {pos: 1, most: 1, keys: "fail delivered pending", run: cmdFinish},
	"acknowledge": {pos: 1, most: 1, keys: "fail", run: cmdAcknowledge},
	"answer":      {run: cmdAnswer},
	"drop":        {keys: "fail", run: cmdDrop},
}

// do performs one command.
func (w *world) do(c *command) error {
	s, ok := specs[c.Verb]
	if !ok {
		return &Error{Line: c.Line, Why: fmt.Sprintf("unknown command %q", c.Verb)}
	}
	if len(c.pos) < s.pos || len(c.pos) > max(s.most, s.pos) {
		return c.Errorf("%d positional arguments, want %d to %d", len(c.pos), s.pos, max(s.most, s.pos))
	}
	known := strings.Fields(s.keys)
	for _, key := range c.Keys() {
		if !slices.Contains(known, key) {
			return c.Errorf("unknown argument %q, want one of %s", key, s.keys)
		}
	}
	if len(c.flags) > 0 && s.opts == nil {
		return c.Errorf("takes no option %s", c.flags[0])
	}
	if s.global {
		return s.run(w, c, nil)
	}
	if s.processOnly {
		if _, err := w.process(c); err != nil {
			return err
		}
		return s.run(w, c, nil)
	}
	f, err := w.iface(c)
	if err != nil {
		return err
	}
	return s.run(w, c, f)
}

func cmdProcs(w *world, c *command, _ *iface) error {
	n, err := number(c.pos[0])
	if err != nil || n < 1 || n+uint64(len(w.procs)) > maxProcs {
		return c.Errorf("%q processes, want 1 to %d in all", c.pos[0], maxProcs)
	}
	uid, err := c.num32("uid", 0)
	if err != nil {
		return err
	}
	var ids []portals.ID
	if c.Value("map") == "fixed" {
		for i := range n {
			ids = append(ids, portals.PhysID(uint32(i), 0))
		}
	}
	first := len(w.procs)
	for i := range int(n) {
		nid := uint32(first + i)
		if _, same := c.Arg("samenode"); same {
			nid = 0
		}
		if w.nodes[nid] == nil {
			w.nodes[nid] = portals.NewNode(nid, maxProcs)
		}
		p := &process{index: first + i, mem: &memory{bytes: make([]byte, memorySize)}, nis: map[string]*iface{}}
		p.proc = w.nodes[nid].NewProcess(portals.ProcessConfig{
			UID: uid, Memory: p.mem, Device: w.device, Map: ids, Tracer: (*tracer)(w),
		})
		w.procs = append(w.procs, p)
		if err := p.proc.Init(); err != nil {
			return err
		}
		if len(c.flags) == 0 {
			c.flags = []string{"MATCHING", "PHYSICAL"}
		}
		c.proc = p.index
		if err := cmdNI(w, c, nil); err != nil {
			return err
		}
	}
	return w.defaultMaps(first)
}

// defaultMaps gives logical interfaces the default map, in which rank i is
// process i of the script.
func (w *world) defaultMaps(first int) error {
	var ids []portals.ID
	for _, p := range w.procs[first:] {
		if f := p.nis[""]; f != nil && f.ni.Kind().Logical() {
			id, err := f.ni.PhysID()
			if err != nil {
				return err
			}
			ids = append(ids, id)
		}
	}
	for _, p := range w.procs[first:] {
		if f := p.nis[""]; f != nil && f.ni.Kind().Logical() {
			if n, err := f.ni.GetMap(nil); err != nil || n > 0 {
				continue
			}
			if err := f.ni.SetMap(ids); err != nil {
				return err
			}
		}
	}
	return nil
}

func cmdExplain(w *world, c *command, _ *iface) error {
	switch c.pos[0] {
	case "on":
		w.explain = true
	case "off":
		w.explain = false
	default:
		return c.Errorf("%q, want on or off", c.pos[0])
	}
	return nil
}

func cmdInit(w *world, c *command, _ *iface) error {
	return w.result(c, w.procs[c.proc].proc.Init())
}

func cmdFini(w *world, c *command, _ *iface) error {
	w.procs[c.proc].proc.Fini()
	return nil
}

func cmdAbort(w *world, c *command, _ *iface) error {
	w.procs[c.proc].proc.Abort()
	return nil
}

func cmdNI(w *world, c *command, _ *iface) error {
	p := w.procs[c.proc]
	name := ""
	if c.Verb == "ni" && len(c.pos) > 0 {
		name = c.pos[0]
	}
	options, err := c.bits(portals.NINames)
	if err != nil {
		return err
	}
	pid, err := c.num32("pid", portals.PIDAny)
	if err != nil {
		return err
	}
	iface32, err := c.num32("iface", portals.IfaceDefault)
	if err != nil {
		return err
	}
	var desired *portals.Limits
	limits := w.device
	wanted, err := c.limits(&limits)
	if err != nil {
		return err
	}
	if wanted {
		desired = &limits
	}
	ni, _, err := p.proc.NIInit(iface32, portals.NIOptions(options), pid, desired)
	if err != nil {
		return w.result(c, err)
	}
	for _, f := range w.ifaces {
		if f.ni == ni {
			p.nis[name] = f
			return nil
		}
	}
	f := &iface{
		name: name, owner: p, ni: ni, port: ni.Port(), handles: map[string]portals.Handle{}, names: map[portals.Handle]string{},
		open: map[string]*portals.Delivery{}, late: map[string]*portals.Op{}, data: map[*portals.Delivery][]byte{},
	}
	f.bind("ni", ni.Handle())
	p.nis[name] = f
	w.ifaces = append(w.ifaces, f)
	return nil
}

func cmdNIHandle(w *world, c *command, f *iface) error {
	h, err := w.handle(c, f, c.pos[0])
	if err != nil {
		return err
	}
	got, err := f.owner.proc.NIHandle(h)
	if err != nil {
		return w.result(c, err)
	}
	for _, other := range w.ifaces {
		if other.owner == f.owner && other.ni.Handle() == got {
			return w.printf("%d: interface %q", c.proc, other.name)
		}
	}
	return w.printf("%d: interface %#x", c.proc, uint32(got))
}

func cmdNIFini(w *world, c *command, f *iface) error { return w.result(c, f.ni.NIFini()) }

func cmdStatus(w *world, c *command, f *iface) error {
	if len(c.pos) == 1 {
		r, err := number(c.pos[0])
		if err != nil {
			return c.Errorf("%v", err)
		}
		v, err := f.ni.NIStatus(portals.StatusRegister(r))
		if err != nil {
			return w.result(c, err)
		}
		return w.printf("%d: register %d = %d", c.proc, r, v)
	}
	var v [3]uint64
	for r := range v {
		got, err := f.ni.NIStatus(portals.StatusRegister(r))
		if err != nil {
			return w.result(c, err)
		}
		v[r] = got
	}
	return w.printf("%d: drops %d, permission violations %d, operation violations %d", c.proc, v[0], v[1], v[2])
}

func cmdID(w *world, c *command, f *iface) error {
	phys, err := f.ni.PhysID()
	if err != nil {
		return w.result(c, err)
	}
	uid, err := f.ni.UID()
	if err != nil {
		return w.result(c, err)
	}
	id, err := f.ni.ID()
	if err != nil {
		if err := w.result(c, err); err != nil {
			return err
		}
		return w.printf("%d: physically %v, user %d", c.proc, phys, uid)
	}
	return w.printf("%d: %v, physically %v, user %d", c.proc, id, phys, uid)
}

// idOf reads "nid/pid".
func idOf(c *command, s string) (portals.ID, error) {
	a, b, ok := strings.Cut(s, "/")
	nid, err1 := number(a)
	pid, err2 := number(b)
	if !ok || err1 != nil || err2 != nil || nid > 1<<32-1 || pid > 1<<32-1 {
		return portals.ID{}, c.Errorf("%q is no process, want nid/pid", s)
	}
	return portals.PhysID(uint32(nid), uint32(pid)), nil
}

func cmdSetMap(w *world, c *command, f *iface) error {
	var ids []portals.ID
	for _, s := range c.pos {
		id, err := idOf(c, s)
		if err != nil {
			return err
		}
		ids = append(ids, id)
	}
	return w.result(c, f.ni.SetMap(ids))
}

func cmdGetMap(w *world, c *command, f *iface) error {
	room := uint64(maxProcs)
	if len(c.pos) == 1 {
		var err error
		if room, err = number(c.pos[0]); err != nil || room > maxProcs {
			return c.Errorf("room for %q processes, want 0 to %d", c.pos[0], maxProcs)
		}
	}
	ids := make([]portals.ID, room)
	n, err := f.ni.GetMap(ids)
	if err != nil {
		return w.result(c, err)
	}
	return w.printf("%d: map of %d: %v", c.proc, n, ids[:min(n, len(ids))])
}

func cmdEqual(w *world, c *command, f *iface) error {
	a, err := w.handle(c, f, c.pos[0])
	if err != nil {
		return err
	}
	b, err := w.handle(c, f, c.pos[1])
	if err != nil {
		return err
	}
	if portals.HandleIsEqual(a, b) {
		return w.printf("%d: equal", c.proc)
	}
	return w.printf("%d: not equal", c.proc)
}
