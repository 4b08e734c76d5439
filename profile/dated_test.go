package profile

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

var record = flag.String("record", "", "record the profiles that have changed under this date, such as 2027-01")

// recordedSums has a line for each dated profile: the SHA-256 of its content
// and its name.
const recordedSums = "testdata/dated.sha256"

// Somebody may have cited a dated profile: its values stay. Each profile of
// today has a date, so that it can be cited before it changes again.
func TestDatedProfilesStay(t *testing.T) {
	if *record != "" {
		require.Regexp(t, `^20\d\d-(0[1-9]|1[0-2])$`, *record)
	}
	sums, err := os.ReadFile(recordedSums)
	require.NoError(t, err)
	lines, dated := strings.Split(strings.TrimSuffix(string(sums), "\n"), "\n"), []string{}
	for _, line := range lines[1:] { // below the comment
		sum, name, _ := strings.Cut(line, "  ")
		require.Equal(t, sum, contentSum(t, name), "%s has other values. What a date stands for never changes: let a new field of profiles be optional, "+
			"and let its absence be what was before; write a field that has a new name into profiles/dated/%[1]s.yaml", name)
		dated = append(dated, name)
	}
	for _, name := range Names() {
		all := Dated(name)
		require.Subset(t, dated, all, "not in %s", recordedSums)
		if len(all) == 0 && *record == "" || len(all) > 0 && same(t, name, all[len(all)-1]) {
			continue // new since the last date, or as it was then
		}
		require.NotEmpty(t, *record, "profile %s has changed since %v. Record it under a new date, this month's or a later one: go test ./profile -run %s -record YYYY-MM", name, all, t.Name())
		date := name + "@" + *record
		require.True(t, len(all) == 0 || date > all[len(all)-1], "%s: expected a later date than %s", date, all)
		lines = append(lines, keep(t, name, date)+"  "+date)
	}
	if *record != "" {
		require.NoError(t, os.WriteFile(recordedSums, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	}
}

// As of a month, a profile is the newest that is not later.
func TestAsOf(t *testing.T) {
	var months []string
	for _, name := range Names() {
		for _, dated := range Dated(name) {
			_, month, _ := strings.Cut(dated, "@")
			months = append(months, month)
		}
	}
	for _, name := range Names() {
		for _, month := range months {
			as, err := AsOf(name, month)
			if all := Dated(name); len(all) == 0 || all[0] > name+"@"+month {
				require.EqualError(t, err, "there was no profile "+name+" in "+month)
				continue
			}
			require.NoError(t, err)
			require.Contains(t, Dated(name), as)
			for _, dated := range Dated(name) {
				require.False(t, as < dated && dated <= name+"@"+month, "%s as of %s is %s", name, month, as)
			}
		}
	}
	for _, wrong := range []string{"", "2026", "2026-1", "1999-12", "later"} {
		_, err := AsOf("spin-int", wrong)
		require.ErrorContains(t, err, "no profiles of \""+wrong+"\", expected one of 20")
	}
	_, err := AsOf("nonsense", months[0])
	require.EqualError(t, err, "there was no profile nonsense in "+months[0])
}

func contentSum(t *testing.T, name string) string {
	t.Helper()
	p, err := Load(name)
	require.NoError(t, err)
	require.Equal(t, name, p.Name)
	content, err := p.Content()
	require.NoError(t, err)
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

func same(t *testing.T, a, b string) bool {
	t.Helper()
	from, err := Load(a)
	require.NoError(t, err)
	to, err := Load(b)
	require.NoError(t, err)
	list, err := Diff(from, to)
	require.NoError(t, err)
	return list == nil && from.Description == to.Description
}

// keep writes a profile as a dated one and returns the sum of its content.
// Each value keeps the comment with its source.
func keep(t *testing.T, name, date string) string {
	t.Helper()
	p, err := Load(name)
	require.NoError(t, err)
	said, err := p.Origin.sources()
	require.NoError(t, err)
	p.Name = date
	var tree yaml.Node
	require.NoError(t, tree.Encode(p))
	tree.HeadComment = fmt.Sprintf("# Profile %s as it was in %s: bases and tables are filled in. This file never changes.", name, strings.TrimPrefix(date, name+"@"))
	commented(said, "", &tree)
	var text bytes.Buffer
	out := yaml.NewEncoder(&text)
	out.SetIndent(2)
	require.NoError(t, out.Encode(&tree))
	require.NoError(t, os.MkdirAll("profiles/dated", 0o750))
	require.NoError(t, os.WriteFile(filepath.Join("profiles/dated", date+".yaml"), text.Bytes(), 0o600))
	content, err := p.Content()
	require.NoError(t, err)
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

func commented(said map[string]string, path string, n *yaml.Node) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, v := n.Content[i], n.Content[i+1]
		at, on := strings.TrimPrefix(path+"."+key.Value, "."), v
		if v.Kind != yaml.ScalarNode {
			on = key
		}
		on.LineComment = strings.ReplaceAll(said[at], "\n", " ")
		if v.Kind == yaml.MappingNode {
			commented(said, at, v)
		}
	}
}
