package experiment

import (
	"encoding/binary"
	"fmt"

	"github.com/spinsim/spinsim/nic"
)

// packetCheck compares what payload handlers are given with what was sent, where nothing of it reaches a host.
type packetCheck struct {
	sent []byte // one message
	seen []bool // by the offset of a packet's first byte
	left int    // bytes that no handler was given
	err  error  // the first difference
}

// expect begins to watch for the packets of a message.
func (k *packetCheck) expect(sent []byte) {
	*k = packetCheck{sent: sent, seen: make([]bool, len(sent)), left: len(sent)}
}

// watch answers runtime.Config.Watch.
func (k *packetCheck) watch(s *nic.HandlerStep) {
	if s.What != nic.StepBegan || s.Handler != "payload" || k.err != nil {
		return
	}
	k.err = k.packet(s)
}

// packet checks one packet; its record is that of a payload handler (docs/abi.md).
func (k *packetCheck) packet(s *nic.HandlerStep) error {
	base, n := uint64(binary.LittleEndian.Uint32(s.Record)), uint64(binary.LittleEndian.Uint32(s.Record[4:]))
	at := binary.LittleEndian.Uint64(s.Record[8:])
	switch all := uint64(len(k.sent)); {
	case n == 0 || at > all || n > all-at || base+n > uint64(len(s.Memory)):
		return fmt.Errorf("packet %d has %d bytes for offset %d of a message of %d bytes", s.Packet, n, at, len(k.sent))
	case k.seen[at]:
		return fmt.Errorf("packet %d: the bytes at offset %d came twice", s.Packet, at)
	}
	k.seen[at] = true
	k.left -= int(n)
	return same(fmt.Sprintf("packet %d", s.Packet), s.Memory[base:base+n], k.sent[at:at+n])
}

// complete says what is wrong with the packets that handlers were given; nil: they were the whole message.
func (k *packetCheck) complete() error {
	if k.err == nil && k.left != 0 {
		return fmt.Errorf("handlers were given all but %d of %d bytes", k.left, len(k.sent))
	}
	return k.err
}
