package exanet

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/handlers/mailbox"
	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// Address names a mailbox: the interface PT of a process of a node. A global
// virtual address ([Target]) has the same node, and 3 bits of rank for eight
// local ports. TR-488 does not say how it distinguishes the 64 interfaces of a
// node.
type Address struct{ NID, PID, PT uint32 }

// String writes node:process:entry.
func (a Address) String() string { return fmt.Sprintf("%d:%d:%d", a.NID, a.PID, a.PT) }

// State is the state of a channel, as its status bits show it.
type State uint8

// The states of a channel (TR-488 §4.4).
const (
	Idle         State = mailbox.Idle    // never used
	Ongoing      State = mailbox.Ongoing // no answer to its message yet
	Acknowledged State = mailbox.Acked   // the mailbox has it
	// negatively acknowledged: the mailbox does not have it; see Reason
	Refused     State = mailbox.Nacked
	TimedOut    State = mailbox.TimedOut // no answer in all retries: the mailbox may have it or not
	maxBackOff        = 6                // doublings of the pause
	codeOffset        = unsafe.Offsetof(mailbox.Channel{}.Code)
	channelSize       = unsafe.Sizeof(mailbox.Channel{})
)

// String returns the state in TR-488's words.
func (s State) String() string {
	return [...]string{"idle", "ongoing", "acknowledged", "negatively acknowledged", "timed out"}[s]
}

// Channels is the number of channels of an interface.
const Channels = mailbox.Channels

// MaxPayload is the maximum size of a message in bytes (TR-488 §5.1).
const MaxPayload = mailbox.MaxPayload

// Interface is a packetizer and a mailbox of a process.
type Interface struct {
	proc      *runtime.Proc
	ni        *runtime.NI
	in        *handlers.Installed
	self      Address
	pt        uint32 // of the packetizer; the mailbox has the next one
	md        portals.Handle
	changed   portals.Handle
	arrived   portals.Handle
	registers runtime.View // the page of the channels, as the program stores it
	queue     runtime.View
	depth     uint32
	head      uint32 // messages taken out of the mailbox
	pause     sim.Time
	stores    [Channels]uint32
	state     [Channels]State // at the program's last look
	code      [Channels]uint32
	handles   []portals.Handle // scratch for the handles that an outbox waits for
	tests     []uint64
}

// Address returns the address of the interface's mailbox.
func (i *Interface) Address() Address { return i.self }

// Launch stores a message of up to 64 bytes into a channel. It stores the
// destination last, which sends the message. It takes nic.overhead on the core.
// ErrBusy: the channel's previous message was under way at the program's last
// look.
func (i *Interface) Launch(channel int, to Address, payload []byte) error {
	if err := isChannel(channel); err != nil {
		return err
	}
	switch {
	case len(payload) > MaxPayload:
		return fmt.Errorf("exanet: message of %d bytes to %v, expected at most %d", len(payload), to, MaxPayload)
	case i.state[channel] == Ongoing:
		return ErrBusy
	}
	at := channel * MaxPayload
	i.registers.Slice(at, at+len(payload)).CopyFrom(payload)
	h := mailbox.Header{Kind: mailbox.KindLaunch, Channel: uint32(channel), Length: uint32(len(payload))}
	return i.store(channel, &h, uint64(at), uint64(len(payload)), mailbox.Destination(to.NID, to.PID, to.PT))
}

// Again resends the message of a channel that was refused or has timed out. It
// takes nic.overhead.
func (i *Interface) Again(channel int) error {
	if channel < 0 || channel >= Channels || i.state[channel] != Refused && i.state[channel] != TimedOut {
		return fmt.Errorf("exanet: channel %d has no message that was refused or has timed out", channel)
	}
	h := mailbox.Header{Kind: mailbox.KindAgain, Channel: uint32(channel)}
	return i.store(channel, &h, 0, 0, 0)
}

func (i *Interface) store(channel int, h *mailbox.Header, at, n, destination uint64) error {
	self := portals.PhysID(i.self.NID, i.self.PID)
	if err := i.ni.Put(portals.Put{MD: i.md, Offset: at, Length: n, Target: self, PT: i.pt, MatchBits: h.Bits(), HdrData: destination}); err != nil {
		return err
	}
	i.state[channel] = Ongoing
	i.stores[channel]++
	return nil
}

// Look loads the status bits of all channels. This is one load from the
// interface: dma.latency there, and dma.latency back.
func (i *Interface) Look() {
	i.proc.Compute(2 * i.proc.Cluster().Profile().DMA.Latency)
	first := unsafe.Offsetof(mailbox.State{}.Channels)
	b := i.in.HPU.Bytes()
	for c := range i.state {
		at := first + uintptr(c)*channelSize
		if i.state[c] != Ongoing || binary.LittleEndian.Uint32(b[at+unsafe.Offsetof(mailbox.Channel{}.Stores):]) != i.stores[c] {
			continue
		}
		i.state[c] = State(binary.LittleEndian.Uint32(b[at+unsafe.Offsetof(mailbox.Channel{}.Status):]))
		i.code[c] = binary.LittleEndian.Uint32(b[at+codeOffset:])
	}
}

// State returns the state of a channel at the program's last look. It is Idle
// for a channel that does not exist.
func (i *Interface) State(channel int) State {
	if isChannel(channel) != nil {
		return Idle
	}
	return i.state[channel]
}

// isChannel returns an error for a channel that does not exist.
func isChannel(channel int) error {
	if channel < 0 || channel >= Channels {
		return fmt.Errorf("exanet: channel %d, expected 0 to %d", channel, Channels-1)
	}
	return nil
}

// Reason returns why the message of a channel was refused, or ErrTimedOut if no
// answer came. Otherwise it is nil.
func (i *Interface) Reason(channel int) error {
	if err := isChannel(channel); err != nil {
		return err
	}
	switch i.state[channel] {
	case TimedOut:
		return ErrTimedOut
	case Refused:
		return cmp.Or(reasons[i.code[channel]], ErrNoSpace)
	}
	return nil
}

var reasons = map[uint32]error{
	mailbox.NackFull: ErrFull, mailbox.NackLeft: ErrLeft, mailbox.NackForeign: ErrForeign, mailbox.NackIllegal: ErrIllegal,
}

// Free returns a channel that can be launched. found is false if none was free
// at the program's last look.
func (i *Interface) Free() (channel int, found bool) {
	for c, s := range i.state {
		if s == Idle || s == Acknowledged {
			return c, true
		}
	}
	return 0, false
}

// Await waits until the message of a channel is answered or times out.
func (i *Interface) Await(channel int) (State, error) {
	if err := isChannel(channel); err != nil {
		return Idle, err
	}
	for i.state[channel] == Ongoing {
		seen, err := i.ni.Objects().CTGet(i.changed)
		if err != nil {
			return 0, err
		}
		if i.Look(); i.state[channel] != Ongoing {
			break
		}
		if err := i.wait(i.changed, seen.Success+1); err != nil {
			return 0, err
		}
	}
	return i.state[channel], nil
}

// wait waits until a counter reaches test. The caller then looks at the cause.
func (i *Interface) wait(ct portals.Handle, test uint64) error {
	_, _, err := i.ni.CTPollAt([]portals.Handle{ct}, []uint64{test}, runtime.Forever, 0)
	return err
}

// Pause returns how long to wait before resending a message that a full mailbox
// has refused this many times, at least once.
func (i *Interface) Pause(times int) sim.Time { return i.pause << min(max(times, 1)-1, maxBackOff) }

// Send sends a message and returns when the mailbox has it. It resends while
// the mailbox is full. Other failures wrap ErrForeign, ErrTimedOut, ErrIllegal,
// ErrLeft or ErrNoSpace.
func (i *Interface) Send(to Address, payload []byte) error {
	channel, found := i.Free()
	for !found {
		if err := i.any(); err != nil {
			return err
		}
		channel, found = i.Free()
	}
	if err := i.Launch(channel, to, payload); err != nil {
		return err
	}
	for times := 1; ; times++ {
		s, err := i.Await(channel)
		if err != nil || s == Acknowledged {
			return err
		}
		if err := i.Reason(channel); !errors.Is(err, ErrFull) {
			i.state[channel] = Idle
			return fmt.Errorf("exanet: message of %d bytes to %v: %w", len(payload), to, err)
		}
		i.proc.Sleep(i.Pause(times))
		if err := i.Again(channel); err != nil {
			return err
		}
	}
}

// any waits until the message of some channel is answered. It skips refused
// messages: their launchers deal with them.
func (i *Interface) any() error {
	for c, s := range i.state {
		if s == Ongoing {
			_, err := i.Await(c)
			return err
		}
	}
	return ErrBusy
}

// Forget frees a channel whose message was refused or has timed out, and will
// not be resent.
func (i *Interface) Forget(channel int) {
	if s := i.State(channel); s == Refused || s == TimedOut {
		i.state[channel] = Idle
	}
}

// Message describes a received message.
type Message struct {
	NID, PID uint32 // of the sender
	Bytes    int
}

// Poll looks for a message and copies it to into, cut to the buffer's length.
// found is false if there is none. The look takes host.poll_cached, or
// host.poll if that is not set.
func (i *Interface) Poll(into []byte) (m Message, found bool, err error) {
	i.proc.Look(i.proc.Reads(used.LookCached).Host.LookCached())
	at := int(i.head&(i.depth-1)) * mailbox.EntrySize
	b := i.queue.Slice(at, at+mailbox.EntrySize).Read()
	le := binary.LittleEndian
	if le.Uint32(b) != i.head+1 {
		if le.Uint64(i.in.HPU.Bytes()[deniedOffset:]) != 0 {
			return m, false, ErrQueue
		}
		return m, false, nil
	}
	m = Message{NID: le.Uint32(b[4:]), PID: le.Uint32(b[8:]), Bytes: int(le.Uint16(b[14:]))}
	copy(into, b[mailbox.Word:mailbox.Word+m.Bytes])
	i.head++
	le.PutUint32(i.in.HPU.Bytes()[unsafe.Offsetof(mailbox.State{}.Head):], i.head) // a posted store
	return m, true, nil
}

const deniedOffset = unsafe.Offsetof(mailbox.State{}.Received) + unsafe.Offsetof(mailbox.Received{}.Denied)

// Receive waits for a message.
func (i *Interface) Receive(into []byte) (Message, error) {
	for {
		seen, err := i.ni.Objects().CTGet(i.arrived)
		if err != nil {
			return Message{}, err
		}
		if uint32(seen.Success) == i.head {
			if err := i.wait(i.arrived, seen.Success+1); err != nil {
				return Message{}, err
			}
		}
		if m, found, err := i.Poll(into); found || err != nil {
			return m, err
		}
		if err := i.wait(i.arrived, seen.Success+1); err != nil {
			return Message{}, err
		}
	}
}

// Leave marks the end of the program. The mailbox takes messages while it has
// room. Later senders get ErrLeft, because nobody will make room.
func (i *Interface) Leave() {
	// a posted store
	binary.LittleEndian.PutUint32(i.in.HPU.Bytes()[unsafe.Offsetof(mailbox.State{}.Left):], 1)
}

// Counts are an interface's statistics.
type Counts struct {
	Sent     mailbox.Sent
	Received mailbox.Received
}

// Counts returns the statistics so far.
func (i *Interface) Counts() Counts {
	s := handlers.Peek[mailbox.State](i.in)
	return Counts{s.Sent, s.Received}
}

// Signals returns counters of NI, for programs that wait for several things:
// messages in the mailbox, and answers to messages of the channels.
func (i *Interface) Signals() (arrived, answered portals.Handle) { return i.arrived, i.changed }

// Taken returns how many messages the program has taken out of the mailbox.
func (i *Interface) Taken() uint32 { return i.head }

// NI returns the Portals interface of the counters.
func (i *Interface) NI() *runtime.NI { return i.ni }
