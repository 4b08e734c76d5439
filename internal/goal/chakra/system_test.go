package chakra

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// ASTRA-sim's example HGX-H100-validated.json.
const example = `{
    "scheduling-policy": "LIFO",
    "endpoint-delay": 10,
    "active-chunks-per-dimension": 2,
    "preferred-dataset-splits": 4,
    "all-reduce-implementation": [
        "ring"
    ],
    "all-gather-implementation": [
        "direct3"
    ],
    "reduce-scatter-implementation": [
        "oneHalvingDoubling"
    ],
    "all-to-all-implementation": [
        "ring"
    ],
    "collective-optimization": "localBWAware",
    "local-mem-bw": 3350,
    "boost-mode": 0
}
`

func TestReadSystem(t *testing.T) {
	s, err := ReadSystem("s.json", []byte(example))
	require.NoError(t, err)
	want := systemOf(2, 3350)
	want.Algorithms[AllGather] = Algorithm{Direct, 3}
	want.Algorithms[ReduceScatter].Shape = HalvingDoubling
	require.Equal(t, want, s)
	require.NoError(t, s.Set("allgather=ring, allreduce=tree"))
	require.Equal(t, Algorithm{Shape: Tree}, s.Algorithms[AllReduce])
	require.Equal(t, Algorithm{}, s.Algorithms[AllGather])
}

// What a schedule cannot follow is refused.
func TestWrongSystems(t *testing.T) {
	for text, want := range map[string]string{
		`{"preferred-dataset-splits": 0}`:                          "s.json: preferred-dataset-splits: 0, expected 1 to 65536",
		`{"active-chunks-per-dimension": 99999999}`:                "s.json: active-chunks-per-dimension: 99999999",
		`{"endpoint-delay": -1}`:                                   "s.json: endpoint-delay: -1",
		`{"local-mem-bw": 1e-300}`:                                 "s.json: local-mem-bw: 1e-300",
		`{"local-mem-bw": -1}`:                                     "s.json: local-mem-bw: -1",
		`{"roofline-enabled": 1}`:                                  "s.json: roofline-enabled: a schedule has no roofline model",
		`{"model-shared-bus": 1}`:                                  "s.json: model-shared-bus",
		`{"replay-only": 1}`:                                       "s.json: replay-only",
		`{"all-reduce-implementation": ["ring", "ring"]}`:          "s.json: allreduce: 2 algorithms, expected one",
		`{"all-reduce-implementation": ["rings"]}`:                 `s.json: allreduce: "rings", expected one of direct,`,
		`{"all-to-all-implementation": ["halvingDoubling"]}`:       "s.json: alltoall: halving-doubling does not do",
		`{"all-reduce-implementation-custom": ["x"]}`:              "s.json:1: all-reduce-implementation-custom",
		`{"endpoint-delay": 10,` + "\n" + ` "endpoint-delay": 10}`: "s.json:2: endpoint-delay",
		"{": "s.json:1: YAML",
		"":  "s.json: the text is empty",
	} {
		_, err := ReadSystem("s.json", []byte(text))
		require.ErrorContains(t, err, want, text)
	}
	s := DefaultSystem()
	for list, want := range map[string]string{
		"allreduce":                           `"allreduce", expected COLLECTIVE=ALGORITHM`,
		"bcast=ring":                          `"bcast=ring", expected COLLECTIVE=ALGORITHM`,
		"allgather=tree":                      "allgather: a tree does only allreduce",
		"allgather=direct0":                   `allgather: "direct0"`,
		"allgather=ring4":                     `allgather: "ring4"`,
		"allgather=":                          `allgather: ""`,
		"alltoall=direct99999999999999999999": "alltoall",
	} {
		require.ErrorContains(t, s.Set(list), want)
	}
}

func TestWrongGroups(t *testing.T) {
	for text, want := range map[string]string{
		`{`: "g.json: ", `{"0": [1]}`: `g.json: group "0", expected a number from 1`, `{"x": [1]}`: `g.json: group "x"`, `{"1": []}`: "g.json: group 1 has no NPUs",
		`{"1": ["a"]}`: "g.json: ",
	} {
		_, err := ReadGroups("g.json", []byte(text))
		require.ErrorContains(t, err, want)
	}
}
