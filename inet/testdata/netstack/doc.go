// Package netstack compares package inet with another implementation of TCP, gVisor's: tests only, in a module of its own, so that nobody else fetches it.
//
//	go -C inet/testdata/netstack test ./...
package netstack
