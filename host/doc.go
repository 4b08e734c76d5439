// Package host models what a node's processor and operating system do for a
// message: cores that are busy, memory whose bandwidth is shared, and the
// address spaces of processes, with the states of their pages beside them.
//
// A host knows nothing of networks. Package runtime lets host programs use it
// and charges their time here.
package host
