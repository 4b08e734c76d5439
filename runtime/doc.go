// Package runtime builds a cluster and runs its programs. A cluster is a set of
// nodes on a fabric. Each node is a host with processes, a bus to its memory,
// and a NIC.
//
// A host program is sequential Go code in virtual time (Proc). It opens Portals
// interfaces (NI). Their calls take time on the program's core; package nic
// then carries the messages. The program reaches its memory through views
// (View). A view touches what the program reads and writes: an absent page
// takes time to bring in (host.PageTable). A Cluster is one simulation: an
// engine, a fabric, nodes, programs.
package runtime
