package provenance

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/profile"
)

func TestBuilds(t *testing.T) {
	require.Regexp(t, `^v\d+\.\d+\.\d+\n$`, release)
	next := strings.TrimSpace(release) + "-devel"
	main := debug.Module{Path: module, Version: "(devel)"}
	vcs := []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.modified", Value: "true"}}
	for _, tc := range []struct {
		what string
		info debug.BuildInfo
		name string
		line string
	}{
		{"go run", debug.BuildInfo{Main: main, GoVersion: "go1.26"}, next, "spinsim " + next + " (go1.26)"},
		{"nothing known", debug.BuildInfo{}, next, "spinsim " + next + " ()"},
		{"go build, version not known", debug.BuildInfo{Main: main, GoVersion: "go1.26", Settings: vcs}, next + "-0123456789ab+dirty", "spinsim " + next + " (commit 0123456789ab, modified, go1.26)"},
		{
			"go build in a clone",
			debug.BuildInfo{Main: debug.Module{Path: module, Version: "v0.0.0-20260101000000-0123456789ab+dirty"}, GoVersion: "go1.26", Settings: vcs},
			next + "-0123456789ab+dirty", "spinsim " + next + " (commit 0123456789ab, modified, go1.26)",
		},
		{"go install of a release", debug.BuildInfo{Main: debug.Module{Path: module, Version: "v1.2.3"}, GoVersion: "go1.26"}, "v1.2.3", "spinsim v1.2.3 (go1.26)"},
		{
			"part of another program, without tags",
			debug.BuildInfo{Main: debug.Module{Path: "x", Version: "v0.0.1"}, Deps: []*debug.Module{{Path: module, Version: "v0.0.0-20260101000000-0123456789ab"}}, GoVersion: "go1.26"},
			"v0.0.0-20260101000000-0123456789ab x@v0.0.1", "spinsim v0.0.0-20260101000000-0123456789ab (go1.26, x@v0.0.1)",
		},
		{
			"part of another program",
			debug.BuildInfo{Main: debug.Module{Path: "x"}, Deps: []*debug.Module{{Path: module, Version: "v1.2.3"}}, GoVersion: "go1.26", Settings: vcs},
			"v1.2.3 x@devel-0123456789ab+dirty", "spinsim v1.2.3 (go1.26, x@devel-0123456789ab+dirty)",
		},
		{
			"from a folder",
			debug.BuildInfo{
				Main: debug.Module{Path: "x", Version: "v0.1.0"}, GoVersion: "go1.26",
				Deps: []*debug.Module{{Path: module, Version: "v1.2.3", Replace: &debug.Module{Path: "../spinsim"}}},
			},
			next + " x@v0.1.0", "spinsim " + next + " (go1.26, x@v0.1.0)",
		},
	} {
		b := buildOf(&tc.info)
		require.Equal(t, tc.name, b.String(), tc.what)
		require.Equal(t, tc.line, b.Line(), tc.what)
	}
	require.NotEmpty(t, ReadBuild().Engines)
	require.True(t, Build{Version: "v1"}.Same(Build{Version: "v1", Go: "go1.27"}))
	require.False(t, Build{Version: devel, Commit: "a"}.Same(Build{Version: devel, Commit: "b"}))
	require.Equal(t, "devel-a+dirty", Build{Version: devel, Commit: "a", Modified: true}.String(), "of documents before the first release")
	require.False(t, Build{Program: &Program{Module: "x"}}.Same(Build{}))
	require.False(t, Build{Program: &Program{Module: "x", Commit: "a"}}.Same(Build{Program: &Program{Module: "x", Commit: "b"}}))
	require.True(t, Build{Program: &Program{Module: "x"}}.Same(Build{Program: &Program{Module: "x"}}))
}

// A record returns the profile unchanged, and detects a changed one.
func TestRecordedProfile(t *testing.T) {
	p, err := profile.Load("spin-int", "hpu.cores=8", "dma.latency=1ns")
	require.NoError(t, err)
	rec, err := NewProfile(p)
	require.NoError(t, err)
	text, err := json.MarshalIndent(rec, "", "  ") // with white space
	require.NoError(t, err)
	var read Profile
	require.NoError(t, json.Unmarshal(text, &read))
	require.NoError(t, read.Check())
	var escaped []byte // as programs write it that output only ASCII
	for _, r := range string(read.Content) {
		if r < 0x80 {
			escaped = append(escaped, byte(r))
			continue
		}
		escaped = fmt.Appendf(escaped, "\\u%04x", r)
	}
	require.NotEqual(t, string(read.Content), string(escaped), "µs of a time")
	plain := read.Content
	read.Content = escaped
	require.NoError(t, read.Check())
	read.Content = plain
	back, err := read.Load()
	require.NoError(t, err)
	want, err := p.Content()
	require.NoError(t, err)
	got, err := back.Content()
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
	require.Equal(t, p.Origin, back.Origin)
	more, err := read.Load("fabric.mtu=512")
	require.NoError(t, err)
	require.Equal(t, []string{"hpu.cores=8", "dma.latency=1ns", "fabric.mtu=512"}, more.Origin.Overrides)
	read.Content = json.RawMessage(`{"name": "spin-int"}`)
	require.ErrorContains(t, read.Check(), "recorded is "+rec.SHA256)
}

// An input comes from the record, or from its file if it is long. For a changed
// one the error names both hashes.
func TestInputs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := rapid.SliceOfN(rapid.Byte(), 0, 50).Draw(t, "data")
		if rapid.Bool().Draw(t, "text") {
			data = []byte(rapid.String().Draw(t, "string"))
		}
		if rapid.Bool().Draw(t, "long") {
			data = append(data, make([]byte, MaxIncluded)...)
		}
		in := NewInput("a.bin", data)
		text, err := json.Marshal(in)
		require.NoError(t, err)
		require.Less(t, len(text), 2*MaxIncluded)
		var read Input
		require.NoError(t, json.Unmarshal(text, &read))
		reads := 0
		back, err := read.Data(func(name string) ([]byte, error) {
			reads++
			require.Equal(t, "a.bin", name)
			return data, nil
		})
		require.NoError(t, err)
		require.Equal(t, string(data), string(back))
		require.Equal(t, len(data) > MaxIncluded, reads == 1)
	})
	in := NewInput("a.bin", make([]byte, MaxIncluded+1))
	_, err := in.Data(func(string) ([]byte, error) { return []byte("other"), nil })
	require.EqualError(t, err, "a.bin is another file than the recorded one")
	gone := errors.New("gone")
	_, err = in.Data(func(string) ([]byte, error) { return nil, gone })
	require.ErrorIs(t, err, gone)
}

func TestHandlersAreKnownByHash(t *testing.T) {
	h := NewHandler("mine", "far/mine.wasm", []byte("one"))
	require.NoError(t, h.Verify([]byte("one")))
	require.EqualError(t, h.Verify([]byte("two")), "far/mine.wasm is another file than the recorded one")
	var r Record
	r.AddHandler(h)
	r.AddHandler(h)
	require.Len(t, r.Handlers, 1)
}

// Every fact has a different key.
func TestArgs(t *testing.T) {
	seed := uint64(5)
	r := Record{Build: Build{Version: "v1"}, Command: "run", Seed: &seed, Profiles: []Profile{{Name: "a"}, {Name: "b"}}}
	keys := map[string]string{}
	for _, a := range r.Args() {
		keys[a.Key] = a.Text
	}
	require.Len(t, keys, len(r.Args()))
	require.Equal(t, "b ", keys["profile 2"])
	require.Equal(t, "5", keys["seed"])
}

func TestUnknownArguments(t *testing.T) {
	r := Record{Arguments: json.RawMessage(`{"a": 1, "b": 2}`)}
	var v struct{ A int }
	require.ErrorContains(t, r.Parse(&v), `provenance.arguments: json: unknown field "b"`)
}

// A profile recorded as spinsim's own is verified by name, overrides and every
// value.
func TestEmbeddedProfilesAreVerified(t *testing.T) {
	p, err := profile.Load("spin-int", "hpu.cores=8")
	require.NoError(t, err)
	recorded, err := NewProfile(p)
	require.NoError(t, err)
	require.NoError(t, recorded.Verify())

	other, err := profile.Load("spin-int", "hpu.cores=9")
	require.NoError(t, err)
	forged, err := NewProfile(other)
	require.NoError(t, err)
	forged.Overrides = recorded.Overrides
	require.NoError(t, forged.Check())
	require.ErrorContains(t, forged.Verify(), "profile spin-int is another one in this version: its hash is "+recorded.SHA256)

	forged.From = "spin-gone"
	require.ErrorContains(t, forged.Verify(), `no profile "spin-gone"`)
	forged.Embedded = false
	require.NoError(t, forged.Verify())
}

// A record cannot have a file of the user read that is none of its business:
// neither as a profile of spinsim's own nor as a network.
func TestRecordsOfOthers(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	require.NoError(t, os.Mkdir("here", 0o700))
	text, err := profile.Source("spin-int")
	require.NoError(t, err)
	for _, name := range []string{"secret.yaml", "here/p.yaml"} {
		require.NoError(t, os.WriteFile(name, text, 0o600))
	}
	t.Chdir("here")
	p, err := profile.Load("spin-int")
	require.NoError(t, err)
	recorded, err := NewProfile(p)
	require.NoError(t, err)
	for _, name := range []string{"../secret.yaml", filepath.Join(dir, "secret.yaml"), "p.yaml"} {
		forged := recorded
		forged.From, forged.SHA256 = name, Hash(nil)
		err := forged.Verify()
		require.ErrorContains(t, err, "its name leads to a file")
		require.NotRegexp(t, "[0-9a-f]{64}", err.Error())
	}
	network := "fabric.topology=../secret.yaml"
	_, err = recorded.Load("fabric.kind=file", network)
	require.ErrorContains(t, err, `"../secret.yaml" is outside, expected a file below "."`)
	recorded.Overrides = []string{network}
	require.ErrorContains(t, recorded.Verify(), "is outside")
}
