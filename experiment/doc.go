// Package experiment reproduces published experiments: each file builds the cluster of one, runs it, checks every byte that
// arrives, and returns what was measured.
//
// Numbers are predicted from a profile. Nothing here is fitted to a published result; published values are printed beside.
package experiment
