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
// have come one after the other.
type results struct {
	host    []byte // the memory of the entry
	reply   []byte // what the source gets back; nil: nothing
	sums    bool   // in the scratchpads; else these stay empty
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

// answered is an error unless each packet has as many replies as it should.
func (r *results) answered(w *packetRun) error {
	v, err := w.arrived.NI.Objects().CTGet(w.arrived.CT)
	want := 0
	if r.reply != nil {
		want = w.messages * w.each * w.Int("size")
	}
	if err == nil && int(v.Success) != want {
		err = fmt.Errorf("%d bytes of replies came, expected %d", v.Success, want)
	}
	return err
}

// check compares the results with the memory of a run.
func (r *results) check(w *packetRun) error {
	for _, c := range []struct {
		what      string
		got, want []byte
	}{{"the reply", w.back.Snapshot(), r.reply}, {"host memory", w.entry.Snapshot(), r.host}} {
		if c.want == nil {
			c.want = make([]byte, len(c.got)) // as it was
		}
		if err := experiment.SameBytes(c.what, c.got, c.want); err != nil {
			return err
		}
	}
	return r.summed(w)
}

// summed compares the words of the scratchpads, which hold a sum of the packets
// or nothing.
func (r *results) summed(w *packetRun) error {
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
	if !r.sums {
		one = 0
	}
	if want := one * uint32(r.packets); all != want {
		return fmt.Errorf("the scratchpads add up to %d, expected %d", all, want)
	}
	return nil
}
