package profile

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The list has every value with the comment of its profile. The source of an
// override is the override.
func TestValuesHaveSources(t *testing.T) {
	p, err := Load("spin-int-sc17", "hpu.cores=8")
	require.NoError(t, err)
	content, err := p.Content()
	require.NoError(t, err)
	list, err := Values(content, p.Origin)
	require.NoError(t, err)
	at := map[string]Value{}
	for _, v := range list {
		at[v.Path] = v
	}
	require.Equal(t, Value{"hpu.cores", "8", "override"}, at["hpu.cores"])
	require.Equal(t, "150GiB/s", at["dma.bandwidth"].Value)
	require.Equal(t, "given", at["dma.bandwidth"].Source, "of the base")
	require.Contains(t, at["nic.receive"].Source, "code: ", "its own, not that of the base")
	require.Contains(t, at["limits.max_cts"].Source, "assumed: ", "of the section")
	require.Contains(t, at["hpu.costs.load"].Source, "Cortex-A15", "of the name of the table")

	_, err = Values([]byte("[]"), Origin{Name: "x"})
	require.ErrorContains(t, err, "no object")
	list, err = Values([]byte(`{"a":{"b":1,"c":[1,{"d":2}],"e":{}}}`), Origin{Name: "my.yaml"})
	require.NoError(t, err)
	require.Equal(t, []Value{{"a.b", "1", "file my.yaml, or its base"}, {"a.c", `[1,{"d":2}]`, "file my.yaml, or its base"}, {"a.e", "{}", "file my.yaml, or its base"}}, list)
}

// Every value of dpa has a public source or says that it is ours: what the
// profile is for.
func TestSourcesOfDPA(t *testing.T) {
	p, err := Load("dpa")
	require.NoError(t, err)
	content, err := p.Content()
	require.NoError(t, err)
	list, err := Values(content, p.Origin)
	require.NoError(t, err)
	require.Greater(t, len(list), 100)
	for _, v := range list {
		if v.Path == "name" || v.Path == "description" {
			continue
		}
		require.Regexp(t, `\b(given|ours)\b`, v.Source, "%s = %s", v.Path, v.Value)
	}
}
