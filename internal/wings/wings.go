// Package wings registers the publications of spinsim with their experiments. A
// program imports it for that alone.
package wings

import (
	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/experiment/exanest"
	"github.com/spinsim/spinsim/experiment/inswitch"
	"github.com/spinsim/spinsim/experiment/networks"
	"github.com/spinsim/spinsim/experiment/npf"
	"github.com/spinsim/spinsim/experiment/part"
	"github.com/spinsim/spinsim/experiment/pspin"
	"github.com/spinsim/spinsim/experiment/spin17"
)

func init() {
	experiment.Register(spin17.Publication, part.Publication, exanest.Publication, npf.Publication, pspin.Publication, networks.Publication, inswitch.Publication)
}
