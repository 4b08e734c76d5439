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
//
// A large run may take several cores of the machine. [Engine.Split] makes an
// engine for each domain: a part of the actors. Domains share nothing but events,
// and an event to another domain lies a while ahead. So each domain may handle
// its events up to the time at which the others could reach it. The order of
// events does not depend on the domains, so neither do results.
//
// # Order
//
// Time is whole picoseconds, up to about 106 days. An event for the present time
// takes its place among the events of that time that are still to come. Dst and
// Src are in order of registration (Add, AddGroup), so register in an order that
// means something. Wrap puts an observer before an actor without a new ID.
//
// # Coroutines
//
// [Coro] is one long-lived iter.Pull that runs job after job. Stopping a job
// makes its Yield panic with a private value; a panic of the job comes out of
// Start or Resume as a [PanicError]. [Process] is a host program on a coroutine.
// Wake is never lost: before a Park it is remembered. Sleep cannot be cut short.
// A deadline of ParkUntil that came to nothing leaves no trace, not even in Now.
//
// Close the engine to unwind what has not finished. Run returns a [StuckError]
// when nothing is left to happen and a process, or something registered with
// Watch, still waits; Background excuses a process.
//
// # Units
//
// [Time] reads and prints 6.7 ns; [Rate] is an exact quotient and reads 20ps/B,
// 400Gb/s, 150GiB/s; [Size] reads 64KiB; [Frequency] reads 2.5GHz. All work as
// YAML fields. Rate.Time rounds to the nearest picosecond, half up.
package sim
