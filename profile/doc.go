// Package profile describes a device: every latency, width and count of a node
// and its network, as strict YAML with units.
//
// A [Profile] has one section for each package that reads it. The type of the
// section is that package's own Spec: fabric.Spec, nic.Spec, nic.TransportSpec,
// host.BusSpec, nic.HPUSpec, host.Spec and nic.LimitsSpec. go doc of each lists
// the fields with units and ranges.
//
// [Load] reads an embedded profile or a user's file, and applies overrides such
// as hpu.cores=8. A file may contain only the differences from its base. One
// error reports everything wrong with a text, with file, line and field. [Diff]
// lists the fields in which two profiles differ.
package profile
