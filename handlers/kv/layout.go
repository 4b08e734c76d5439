//go:build !tinygo

package kv

// Lay names the places of what lies behind the state in HPU memory, from the
// numbers that the state has of each, and returns the bytes that all takes.
func (s *State) Lay() (behind int) {
	chunk := (int(s.Chunk) + 7) &^ 7
	for _, area := range []struct {
		place *uint32
		bytes int
	}{
		{&s.StripesAt, int(s.Stripes) * StripeSize},
		{&s.StacksAt, (MaxClass + 1) * (StackSize + 8*int(s.Depth))},
		{&s.SlotsAt, int(s.Slots) * SlotSize},
		{&s.BuffersAt, int(s.Buffers) * 2 * chunk},
	} {
		*area.place = uint32(behind)
		behind += area.bytes
	}
	return behind
}
