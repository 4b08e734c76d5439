package ycsb

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// Operations have the shares of their workload.
func TestShares(t *testing.T) {
	const n = 20000
	for i := range Workloads {
		w := &Workloads[i]
		g := New(w, 1000, 0, 1, 1)
		var count [ReadModifyWrite + 1]int
		lengths := 0
		for range n {
			op := g.Next()
			count[op.Kind]++
			lengths += op.Length
			require.True(t, op.Kind == Scan || op.Length == 0)
		}
		for kind, share := range w.Shares {
			require.InDelta(t, share, float64(count[kind])/n, 0.012, "%s %d", w.Name, kind)
		}
		if count[Scan] > 0 {
			require.InDelta(t, (MaxScan+1)/2.0, float64(lengths)/float64(count[Scan]), 1)
		}
	}
	_, err := Find("G")
	require.EqualError(t, err, `workload "G", expected A, B, C, D, E or F`)
}

// Ranks have the probability 1/(i+1)^theta: exactly for the first two, and as
// close as Gray's formula for others.
func TestZipfian(t *testing.T) {
	const n, items = 200000, 1000
	sum := zeta(items, 0, 0)
	z := newZipfian(items, sum)
	var count [items]int
	for i := range n {
		count[z.next((float64(i)+0.5)/n)]++
	}
	for i, within := range map[int]float64{0: 0.001, 1: 0.001, 2: 0.35, 10: 0.2, 100: 0.1, 900: 0.15} {
		expected := n / math.Pow(float64(i+1), theta) / sum
		require.InDelta(t, 1, float64(count[i])/expected, within+2/expected, "%d: %d, expected %g", i, count[i], expected)
	}
	// Adding items step by step gives the same as adding all at once.
	more := newZipfian(10, zeta(10, 0, 0))
	more.extend(items)
	require.InDelta(t, z.zeta, more.zeta, 1e-9)
	require.InDelta(t, z.eta, more.eta, 1e-9)
}

// The hot records of workload A are a few from anywhere. In D they are the
// latest: the client's own inserts and the end of the initial ones.
func TestRecords(t *testing.T) {
	const records, clients = 1000, 4
	a, err := Find("A")
	require.NoError(t, err)
	count := map[uint64]int{}
	for g, i := New(a, records, 0, clients, 1), 0; i < 20000; i++ {
		count[g.Next().Record]++
	}
	require.Greater(t, len(count), 900)
	hot := uint64(0)
	for r := range uint64(records) {
		if count[r] > count[hot] {
			hot = r
		}
	}
	require.Equal(t, Hash(0)%records, hot)
	require.InDelta(t, 1/scrambledZeta, float64(count[hot])/20000, 0.006)

	d, err := Find("D")
	require.NoError(t, err)
	seen := map[uint64]bool{}
	for client := range clients {
		g := New(d, records, client, clients, 1)
		newest := uint64(records - 1)
		latest, reads := 0, 0
		for range 2000 {
			op := g.Next()
			if op.Kind == Insert {
				require.Equal(t, g.record(records+g.own-1), op.Record)
				require.False(t, seen[op.Record], "no record is inserted twice")
				seen[op.Record], newest = true, op.Record
				continue
			}
			reads++
			if op.Record == newest {
				latest++
			}
		}
		require.InDelta(t, 1/zeta(records, 0, 0), float64(latest)/float64(reads), 0.03)
	}
}

// Keys are YCSB's. The output of every load phase shows the first record's.
func TestKeys(t *testing.T) {
	require.Equal(t, "user6284781860667377211", string(Key(0)))
}
