// Package trace writes the timeline of a run as a file that the Perfetto viewer
// (and, in the Chrome format, chrome://tracing) opens: one process for each rank,
// one line for each core, NIC stage, HPU, DMA engine and link, and arrows that
// follow a message from wire to match to HPU to DMA to event.
//
// # Time
//
// The viewers count in nanoseconds, the simulator in picoseconds. By default a
// time is rounded down to a nanosecond, so that what the viewer reads out is the
// truth in the right unit; rounding down never changes an order or a nesting.
// What is lost is kept exactly in the arguments start_ps and dur_ps (at_ps for an
// instant). [Picoseconds] instead draws one picosecond as one nanosecond, for
// runs in which single HPU cycles matter; the process names then say so.
//
// # Lines
//
// A track name is a path: "NIC.HPU[1]" is the line "HPU[1]" inside "NIC". Slices
// of one line must nest. Spans that overlap without nesting go to further lanes,
// lines of the same name and parent, which Perfetto draws as rows of one line.
//
// # Memory and order
//
// Spans may be reported in any order, commonly when they end or when a resource
// is reserved ahead. The writer holds [Options].Window events to put them in the
// order of their start. An event that comes later than that still gets a correct
// place: on a lane of its own. Memory is bounded by the window, by the number of
// tracks and by the depth of the overlaps, not by the length of the run. The
// bytes are a function of the calls alone.
//
// Field numbers are those of Perfetto's public definitions,
// protos/perfetto/trace/**.proto.
package trace
