package handlerlab

import (
	"fmt"
	"io"
	"math"
	"reflect"
	"strings"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/internal/manifest"
	"github.com/spinsim/spinsim/internal/visible"
	"github.com/spinsim/spinsim/profile"
)

// Said is the manifest of a module, with its needs evaluated for the device. If
// the needs depend on the number of nodes, there are two nodes.
type Said struct {
	*manifest.Manifest
	HPUMemory  int64 `json:"hpu_memory_bytes"`  // for its largest state and the memory behind it
	HostMemory int64 `json:"host_memory_bytes"` // handler host memory
}

// MarshalJSON writes the manifest as it is in the module, with the needs beside
// it.
func (s *Said) MarshalJSON() ([]byte, error) {
	text, err := s.Encode()
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(text[:len(text)-1], `,"needs_on_device":{"hpu_memory_bytes":%d,"host_memory_bytes":%d}}`, s.HPUMemory, s.HostMemory), nil
}

// needs notes the manifest and whether the device has the needed resources. It
// returns the HPU memory for the memory map: at least as much as is needed.
func (in *Inspection) needs(m *hpu.Module, p *profile.Profile, hpuMemory int) int {
	s := &Said{Manifest: m.Manifest()}
	in.Manifest = s
	d := handlers.DeviceOf(p, 0, 2)
	for _, state := range s.States {
		s.HPUMemory = max(s.HPUMemory, state.Size)
	}
	all := s.Needs
	for i := range s.Handlers {
		all = all.And(&s.Handlers[i].Needs)
	}
	for _, x := range []struct {
		what string
		e    manifest.Expr
		sum  *int64
	}{{"needs.memory", all.Memory, &s.HPUMemory}, {"needs.host_memory", all.HostMemory, &s.HostMemory}} {
		n, err := x.e.Between(d, 0, math.MaxUint32)
		if err != nil {
			in.Reasons = append(in.Reasons, Reason{Offset: -1, Cause: fmt.Sprintf("manifest: %s: %v", x.what, err)})
		}
		*x.sum += n
	}
	if m, err := all.Memories(d, s.HPUMemory); err != nil {
		in.Reasons = append(in.Reasons, Reason{Offset: -1, Cause: fmt.Sprintf("manifest: needs.%v", err)})
	} else {
		s.HPUMemory = m.End
	}
	if _, _, err := handlers.OptionsOf(all.EntryOptions, all.PTOptions); err != nil {
		in.Reasons = append(in.Reasons, Reason{Offset: -1, Cause: fmt.Sprintf("manifest: needs %v", err)})
	}
	in.refused(s, all.UserHeader, p)
	return int(max(int64(hpuMemory), min(s.HPUMemory, math.MaxUint32)))
}

// refused adds the reasons why the device would refuse to install the module.
func (in *Inspection) refused(s *Said, userHeader int64, p *profile.Profile) {
	for _, state := range s.States {
		if most := int64(p.Limits.MaxInitialState); state.Size > most {
			in.Reasons = append(in.Reasons, Reason{Offset: -1, Cause: fmt.Sprintf("state %s of %d bytes, at most %d (limits.max_initial_state)", state.Name, state.Size, most)})
		}
	}
	if most := min(int64(p.Limits.MaxUserHdrSize), int64(p.Fabric.MTU)); userHeader > most {
		in.Reasons = append(in.Reasons, Reason{Offset: -1, Cause: fmt.Sprintf("user header of %d bytes, at most %d (limits.max_user_hdr_size, fabric.mtu)", userHeader, most)})
	}
}

// said writes the handlers and the manifest of the module.
func (in *Inspection) said(t io.Writer, row func(...any)) {
	s := in.Manifest
	if s != nil {
		name := strings.TrimSpace(in.Library + " " + s.Version)
		if s.Description != "" {
			name += ": " + s.Description
		}
		fmt.Fprintf(t, "library %s\n", visible.Line(name))
	}
	if len(in.Exports) > 0 {
		fmt.Fprintln(t, "\nhandlers")
	}
	for _, x := range in.Exports {
		note := "never suspends"
		if x.MaySuspend {
			note = "may suspend"
		}
		if x.Bounded {
			note += fmt.Sprintf(", %d B of stack", x.Stack)
		} else {
			note += fmt.Sprintf(", %d B of stack and more: no bound", x.Stack)
		}
		var h *manifest.Handler
		if s != nil {
			h = s.Handler(x.Name)
		}
		if h == nil {
			row(x.Name, note)
			continue
		}
		row(x.Name, h.Kind, h.State, strings.TrimPrefix(note+inSet(h.Set), ", "), h.Description)
	}
	if s == nil {
		return
	}
	for _, state := range s.States {
		fmt.Fprintf(t, "\nstate %s, %d B", visible.Line(state.Name), state.Size)
		if state.Description != "" {
			fmt.Fprintf(t, ": %s", visible.Line(state.Description))
		}
		fmt.Fprintln(t)
		row("", "offset", "type", "unit", "default", "range", "")
		fieldRows("", 0, state.Fields, row)
	}
	in.needTable(t, row)
}

// fieldRows writes the fields of a state. The fields of a struct are below it.
func fieldRows(prefix string, at int64, fields []manifest.Field, row func(...any)) {
	for i := range fields {
		f := &fields[i]
		name := prefix + f.Name
		for _, n := range f.Dims {
			name += fmt.Sprintf("[%d]", n)
		}
		if f.Type == "" {
			row(name, fmt.Sprintf("+%d", at+f.Offset), fmt.Sprintf("%d B", f.Size), "", "", "", f.Description)
			fieldRows(name+".", at+f.Offset, f.Fields, row)
			continue
		}
		row(name, fmt.Sprintf("+%d", at+f.Offset), f.Type, f.Unit, f.Default, rangeText(f), f.Description)
	}
}

// rangeText formats the range of a field for people.
func rangeText(f *manifest.Field) string {
	switch {
	case f.Min.IsSet() && f.Max.IsSet():
		return fmt.Sprintf("%v to %v", f.Min, f.Max)
	case f.Min.IsSet():
		return fmt.Sprintf("from %v", f.Min)
	case f.Max.IsSet():
		return fmt.Sprintf("to %v", f.Max)
	}
	return ""
}

// needTable writes the needs of the library, and the further needs of each
// handler.
func (in *Inspection) needTable(t io.Writer, row func(...any)) {
	n := &in.Manifest.Needs
	fmt.Fprintln(t, "\nneeds")
	memory := fmt.Sprintf("%d B", in.Manifest.HPUMemory)
	if n.Memory.IsSet() {
		memory += fmt.Sprintf(", of them %v behind the state", n.Memory)
	}
	row("HPU memory", memory)
	in.needRows(n, row)
	for i := range in.Manifest.Handlers {
		h := &in.Manifest.Handlers[i]
		if reflect.ValueOf(h.Needs).IsZero() {
			continue
		}
		fmt.Fprintf(t, "\nneeds of %s\n", visible.Line(h.Export))
		if h.Needs.Memory.IsSet() {
			row("HPU memory", fmt.Sprintf("%v behind the state", h.Needs.Memory))
		}
		in.needRows(&h.Needs, row)
	}
}

// needRows writes the needs, except HPU memory.
func (in *Inspection) needRows(n *manifest.Needs, row func(...any)) {
	for _, x := range []struct {
		what string
		e    manifest.Expr
	}{{"scratchpad of a cluster", n.Scratchpad}, {"memory of a message", n.MessageMemory}, {"messages at once", n.Messages}} {
		if x.e.IsSet() {
			row(x.what, x.e)
		}
	}
	if n.UserHeader > 0 {
		row("user header", fmt.Sprintf("%d B", n.UserHeader))
	}
	var spaces []string
	for _, s := range n.Spaces {
		switch {
		case s == manifest.EntryMemory:
			spaces = append(spaces, "that of the entry")
		case s == manifest.GrantedMemory:
			spaces = append(spaces, "what other processes have granted")
		case n.HostMemory.IsSet():
			spaces = append(spaces, fmt.Sprintf("that of handlers, %d B", in.Manifest.HostMemory))
		default:
			spaces = append(spaces, "that of handlers")
		}
	}
	for _, x := range []struct {
		what string
		list []string
	}{{"host memory", spaces}, {"options of the entry", n.EntryOptions}, {"options of the portal table", n.PTOptions}} {
		if len(x.list) > 0 {
			row(x.what, strings.Join(x.list, ", "))
		}
	}
	for _, k := range n.Packets {
		row("whole packet", map[manifest.Packet]string{manifest.FirstPacket: "the first, in the header handler", manifest.LastPacket: "the last, in the completion handler"}[k])
	}
	if n.Pool != "" {
		row("processors", n.Pool)
	}
}

func inSet(name string) string {
	if name == "" {
		return ""
	}
	return ", set " + name
}
