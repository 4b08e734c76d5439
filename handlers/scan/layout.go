//go:build !tinygo

package scan

// Lay names the places of what lies behind the state in HPU memory, and returns
// the bytes that it takes.
func (s *State) Lay() (behind int) {
	s.SlotsAt = 0
	s.BuffAt = s.Slots * SlotSize
	return int(s.BuffAt) + int(s.Buffers)*2*((int(s.Chunk)+7)&^7)
}
