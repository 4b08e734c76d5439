package experiment

import (
	"fmt"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// The basic needs of a user's experiment: an entry with handlers at one rank,
// and a message from another. Package runtime has everything else.

// Inbox is an entry that accepts messages of Send.
type Inbox struct {
	proc      *runtime.Proc
	in        *Entry
	memory    runtime.View
	installed *handlers.Installed
}

// Receive makes a process ready for messages of Send. It appends a match entry
// with memory of length bytes and with the handlers of the point, if a module
// runs there. The module must have one handler of a kind, or exports named
// header, payload and completion. Their state has the initial values of the
// module, else zeros. Receive takes no virtual time. A process may call it
// once.
func (p *Point) Receive(proc *runtime.Proc, length int) (*Inbox, error) {
	var installed *handlers.Installed
	h, err := p.Load(proc.Cluster())
	if err == nil && h != nil {
		installed, err = h.Install(proc, nil)
	}
	if err != nil {
		return nil, err
	}
	memory := proc.Alloc(length)
	in, err := AppendEntry(proc.NI(), RequestPT, RequestBits, memory, installed)
	return &Inbox{proc, in, memory, installed}, err
}

// Wait returns the time when the host has seen that a message of the whole
// length is complete: its handlers are done, and its bytes are in the memory
// unless the handlers drop them.
func (in *Inbox) Wait() (sim.Time, error) {
	err := in.in.Wait(in.memory.Len())
	return in.proc.Now(), err
}

// Handlers are the installed handlers, for their state. nil: none run.
func (in *Inbox) Handlers() *handlers.Installed { return in.installed }

// Memory is the memory of the entry.
func (in *Inbox) Memory() runtime.View { return in.memory }

// Send puts a message to a rank that has called Receive. It returns when the
// put is posted, which takes the overhead of the host.
func Send(proc *runtime.Proc, rank int, message []byte) error {
	memory := proc.Alloc(len(message))
	memory.CopyFrom(message)
	size := uint64(len(message))
	md, err := proc.NI().Objects().MDBind(&portals.MD{Start: memory.Addr(), Length: size})
	if err != nil {
		return err
	}
	return proc.NI().Put(portals.Put{MD: md, Length: size, Target: Peer(rank), PT: RequestPT, MatchBits: RequestBits})
}

// LongPackets is an error if handlers run and packets are shorter than least
// bytes.
func LongPackets(p *Point, least int) error {
	if mtu := int(p.Profile.Fabric.MTU); p.Text("mode") == ModeSpin && mtu < least {
		return fmt.Errorf("profile %s: fabric.mtu: %d B, expected at least %d for handlers of %s; other values of --mode need no handlers", p.Profile.Origin.Name, mtu, least, p.experiment.Name)
	}
	return nil
}
