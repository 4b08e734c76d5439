// Package batch runs many measurements, several at a time: the points of an
// experiment, or the runs of a scenario. It keeps each result at once in a
// folder, so that an interrupted command goes on where it was, and it can
// measure a part of them only.
package batch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/spinsim/spinsim/internal/checkpoint"
	"github.com/spinsim/spinsim/internal/cli"
)

// Batch is several measurements, each with a result of type R.
type Batch[R any] struct {
	Noun  Noun // of a measurement
	Count int  // of measurements
	// Run makes a measurement. later is how many have not begun; kept ones never
	// do.
	Run     func(ctx context.Context, number, later int) (*R, error)
	Workers int // how many may run at once; 0: as many as there are processors

	// Folder keeps each result at once. A measurement whose result it has is not
	// made again. nil: nothing is kept.
	Folder *checkpoint.Folder
	// Key is the hash of all that a result depends on, and Name is for people.
	Key  func(number int) (string, error)
	Name func(number int) string
	// Encode makes a value for JSON of a result; nil: the result is not kept.
	Encode func(r *R) any
	// Decode makes a result of what Encode has made.
	Decode func(number int, text []byte) (*R, error)
}

// Noun names the measurements of a batch for people.
type Noun struct{ One, Many string }

// Of writes a number with the noun.
func (n Noun) Of(number int) string {
	if number == 1 {
		return "1 " + n.One
	}
	return fmt.Sprintf("%d %s", number, n.Many)
}

// Unfinished is the error of a batch whose context ended before all was
// measured, or in which some measurements have failed and others have not.
type Unfinished[R any] struct {
	Results []*R  // in the order of the measurements; nil: not measured
	Err     error // what ended the batch, or the errors of the measurements
	Noun    Noun
}

// Error is the text of Err and Progress.
func (u *Unfinished[R]) Error() string { return fmt.Sprintf("%v\n%s", u.Err, u.Progress()) }

// Unwrap returns Err.
func (u *Unfinished[R]) Unwrap() error { return u.Err }

// Progress writes how many measurements were made.
func (u *Unfinished[R]) Progress() string {
	return fmt.Sprintf("%d of %d %s were measured", len(u.Measured()), len(u.Results), u.Noun.Many)
}

// Cut says why and where the batch has ended, for the seals of its files.
func (u *Unfinished[R]) Cut() string { return cli.CutBy(u.Err) + ", " + u.Progress() }

// Shown reports whether there is any result.
func (u *Unfinished[R]) Shown() bool { return len(u.Measured()) > 0 }

// Measured lists the results that are there.
func (u *Unfinished[R]) Measured() (list []*R) {
	for _, r := range u.Results {
		if r != nil {
			list = append(list, r)
		}
	}
	return list
}

// kept returns the results that the folder has, nil for the others, and the
// keys of all. Without a folder there are neither.
func (b *Batch[R]) kept() (keys []string, results []*R, err error) {
	results = make([]*R, b.Count)
	if b.Folder == nil {
		return nil, results, nil
	}
	keys = make([]string, b.Count)
	for i := range keys {
		if keys[i], err = b.Key(i); err != nil {
			return nil, nil, err
		}
		text, known := b.Folder.Get(keys[i])
		if !known {
			continue
		}
		if results[i], err = b.Decode(i, text); err != nil {
			return nil, nil, err
		}
	}
	return keys, results, nil
}

// Shown is Measure for a command. It shows the progress on errs if that is a
// terminal.
func (b *Batch[R]) Shown(ctx context.Context, errs io.Writer, name string) ([]*R, error) {
	progress := cli.NewProgress(errs, name, b.Count)
	defer progress.Stop()
	later, stop := cli.ShowLater(ctx)
	defer stop()
	results, err := b.Measure(ctx, func() {
		later()
		progress.Step()
	})
	if u := (*Unfinished[R])(nil); errors.As(err, &u) {
		cli.Shows(ctx)
	}
	return results, err
}

// Measure makes the measurements and returns their results in the same order.
// done, if not nil, is called after each, from any goroutine. A measurement
// that fails does not end the others. If the context ends before the last, or
// if some fail, the error is *Unfinished. If all fail, it is their errors.
func (b *Batch[R]) Measure(ctx context.Context, done func()) ([]*R, error) {
	keys, results, err := b.kept()
	if err != nil {
		return nil, err
	}
	failures := make([]error, len(results))
	left := remaining{end: len(results)}
	var later atomic.Int64
	for _, r := range results {
		if r == nil {
			later.Add(1)
		}
	}
	workers := b.Workers
	if workers < 1 {
		workers = runtime.GOMAXPROCS(0)
	}
	var wg sync.WaitGroup
	for worker := range min(workers, len(results)) {
		wg.Go(func() {
			for ctx.Err() == nil {
				i := left.take(worker == 1)
				if i < 0 {
					return
				}
				if results[i] == nil {
					if results[i], failures[i] = b.Run(ctx, i, int(later.Add(-1))); failures[i] == nil {
						failures[i] = b.keep(keys, i, results[i])
					}
					if results[i] != nil && failures[i] != nil {
						left.none() // the folder can keep no more
					}
				}
				if done != nil {
					done()
				}
			}
		})
	}
	wg.Wait()
	return b.outcome(results, failures, context.Cause(ctx))
}

// keep stores a result in the folder.
func (b *Batch[R]) keep(keys []string, i int, r *R) error {
	if b.Folder == nil {
		return nil
	}
	v := b.Encode(r)
	if v == nil {
		return nil
	}
	return b.Folder.Put(keys[i], b.Name(i), v)
}

// outcome is what Measure returns. cause is what ended the context; nil: it has
// not ended.
func (b *Batch[R]) outcome(results []*R, failures []error, cause error) ([]*R, error) {
	u := &Unfinished[R]{Results: results, Noun: b.Noun}
	if u.Err = failed(failures); u.Err != nil && cause == nil {
		if u.Shown() {
			return nil, u
		}
		return nil, u.Err
	}
	for _, err := range failures {
		if err != nil {
			u.Err = err
			return nil, u
		}
	}
	if cause != nil && slices.Contains(results, nil) {
		u.Err = cause
		return nil, u
	}
	return results, nil
}

// mostFailures is how many failures are shown. Many failures have mostly one
// cause.
const mostFailures = 5

// failed joins the errors of measurements; nil is no error. Of many it has the
// first ones and how many more there are.
func failed(failures []error) error {
	var list []error
	said := make(map[string]bool)
	for _, err := range failures {
		if err != nil && !said[err.Error()] {
			said[err.Error()] = true
			list = append(list, err)
		}
	}
	if more := len(list) - mostFailures; more > 0 {
		list = append(list[:mostFailures], fmt.Errorf("and %d more have failed", more))
	}
	return errors.Join(list...)
}

// remaining are the measurements that no worker has begun. One worker takes
// them from the end. The last are often the largest, for example with growing
// sizes of messages: begun last, such a one would keep one processor busy while
// the others wait.
type remaining struct {
	mu         sync.Mutex
	begin, end int
}

// take returns the number of the next measurement, or of the last for one
// worker. -1: there is none.
func (r *remaining) take(last bool) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.begin >= r.end:
		return -1
	case last:
		r.end--
		return r.end
	}
	r.begin++
	return r.begin - 1
}

// none removes all measurements.
func (r *remaining) none() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.end = r.begin
}
