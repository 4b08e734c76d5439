package report

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/internal/seal"
	"github.com/spinsim/spinsim/sim"
)

func measured() *Table {
	t := New(
		Column{Name: "device"}, Column{Name: "cores", Kind: Count}, Column{Name: "size", Kind: Size},
		Column{Name: "time", Unit: "ns", Kind: Duration}, Column{Name: "saved", Kind: Share}, Column{Name: "rate", Unit: "Mpps", Kind: Number},
	)
	t.Add("dis", 4, 4096, 110*sim.Nanosecond, 0.25, 12.5)
	t.Add("int", 4, 4096, 90*sim.Nanosecond, nil, 6.25)
	return t
}

// If only some rows have a number, programs find it in the row and people in a
// list. Shares differ in points, all else relative to the published number.
func TestPublishedNumbersOfSomeRows(t *testing.T) {
	table := measured()
	at := func(device string) []Is { return []Is{{"device", device}, {"cores", 4}, {"size", 4096}} }
	require.NoError(t, table.SetPublished([]Published{
		{At: at("dis"), Column: "time", Value: 100, Source: "Paper §1"},
		{At: at("dis"), Column: "saved", Value: 0.07, Source: "Paper §2", Note: "no size"},
		{At: at("int"), Column: "saved", Value: 0.05, Source: "Paper §2"}, // not measured
		{At: at("card"), Column: "time", Value: 1, Source: "Paper §3"},    // no such row
		{At: at("int"), Column: "rate_Mpps", Value: 5, Source: "Paper §1"},
	}))
	require.Equal(t, "device,cores,size,time_ns,time_published_ns,time_deviation,saved,saved_published,saved_difference,"+
		"rate_Mpps,rate_published_Mpps,rate_deviation,published_source\n"+
		"dis,4,4096,110,100,0.1,0.25,0.07,0.18,12.5,,,Paper §1; Paper §2 (no size)\n"+
		"int,4,4096,90,,,,,,6.25,5,0.25,Paper §1\n", string(render(t, table, CSVFormat)))
	require.Equal(t, `device  cores   size  time (ns)  saved  rate (Mpps)
─────────────────────────────────────────────────────
dis         4  4 KiB        110  25.0%        12.50
int         4  4 KiB         90      –         6.25

Beside the publication

at                   quantity  here       published  deviation     source
───────────────────────────────────────────────────────────────────────────────────────
dis, 4 cores, 4 KiB  time      110 ns     100 ns     +10.0%        Paper §1
dis, 4 cores, 4 KiB  saved     25.0%      7.0%       +18.0 points  Paper §2 (no size)
int, 4 cores, 4 KiB  rate      6.25 Mpps  5 Mpps     +25.0%        Paper §1
`, string(render(t, table, TextFormat)))
	chosen, err := table.Select("device", "time")
	require.NoError(t, err)
	require.Same(t, table.Published, chosen.Published, "a choice of columns keeps the list")
	require.Contains(t, string(render(t, chosen, MarkdownFormat)), "| dis, 4 cores, 4 KiB | time | 110 ns | 100 ns | +10.0% | Paper §1 |")
}

// If every row has a number, people see it in the row.
func TestPublishedNumbersOfAllRows(t *testing.T) {
	table := measured()
	require.NoError(t, table.SetPublished([]Published{{Column: "time", Value: 100, Source: "Paper §1"}}))
	require.Nil(t, table.Published)
	require.Contains(t, string(render(t, table, TextFormat)), "time (ns)  time published (ns)  time deviation")
	require.Contains(t, string(render(t, table, TextFormat)), "-10.0%")
}

func TestPublishedNumbersNameColumns(t *testing.T) {
	for _, p := range []Published{{Column: "latency"}, {Column: "device"}, {Column: "time", At: []Is{{"bytes", 1}}}} {
		require.Error(t, measured().SetPublished([]Published{p}))
	}
	require.NoError(t, measured().SetPublished(nil))
}

// origin is the origin of a test table.
type origin struct{ Version string }

func (o origin) Lines() []string { return []string{"made by " + o.Version} }

func (o origin) Seal() (program, record string, err error) {
	record, err = seal.Hash(o)
	return o.Version, record, err
}

// The origin stands below the table, in the JSON document, and in columns that
// people do not see.
func TestOrigin(t *testing.T) {
	table := New(Column{Name: "x", Kind: Count}, Column{Name: "version", ForPrograms: true})
	table.Origin = origin{"v1 <&>"}
	table.Add(uint64(1<<63), "v1")
	golden(t, "origin.json", render(t, table, JSONFormat))
	text := string(render(t, table, TextFormat))
	require.Contains(t, text, "\n\nmade by v1 <&>\n")
	require.NotContains(t, text, "version")
	require.Contains(t, string(render(t, table, MarkdownFormat)), "\nmade by v1 \\<&\\>\n")
	require.Regexp(t, "^x,version\n9223372036854775808,v1\n# sealed by spinsim v1 [?]{3}, CSV, record [0-9a-f]{64}, complete, sha256 [0-9a-f]{64}\n$", string(render(t, table, CSVFormat)))
	empty := New(Column{Name: "x"})
	empty.Origin = origin{"v1"}
	require.Contains(t, string(render(t, empty, JSONFormat)), `"rows": []`)
}
