package profile

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestDifferencesOfEqualProfilesAreNone(t *testing.T) {
	for _, name := range Names() {
		p, err := Load(name)
		require.NoError(t, err)
		d, err := Diff(p, p)
		require.NoError(t, err)
		require.Empty(t, d)
	}
}

// ownCosts is a cost table without a name, written in another order than the
// fields of CostTable.
var ownCosts = strings.Join(strings.Fields(`{move: 0, int: 1, int_mul: 3, int_div: 20, float: 1, float_mul: 1, float_div: 12, float_sqrt: 17,
	load: 1, store: 1, select: 1, branch: 2, loop_branch: 0, call: 3, call_indirect: 4, global: 1, convert: 1, bulk: 1, bulk_bytes_per_cycle: 8,
	import: 2, imports: {dma_to_host: 7}, registers: 16, operands: 3, spill: 1, instructions: {"i32.add i32.sub": {cost: 2}}}`), " ")

// A cost table with a name is printed by its name; one without a name is
// shortened.
func TestDifferencesNameCostTables(t *testing.T) {
	from, err := Load("spin-int", "hpu.clock=1500MHz")
	require.NoError(t, err)
	for value, printed := range map[string]string{"scalar": `^hpu\.costs: a15 → scalar$`, ownCosts: `^hpu\.costs: a15 → table [0-9a-f]{12}$`} {
		to, err := Load("spin-int", "hpu.costs="+value)
		require.NoError(t, err)
		list, err := Diff(from, to)
		require.NoError(t, err)
		require.Len(t, list, 2)
		require.Equal(t, "hpu.clock: 1.5 GHz → 2.5 GHz", list[0].String())
		require.Regexp(t, printed, list[1].String())
	}
}

// For any two profiles, applying their differences as overrides to one gives
// the other.
func TestDifferencesAreOverrides(t *testing.T) {
	settings := []string{
		"fabric.no_contention=true", "fabric.gap=0ns", "fabric.inject_buffer=8192", "fabric.switch_rate=100Gb/s", "fabric.switch_wire=7ns", "nic.receive=serial",
		"dma.latency=3ns", "hpu.contexts=3", "hpu.clock=1GHz", "hpu.charge=nothing", "hpu.costs=scalar", "hpu.costs=rv32-pspin", "hpu.costs=" + ownCosts, "host.poll=0ns",
		"fabric.buffer=16KiB", "fabric.buffer=[16KiB, 8KiB]", "limits.max_eqs=17",
	}
	shapes := [][]string{
		nil,
		{"fabric.kind=crossbar"},
		{"fabric.kind=torus", "fabric.dims=[4, 2]"},
		{"fabric.dims=[3]", "fabric.kind=torus"},
		{"fabric.kind=exanest", "fabric.dims=[2, 1, 3]", "fabric.exanest={link_rate: 10Gb/s, router: 3us, order: zyx, ties: up, channels: 2, z_links: 1}"},
		{"fabric.kind=file", "fabric.topology={switches: [{name: a}, {name: b, ports: 3}], nodes: [{at: b, count: 2}], links: [{from: a, to: b, wire: 3ns}]}"},
	}
	names, contended, ports := append(Names(), "../docs/profiles/spin-int-smmu.yaml"), map[string]bool{}, map[string]bool{}
	for _, name := range names {
		p, err := Load(name)
		require.NoError(t, err)
		contended[name], ports[name] = len(p.Fabric.Buffer) > 0 || p.Fabric.Units.At != "", p.Fabric.AnswersFirst
	}
	rapid.Check(t, func(t *rapid.T) {
		load := func(label string) *Profile {
			name, set := rapid.SampledFrom(names).Draw(t, label), rapid.SliceOfDistinct(rapid.SampledFrom(settings), rapid.ID).Draw(t, label)
			// not allowed for networks without contention
			set = slices.DeleteFunc(set, func(o string) bool {
				switch {
				case contended[name]:
					return o == "fabric.no_contention=true"
				case ports[name]:
					return o == "fabric.no_contention=true" || strings.HasPrefix(o, "fabric.buffer")
				}
				return strings.HasPrefix(o, "fabric.buffer") && (strings.HasSuffix(name, "-sc17") || slices.Contains(set, "fabric.no_contention=true"))
			})
			p, err := Load(name, append(set, rapid.SampledFrom(shapes).Draw(t, label+", shape")...)...)
			require.NoError(t, err)
			return p
		}
		from, to := load("from"), load("to")
		list, err := Diff(from, to)
		require.NoError(t, err)
		var overrides []string
		for _, d := range list {
			require.NotEqual(t, d.From, d.To)
			overrides = append(overrides, d.Path+"="+d.To)
		}
		content, err := from.Content()
		require.NoError(t, err)
		made, err := Parse("made", content, overrides...)
		require.NoError(t, err, strings.Join(overrides, " "))
		made.Name, made.Description, made.Origin = to.Name, to.Description, to.Origin
		is, err := made.Content()
		require.NoError(t, err)
		want, err := to.Content()
		require.NoError(t, err)
		require.Equal(t, string(want), string(is), strings.Join(overrides, " "))
	})
}
