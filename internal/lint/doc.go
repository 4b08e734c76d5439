// Package lint holds the rules of this repository that no public linter knows, as
// tests: who may import whom, what a simulation package must not touch, how long
// a function may be. `go test ./internal/lint` says what is wrong and where.
//
// A rule that must be broken is broken in the open, by a comment on the line or
// the one above it:
//
//	for k := range set { //lint:maporder the sum does not depend on the order
//
// The names of the rules are those of the subtests. A marker without a reason
// does not count.
package lint
