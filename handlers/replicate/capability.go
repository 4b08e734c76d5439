package replicate

import (
	"math/bits"
	"structs"
)

// Capability is the user header of a request to guarded servers: the right of
// one process to a range of the memory, until an epoch. The owner of the key
// issues it ([Grant]). A capability with a changed bit is invalid.
type Capability struct {
	_         structs.HostLayout
	Low, High uint64 // bytes of the memory from Low up to High
	NID, PID  uint32 // its process
	Rights    uint32 // MayRead and MayWrite
	Expires   uint32 // the last epoch in which it is valid
	MAC       uint64 // SipHash-2-4 of the fields above
}

// Rights of a capability.
const (
	MayRead  = 1
	MayWrite = 2
)

// Fetch is the user header of a read from guarded servers. The header data is
// the place in the client's entry for the bytes.
type Fetch struct {
	_              structs.HostLayout
	Capability     Capability
	Offset, Length uint64 // bytes
}

// Sizes of user headers, bytes.
const (
	CapabilitySize = 40
	FetchSize      = CapabilitySize + 16
)

// Key is shared by servers and the issuer.
type Key [2]uint64

// Sign returns the right MAC for the capability.
func (c *Capability) Sign(key *Key) uint64 {
	return sip(key, [4]uint64{c.Low, c.High, uint64(c.NID) | uint64(c.PID)<<32, uint64(c.Rights) | uint64(c.Expires)<<32})
}

// sip is SipHash-2-4 (Aumasson, Bernstein, "SipHash: a fast short-input PRF",
// INDOCRYPT'12) of four words, little endian.
func sip(key *Key, message [4]uint64) uint64 {
	s := sipState{key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d, key[0] ^ 0x6c7967656e657261, key[1] ^ 0x7465646279746573}
	for _, word := range message {
		s.absorb(word)
	}
	s.absorb(uint64(len(message)) * 8 << 56)
	s[2] ^= 0xff
	for range 4 {
		s.round()
	}
	return s[0] ^ s[1] ^ s[2] ^ s[3]
}

type sipState [4]uint64

func (s *sipState) absorb(word uint64) {
	s[3] ^= word
	s.round()
	s.round()
	s[0] ^= word
}

func (s *sipState) round() {
	s[0] += s[1]
	s[1] = bits.RotateLeft64(s[1], 13) ^ s[0]
	s[0] = bits.RotateLeft64(s[0], 32)
	s[2] += s[3]
	s[3] = bits.RotateLeft64(s[3], 16) ^ s[2]
	s[0] += s[3]
	s[3] = bits.RotateLeft64(s[3], 21) ^ s[0]
	s[2] += s[1]
	s[1] = bits.RotateLeft64(s[1], 17) ^ s[2]
	s[2] = bits.RotateLeft64(s[2], 32)
}
