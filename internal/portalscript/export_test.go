package portalscript

import (
	"io"

	"github.com/spinsim/spinsim/portals"
)

// Run runs a script and writes its output to out. It returns an *Error for a
// mistake in the script, or the error of out.
func Run(text string, out io.Writer) error {
	return run(text, &world{out: out, device: Device, nodes: map[uint32]*portals.Node{}})
}
