package portalscript

import (
	"io"

	"github.com/spinsim/spinsim/portals"
)

// Run runs a script and writes what it prints to out. It returns an *Error for
// a mistake in the script and the error of out.
func Run(text string, out io.Writer) error {
	return run(text, &world{out: out, device: Device, nodes: map[uint32]*portals.Node{}})
}
