// Package handlerlab runs one handler module on one simulated device and tells
// everything it did.
//
// The device is not a mock: a run is a cluster of package runtime, in which
// other nodes send the messages over the network of the profile to node 0,
// where they meet a match entry with the handlers. Times are those of the
// simulator.
//
//	packets.go   what is sent, read from text
//	state.go     the state of the handlers: typed values or bytes
//	cluster.go   the nodes and their host programs
//	record.go    what the device tells of its handlers
//	report.go    what a run gives: for programs
//	text.go      the same for people
//	expect.go    a report held against a file
//	inspect.go   what a device thinks of a module, without running it
package handlerlab
