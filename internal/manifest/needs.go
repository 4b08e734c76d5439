package manifest

import (
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/internal/expr"
)

// Needs are the resources that a library needs from a device and from its
// entries.
type Needs struct {
	Memory Expr `json:"memory,omitzero"` // bytes of HPU memory behind the state; not set: none
	// UserHeader is how many bytes at the head of a message its header handler
	// reads as user header.
	UserHeader int64   `json:"user_header,omitempty"`
	Spaces     []Space `json:"spaces,omitempty"`     // host memories that its handlers access
	HostMemory Expr    `json:"host_memory,omitzero"` // least bytes of handler host memory; not set: 0
	// Scratchpad is the memory in each cluster of HPUs in bytes; not set: none.
	Scratchpad Expr `json:"scratchpad,omitzero"`
	// MessageMemory is the memory for each message in progress in bytes; not
	// set: none. Messages is the number of messages in progress; not set: one
	// for each context of the HPUs.
	MessageMemory Expr `json:"message_memory,omitzero"`
	Messages      Expr `json:"messages,omitzero"`
	// EntryOptions and PTOptions are of the match entry and the portal table
	// entry: C names without PTL_ME_ and PTL_PT_, in lower case.
	EntryOptions []string `json:"entry_options,omitempty"`
	PTOptions    []string `json:"pt_options,omitempty"`
	// Packets are the whole packets for its header and completion handlers.
	Packets []Packet `json:"packets,omitempty"`
	Pool    Pool     `json:"pool,omitempty"` // the intended processors; "": any
}

// Space is a host memory that handlers access.
type Space string

// The host memories (sPIN'17 §2).
const (
	EntryMemory   Space = "entry"   // ME_HOST_MEM: the memory of the match entry
	HandlerMemory Space = "handler" // HANDLER_HOST_MEM
	GrantedMemory Space = "granted" // memory that other processes have granted
)

// Packet is a packet that a header or completion handler sees (docs/abi.md,
// Whole packets).
type Packet string

// The packets.
const (
	FirstPacket Packet = "first" // of the message, in the header handler
	LastPacket  Packet = "last"  // of the message, in the completion handler
)

// Pool is a kind of processors on which handlers run.
type Pool string

// The kinds of processors.
const (
	HPUs     Pool = "hpu"      // metered cores
	Firmware Pool = "firmware" // few cores, a fixed cost for each handler
	Hardware Pool = "hardware" // a fixed latency, pipelined
)

// NeedsOf returns the needs of a match entry with these handlers: the library's
// needs and the needs of each handler. exports are its header, payload and
// completion handler; "": none.
//
// A user header or a whole packet is cut off or copied for one kind of handler.
// So the library's need for it counts only if the entry has such a handler.
// Otherwise other handlers would lose bytes for no reason. If a handler itself
// has the need but is installed as another kind, NeedsOf returns an error.
func (m *Manifest) NeedsOf(exports [3]string) (Needs, error) {
	n := m.Needs
	for i, kind := range Kinds() {
		if exports[i] == "" {
			n = n.unseen(kind)
		}
	}
	for i, kind := range Kinds() {
		h := m.Handler(exports[i])
		if h == nil {
			continue
		}
		if _, what := h.Needs.notFor(kind); what != "" {
			return Needs{}, fmt.Errorf("handler %s needs %s: it cannot be the %s handler of an entry", h.Export, what, kind)
		}
		n = n.And(&h.Needs)
	}
	return n, nil
}

// seen returns the packet that handlers of a kind may see whole, "": none.
func seen(k Kind) Packet { return map[Kind]Packet{Header: FirstPacket, Completion: LastPacket}[k] }

// unseen returns the needs without the needs that only handlers of a kind have.
func (n Needs) unseen(k Kind) Needs {
	if k == Header {
		n.UserHeader = 0
	}
	n.Packets = slices.DeleteFunc(slices.Clone(n.Packets), func(p Packet) bool { return p == seen(k) })
	return n
}

// notFor names a need, and its field, that handlers of a kind cannot have
// because only another kind sees the bytes. "": there is none.
func (n *Needs) notFor(k Kind) (field, what string) {
	if n.UserHeader > 0 && k != Header {
		return "user_header", fmt.Sprintf("a user header of %d bytes, which only a header handler sees", n.UserHeader)
	}
	for i, p := range n.Packets {
		if p != seen(k) {
			return fmt.Sprintf("packets[%d]", i), fmt.Sprintf("the whole %s packet, which only a %s handler sees", p, map[Packet]Kind{FirstPacket: Header, LastPacket: Completion}[p])
		}
	}
	return "", ""
}

// And joins the needs of several handlers of an entry. Of two numbers it takes
// the larger.
func (n Needs) And(o *Needs) Needs {
	n.Messages = n.atOnce(o)
	n.MessageMemory = larger(n.MessageMemory, o.MessageMemory)
	n.Memory, n.HostMemory, n.Scratchpad = larger(n.Memory, o.Memory), larger(n.HostMemory, o.HostMemory), larger(n.Scratchpad, o.Scratchpad)
	n.UserHeader = max(n.UserHeader, o.UserHeader)
	n.Spaces, n.Packets = joined(n.Spaces, o.Spaces), joined(n.Packets, o.Packets)
	n.EntryOptions, n.PTOptions = joined(n.EntryOptions, o.EntryOptions), joined(n.PTOptions, o.PTOptions)
	if n.Pool == "" {
		n.Pool = o.Pool
	} else if o.Pool != "" && o.Pool != n.Pool {
		n.Pool = "" // each kind of handler has its own processors
	}
	return n
}

// atOnce returns the number of messages for which there must be memory.
func (n *Needs) atOnce(o *Needs) Expr {
	a, b := n.Messages, o.Messages
	if n.MessageMemory.IsSet() && o.MessageMemory.IsSet() && a.IsSet() != b.IsSet() {
		a, b = larger(a, b), perContext
	}
	return larger(a, b)
}

// perContext is the default number of messages with memory.
var perContext, _ = ParseExpr("hpus * contexts")

// larger returns the larger of two whole numbers. A number that is not set is
// ignored.
func larger(a, b Expr) Expr {
	switch {
	case !b.IsSet() || a.String() == b.String():
		return a
	case !a.IsSet():
		return b
	}
	return Expr{whole: expr.Max(a.whole, b.whole)}
}

func joined[T comparable](a, b []T) []T {
	all := slices.Clone(a)
	for _, x := range b {
		if !slices.Contains(all, x) {
			all = append(all, x)
		}
	}
	return all
}
