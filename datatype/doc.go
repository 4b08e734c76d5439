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
// Types do not change, so several goroutines may use them. A type keeps its
// layout as a small tree of loops and lists: for example, a million blocks at
// regular distances are one node. Finding a place in the stream of packed bytes
// takes O(depth · log of the longest list), so the packets of a message can be
// handled in any order (package handlers/datatype).
//
// Numbers have 64 bits. If a number does not fit, the constructor returns an
// error.
package datatype
