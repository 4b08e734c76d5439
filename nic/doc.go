// Package nic is the programmable network interface of a node, as the stages
// that a message walks through. Package portals decides what happens to it, the
// stages decide when.
//
//	transmit.go  takes an operation of an interface, reads its data by DMA and cuts packets (LogGP)
//	reliable.go  if the profile asks for it: numbers, acknowledges and repeats packets
//	link.go      sends packets when the fabric takes them; package fabric carries them
//	receive.go   finds the message of a packet: a header in the match lists, any other in the CAM
//	match.go     has package portals decide what the message means
//	schedule.go  gives packets of entries with handlers a processor of a pool (pools.go) and acts on return codes
//	act.go       runs a handler (record.go) and what it asks for: messages (issue.go), DMA (dma.go), replies (answers.go)
//	deposit.go   writes packets without handlers to host memory, and behind the data of a message the record of its end
//
// A stage knows the next one by a narrow interface and owns its state and its
// events; a message goes back to an earlier stage by an event only. All memory
// of the host is reached through host.Bus, whose events drive what follows:
// nothing here computes when an access will have ended. What crosses the
// network is a Frame, which nobody changes once it is sent; what the receiver
// knows of a message is its own, under the frame's source and number. A node
// shares nothing with another but frames and the free lists of Core.
package nic
