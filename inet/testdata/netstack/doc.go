// Package netstack compares package inet with another implementation of TCP,
// gVisor's. It has only tests, and is a separate module, so that only its users
// fetch gVisor.
//
//	go -C inet/testdata/netstack test ./...
package netstack
