// Weight-limited borrowed virtual time as a module: the arbiter of OSMOSIS (arXiv
// 2309.03628).
//
//spin:library wlbvt 1.0
package main

import (
	"github.com/spinsim/spinsim/laws"
	"github.com/spinsim/spinsim/spin"
)

// key says how urgent a tenant's handlers are.
//
//go:wasmexport key
func key(t *spin.Tenant, _ *laws.State) spin.Code {
	laws.WLBVT(t)
	return spin.Success
}

func main() {}
