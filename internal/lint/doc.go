// Package lint tests the rules of this repository that no public linter has:
// which package imports which, what a simulation package must not use, how long
// a function may be. `go test ./internal/lint` reports each mistake with its
// place.
//
// To break a rule, write a comment with its reason on the line, or on the line
// above it:
//
//	for k := range set { //lint:maporder the sum does not depend on the order
//
// The name of a rule is the name of its subtest. A marker without a reason does
// not count.
package lint
