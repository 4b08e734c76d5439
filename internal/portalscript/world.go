package portalscript

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spinsim/spinsim/portals"
)

// Device is the limits of a script's interfaces, unless the script changes them
// with "device".
var Device = portals.Limits{
	MaxEntries: 1024, MaxUnexpectedHeaders: 256, MaxMDs: 64, MaxEQs: 16, MaxCTs: 64, MaxPTIndex: 63,
	MaxIOVecs: 8, MaxListSize: 512, MaxTriggeredOps: 64, MaxMsgSize: 1 << 16, MaxAtomicSize: 1024,
	MaxFetchAtomicSize: 512, MaxWAWOrderedSize: 64, MaxWAROrderedSize: 8, MaxVolatileSize: 64,
	Features:       portals.FeatureTargetBindInaccessible | portals.FeatureCoherentAtomics,
	MaxUserHdrSize: 64, MaxPayloadSize: 4096, MaxHandlerMem: 1 << 16, MaxInitialState: 256,
	MinFragmentationLimit: 8,
}

const (
	memorySize = 1 << 16
	// maxMessages ends a script whose messages never stop.
	maxMessages = 20000
	maxProcs    = 256
)

// memory is flat memory from address 0. A hole in it is inaccessible or
// read-only.
type memory struct {
	bytes    []byte
	from, to uint64 // hole
	readable bool   // the hole
}

// Bytes implements portals.Memory.
func (m *memory) Bytes(addr, n uint64, write bool) ([]byte, bool) {
	hole := m.from < m.to && (write || !m.readable)
	if addr >= uint64(len(m.bytes)) || hole && addr >= m.from && addr < m.to {
		return nil, false
	}
	end := uint64(len(m.bytes))
	if hole && addr < m.from {
		end = m.from
	}
	n = min(n, end-addr)
	return m.bytes[addr : addr+n : addr+n], true
}

// Store implements portals.Memory.
func (m *memory) Store(addr uint64, b []byte) int {
	to, _ := m.Bytes(addr, uint64(len(b)), true)
	return copy(to, b)
}

// Accessible implements portals.Memory.
func (m *memory) Accessible(addr, n uint64, write bool) uint64 {
	b, _ := m.Bytes(addr, n, write)
	return uint64(len(b))
}

// process is one process of the script.
type process struct {
	index int
	proc  *portals.Process
	mem   *memory
	nis   map[string]*iface
}

// iface is one interface of a process with the names the script gave.
type iface struct {
	name    string
	owner   *process
	ni      *portals.NI
	port    *portals.Port
	handles map[string]portals.Handle
	names   map[portals.Handle]string
	open    map[string]*portals.Delivery
	late    map[string]*portals.Op
	inbox   []message
	data    map[*portals.Delivery][]byte
}

// message is a message in the network.
type message struct {
	hdr  portals.Header
	data []byte
	from *iface
}

// world is the state of a script.
type world struct {
	out      io.Writer
	device   portals.Limits
	nodes    map[uint32]*portals.Node
	procs    []*process
	ifaces   []*iface // in order of creation
	manual   bool
	explain  bool
	tell     func(*Step) // receives the steps of an explanation; nil: they are printed
	messages int
	line     int
	err      error // of out, from a place that could not return it
}

func run(text string, w *world) error {
	cmds, err := parse(text)
	if err != nil {
		return err
	}
	for i := range cmds {
		c := &cmds[i]
		w.line = c.Line
		if err := w.do(c); err != nil {
			return err
		}
		if !w.manual {
			if err := w.run(); err != nil {
				return err
			}
		}
		if w.err != nil {
			return w.err
		}
	}
	return nil
}

func (w *world) printf(format string, args ...any) error {
	_, err := fmt.Fprintf(w.out, format+"\n", args...)
	return err
}

// iface returns the interface a command addresses.
func (w *world) iface(c *command) (*iface, error) {
	p, err := w.process(c)
	if err != nil {
		return nil, err
	}
	f := p.nis[c.ni]
	if f == nil {
		return nil, c.Errorf("process %d has no interface %q", c.proc, c.ni)
	}
	return f, nil
}

func (w *world) process(c *command) (*process, error) {
	if c.proc < 0 {
		return nil, c.Errorf("which process? want e.g. \"0: %s\"", c.Verb)
	}
	if c.proc >= len(w.procs) {
		return nil, c.Errorf("process %d does not exist, there are %d", c.proc, len(w.procs))
	}
	return w.procs[c.proc], nil
}

func (f *iface) bind(name string, h portals.Handle) {
	f.handles[name] = h
	f.names[h] = name
}

// nameOf returns the script's name of an object, or its number.
func (f *iface) nameOf(h portals.Handle) string {
	if n, ok := f.names[h]; ok {
		return n
	}
	return fmt.Sprintf("#%#x", uint32(h))
}

// handle resolves a word that names an object.
func (w *world) handle(c *command, f *iface, word string) (portals.Handle, error) {
	switch {
	case word == "" || word == "none":
		return portals.InvalidHandle, nil
	case strings.HasPrefix(word, "#"):
		v, err := strconv.ParseUint(word[1:], 0, 32)
		if err != nil {
			return 0, c.Errorf("%q is no raw handle, want # and 32 bits", word)
		}
		return portals.Handle(v), nil
	}
	if proc, name, ok := strings.Cut(word, "."); ok {
		i, err := strconv.Atoi(proc)
		if err != nil || i < 0 || i >= len(w.procs) {
			return 0, c.Errorf("%q: no process %q", word, proc)
		}
		for _, other := range w.ifaces {
			if h, ok := other.handles[name]; ok && other.owner == w.procs[i] {
				return h, nil
			}
		}
		return 0, c.Errorf("process %d has no object %q", i, name)
	}
	h, ok := f.handles[word]
	if !ok {
		return 0, c.Errorf("no object is called %q", word)
	}
	return h, nil
}

// arg resolves the object named by an argument; none when it is not given.
func (w *world) arg(c *command, f *iface, key string) (portals.Handle, error) {
	return w.handle(c, f, c.Value(key))
}

// result prints the return code of a call that failed.
func (w *world) result(c *command, err error) error {
	if err == nil {
		return nil
	}
	var code portals.Code
	if !errors.As(err, &code) {
		return err
	}
	why := ""
	if err.Error() != code.Error() {
		_, why, _ = strings.Cut(err.Error(), "PTL_ARG_INVALID")
	}
	return w.printf("%d: %s: %s%s", c.proc, c.Verb, code.String(), why)
}

// run moves messages until nothing is in transit.
func (w *world) run() error {
	for progress := true; progress; {
		progress = false
		for _, f := range w.ifaces {
			for op := f.port.NextOp(); op != nil; op = f.port.NextOp() {
				progress = true
				if err := w.transmit(f, op); err != nil {
					return err
				}
			}
			for len(f.inbox) > 0 {
				progress = true
				m := f.inbox[0]
				f.inbox = f.inbox[1:]
				w.arrive(f, &m)
			}
		}
	}
	return nil
}

// transmit puts an operation into the inbox of its target.
func (w *world) transmit(f *iface, op *portals.Op) error {
	if w.messages++; w.messages > maxMessages {
		return &Error{Line: w.line, Why: fmt.Sprintf("more than %d messages: they do not come to rest", maxMessages)}
	}
	fail := w.carry(f, op)
	f.port.Sent(op, fail)
	f.port.Release(op)
	return nil
}

func (w *world) carry(f *iface, op *portals.Op) portals.FailType {
	to := w.find(op.Header.Target, op.Header.NI)
	if to == nil {
		return portals.NIUndeliverable
	}
	if op.Length() > memorySize {
		return portals.NISegv
	}
	m := message{hdr: op.Header, data: make([]byte, op.Length()), from: f}
	if !f.port.Read(op, 0, m.data) && op.Length() > 0 {
		return portals.NISegv
	}
	to.inbox = append(to.inbox, m)
	return portals.NIOK
}

func (w *world) find(id portals.ID, kind portals.NIKind) *iface {
	for _, f := range w.ifaces {
		phys, err := f.ni.PhysID()
		if err == nil && phys.NID == id.NID && phys.PID == id.PID && f.ni.Kind() == kind {
			return f
		}
	}
	return nil
}

// arrive delivers a message whole.
func (w *world) arrive(f *iface, m *message) {
	switch m.hdr.Kind {
	case portals.OpAck:
		f.port.Acked(&m.hdr)
	case portals.OpReply:
		d := f.port.ReplyTo(&m.hdr)
		f.port.Write(d, 0, m.data)
		f.port.Finish(d, d.Done())
	default:
		d := f.port.Receive(&m.hdr)
		f.port.Write(d, 0, m.data)
		f.port.Finish(d, d.Done())
	}
}
