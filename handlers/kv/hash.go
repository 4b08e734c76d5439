package kv

import "encoding/binary"

// Hash begins and ends with these constants. Between, [Mix] takes words of 8
// bytes; the last one is filled up with zeros.
const (
	hashSeed = 0x9e3779b97f4a7c15
	hashBy   = 0xff51afd7ed558ccd
	hashEnd  = 0xc4ceb9fe1a85ec53
)

// Begin returns the initial hash of a key of n bytes.
func Begin(n uint64) uint64 { return (n + 1) * hashSeed }

// Mix adds bytes. Their number is a multiple of 8, except the last time.
func Mix(h uint64, b []byte) uint64 {
	for len(b) >= 8 {
		h = (h ^ binary.LittleEndian.Uint64(b)) * hashBy
		h ^= h >> 29
		b = b[8:]
	}
	if len(b) > 0 {
		var last uint64
		for i := len(b) - 1; i >= 0; i-- {
			last = last<<8 | uint64(b[i])
		}
		h = (h ^ last) * hashBy
		h ^= h >> 29
	}
	return h
}

// End returns the hash of a key after its bytes were mixed.
func End(h uint64) uint64 {
	h ^= h >> 33
	h *= hashBy
	h ^= h >> 33
	h *= hashEnd
	return h ^ h>>33
}

// Hash returns the hash of a key.
func Hash(key []byte) uint64 { return End(Mix(Begin(uint64(len(key))), key)) }

// checksum is the checksum of an item: its version, key and value.
func checksum(version uint64, b []byte) uint64 { return End(Mix(Begin(version), b)) }

// Same compares two keys.
func Same(a, b []byte) bool {
	if len(a) != len(b) {
		return false
	}
	for len(a) >= 8 {
		if binary.LittleEndian.Uint64(a) != binary.LittleEndian.Uint64(b) {
			return false
		}
		a, b = a[8:], b[8:]
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// AnswerData returns the hdr_data of the packets of an answer: the client's tag
// of the request, and the length of the whole answer in bytes.
func AnswerData(tag, length uint64) uint64 { return tag<<32 | length }
