// Package datatype has MPI's datatypes (MPI-3.1 §4.1): constructors, bounds,
// envelopes, and packing.
//
// A type is a sequence of basic elements at displacements. Constructors repeat
// and combine types, without limit:
//
//	row, err := datatype.Vector(8, 2, 4, datatype.Float64)   // 8 blocks of 2 elements, 4 elements apart
//	plane, err := datatype.Hvector(16, 1, 4096, row)
//	err = plane.Pack(stream, memory, at, 3)                  // three of them, from memory[at] on
//
// Types are values that do not change, and may be used by several goroutines.
// What a type makes of memory is kept as a tree of loops and lists, as small as
// constructors allow: a million blocks at regular distances are one node. A
// place in the stream of packed bytes is found in O(depth · log of the longest
// list), so packets of a message can be handled in any order (package
// handlers/datatype).
//
// Numbers are 64 bits. What does not fit is an error of the constructor.
package datatype
