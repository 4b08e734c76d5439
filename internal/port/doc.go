// Package port brings handlers of other projects here without a hand on them:
// PsPIN, FPsPIN, OSMOSIS and the toolchain of the sPIN paper. It finds the
// sources and the Makefiles of a checkout, builds each set of handlers, writes
// a scenario for it, runs that, and reports what it could not know.
//
//	makefile.go  reads the variables of a foreign Makefile, and executes nothing
//	source.go    reads C as far as names go: handlers, sets, states
//	find.go      the programs of a checkout and their sets
//	packets.go   packets with the headers that the handlers read
//	models*.go   what published examples compute, in our words
//	scenario.go  the scenario of a set
//	port.go      builds, runs and reports
package port
