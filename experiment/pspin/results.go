package pspin

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/spinsim/spinsim/experiment"
)

// Sizes of the headers of a packet, bytes.
const (
	ipHeader  = 20
	udpHeader = 8
)

// results are what the handlers of an example leave when packets that are equal
// have come one after the other. nil: they leave nothing of that kind.
type results struct {
	host    []byte // the memory of the entry
	reply   []byte // what the source gets back
	sums    bool   // in the scratchpads
	packets int
}

// resultsOf is what PsPIN's example of a name does with packets.
func resultsOf(example string, packet []byte, packets int) results {
	r := results{packets: packets}
	switch example {
	case "copy_to_host":
		r.host = packet
	case "filtering":
		r.host = bytes.Clone(packet)
		clear(r.host[:4]) // the table is empty
	case "ping_pong":
		r.reply = bytes.Clone(packet)
		copy(r.reply[12:16], packet[16:20])
		copy(r.reply[16:20], packet[12:16])
		copy(r.reply[ipHeader:], packet[ipHeader+2:ipHeader+4])
		copy(r.reply[ipHeader+2:], packet[ipHeader:ipHeader+2])
	case "aggregate":
		r.sums = true
	}
	return r
}

// answered is an error unless each packet has one reply, if packets have replies.
func (r *results) answered(w *packetRun) error {
	if r.reply == nil {
		return nil
	}
	v, err := w.arrived.NI.Objects().CTGet(w.arrived.CT)
	if sent := w.messages * w.each * w.Int("size"); err == nil && int(v.Success) != sent {
		err = fmt.Errorf("%d bytes of replies came, expected %d", v.Success, sent)
	}
	return err
}

// check compares the results with the memory of a run.
func (r *results) check(w *packetRun) error {
	if r.reply != nil {
		if err := experiment.SameBytes("the reply", w.back.Read(), r.reply); err != nil {
			return err
		}
	}
	if r.host != nil {
		if err := experiment.SameBytes("host memory", w.entry.Read(), r.host); err != nil {
			return err
		}
	}
	if !r.sums {
		return nil
	}
	var one, all uint32
	packet := w.message()
	for at := ipHeader + udpHeader; at+4 <= len(packet); at += 4 {
		one += binary.LittleEndian.Uint32(packet[at:])
	}
	pads := w.in.Spin.Scratchpads
	words := w.in.HPU.Bytes()[pads.Offset:]
	for cluster := range w.Profile.HPU.Clusters {
		all += binary.LittleEndian.Uint32(words[cluster*int(pads.Bytes)+4*cluster:])
	}
	if want := one * uint32(r.packets); all != want {
		return fmt.Errorf("the scratchpads add up to %d, expected %d: the words of %d packets", all, want, r.packets)
	}
	return nil
}
