package manifest

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Check returns the first error in a manifest, nil if there is none.
func (m *Manifest) Check() error {
	if e := m.check(); e != nil {
		return e
	}
	return nil
}

func wrong(field, format string, args ...any) *Error {
	return &Error{Offset: -1, Field: field, Cause: fmt.Sprintf(format, args...)}
}

func (m *Manifest) check() *Error {
	if err := checkName("name", m.Name, "-."); m.Name != "" && err != nil {
		return err
	}
	if err := checkName("version", m.Version, "-.+"); m.Version != "" && err != nil {
		return err
	}
	if err := checkText("description", m.Description); err != nil {
		return err
	}
	for i, s := range m.States {
		at := fmt.Sprintf("states[%d]", i)
		if slices.ContainsFunc(m.States[:i], func(o *State) bool { return o.Name == s.Name }) {
			return wrong(at+".name", "%s is the name of another state", s.Name)
		}
		if err := s.check(at); err != nil {
			return err
		}
	}
	for i := range m.Handlers {
		if err := m.checkHandler(i); err != nil {
			return err
		}
	}
	return m.Needs.check("needs")
}

func (m *Manifest) checkHandler(i int) *Error {
	h, at := &m.Handlers[i], fmt.Sprintf("handlers[%d]", i)
	switch {
	case h.Export == "" || len(h.Export) > maxText || !printable(h.Export):
		return wrong(at+".export", "%q, expected 1 to %d bytes that can be printed", clip(h.Export), maxText)
	case slices.ContainsFunc(m.Handlers[:i], func(o Handler) bool { return o.Export == h.Export }):
		return wrong(at+".export", "%s is listed twice", h.Export)
	case h.Kind != "" && !slices.Contains(Kinds(), h.Kind):
		return wrong(at+".kind", "%q, expected one of %s", clip(string(h.Kind)), list(Kinds()))
	case h.State != "" && m.State(h.State) == nil:
		return wrong(at+".state", "there is no state %q", clip(h.State))
	case h.Set != "" && h.Kind == "":
		return wrong(at+".kind", "expected one of %s, for a handler of a set", list(Kinds()))
	case h.Set != "" && slices.ContainsFunc(m.Handlers[:i], func(o Handler) bool { return o.Set == h.Set && o.Kind == h.Kind }):
		return wrong(at+".set", "%s has two %s handlers", clip(h.Set), h.Kind)
	}
	if h.Set != "" {
		if err := checkName(at+".set", h.Set, "-"); err != nil {
			return err
		}
	}
	if err := h.Needs.check(at + ".needs"); err != nil {
		return err
	}
	if field, what := h.Needs.notFor(h.Kind); h.Kind != "" && what != "" {
		return wrong(at+".needs."+field, "%s, this is a %s handler", what, h.Kind)
	}
	return checkText(at+".description", h.Description)
}

func (s *State) check(at string) *Error {
	if err := checkName(at+".name", s.Name, ""); err != nil {
		return err
	}
	if err := checkText(at+".description", s.Description); err != nil {
		return err
	}
	if s.Size < 0 || s.Size > maxState {
		return wrong(at+".size", "%d, expected 0 to %d bytes", s.Size, int64(maxState))
	}
	return checkFields(at, s.Fields, s.Size)
}

// checkFields checks fields in an area of size bytes, in the order of their
// offsets.
func checkFields(at string, fields []Field, size int64) *Error {
	end := int64(0)
	names := make(map[string]bool, len(fields))
	for i := range fields {
		f, at := &fields[i], fmt.Sprintf("%s.fields[%d]", at, i)
		if err := f.check(at); err != nil {
			return err
		}
		if names[f.Name] {
			return wrong(at+".name", "%s is the name of another field", f.Name)
		}
		names[f.Name] = true
		if f.Offset < end {
			return wrong(at+".offset", "%d, but the field before ends at %d", f.Offset, end)
		}
		n, ok := f.Bytes()
		if !ok || f.Offset > size-n {
			return wrong(at, "%s ends behind the %d bytes that it lies in", f.Name, size)
		}
		end = f.Offset + n
	}
	return nil
}

func (f *Field) check(at string) *Error {
	if err := checkName(at+".name", f.Name, ""); err != nil {
		return err
	}
	if err := checkText(at+".description", f.Description); err != nil {
		return err
	}
	if len(f.Dims) > maxDims {
		return wrong(at+".array", "%d dimensions, expected at most %d", len(f.Dims), maxDims)
	}
	for i, n := range f.Dims {
		if n < 1 || n > maxState {
			return wrong(fmt.Sprintf("%s.array[%d]", at, i), "%d, expected at least 1 element", n)
		}
	}
	if f.Type == "" {
		return f.checkStruct(at)
	}
	switch {
	case !slices.Contains(Types(), f.Type):
		return wrong(at+".type", "%q, expected one of %s", clip(string(f.Type)), list(Types()))
	case f.Size != 0 || f.Fields != nil:
		return wrong(at, "a number has no size and no fields of its own")
	case len(f.Unit) > maxName || !printable(f.Unit):
		return wrong(at+".unit", "%q, expected at most %d bytes that can be printed", clip(f.Unit), maxName)
	}
	return f.checkNumbers(at)
}

func (f *Field) checkStruct(at string) *Error {
	switch {
	case f.Unit != "" || f.Default.IsSet() || f.Min.IsSet() || f.Max.IsSet():
		return wrong(at, "only a number has a unit, a default and a range: expected a type")
	case f.Fields == nil:
		return wrong(at, "expected a type or fields")
	case f.Size < 1 || f.Size > maxState:
		return wrong(at+".size", "%d, expected 1 to %d bytes", f.Size, int64(maxState))
	}
	return checkFields(at, f.Fields, f.Size)
}

// checkNumbers checks default and range as far as they do not depend on the
// device.
func (f *Field) checkNumbers(at string) *Error {
	for _, x := range []struct {
		name string
		e    Expr
	}{{"min", f.Min}, {"max", f.Max}, {"default", f.Default}} {
		if !x.e.IsSet() {
			continue
		}
		if !x.e.Whole() && !f.Type.Float() {
			return wrong(at+"."+x.name, "%s, expected a whole number for %s", x.e, f.Type)
		}
		if !x.e.Constant() {
			continue
		}
		v, err := f.value(x.e, nil)
		if err == nil && x.name == "default" {
			err = f.inRange(v, nil)
		}
		if err != nil && !errors.Is(err, errDevice) {
			return wrong(at+"."+x.name, "%v", err)
		}
	}
	least, err := f.Min.Int(nil)
	most, also := f.Max.Int(nil)
	if f.Min.IsSet() && f.Max.IsSet() && err == nil && also == nil && least.Cmp(most) > 0 {
		return wrong(at+".max", "%v, expected at least the min of %v", most, least)
	}
	return nil
}

func (n *Needs) check(at string) *Error {
	for _, x := range []struct {
		name string
		e    Expr
	}{{"memory", n.Memory}, {"host_memory", n.HostMemory}, {"scratchpad", n.Scratchpad}, {"message_memory", n.MessageMemory}, {"messages", n.Messages}} {
		if _, err := x.e.Between(nil, 0, maxState); err != nil && !errors.Is(err, errDevice) {
			return wrong(at+"."+x.name, "%v", err)
		}
	}
	if n.Messages.IsSet() && !n.MessageMemory.IsSet() {
		return wrong(at+".messages", "needs message_memory")
	}
	if n.UserHeader > maxState {
		return wrong(at+".user_header", "%d, expected at most %d bytes", n.UserHeader, int64(maxState))
	}
	for i, s := range n.Spaces {
		if s != EntryMemory && s != HandlerMemory && s != GrantedMemory || slices.Contains(n.Spaces[:i], s) {
			return wrong(fmt.Sprintf("%s.spaces[%d]", at, i), "%q, expected %s, %s or %s, each once", clip(string(s)), EntryMemory, HandlerMemory, GrantedMemory)
		}
	}
	if n.HostMemory.IsSet() && !slices.Contains(n.Spaces, HandlerMemory) {
		return wrong(at+".host_memory", "needs %s among the spaces", HandlerMemory)
	}
	for _, x := range []struct {
		name    string
		options []string
	}{{"entry_options", n.EntryOptions}, {"pt_options", n.PTOptions}} {
		for i, o := range x.options {
			field := fmt.Sprintf("%s.%s[%d]", at, x.name, i)
			if err := checkName(field, o, ""); err != nil {
				return err
			}
			if slices.Contains(x.options[:i], o) {
				return wrong(field, "%s is listed twice", o)
			}
		}
	}
	for i, k := range n.Packets {
		if k != FirstPacket && k != LastPacket || slices.Contains(n.Packets[:i], k) {
			return wrong(fmt.Sprintf("%s.packets[%d]", at, i), "%q, expected %s or %s, each once", clip(string(k)), FirstPacket, LastPacket)
		}
	}
	if n.Pool != "" && n.Pool != HPUs && n.Pool != Firmware && n.Pool != Hardware {
		return wrong(at+".pool", "%q, expected %s, %s or %s", clip(string(n.Pool)), HPUs, Firmware, Hardware)
	}
	return nil
}

// checkName accepts letters, digits, _ and the characters of more.
func checkName(field, name, more string) *Error {
	ok := name != "" && len(name) <= maxName
	for _, c := range name {
		ok = ok && (c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || strings.ContainsRune(more, c))
	}
	if !ok {
		return wrong(field, "%q, expected 1 to %d letters, digits and any of _%s", clip(name), maxName, more)
	}
	return nil
}

func checkText(field, s string) *Error {
	if len(s) > maxText || !printable(s) {
		return wrong(field, "expected one line of at most %d bytes, without control characters", maxText)
	}
	return nil
}

// printable reports whether a text can be shown. A module must not send control
// sequences to a terminal.
func printable(s string) bool {
	for _, c := range s {
		if c == utf8.RuneError || !unicode.IsPrint(c) {
			return false
		}
	}
	return true
}

func list[T ~string](names []T) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = string(n)
	}
	return strings.Join(out, ", ")
}

// fits reports whether a whole number is within the limits.
func (t Type) fits(x *big.Int) bool {
	bits := int(8 * t.Size())
	switch {
	case !t.Signed():
		return x.Sign() >= 0 && x.BitLen() <= bits
	case x.BitLen() < bits:
		return true
	}
	return x.Sign() < 0 && x.BitLen() == bits && x.TrailingZeroBits() == uint(bits-1)
}

// Limits returns the smallest and the largest whole number of a type.
func (t Type) Limits() (least, most *big.Int) {
	bits := uint(8 * t.Size())
	one := big.NewInt(1)
	if !t.Signed() {
		most = new(big.Int).Lsh(one, bits)
		return new(big.Int), most.Sub(most, one)
	}
	most = new(big.Int).Lsh(one, bits-1)
	least = new(big.Int).Neg(most)
	return least, most.Sub(most, one)
}
