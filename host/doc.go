// Package host models the processor and the operating system of a node: busy
// cores, shared memory bandwidth, address spaces and the states of their pages.
// A host has no network. Package runtime makes host programs use it and charges
// their time here.
package host
