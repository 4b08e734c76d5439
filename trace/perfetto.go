package trace

import (
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/spinsim/spinsim/sim"
)

// Field numbers and values from Perfetto's public definitions, as far as this
// package writes them.
const (
	tracePacket protowire.Number = 1 // Trace

	packetTimestamp     protowire.Number = 8 // TracePacket, nanoseconds
	packetSequence      protowire.Number = 10
	packetEvent         protowire.Number = 11
	packetInterned      protowire.Number = 12
	packetFlags         protowire.Number = 13
	packetDescriptor    protowire.Number = 60
	packetFirstOfItsSeq protowire.Number = 87
	packetForTesting    protowire.Number = 900 // no viewer shows it: for the seal
	flagsStateCleared                    = 1
	flagsNeedState                       = 2

	eventAnnotation   protowire.Number = 4 // TrackEvent
	eventType         protowire.Number = 9
	eventNameID       protowire.Number = 10
	eventTrack        protowire.Number = 11
	eventName         protowire.Number = 23
	eventFlow         protowire.Number = 47
	eventCounterValue protowire.Number = 44
	typeSliceBegin                     = 1
	typeSliceEnd                       = 2
	typeInstant                        = 3
	typeCounter                        = 4

	annotationNameID protowire.Number = 1 // DebugAnnotation
	annotationInt    protowire.Number = 4
	annotationText   protowire.Number = 6
	annotationName   protowire.Number = 10

	internedEventName      protowire.Number = 2 // InternedData
	internedAnnotationName protowire.Number = 3
	internedID             protowire.Number = 1 // EventName, DebugAnnotationName
	internedText           protowire.Number = 2

	trackUUID            protowire.Number = 1 // TrackDescriptor
	trackName            protowire.Number = 2
	trackProcess         protowire.Number = 3
	trackParent          protowire.Number = 5
	trackCounter         protowire.Number = 8
	trackChildOrder      protowire.Number = 11
	trackRank            protowire.Number = 12
	trackProcessOrder    protowire.Number = 19
	childOrderExplicit                    = 3
	processOrderExplicit                  = 1

	testText protowire.Number = 1 // TestEvent

	processPID  protowire.Number = 1 // ProcessDescriptor
	processName protowire.Number = 6
)

// maxInterned limits the names that are written once and then referenced by
// number. Further names are written out each time.
const maxInterned = 1 << 16

// sequence identifies the only stream of packets of a file.
const sequence = 1

// intern numbers the names in one index of the trace.
type intern struct {
	field protowire.Number
	ids   map[string]uint64
}

// perfetto encodes trace packets.
type perfetto struct {
	scale       Scale
	names, keys intern
	fresh       []byte // InternedData for the next packet
	event       []byte
	field       []byte
}

func newPerfetto(scale Scale) *perfetto {
	return &perfetto{
		scale: scale,
		names: intern{internedEventName, map[string]uint64{}},
		keys:  intern{internedAnnotationName, map[string]uint64{}},
	}
}

// ticks returns t in the unit of the file.
func (p *perfetto) ticks(t sim.Time) uint64 {
	if p.scale == Picoseconds {
		return uint64(t)
	}
	return uint64(t / sim.Nanosecond)
}

func appendVarint(dst []byte, n protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(dst, n, protowire.VarintType), v)
}

func appendString(dst []byte, n protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(dst, n, protowire.BytesType), s)
}

func appendMessage(dst []byte, n protowire.Number, m []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(dst, n, protowire.BytesType), m)
}

func appendFixed(dst []byte, n protowire.Number, v uint64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(dst, n, protowire.Fixed64Type), v)
}

// header starts the sequence, and requests processes in the order of their
// ranks.
func (p *perfetto) header(dst []byte) []byte {
	root := appendVarint(nil, trackUUID, 0)
	root = appendVarint(root, trackProcessOrder, processOrderExplicit)
	packet := appendMessage(nil, packetDescriptor, root)
	packet = appendVarint(packet, packetSequence, sequence)
	packet = appendVarint(packet, packetFlags, flagsStateCleared)
	packet = appendVarint(packet, packetFirstOfItsSeq, 1)
	return appendMessage(dst, tracePacket, packet)
}

func (p *perfetto) footer(dst []byte, mark string) []byte {
	if mark == "" {
		return dst
	}
	return appendMessage(dst, tracePacket, appendMessage(nil, packetForTesting, appendString(nil, testText, mark)))
}

func (p *perfetto) descriptor(dst, descriptor []byte) []byte {
	packet := appendMessage(nil, packetDescriptor, descriptor)
	packet = appendVarint(packet, packetSequence, sequence)
	packet = appendVarint(packet, packetFlags, flagsNeedState)
	return appendMessage(dst, tracePacket, packet)
}

func (p *perfetto) process(dst []byte, pr *process) []byte {
	name := pr.name
	if p.scale == Picoseconds {
		name += magnified
	}
	inner := appendVarint(nil, processPID, uint64(pr.id))
	inner = appendString(inner, processName, name)
	d := appendVarint(nil, trackUUID, uint64(pr.id))
	d = appendString(d, trackName, name)
	d = appendMessage(d, trackProcess, inner)
	d = appendVarint(d, trackRank, uint64(pr.rank))
	return p.descriptor(dst, d)
}

// below appends the parent of a line, and its rank among its siblings. Perfetto
// ignores the rank of lines directly below a process.
func below(d []byte, t *track, rank int32) []byte {
	parent := uint64(t.process.id)
	if t.parent != nil {
		parent = t.parent.main.id
	}
	d = appendVarint(d, trackParent, parent)
	return appendVarint(d, trackRank, uint64(rank))
}

func (p *perfetto) line(dst []byte, l *lane) []byte {
	d := appendVarint(nil, trackUUID, l.id)
	d = appendString(d, trackName, l.track.name)
	d = below(d, l.track, l.track.rank)
	d = appendVarint(d, trackChildOrder, childOrderExplicit)
	return p.descriptor(dst, d)
}

func (p *perfetto) counterLine(dst []byte, c *counter) []byte {
	d := appendVarint(nil, trackUUID, c.id)
	d = appendString(d, trackName, c.track.name+" "+c.name)
	d = below(d, c.track, c.track.rank)
	d = appendMessage(d, trackCounter, nil)
	return p.descriptor(dst, d)
}

// packet appends the packet for the track event in p.event.
func (p *perfetto) packet(dst []byte, at sim.Time) []byte {
	size := protowire.SizeTag(packetTimestamp) + protowire.SizeVarint(p.ticks(at)) +
		protowire.SizeTag(packetSequence) + protowire.SizeVarint(sequence) +
		protowire.SizeTag(packetFlags) + protowire.SizeVarint(flagsNeedState) +
		protowire.SizeTag(packetEvent) + protowire.SizeBytes(len(p.event))
	if len(p.fresh) > 0 {
		size += protowire.SizeTag(packetInterned) + protowire.SizeBytes(len(p.fresh))
	}
	dst = protowire.AppendVarint(protowire.AppendTag(dst, tracePacket, protowire.BytesType), uint64(size))
	dst = appendVarint(dst, packetTimestamp, p.ticks(at))
	dst = appendVarint(dst, packetSequence, sequence)
	if len(p.fresh) > 0 {
		dst = appendMessage(dst, packetInterned, p.fresh)
		p.fresh = p.fresh[:0]
	}
	dst = appendVarint(dst, packetFlags, flagsNeedState)
	return appendMessage(dst, packetEvent, p.event)
}

// named appends a name. While there is room in the index it is a number, which
// is defined at first use. Later names are written out.
func (p *perfetto) named(dst []byte, in *intern, byID, byText protowire.Number, name string) []byte {
	id, known := in.ids[name]
	if !known {
		if len(in.ids) == maxInterned {
			return appendString(dst, byText, name)
		}
		id = uint64(len(in.ids) + 1)
		in.ids[name] = id
		p.field = appendString(appendVarint(p.field[:0], internedID, id), internedText, name)
		p.fresh = appendMessage(p.fresh, in.field, p.field)
	}
	return appendVarint(dst, byID, id)
}

func (p *perfetto) start(kind, line uint64, e *event) {
	p.event = appendVarint(p.event[:0], eventType, kind)
	p.event = appendVarint(p.event, eventTrack, line)
	p.event = p.named(p.event, &p.names, eventNameID, eventName, e.name)
	for _, flow := range e.flows {
		if flow != 0 {
			p.event = appendFixed(p.event, eventFlow, flow)
		}
	}
	for _, a := range e.args {
		p.annotate(a)
	}
}

func (p *perfetto) annotate(a sim.Arg) {
	annotation := p.named(nil, &p.keys, annotationNameID, annotationName, a.Key)
	if a.Text != "" {
		annotation = appendString(annotation, annotationText, a.Text)
	} else {
		annotation = appendVarint(annotation, annotationInt, uint64(a.Num))
	}
	p.event = appendMessage(p.event, eventAnnotation, annotation)
}

func (p *perfetto) begin(dst []byte, l *lane, e *event) []byte {
	p.start(typeSliceBegin, l.id, e)
	p.annotate(sim.Arg{Key: keyStart, Num: int64(e.from)})
	p.annotate(sim.Arg{Key: keyLength, Num: int64(e.to - e.from)})
	return p.packet(dst, e.from)
}

func (p *perfetto) end(dst []byte, l *lane, at sim.Time) []byte {
	p.event = appendVarint(p.event[:0], eventType, typeSliceEnd)
	p.event = appendVarint(p.event, eventTrack, l.id)
	return p.packet(dst, at)
}

func (p *perfetto) instant(dst []byte, l *lane, e *event) []byte {
	p.start(typeInstant, l.id, e)
	p.annotate(sim.Arg{Key: keyAt, Num: int64(e.from)})
	return p.packet(dst, e.from)
}

func (p *perfetto) counter(dst []byte, c *counter, e *event) []byte {
	p.event = appendVarint(p.event[:0], eventType, typeCounter)
	p.event = appendVarint(p.event, eventTrack, c.id)
	p.event = appendFixed(p.event, eventCounterValue, math.Float64bits(e.value))
	return p.packet(dst, e.from)
}
