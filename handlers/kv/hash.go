package kv

import "encoding/binary"

// Hash begins and ends with these; between them [Mix] takes words of 8 bytes,
// the last filled up with zeros.
const (
	hashSeed = 0x9e3779b97f4a7c15
	hashBy   = 0xff51afd7ed558ccd
	hashEnd  = 0xc4ceb9fe1a85ec53
)

// Begin is the hash of nothing yet, of a key of n bytes.
func Begin(n uint64) uint64 { return (n + 1) * hashSeed }

// Mix adds bytes; all but the last time they are a multiple of 8.
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

// End is the hash of a key whose bytes have been mixed.
func End(h uint64) uint64 {
	h ^= h >> 33
	h *= hashBy
	h ^= h >> 33
	h *= hashEnd
	return h ^ h>>33
}

// Hash is that of a key.
func Hash(key []byte) uint64 { return End(Mix(Begin(uint64(len(key))), key)) }

// checksum proves an item: its version, key and value.
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

// AnswerData is the hdr_data of the packets of an answer: what the client has
// called the request, and how many bytes the answer has in all.
func AnswerData(tag, length uint64) uint64 { return tag<<32 | length }
