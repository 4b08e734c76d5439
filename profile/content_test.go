package profile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A profile's content is complete. Reading it back gives the same profile, for
// any overrides, and that profile has the same content. It also runs the same,
// because a run uses nothing else.
func TestContentIsTheProfile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(Names()).Draw(t, "profile")
		n := rapid.IntRange(1, 1000).Draw(t, "n")
		all := []string{
			fmt.Sprintf("hpu.cores=%d", 4*n), fmt.Sprintf("dma.latency=%dps", n*1007), fmt.Sprintf("dma.bandwidth=%d/7ps/B", n),
			fmt.Sprintf("hpu.clock=%d.%03dGHz", 1+n%5, n%1000), "host.memory_bandwidth=333GB/s", fmt.Sprintf("nic.packet_buffer=%dMiB", n),
			"fabric.kind=crossbar", "fabric.store_and_forward=true", "description='a, \"b\": <c>'",
			fmt.Sprintf("hpu.costs={move: 1, int: %d, branch: 1, call: 1, call_indirect: 1, bulk_bytes_per_cycle: 1, imports: {dma_to_host: %d, ct_inc: 2}}", n, n),
		}
		overrides := rapid.SliceOfDistinct(rapid.SampledFrom(all), rapid.ID).Draw(t, "overrides")
		p, err := Load(name, overrides...)
		require.NoError(t, err)
		content, err := p.Content()
		require.NoError(t, err)
		require.True(t, json.Valid(content), "%s", content)
		var tree bytes.Buffer
		require.NoError(t, writeTree(&tree, reflect.ValueOf(p)))
		require.Equal(t, tree.String(), string(content))

		back, err := Parse("recorded", content)
		require.NoError(t, err)
		again, err := back.Content()
		require.NoError(t, err)
		require.Equal(t, string(content), string(again))
		require.Equal(t, Origin{Name: name, Embedded: true, Overrides: p.Origin.Overrides}, p.Origin)
		p.Origin, back.Origin = Origin{}, Origin{}
		if len(p.HPU.Costs.Imports) == 0 {
			p.HPU.Costs.Imports, back.HPU.Costs.Imports = nil, nil
		}
		require.True(t, reflect.DeepEqual(p, back), "%s", content)
	})
}

// Overrides apply to a content as to a profile.
func TestParsedProfileTakesOverrides(t *testing.T) {
	p, err := Load("spin-int", "hpu.cores=7")
	require.NoError(t, err)
	content, err := p.Content()
	require.NoError(t, err)
	q, err := Parse("recorded", content, "fabric.mtu=512")
	require.NoError(t, err)
	require.Equal(t, 7, q.HPU.Cores)
	require.Equal(t, int32(512), q.Fabric.MTU)
	_, err = Parse("recorded", []byte(`{"name":"x","hpu":{"coers":1}}`))
	require.ErrorContains(t, err, "profile recorded:1: hpu.coers: unknown field")
	_, err = Parse("recorded", []byte(`[]`))
	require.ErrorContains(t, err, "profile recorded:1: a list, expected fields with values")
}
