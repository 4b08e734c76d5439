package exanet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/handlers/mailbox"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
	"github.com/spinsim/spinsim/spin"
)

// Address names a mailbox: the interface PT of a process of a node. In a global
// virtual address (package gvas) the node is the same, and 3 bits of rank tell
// eight local ports; how the 64 interfaces of a node are told apart TR-488 does
// not say.
type Address struct{ NID, PID, PT uint32 }

// String is node:process:entry.
func (a Address) String() string { return fmt.Sprintf("%d:%d:%d", a.NID, a.PID, a.PT) }

// State is that of a channel, as its status bits say.
type State uint8

// States of a channel (TR-488 §4.4).
const (
	Idle         State = mailbox.Idle    // it was never used
	Ongoing      State = mailbox.Ongoing // its message has no answer yet
	Acknowledged State = mailbox.Acked   // the mailbox has it
	// negatively acknowledged: the mailbox does not have it; Reason says why
	Refused     State = mailbox.Nacked
	TimedOut    State = mailbox.TimedOut // nobody has answered in all retries: it may have it or not
	maxBackOff        = 6                // doublings of the pause
	codeOffset        = unsafe.Offsetof(mailbox.Channel{}.Code)
	channelSize       = unsafe.Sizeof(mailbox.Channel{})
)

// String is the state in TR-488's words.
func (s State) String() string {
	return [...]string{"idle", "ongoing", "acknowledged", "negatively acknowledged", "timed out"}[s]
}

// Channels is how many channels an interface has.
const Channels = mailbox.Channels

// MaxPayload is how many bytes a message has at most (TR-488 §5.1).
const MaxPayload = mailbox.MaxPayload

// Interface is a packetizer and a mailbox of a process.
type Interface struct {
	proc      *runtime.Proc
	ni        *runtime.NI
	in        *handlers.Installed
	self      Address
	pt        uint32 // of the packetizer; the mailbox has the next
	md        portals.Handle
	changed   portals.Handle
	arrived   portals.Handle
	registers runtime.View // the page of the channels, as it is stored into
	queue     runtime.View
	depth     uint32
	head      uint32 // messages taken
	pause     sim.Time
	stores    [Channels]uint32
	state     [Channels]State // as it was when the program looked last
	code      [Channels]uint32
	handles   []portals.Handle // that an outbox waits for, kept
	tests     []uint64
}

// Address is that of the interface's mailbox.
func (i *Interface) Address() Address { return i.self }

// Launch stores a message of up to 64 bytes into a channel, the destination
// last, which sends it. It takes nic.overhead on the core. ErrBusy: the
// channel's last message was under way when the program looked last.
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

// Again has the message of a channel sent once more that was refused or has
// timed out. It takes nic.overhead.
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

// Look loads the status bits of all channels: a load from the interface, to it
// and back (dma.latency).
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

// State is that of a channel when the program looked last; Idle of one that there is not.
func (i *Interface) State(channel int) State {
	if isChannel(channel) != nil {
		return Idle
	}
	return i.state[channel]
}

// isChannel is an error for a channel that there is not.
func isChannel(channel int) error {
	if channel < 0 || channel >= Channels {
		return fmt.Errorf("exanet: channel %d, expected 0 to %d", channel, Channels-1)
	}
	return nil
}

// Reason says why the message of a channel was refused, or that nobody has
// answered; nil if neither is so.
func (i *Interface) Reason(channel int) error {
	if err := isChannel(channel); err != nil {
		return err
	}
	switch {
	case i.state[channel] == TimedOut:
		return ErrTimedOut
	case i.state[channel] != Refused:
		return nil
	}
	switch i.code[channel] {
	case mailbox.NackFull:
		return ErrFull
	case mailbox.NackLeft:
		return ErrLeft
	case mailbox.NackForeign:
		return ErrForeign
	case mailbox.NackIllegal:
		return ErrIllegal
	default:
		return ErrNoSpace
	}
}

// Free returns a channel that can be launched, as far as the program knows;
// false: it knows of none.
func (i *Interface) Free() (channel int, found bool) {
	for c, s := range i.state {
		if s == Idle || s == Acknowledged {
			return c, true
		}
	}
	return 0, false
}

// Await waits until the message of a channel was answered, or has timed out.
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

// wait waits until a counter has come so far; who waits looks then.
func (i *Interface) wait(ct portals.Handle, test uint64) error {
	_, _, err := i.ni.CTPollAt([]portals.Handle{ct}, []uint64{test}, runtime.Forever, 0)
	return err
}

// Pause is the time after which a message should be sent again that was refused
// so many times for want of room, at least once.
func (i *Interface) Pause(times int) sim.Time { return i.pause << min(max(times, 1)-1, maxBackOff) }

// Send sends a message and returns when the mailbox has it, or nil did not come
// of it: ErrForeign, ErrTimedOut, ErrIllegal or ErrNoSpace, with more words.
// While the mailbox is full it is sent again.
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

// any waits until some channel's message was answered. Those of messages that
// were refused belong to who has launched them.
func (i *Interface) any() error {
	for c, s := range i.state {
		if s == Ongoing {
			_, err := i.Await(c)
			return err
		}
	}
	return ErrBusy
}

// Forget gives a channel back whose message was refused or has timed out, and
// is not to be sent again.
func (i *Interface) Forget(channel int) {
	if s := i.State(channel); s == Refused || s == TimedOut {
		i.state[channel] = Idle
	}
}

// Message is what a mailbox has received.
type Message struct {
	NID, PID uint32 // of the sender
	Bytes    int
}

// Poll looks for a message and copies it to the beginning of a buffer, as far
// as that goes; false: there is none. The look takes host.poll_cached, or
// host.poll without that.
func (i *Interface) Poll(into []byte) (m Message, found bool, err error) {
	i.proc.Look(i.proc.Cluster().Profile().Host.LookCached())
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

// Leave is the end of the program: the mailbox takes messages as long as it has
// room, and whoever sends more learns that nobody will make any (ErrLeft).
func (i *Interface) Leave() {
	// a posted store
	binary.LittleEndian.PutUint32(i.in.HPU.Bytes()[unsafe.Offsetof(mailbox.State{}.Left):], 1)
}

// Counts are what an interface has done.
type Counts struct {
	Sent     mailbox.Sent
	Received mailbox.Received
}

// Counts returns what the interface has done so far.
func (i *Interface) Counts() Counts {
	var s mailbox.State
	if err := spin.DecodeState(i.in.HPU.Bytes(), &s); err != nil {
		panic(err) //lint:panic the state is as long as the library's
	}
	return Counts{s.Sent, s.Received}
}

// Signals are counters of the interface of Portals NI, for programs that wait
// for several things: messages in the mailbox, and answers to the messages of
// channels.
func (i *Interface) Signals() (arrived, answered portals.Handle) { return i.arrived, i.changed }

// Taken is how many messages the program has taken out of the mailbox.
func (i *Interface) Taken() uint32 { return i.head }

// NI is the interface of Portals that the counters belong to.
func (i *Interface) NI() *runtime.NI { return i.ni }
