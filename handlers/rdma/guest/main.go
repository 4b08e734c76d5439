// The transport of ExaNeSt's RDMA engine (TR-488 §4.5): reliable writes and
// reads between virtual addresses, blocks of 16 KB with acknowledgements and
// retransmission.
//
//spin:library rdma 1.0
//spin:needs memory=256*88+min(256*ranks,65536)*44 spaces=entry,handler host_memory=768 entry_options=op_put
//spin:needs handler=control user_header=64
package main //lint:guest issue 9: its engine is both sides of the whole protocol of TR-488 §4.5

import (
	"github.com/spinsim/spinsim/handlers/rdma"
	"github.com/spinsim/spinsim/handlers/rdma/engine"
	"github.com/spinsim/spinsim/spin"
)

// control is the firmware: descriptors, acknowledgements, time-outs and requests to read.
//
//go:wasmexport control
func control(h *spin.Header, s *rdma.State) spin.Code { return engine.Control[engine.Plain](h, s) }

// cells is the hardware: cells that arrive, and requests of the own process to read.
//
//go:wasmexport cells
func cells(p *spin.Payload, s *rdma.State) spin.Code { return engine.Cells[engine.Plain](p, s) }

func main() {}
