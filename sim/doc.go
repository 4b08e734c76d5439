// Package sim is the simulation kernel: virtual time in picoseconds, one totally
// ordered event queue, host programs and handlers as coroutines, and seeded
// random streams. It knows nothing of networks.
//
// Everything that reacts is an [Actor] registered with an [Engine]. Actors meet
// only through events. Events are handled in the order (Time, Dst, Src, Seq),
// where Seq counts per source, so a run depends on nothing but its inputs and
// its seed: not on map order, goroutine scheduling or pointers.
//
// An engine and all that hangs on it belong to one goroutine at a time.
// Processes are coroutines: they never run at the same time as anything else.
package sim
