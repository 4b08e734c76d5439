package handlers

import (
	"fmt"
	"maps"
	"slices"

	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/spin"
)

// Setup makes the parts of a client or server of a library: counters, queues,
// memory, entries. Its calls take no virtual time. Calls that lock memory must
// come before the process first waits. After the first error they do nothing
// and return zeros, so that the caller checks Err once.
type Setup struct {
	NI   *runtime.NI
	Self portals.ID
	Err  error
	Of   string // behind the number of a portal table entry in an error
	proc *runtime.Proc
	name string
}

// NewSetup begins with the interface that every process has. Errors begin with
// the name of the library.
func NewSetup(name string, p *runtime.Proc) *Setup { return begin(name, p, p.NI(), nil) }

// NewListSetup begins with the interface of list entries, which all libraries
// of a process share.
func NewListSetup(name string, p *runtime.Proc) *Setup {
	limits := p.Cluster().Profile().PortalsLimits()
	ni, err := p.NIInit(portals.OptNINoMatching|portals.OptNIPhysical, &limits)
	return begin(name, p, ni, err)
}

func begin(name string, p *runtime.Proc, ni *runtime.NI, err error) *Setup {
	s := &Setup{NI: ni, Err: err, proc: p, name: name}
	if err == nil {
		s.Self, s.Err = ni.Objects().PhysID()
	}
	return s
}

// Counter allocates a counter. The label is for reports about waiting programs.
func (s *Setup) Counter(label string) (ct portals.Handle) {
	if s.Err == nil {
		ct, s.Err = s.NI.Objects().CTAlloc()
		s.NI.Objects().Label(ct, label)
	}
	return ct
}

// Queue allocates an event queue.
func (s *Setup) Queue(events int, label string) (eq portals.Handle) {
	if s.Err == nil {
		eq, s.Err = s.NI.Objects().EQAlloc(uint64(events))
		s.NI.Objects().Label(eq, label)
	}
	return eq
}

// Locked allocates memory that stays present.
func (s *Setup) Locked(n int) runtime.View {
	v := s.proc.Alloc(n)
	v.Lock()
	return v
}

// Bind describes the memory of a view.
func (s *Setup) Bind(v runtime.View, md portals.MD) (h portals.Handle) {
	if s.Err == nil {
		md.Start, md.Length = v.Addr(), uint64(v.Len())
		h, s.Err = s.NI.Objects().MDBind(&md)
	}
	return h
}

// Table allocates a portal table entry; with portals.PTAny, any free one.
func (s *Setup) Table(pt uint32, eq portals.Handle, options portals.PTOptions) uint32 {
	if s.Err != nil {
		return 0
	}
	got, err := s.NI.Objects().PTAlloc(options, eq, pt)
	if err != nil {
		s.Err = fmt.Errorf("%s: portal table entry %d%s: %w", s.name, pt, s.Of, err)
	}
	return got
}

// Append appends a match entry with the memory of a view, for every user.
func (s *Setup) Append(pt uint32, from portals.ID, v runtime.View, me portals.ME) (h portals.Handle) {
	if s.Err == nil {
		me.MatchID, me.UID, me.Start, me.Length = from, portals.UIDAny, v.Addr(), uint64(v.Len())
		h, s.Err = s.NI.MEAppend(pt, &me, portals.PriorityList, 0)
	}
	return h
}

// Spin returns the handler part of another entry, with other handlers than an
// installation's and the same memory.
func (s *Setup) Spin(in *Installed, header, payload string) *portals.Spin {
	if s.Err == nil {
		var on *portals.Spin
		if on, s.Err = in.HPU.Spin(in.Called(header), in.Called(payload), ""); s.Err == nil {
			on.HostMem = in.Spin.HostMem
			return on
		}
	}
	return &portals.Spin{}
}

// List allocates a portal table entry, and appends a list entry whose messages
// only handlers see. The entry covers length bytes of the process's memory,
// from address 0 on.
func (s *Setup) List(pt uint32, length uint64, in *Installed, on *portals.Spin) (h portals.Handle) {
	if s.Table(pt, portals.EQNone, 0); s.Err == nil {
		h, s.Err = s.NI.LEAppend(pt, &portals.LE{
			Length: length, UID: portals.UIDAny, Spin: on,
			Options: in.EntryOptions | portals.OptMEOpPut | portals.OptMEEventCommDisable | portals.OptMEEventLinkDisable,
		}, portals.PriorityList, 0)
	}
	return h
}

// Peek returns the present state of the handlers, or zeros if in is nil.
func Peek[S any](in *Installed) (state S) {
	if in != nil {
		if err := spin.DecodeState(in.HPU.Present(), &state); err != nil {
			panic(err) //lint:panic the state is as long as the library's
		}
	}
	return state
}

// Fields joins the user's fields of a state with the library's own. The user
// may not give a field of the library's own, which get the prefix.
func Fields(library, prefix string, given, own map[string]any) (map[string]any, error) {
	state := maps.Clone(given)
	if state == nil {
		state = make(map[string]any)
	}
	for _, name := range slices.Sorted(maps.Keys(own)) {
		if _, ours := state[prefix+name]; ours {
			return nil, fmt.Errorf("%s: state %s is set by Open", library, prefix+name)
		}
		state[prefix+name] = own[name]
	}
	return state, nil
}
