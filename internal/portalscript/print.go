package portalscript

import (
	"fmt"
	"strings"

	"github.com/spinsim/spinsim/portals"
)

// eventText returns a line for an event: its type, its fail type if it is not
// OK, and the fields that have a meaning for the type and are not zero.
func eventText(ni *portals.NI, ev *portals.Event) string {
	var b strings.Builder
	b.WriteString(ev.Type.String())
	add := func(format string, args ...any) { fmt.Fprintf(&b, " "+format, args...) }
	if ev.Fail != portals.NIOK {
		add("%v", ev.Fail)
	}
	switch ev.Type {
	case portals.EventSend, portals.EventAck, portals.EventReply:
		add("mlength=%d", ev.MLength)
		if ev.RemoteOffset != 0 {
			add("roff=%d", ev.RemoteOffset)
		}
	case portals.EventPTDisabled:
		add("pt=%d", ev.PTIndex)
		return b.String()
	case portals.EventLink, portals.EventAutoUnlink, portals.EventAutoFree:
	default:
		if ev.Fail != portals.NINoMatch {
			targetText(ni, ev, add)
		}
	}
	if ev.UserPtr != 0 {
		add("user=%d", ev.UserPtr)
	}
	if ev.List == portals.OverflowList {
		add("overflow")
	}
	return b.String()
}

func targetText(ni *portals.NI, ev *portals.Event, add func(string, ...any)) {
	add("from=%v", nameOfProcess(ni, ev.Initiator))
	if ev.PTIndex != 0 {
		add("pt=%d", ev.PTIndex)
	}
	if ev.MatchBits != 0 {
		add("bits=%#x", ev.MatchBits)
	}
	if ev.HdrData != 0 {
		add("hdr=%#x", ev.HdrData)
	}
	if ev.UID != 0 {
		add("uid=%d", ev.UID)
	}
	add("start=%#x", ev.Start)
	if ev.RLength == ev.MLength {
		add("length=%d", ev.MLength)
	} else {
		add("rlength=%d mlength=%d", ev.RLength, ev.MLength)
	}
	if ev.RemoteOffset != 0 {
		add("roff=%d", ev.RemoteOffset)
	}
	switch ev.Type {
	case portals.EventAtomic, portals.EventAtomicOverflow, portals.EventFetchAtomic, portals.EventFetchAtomicOverflow:
		add("%v %v", ev.AtomicOp, ev.AtomicType)
	}
}

func nameOfProcess(ni *portals.NI, id portals.ID) string {
	if ni.Kind().Logical() {
		return portals.RankID(id.Rank).String()
	}
	return portals.PhysID(id.NID, id.PID).String()
}
