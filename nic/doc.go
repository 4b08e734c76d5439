// Package nic is the programmable network interface of a node, as a sequence of
// stages that a message passes. Package portals decides what happens to a
// message. The stages decide when.
//
//	transmit.go  takes an operation of an interface, reads its data by DMA and cuts packets (LogGP)
//	reliable.go  if the profile asks for it: numbers, acknowledges, repeats packets; a rate law says when they leave (flow.go, grants.go)
//	link.go      sends packets when the fabric takes them; package fabric carries them
//	receive.go   finds the message of a packet: a header in the match lists, any other in the CAM
//	match.go     lets package portals decide what the message means
//	schedule.go  gives packets of entries with handlers a processor of a pool (pools.go) and acts on return codes
//	act.go       runs a handler (record.go) and its requests: messages (issue.go), DMA (dma.go), replies (requests.go)
//	deposit.go   writes packets without handlers to host memory, and behind the data of a message the record of its end
//
// A stage sees the next one through a narrow interface and owns its state and
// its events. A message returns to an earlier stage only by an event. Host
// memory is reached only through host.Bus, and the events of the bus drive the
// next steps: no code here computes when an access will end. A Frame crosses
// the network, and nobody changes it once it is sent. The receiver keeps its
// own state of a message, under the frame's source and number. Nodes share
// nothing but frames and the free lists of Core.
package nic
