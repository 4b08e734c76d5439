// Package handlerlab runs one handler module on one simulated device and
// reports everything it did.
//
// The device is not a mock. A run is a cluster of package runtime: other nodes
// send the messages over the network of the profile to node 0. There they match
// an entry with the handlers. Times are simulated times.
//
//	packets.go   the messages to send, read from text
//	state.go     the state of the handlers: typed values or bytes
//	cluster.go   the checks of a run, and the programs of its nodes
//	record.go    records the steps of the handlers
//	report.go    the results of a run
//	text.go      the same for people
//	experiment.go  runs as points of an experiment
//	expect.go    compares a report with a file
//	inspect.go   checks a module for a device, without running it
package handlerlab
