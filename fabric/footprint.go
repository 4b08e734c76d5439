package fabric

import "unsafe"

// Idle estimates the memory, in bytes, that the unused part of a torus or of
// ExaNeSt's boards takes when the network has so many nodes. The whole network
// is built, however few nodes a run has. Networks of other kinds are no larger
// than their nodes need.
func Idle(spec *Spec, nodes int) int64 {
	var places, switches, links, channels int64
	switch q, is := spec.QFDBs(); {
	case is:
		boards := int64(q.Boards())
		places, switches, links, channels = int64(q.Nodes()), boards*boardSwitches, boards*boardLinks, int64(spec.Exanest.Channels)
	case spec.Kind == Torus && spec.Validate() == nil:
		t := newTorus(spec.Dims, nodes)
		places, switches, links, channels = int64(t.count), int64(t.count), int64(t.count)*int64(t.ports), int64(t.Channels())
	default:
		return 0
	}
	const actor = 32 // of package sim
	each := int64(unsafe.Sizeof(link{})) + 1 + 2
	if len(spec.Buffer) > 0 {
		each += int64(unsafe.Sizeof(lane{})) << laneShift(int(channels))
	}
	return (links*each + switches*actor) / places * max(0, places-int64(nodes))
}
