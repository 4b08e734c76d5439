package provenance

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestDifferencesNameRowAndColumn(t *testing.T) {
	was := `{"provenance": {"seed": 1, "arguments": {"sizes": [8, 16]}}, "rows": [{"mode": "p4", "bytes": 8, "latency_ns": 1.50, "x": null},
		{"mode": "rdma", "bytes": 8, "latency_ns": 3}], "stats": [{"rank": 0, "n": 1}], "failures": ["a"]}`
	is := `{"rows": [{"mode":"p4","bytes":8,"latency_ns":1.5,"x":2}], "provenance": {"seed": 2, "arguments": {"sizes": [8, 32], "new": {}}},
		"stats": [{"rank": 0, "n": 9007199254740993}], "failures": [], "more": true}`
	list, err := Differences([]byte(was), []byte(is))
	require.NoError(t, err)
	var lines []string
	for _, d := range list {
		lines = append(lines, d.String())
	}
	require.Equal(t, []string{
		`provenance.seed: is 2, was 1`,
		`provenance.arguments.sizes[1]: is 32, was 16`,
		`provenance.arguments.new: is an object of 0 fields, was not there`,
		`row 1 (p4, 8, 1.50): latency_ns: is 1.5, was 1.50`,
		`row 1 (p4, 8, 1.50): x: is 2, was null`,
		`row 2 (rdma, 8, 3): was an object of 3 fields, is not there`,
		`stats row 1 (0, 1): n: is 9007199254740993, was 1`,
		`failures[0]: was "a", is not there`,
		`more: is true, was not there`,
	}, lines)
}

// value draws a random JSON value.
func value(t *rapid.T, depth int) any {
	kind := rapid.IntRange(0, 5).Draw(t, "kind")
	if depth == 0 {
		kind %= 4
	}
	switch kind {
	case 0:
		return nil
	case 1:
		return rapid.Bool().Draw(t, "bool")
	case 2:
		return rapid.Int64().Draw(t, "number")
	case 3:
		return rapid.String().Draw(t, "string")
	case 4:
		list := make([]any, rapid.IntRange(0, 3).Draw(t, "n"))
		for i := range list {
			list[i] = value(t, depth-1)
		}
		return list
	}
	m := map[string]any{}
	for i := range rapid.IntRange(0, 3).Draw(t, "n") {
		m[fmt.Sprint("k", i)] = value(t, depth-1)
	}
	return m
}

// Two documents have no difference if and only if encoding/json decodes them to
// the same value, however they are indented.
func TestDifferencesAreTheOnesThereAre(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := value(t, 3)
		b := a
		if rapid.Bool().Draw(t, "other") {
			b = value(t, 3)
		}
		was, err := json.Marshal(a)
		require.NoError(t, err)
		is, err := json.MarshalIndent(b, " ", "\t")
		require.NoError(t, err)
		list, err := Differences(was, is)
		require.NoError(t, err)
		same, err := json.Marshal(b)
		require.NoError(t, err)
		require.Equal(t, string(was) == string(same), len(list) == 0, "%s\n%s", was, is)
	})
}

// A document of the time before answers is the same as one with its answer.
func TestNoAnswerIsNoDifference(t *testing.T) {
	const was, is = `{"rows": [1], "sha256": "a"}`, `{"answer": ["x"], "rows": [1], "sha256": "b"}`
	list, err := Differences([]byte(was), []byte(is))
	require.NoError(t, err)
	require.Empty(t, list)
	list, err = Differences([]byte(is), []byte(was))
	require.NoError(t, err)
	require.Len(t, list, 1)
	list, err = Differences([]byte(was), []byte(`{"answer": ["x"], "rows": [2], "sha256": "b"}`))
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, "rows", list[0].Where[:4])
}

func TestReadRefuses(t *testing.T) {
	for document, want := range map[string]string{
		``:                               "byte 0: not JSON, expected an object that spinsim wrote with --format json",
		`mode,latency_ns`:                "byte 1: not JSON, expected an object",
		`[{"mode": "rdma"}]`:             `no "provenance"`,
		`{}`:                             `no "provenance"`,
		`{"provenance": {}}`:             `no "provenance"`,
		`{"provenance": {"command": 7}}`: "provenance.command: a JSON number, expected an object that spinsim wrote",
		`{"provenance": {"command": "x", "profiles": [{"name": "p", "sha256": "00", "content": {}}]}}`: "it was changed afterwards",
	} {
		_, err := Read([]byte(document))
		require.ErrorContains(t, err, want, document)
	}
	_, err := Differences([]byte(`{} {}`), []byte(`{}`))
	require.Error(t, err)
}
