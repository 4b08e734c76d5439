package fabric

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/spinsim/spinsim/sim"
)

func TestSpecInYAML(t *testing.T) {
	const text = `kind: fat-tree
radix: 36
rate: 20ps/B
wire: 33.4 ns
switch: 50 ns
mtu: 4096
`
	var spec Spec
	require.NoError(t, yaml.Unmarshal([]byte(text), &spec))
	require.Equal(t, spinDis(), spec)
	again, err := yaml.Marshal(spec)
	require.NoError(t, err)
	require.Equal(t, text, string(again))
	require.NoError(t, spec.Validate())
}

// One mistake at a time, each named by its field.
func TestValidateNamesTheField(t *testing.T) {
	for want, spoil := range map[string]func(*Spec){
		`kind: want ` + names(nil) + `, got "ring"`:                                                  func(s *Spec) { s.Kind = "ring" },
		"radix: want an even number from 4 to 4194304, got 7":                                        func(s *Spec) { s.Radix = 7 },
		"radix: want an even number from 4 to 4194304, got 2":                                        func(s *Spec) { s.Radix = 2 },
		"rate: want a rate such as 20ps/B or 400Gb/s":                                                func(s *Spec) { s.Rate = sim.Rate{} },
		"wire: want 1 ps to 1 s, got 0 s: nodes may not meet without delay":                          func(s *Spec) { s.Wire = 0 },
		"switch: want 0 s to 1 s, got -1 ps":                                                         func(s *Spec) { s.Switch = -1 },
		"mtu: want 1 to 65536 bytes, got 0":                                                          func(s *Spec) { s.MTU = 0 },
		"header: want 0 to 65536 bytes, got -1":                                                      func(s *Spec) { s.Header = -1 },
		"inject_buffer: want 0 (no limit) or mtu + header = 4096 to 1073741824 bytes, got 9":         func(s *Spec) { s.InjectBuffer = 9 },
		"wire: want 1 ps to 1 s, got 3000000 s: nodes may not meet without delay":                    func(s *Spec) { s.Wire = 3e6 * sim.Second },
		"gap: want 0 s to 1 s, got 1.000000000001 s":                                                 func(s *Spec) { s.Gap = sim.Second + 1 },
		"switch: want 0 s to 1 s, got 2 s":                                                           func(s *Spec) { s.Switch = 2 * sim.Second },
		"rate: 1000000001ps/B is slower than 1 ms for a byte":                                        func(s *Spec) { s.Rate = sim.NewRate(1e9+1, 1) },
		"switch_rate: 2000000000ps/B is slower than 1 ms for a byte":                                 func(s *Spec) { s.SwitchRate = sim.NewRate(2e9, 1) },
		"switch_wire: want 1 ps to 1 s, or none, got -1 ps":                                          func(s *Spec) { s.SwitchWire = -1 },
		"rate: 1/1048577ps/B is faster than 1048576 bytes in a picosecond":                           func(s *Spec) { s.Rate = sim.NewRate(1, 1<<20+1) },
		"mtu: want 1 to 65536 bytes, got 65537":                                                      func(s *Spec) { s.MTU = 1<<16 + 1 },
		"header: want 0 to 65536 bytes, got 65537":                                                   func(s *Spec) { s.Header = 1<<16 + 1 },
		`paths: want destination, flow, packet or load, got "all"`:                                   func(s *Spec) { s.Paths = "all" },
		"paths: flow has no meaning with kind crossbar, want kind fat-tree, leaf-spine or dragonfly": func(s *Spec) { s.Kind, s.Paths = Crossbar, ByFlow },
		"queue: want room for a packet, mtu + header = 4096, to 1073741824 bytes, got 4095":          func(s *Spec) { s.Queue = 4095 },
		"queue: a switch drops what finds no room: with buffer packets wait for room instead, and with no_contention or add_gap nothing is known of a queue": func(s *Spec) { s.Queue, s.Buffer = 1<<20, Buffers{1 << 20} },
		"inject_buffer: want 0 (no limit) or mtu + header = 4096 to 1073741824 bytes, got 1073741825":                                                        func(s *Spec) { s.InjectBuffer = 1<<30 + 1 },
	} {
		spec := spinDis()
		spoil(&spec)
		require.EqualError(t, spec.Validate(), want)
		_, err := New(sim.New(0), spec, 2)
		require.EqualError(t, err, "fabric: "+want)
	}
	require.EqualError(t, (&Spec{Kind: Crossbar, Rate: sim.NewRate(1, 1), Wire: 1, Header: -1}).Validate(),
		"mtu: want 1 to 65536 bytes, got 0\nheader: want 0 to 65536 bytes, got -1", "all mistakes at once")
	for _, nodes := range []int{-1, 0, MaxNodes + 1} {
		_, err := New(sim.New(0), spinDis(), nodes)
		require.ErrorContains(t, err, "fabric: want 1 to 4194304 nodes, got")
	}
}

// Errors name the kinds that there are, and of a field those that have it.
func TestNamesOfKinds(t *testing.T) {
	require.Regexp(t, "^fat-tree, crossbar, torus, exanest.* or [a-z-]+$", names(nil))
	require.Equal(t, "file", names(topologyField))
	require.Regexp(t, "^torus(, [a-z-]+)* or [a-z-]+$", names(dimsField))
	seen := map[string]bool{}
	for _, k := range kinds {
		require.False(t, seen[k.name], "%s: two kinds", k.name)
		seen[k.name] = true
	}
}
