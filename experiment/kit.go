package experiment

import (
	"fmt"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// What a user's experiment needs most: an entry with handlers at one rank, a
// message from another. Everything else is package runtime.

// Inbox is an entry that accepts messages of Send.
type Inbox struct {
	proc      *runtime.Proc
	in        *Entry
	memory    runtime.View
	installed *handlers.Installed
}

// Receive makes a process ready for messages of Send up to a length, bytes: it
// appends a match entry with memory of that length and, if a module runs at the
// point, with its handlers. These are the only ones of their kinds, or the
// exports header, payload and completion; their state begins as the module
// says, else with zeros. It takes no virtual time. It is to be called once by a
// process.
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

// Wait returns when the host has seen that a message of the whole length has
// been dealt with, and the time: its bytes are in the memory, if its handlers
// leave them there, and its handlers are done.
func (in *Inbox) Wait() (sim.Time, error) {
	err := in.in.Wait(in.memory.Len())
	return in.proc.Now(), err
}

// Handlers are those of the entry, whose state can be read by name; nil: none run.
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

// LongPackets is an error if handlers run and packets are shorter than least bytes.
func LongPackets(p *Point, least int) error {
	if mtu := int(p.Profile.Fabric.MTU); p.Text("mode") == ModeSpin && mtu < least {
		return fmt.Errorf("profile %s: fabric.mtu: %d B, expected at least %d for handlers of %s; other values of --mode need no handlers", p.Profile.Origin.Name, mtu, least, p.experiment.Name)
	}
	return nil
}
