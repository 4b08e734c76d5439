package scan

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
)

// employees is a table: id, age, pay, name.
func employees(t testing.TB, n int) (*Schema, []byte) {
	schema, err := NewSchema(
		Field{Name: "id", Kind: U32}, Field{Name: "age", Kind: U8}, Field{Name: "pay", Kind: F64}, Field{Name: "name", Kind: Bytes, Length: 20},
	)
	require.NoError(t, err)
	rows := make([]byte, n*schema.Size())
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range n {
		row := rows[i*schema.Size():]
		binary.LittleEndian.PutUint32(row, uint32(i))
		row[4] = byte(18 + rng.IntN(60))
		copy(row[13:33], fmt.Sprintf("employee %d", i))
	}
	return schema, rows
}

// run has clients ask a table; nothing is lost.
func run(t *testing.T, device string, o Options, schema *Schema, rows []byte, clients int, f func(p *runtime.Proc, c *Client), set ...string) *Table {
	p, err := profile.Load(device, set...)
	require.NoError(t, err)
	c, err := runtime.NewCluster(runtime.Config{Profile: p, Nodes: 1 + clients, Seed: 1})
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	var table *Table
	require.NoError(t, c.SpawnService(0, "table", func(p *runtime.Proc) (err error) {
		if table, err = Open(p, schema, rows, o); err != nil {
			return err
		}
		return table.Serve()
	}))
	for i := range clients {
		require.NoError(t, c.Spawn(1+i, "client", func(p *runtime.Proc) error {
			c, err := Dial(p, Address{}, schema, len(rows)/schema.Size(), o)
			if err == nil {
				f(p, c)
			}
			return err
		}))
	}
	require.NoError(t, c.Run(t.Context()))
	failures, n := c.Failures()
	require.Zero(t, n, "%v", failures)
	if o.Mode == Handlers {
		counts := table.Counts()
		require.Zero(t, counts.Illegal)
	}
	return table
}

// All modes find the same rows, on every device, whatever share of them there
// is, and where the network loses packets.
func TestSelect(t *testing.T) {
	const n = 1200
	schema, rows := employees(t, n)
	for _, set := range [][]string{nil, {"transport.kind=reliable", "transport.retries=1000", "fabric.faults={loss: 0.02, duplicate: 0.02, delay: 0.05, max_delay: 5us}"}} {
		for _, device := range []string{"spin-int", "spin-dis"} {
			for _, mode := range []Mode{Handlers, Host, All} {
				run(t, device, Options{Mode: mode, Slots: 2}, schema, rows, 3, func(_ *runtime.Proc, c *Client) {
					r, err := c.Select("id == 100", []string{"name"}, n)
					require.NoError(t, err)
					require.Equal(t, Result{Rows: append([]byte("employee 100"), make([]byte, 8)...), Matched: 1, Sent: 1}, *r)
					for _, most := range []uint32{0, 3, n} {
						r, err := c.Select(fmt.Sprintf("id < %d && pay == 0.0", most), []string{"id", "age", "name"}, n)
						require.NoError(t, err)
						require.EqualValues(t, most, r.Matched)
						var want []byte
						for i := range int(most) {
							row := rows[i*schema.Size():][:schema.Size()]
							want = append(append(want, row[:5]...), row[13:]...)
						}
						require.Equal(t, string(want), string(r.Rows))
					}
					r, err = c.Select("", nil, 0)
					require.NoError(t, err)
					require.Equal(t, Result{Matched: n}, *r)
					r, err = c.Select("", []string{"id"}, 7)
					require.NoError(t, err)
					require.Equal(t, [3]int{n, 7, 28}, [3]int{r.Matched, r.Sent, len(r.Rows)})
					_, err = c.Select("id = 1", nil, 0)
					require.ErrorIs(t, err, ErrProgram)
					_, err = c.Select("", []string{"salary"}, 1)
					require.ErrorContains(t, err, `no field "salary"`)
					_, err = c.Select("", []string{"name", "id", "name"}, n)
					require.EqualError(t, err, `scan: column "name" is named twice`)
				}, set...)
			}
		}
	}
}

// Tables of no rows, of one, and rows of every length up to the longest.
func TestRowLengths(t *testing.T) {
	// two of 2040 B fill a packet
	for _, size := range []int{1, 3, 100, 2040, 2041, 2042, 2047, 2048} {
		schema, err := NewSchema(Field{Name: "s", Kind: Bytes, Length: size})
		require.NoError(t, err)
		for _, n := range []int{0, 1, 50} {
			rows := make([]byte, n*size)
			for i := range rows {
				rows[i] = byte(i / size)
			}
			for _, mode := range []Mode{Handlers, Host, All} {
				run(t, "spin-int", Options{Mode: mode}, schema, rows, 1, func(_ *runtime.Proc, c *Client) {
					r, err := c.Select("", []string{"s"}, n)
					require.NoError(t, err)
					require.Equal(t, n, r.Matched)
					require.Equal(t, string(rows), string(r.Rows))
				})
			}
		}
	}
}

// A table of many pieces: rows come in the order of the table, in each mode,
// and as many as are asked for.
func TestPieces(t *testing.T) {
	const n = 20_000
	schema, rows := employees(t, n)
	for _, mode := range []Mode{Handlers, Host, All} {
		run(t, "spin-int", Options{Mode: mode}, schema, rows, 2, func(_ *runtime.Proc, c *Client) {
			for range 2 { // buffers are used again
				r, err := c.Select("", []string{"id", "age", "pay", "name"}, n)
				require.NoError(t, err)
				require.Equal(t, n, r.Sent)
				require.Equal(t, string(rows), string(r.Rows), "mode %d", mode)
				r, err = c.Select("id >= 500", []string{"id"}, 10_000)
				require.NoError(t, err)
				require.Equal(t, [3]int{n - 500, 10_000, 40_000}, [3]int{r.Matched, r.Sent, len(r.Rows)})
			}
		})
	}
}

// The largest program on the smallest rows stays within a handler's budget, and takes more batches.
func TestLongPrograms(t *testing.T) {
	schema, err := NewSchema(Field{Name: "a", Kind: U8})
	require.NoError(t, err)
	rows := make([]byte, 10000)
	predicate := "a+a+a+a+a+a+a+a+a+a+a+a+a+a+a+a+a+a+a+a+a+a+a+a+a+a+a+a+a+a+a == 0"
	run(t, "spin-int", Options{}, schema, rows, 1, func(_ *runtime.Proc, c *Client) {
		r, err := c.Select(predicate, []string{"a"}, len(rows))
		require.NoError(t, err)
		require.Equal(t, len(rows), r.Sent)
	})
}

// What cannot be is said by name.
func TestBadTables(t *testing.T) {
	schema, rows := employees(t, 3)
	p, err := profile.Load("spin-int", "fabric.mtu=1024")
	require.NoError(t, err)
	c, err := runtime.NewCluster(runtime.Config{Profile: p, Nodes: 1})
	require.NoError(t, err)
	require.NoError(t, c.Spawn(0, "table", func(p *runtime.Proc) error {
		_, err := Open(p, schema, rows[1:], Options{})
		require.ErrorContains(t, err, "a table of 98 B, expected a multiple of 33")
		_, err = Open(p, schema, rows, Options{Slots: -1})
		require.ErrorContains(t, err, "Slots -1")
		_, err = Open(p, schema, rows, Options{})
		require.ErrorContains(t, err, "packets of 1024 B (fabric.mtu), expected at least 2064")
		return nil
	}))
	require.NoError(t, c.Run(t.Context()))
	require.NoError(t, c.Close())
}
