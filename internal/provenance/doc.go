// Package provenance says what produced a result: version, profile with all
// overrides, seed, hash of every handler module and every input. A [Record]
// stands in every document that spinsim writes; what it holds is enough to make
// the result again.
package provenance
