package sim

import "math/rand/v2"

// Rand returns a separate random stream for (the engine's seed, stream, ids).
// The same three always give the same numbers, whatever other streams draw. Each
// call starts the stream at its beginning, so keep the result.
func (e *Engine) Rand(stream string, ids ...int) *rand.Rand {
	const offset, prime = 14695981039346656037, 1099511628211 // FNV-1a, 64 bit
	h := uint64(offset)
	for i := range len(stream) {
		h = (h ^ uint64(stream[i])) * prime
	}
	h = mix(h)
	for _, id := range ids {
		h = mix(h ^ uint64(id))
	}
	return rand.New(rand.NewPCG(mix(e.seed), h))
}

// mix is the finaliser of SplitMix64, a bijection that spreads every input bit.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
