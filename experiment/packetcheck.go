package experiment

import (
	"encoding/binary"
	"fmt"

	"github.com/spinsim/spinsim/nic"
)

// PacketCheck compares the bytes that payload handlers see with the message. It
// is for messages whose bytes reach no host.
type PacketCheck struct {
	sent []byte // one message
	seen []bool // by the offset of a packet's first byte
	Left int    // bytes that no handler has seen
	err  error  // the first difference
}

// Expect begins the check of a message.
func (k *PacketCheck) Expect(sent []byte) {
	*k = PacketCheck{sent: sent, seen: make([]bool, len(sent)), Left: len(sent)}
}

// Watch is for runtime.Config.Watch.
func (k *PacketCheck) Watch(s *nic.HandlerStep) {
	if s.What != nic.StepBegan || s.Handler != "payload" || k.err != nil {
		return
	}
	k.err = k.packet(s)
}

// packet checks one packet. Its record is for a payload handler (docs/abi.md).
func (k *PacketCheck) packet(s *nic.HandlerStep) error {
	base, n := uint64(binary.LittleEndian.Uint32(s.Record)), uint64(binary.LittleEndian.Uint32(s.Record[4:]))
	at := binary.LittleEndian.Uint64(s.Record[8:])
	switch all := uint64(len(k.sent)); {
	case n == 0 || at > all || n > all-at || base+n > uint64(len(s.Memory)):
		return fmt.Errorf("packet %d has %d bytes for offset %d of a message of %d bytes", s.Packet, n, at, len(k.sent))
	case k.seen[at]:
		return fmt.Errorf("packet %d: the bytes at offset %d came twice", s.Packet, at)
	}
	k.seen[at] = true
	k.Left -= int(n)
	return SameBytes(fmt.Sprintf("packet %d", s.Packet), s.Memory[base:base+n], k.sent[at:at+n])
}

// Complete is an error unless handlers have seen the whole message.
func (k *PacketCheck) Complete() error {
	if k.err == nil && k.Left != 0 {
		return fmt.Errorf("handlers were given all but %d of %d bytes", k.Left, len(k.sent))
	}
	return k.err
}
