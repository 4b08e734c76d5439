// Package trace writes the timeline of a run to a file for the Perfetto viewer
// (and, in the Chrome format, chrome://tracing). Each rank is a process. Each
// core, NIC stage, HPU, DMA engine and link is a line. Arrows follow a message
// from wire to match to HPU to DMA to event.
//
// # Time
//
// The viewers count in nanoseconds, the simulator in picoseconds. By default a
// time is rounded down to a nanosecond, so the viewer shows true values in the
// right unit. Rounding down never changes an order or a nesting. The exact
// values are in the arguments start_ps and dur_ps (at_ps for an instant).
// [Picoseconds] draws one picosecond as one nanosecond instead, for runs in
// which single HPU cycles matter. The process names then mention it.
//
// # Lines
//
// A track name is a path: "NIC.HPU[1]" is the line "HPU[1]" inside "NIC".
// Slices of one line must nest. Spans that overlap without nesting go to
// further lanes. These are lines of the same name and parent, which Perfetto
// draws as rows of one line.
//
// # Memory and order
//
// Spans may be reported in any order, for example when they end, or when a
// resource is reserved ahead. The writer holds [Options].Window events back to
// sort them by their start. An event that is later than that still gets a
// correct place: on a lane of its own. Memory is limited by the window, the
// number of tracks and the depth of the overlaps, not by the length of the run.
// The output depends on the calls alone.
//
// Field numbers come from Perfetto's public definitions,
// protos/perfetto/trace/**.proto.
package trace
