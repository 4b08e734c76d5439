// Package profile says what a device is made of: every latency, width and count
// of a node and its network, as strict YAML with units.
//
// A [Profile] has one section for each room that reads it, and the section's
// type is that room's own Spec: fabric.Spec, nic.Spec, nic.TransportSpec,
// host.BusSpec, nic.HPUSpec, host.Spec and nic.LimitsSpec; go doc of each has
// the fields, with units and ranges. [Load] reads a profile that is built in or
// a user's file, which may say only what differs from its base, and applies
// overrides such as hpu.cores=8; [Diff] says in which fields two profiles
// differ. All that is wrong with a text is said at once, with file, line and
// field.
package profile
