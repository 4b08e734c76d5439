// Package fabric carries packets between nodes. It has links with a rate and a
// length, switches with a traversal time, buffers that may be full, and ports
// by which nodes send and receive.
//
// A [Topology] is data: switches, links and a routing function. Fat trees,
// leaf-spine networks, dragonflies, tori, crossbars, the boards of ExaNeSt and
// networks from a list of switches and cables ([Plan]) are built in; [NewNetwork]
// takes a topology of your own.
// A [Port] is a node's connection to the fabric: it reports when the node may
// send, and takes back the buffer room of received packets. [Tap] observes any
// fabric, [Faulty] loses, damages, duplicates and delays packets.
//
// # Time
//
// A packet occupies each link for (bytes + header) · G, rounded to the nearest
// picosecond. A node's packets leave at least Gap apart, beginning to beginning.
// The head reaches the other end of a wire after Wire (SwitchWire between
// switches, if it is given), and the tail follows. The head is at the output
// port of a switch after Switch (with StoreAndForward: after the tail was there,
// and Switch). A port sends one packet at a time, in the order of arrival; at
// the same picosecond, packets from lower actor IDs first. If a packet goes from
// a slow to a fast link (SwitchRate), the fast one starts later, because packets
// leave without gaps. KindArrive comes with the tail. With Spec.AnswersFirst a port
// has two queues, and one goes first: see ports.go.
//
// With no other traffic a packet of B = bytes + header arrives over h switches
// after (Latency computes it)
//
//	h·switch + (h+1)·wire + B·G                          cut-through, one rate
//	h·switch + (h+1)·wire + B·G + abs(B·G − B·S)         cut-through, h > 1, rates G and S
//	h·switch + (h+1)·wire + 2·B·G + (h−1)·B·S            store and forward
//
// G and L are LogGP's; sPIN'17 §4 gives the figures of profile spin-dis.
// docs/model.md has the full model, RATIONALE.md the reasons.
//
// # Fat trees
//
// A fat tree is a k-ary n-tree of radix-k switches: m = k/2 ports down and m up,
// at the top all k down, and as few levels as hold the nodes (radix 36: 36, 648,
// 11,664, 209,952). A packet goes up to the lowest switch above both nodes. The
// port up at level l is digit l, base m, of the destination (D-mod-k). So the
// packets of a pair stay in order, and destinations below one edge switch spread
// over all ways up. Spec.Paths has other choices, also in a leaf-spine network: by
// flow, by packet, by load. A crossbar is a tree of one switch.
//
// # Congestion
//
// Ports of switches drop, trim or mark packets (ports.go), pause those who send
// (pause.go; deadlock.go names links that wait for each other in a circle), and
// compute the rates that they allow flows (rates.go). Credits for bounded buffers
// are older, and on other networks (credit.go).
//
// # Units
//
// With Spec.Units switches have compute units: nodes behind the others, each with
// a link of its own to its switch. [UnitsOf] has them.
//
// # Use
//
// Ready, Inject, wait until the time it returned or longer, again. Ready is
// false only with InjectBuffer, credits or pauses; the node then gets one
// KindReady and asks again. Links names what each link did (Node[3].Tx,
// Switch[1][5].Up[2]), Path lists the links between two nodes. Decorators, such
// as [NewFaulty], go around a fabric before nodes attach, in any order.
package fabric
