// Package sim is the simulation kernel: virtual time in picoseconds, one
// totally ordered event queue, host programs and handlers as coroutines, and
// seeded random streams. It has no knowledge of networks.
//
// Everything that reacts is an [Actor] registered with an [Engine]. Actors
// interact only through events. Events are handled in the order (Time, Dst,
// Src, Seq), where Seq counts per source. A run therefore depends only on its
// inputs and its seed: not on map order, goroutine scheduling or pointers.
//
// An engine and everything that belongs to it are used by one goroutine at a
// time. Processes are coroutines: they never run at the same time as anything
// else.
package sim
