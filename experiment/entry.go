package experiment

import (
	"fmt"

	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
)

// inbox is a match entry for puts with a counter that its process, or triggered operations, wait for.
type inbox struct {
	ni *runtime.NI
	ct portals.Handle // counts bytes, since a message may arrive in parts; for an empty one, messages
}

// receive appends a persistent entry that accepts puts with the given match bits into memory, with handlers if spin is not nil.
func receive(ni *runtime.NI, pt uint32, bits uint64, memory runtime.View, spin *portals.Spin) (*inbox, error) {
	ct, err := ni.CTAlloc()
	if err != nil {
		return nil, err
	}
	ni.Label(ct, "inbox")
	if _, err := ni.PTAlloc(0, portals.EQNone, pt); err != nil {
		return nil, err
	}
	options := portals.OptMEOpPut | portals.OptMEEventCTComm
	if memory.Len() > 0 {
		options |= portals.OptMEEventCTBytes
	}
	_, err = ni.MEAppend(pt, &portals.ME{
		Start: memory.Addr(), Length: uint64(memory.Len()), CT: ct, UID: portals.UIDAny, Options: options,
		MatchID: portals.AnyID, MatchBits: bits, Spin: spin,
	}, portals.PriorityList, 0)
	return &inbox{ni: ni, ct: ct}, err
}

// target is the count at which length bytes, or an empty message, have arrived.
func (in *inbox) target(length int) uint64 { return uint64(max(length, 1)) }

// wait returns when a message of length bytes has arrived, in whatever parts.
func (in *inbox) wait(length int) error {
	v, err := in.ni.CTWait(in.ct, in.target(length))
	if err == nil && v.Failure > 0 {
		err = fmt.Errorf("%d operations failed", v.Failure)
	}
	return err
}

// spare is HPU memory that a user's handlers get behind the state of the built-in ones, bytes.
const spare = 16 << 10

// install gives a process HPU memory with the benchmark's module and makes the handler part of an entry. A user's module may
// export the built-in names or simply header, payload and completion.
func (w *bench) install(p *runtime.Proc, state []byte, memory int, payload, completion string) (*portals.Spin, error) {
	s, _, err := w.installed(p, state, memory, payload, completion)
	return s, err
}

// installed is install that returns the HPU memory, too.
func (w *bench) installed(p *runtime.Proc, state []byte, memory int, payload, completion string) (*portals.Spin, *nic.Memory, error) {
	header := "" // the built-in handlers of the benchmarks have none
	if w.Handler != nil {
		memory += spare
		header, payload, completion = w.export("", "header"), w.export(payload, "payload"), w.export(completion, "completion")
		if header == "" && payload == "" && completion == "" {
			return nil, nil, fmt.Errorf("module %s exports no handler named header, payload or completion", w.Handler.Name)
		}
	}
	mem, err := p.HPUAllocMem(w.module, max(memory, len(state)))
	if err != nil {
		return nil, nil, err
	}
	s, err := mem.Spin(header, payload, completion)
	if err != nil {
		return nil, nil, err
	}
	s.InitialState = state
	return s, mem, nil
}

// export returns the name among the two under which the user's module has a handler, or "".
func (w *bench) export(builtin, generic string) string {
	for _, name := range []string{builtin, generic} {
		if name == "" {
			continue
		}
		if _, err := w.module.Export(name); err == nil {
			return name
		}
	}
	return ""
}
