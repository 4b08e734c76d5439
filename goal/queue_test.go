package goal

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The wheel returns events in the order of time and key, for any steps of time,
// also if events come before those already popped, or with older keys. Times
// reach maxTime, so that every level takes part.
func TestQueueSorts(t *testing.T) {
	t.Parallel()
	var q queue
	rapid.Check(t, func(t *rapid.T) {
		q.reset()
		var model []event
		last, key := int64(0), uint64(1000)
		used := map[uint64]bool{}
		for range rapid.IntRange(1, 400).Draw(t, "steps") {
			if len(model) > 0 && rapid.IntRange(0, 2).Draw(t, "do") == 0 {
				slices.SortFunc(model, func(a, b event) int {
					if a.before(b) {
						return -1
					}
					return 1
				})
				e, ok := q.pop()
				require.True(t, ok)
				require.Equal(t, model[0], e)
				last, model = e.time, model[1:]
				continue
			}
			width := rapid.IntRange(0, 62).Draw(t, "bits")
			e := event{time: last + rapid.Int64Range(0, int64(1)<<width-1).Draw(t, "step"), key: key}
			key++
			switch rapid.IntRange(0, 9).Draw(t, "kind") {
			case 0:
				e.time = rapid.Int64Range(0, last).Draw(t, "past")
			case 1, 2:
				e.key = rapid.Uint64Range(0, 999).Draw(t, "old")
			}
			if e.time > maxTime || used[e.key] {
				continue
			}
			used[e.key] = true
			q.push(e)
			model = append(model, e)
		}
	})
}

// Chunks are given back: a queue that is filled and emptied repeatedly does not
// grow.
func TestQueueReusesMemory(t *testing.T) {
	var q queue
	now := int64(0)
	round := func() {
		for i := range uint64(5000) {
			q.push(event{now + int64(i*i%7919), i})
		}
		for range 5000 {
			e, ok := q.pop()
			if !ok {
				t.Fatal("empty")
			}
			now = e.time
		}
	}
	for range 20 {
		round()
	}
	require.Zero(t, testing.AllocsPerRun(50, round))
}
