// Package runtime is the cluster: nodes on a fabric, each a host with
// processes, a bus to its memory and a NIC, and the programs that run on them.
//
// A host program is sequential Go code in virtual time (Proc). It opens Portals
// interfaces (NI), whose calls take their time on the program's core; package
// nic carries the messages from there. It reaches its memory through views
// (View), which touch what they read and write: a page that is not there takes
// time to come (host.PageTable). A Cluster is one simulation: an engine, a
// fabric, nodes, programs.
package runtime
