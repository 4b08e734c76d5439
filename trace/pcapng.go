package trace

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"

	"github.com/spinsim/spinsim/internal/seal"
	"github.com/spinsim/spinsim/sim"
)

// Link types of pcapng interfaces (tcpdump.org/linktypes.html).
const (
	LinkRaw   uint16 = 101 // a packet of IP
	LinkUser0 uint16 = 147 // a private layout: see package internal/capture
)

// Pcapng writes a capture file in version 1.0 of the pcapng format
// (draft-ietf-opsawg-pcapng): interfaces, then packets. Virtual time is written
// as nanoseconds since 1970. Readers show no finer times.
type Pcapng struct {
	out        *bufio.Writer
	sealed     *seal.Writer // below out
	mark       *seal.Mark   // nil: without a seal
	block      []byte       // scratch
	interfaces int
	err        error
}

// Types of blocks and options, and the byte-order magic of the format.
const (
	blockSection   = 0x0A0D0D0A
	blockInterface = 1
	blockNames     = 4
	blockPacket    = 6
	orderMagic     = 0x1A2B3C4D

	optionEnd        = 0
	optionComment    = 1
	optionName       = 2 // of an interface: its name
	optionUser       = 4 // of a section: the application
	optionResolution = 9 // if_tsresol
	optionFlags      = 2 // of a packet: its direction
	nanoseconds      = 9 // resolution 10^-9
)

// Direction is the direction of a packet at the place of capture.
type Direction uint32

// Directions, as in epb_flags.
const (
	Unknown Direction = iota
	Inbound
	Outbound
)

// NewPcapng begins a file. application names the program, and comment describes
// the capture.
func NewPcapng(out io.Writer, application, comment string) *Pcapng {
	w := &Pcapng{sealed: seal.NewWriter(out)}
	w.out = bufio.NewWriter(w.sealed)
	w.begin()
	w.block = binary.LittleEndian.AppendUint32(w.block, orderMagic)
	w.block = binary.LittleEndian.AppendUint16(w.block, 1)
	w.block = binary.LittleEndian.AppendUint16(w.block, 0)
	// section length: not specified
	w.block = binary.LittleEndian.AppendUint64(w.block, ^uint64(0))
	w.option(optionComment, []byte(comment))
	w.option(optionUser, []byte(application))
	w.end(blockSection)
	return w
}

// Interface adds an interface and returns its number.
func (w *Pcapng) Interface(name string, linkType uint16) int {
	w.begin()
	w.block = binary.LittleEndian.AppendUint16(w.block, linkType)
	w.block = binary.LittleEndian.AppendUint16(w.block, 0)
	w.block = binary.LittleEndian.AppendUint32(w.block, 0) // packets are whole
	w.option(optionName, []byte(name))
	w.option(optionResolution, []byte{nanoseconds})
	w.end(blockInterface)
	w.interfaces++
	return w.interfaces - 1
}

// Packet adds a packet of an interface. It panics if there is no such
// interface: a programmer's mistake.
func (w *Pcapng) Packet(number int, at sim.Time, d Direction, data []byte) {
	if number < 0 || number >= w.interfaces {
		panic("trace: a packet of an interface that there is not") //lint:panic programmer's mistake
	}
	ns := uint64(max(0, at/sim.Nanosecond)) //nolint:gosec // not negative
	w.begin()
	w.block = binary.LittleEndian.AppendUint32(w.block, uint32(number)) //nolint:gosec // few
	w.block = binary.LittleEndian.AppendUint32(w.block, uint32(ns>>32)) //nolint:gosec // the upper half
	w.block = binary.LittleEndian.AppendUint32(w.block, uint32(ns))     //nolint:gosec // the lower half
	w.block = binary.LittleEndian.AppendUint32(w.block, uint32(len(data)))
	w.block = binary.LittleEndian.AppendUint32(w.block, uint32(len(data)))
	w.pad(data)
	if d != Unknown {
		w.option(optionFlags, binary.LittleEndian.AppendUint32(nil, uint32(d)))
	}
	w.end(blockPacket)
}

// Seal makes Close end the file with a seal, which "spinsim verify" checks: the
// version of the program, a hash of what the run depends on, and why and where
// it has ended early, or "" if it is complete.
func (w *Pcapng) Seal(program, record, cut string) {
	w.mark = &seal.Mark{Kind: seal.Capture, Program: program, Record: record, Cut: cut}
}

// Close writes the rest. It does not close the caller's writer.
func (w *Pcapng) Close() error {
	if err := errors.Join(w.err, w.out.Flush()); err != nil || w.mark == nil {
		return err
	}
	// a block of names without names: its comment needs no interface
	w.begin()
	w.block = binary.LittleEndian.AppendUint32(w.block, 0) // the end of the names
	w.option(optionComment, []byte(w.mark.String()))
	w.finish(blockNames)
	return w.sealed.Seal(*w.mark, w.block)
}

// begin leaves room for type and length.
func (w *Pcapng) begin() { w.block = append(w.block[:0], 0, 0, 0, 0, 0, 0, 0, 0) }

func (w *Pcapng) pad(data []byte) {
	w.block = append(w.block, data...)
	for len(w.block)%4 != 0 {
		w.block = append(w.block, 0)
	}
}

// longestOption is the maximum length of an option's value in bytes.
const longestOption = 1<<16 - 1

func (w *Pcapng) option(code uint16, value []byte) {
	value = value[:min(len(value), longestOption)]
	w.block = binary.LittleEndian.AppendUint16(w.block, code)
	w.block = binary.LittleEndian.AppendUint16(w.block, uint16(len(value))) //nolint:gosec // cut off above
	w.pad(value)
}

// end finishes the block and writes it.
func (w *Pcapng) end(kind uint32) {
	w.finish(kind)
	if _, err := w.out.Write(w.block); err != nil && w.err == nil {
		w.err = err
	}
}

// finish closes the options, and sets type and length.
func (w *Pcapng) finish(kind uint32) {
	w.option(optionEnd, nil)
	length := uint32(len(w.block) + 4) //nolint:gosec // a packet and its options
	w.block = binary.LittleEndian.AppendUint32(w.block, length)
	binary.LittleEndian.PutUint32(w.block, kind)
	binary.LittleEndian.PutUint32(w.block[4:], length)
}
