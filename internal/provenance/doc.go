// Package provenance records what produced a result: version, profile with all
// overrides, seed, hash of every handler module, and every input. Every
// document of spinsim has a [Record]. It is enough to make the result again.
package provenance
