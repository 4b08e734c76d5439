package handlers

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/internal/manifest"
	"github.com/spinsim/spinsim/profile"
)

// firmware returns the state that a program gives a library, with the numbers
// that the profile chooses for the firmware that serves its header handlers
// (nic.PoolSpec.State). What the program gives goes first.
func (p *Plan) firmware(prof *profile.Profile, given any) (any, error) {
	pool := prof.Serve.Pool(p.module.Name(), "header")
	chosen := prof.Pools[pool].State
	if len(chosen) == 0 {
		return given, nil
	}
	state, fits := given.(map[string]any)
	if given != nil && !fits || p.State == nil {
		return nil, fmt.Errorf("module %s: pools.%s.state: the program gives the state in another form", p.module.Name(), pool)
	}
	if state = maps.Clone(state); state == nil {
		state = map[string]any{}
	}
	for _, name := range slices.Sorted(maps.Keys(chosen)) {
		full := within(p.State.Fields, name, "")
		if full == "" {
			return nil, fmt.Errorf("module %s: pools.%s.state.%s: its state has no such number", p.module.Name(), pool, name)
		}
		if _, ours := state[full]; !ours {
			state[full] = chosen[name]
		}
	}
	return state, nil
}

// within returns the full name of the first number with a name, also in the
// structs of a state, which a library may have from another one ("rdma.block").
// Empty: there is none.
func within(fields []manifest.Field, name, prefix string) string {
	for i := range fields {
		if fields[i].Fields == nil && fields[i].Name == name {
			return prefix + name
		}
	}
	for i := range fields {
		f := &fields[i]
		if f.Fields == nil || f.Dims != nil || strings.HasPrefix(f.Name, "_") {
			continue
		}
		if full := within(f.Fields, name, prefix+f.Name+"."); full != "" {
			return full
		}
	}
	return ""
}
