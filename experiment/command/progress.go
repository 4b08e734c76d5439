package command

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/spinsim/spinsim/sim"
	"github.com/spinsim/spinsim/trace"
)

// EndTimeline gives a timeline its file, also that of a run which failed, but not of one that was interrupted. A nil writer is none.
func EndTimeline(w *trace.Writer, err error) error {
	switch {
	case w == nil:
		return err
	case errors.Is(err, context.Canceled):
		w.Discard()
		return err
	}
	if limit := (*sim.LimitError)(nil); errors.As(err, &limit) {
		w.Instant(w.Track("run", 0, "limit"), "incomplete: stopped by the limit of "+limit.Limit, limit.At, 0)
	}
	return errors.Join(err, w.Close())
}

// progress shows how many measurements are done, on a terminal only.
type progress struct {
	p   *mpb.Progress
	bar *mpb.Bar
}

func newProgress(w io.Writer, name string, total int) *progress {
	f, ok := w.(*os.File)
	if !ok || total < 2 {
		return &progress{}
	}
	if info, err := f.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return &progress{}
	}
	p := mpb.New(mpb.WithOutput(f), mpb.WithWidth(40))
	bar := p.AddBar(int64(total), mpb.PrependDecorators(decor.Name(name+" ")), mpb.AppendDecorators(decor.CountersNoUnit("%d/%d")), mpb.BarRemoveOnComplete())
	return &progress{p, bar}
}

// step counts one measurement; it may be called from any goroutine.
func (g *progress) step() {
	if g.bar != nil {
		g.bar.Increment()
	}
}

// stop removes the bar.
func (g *progress) stop() {
	if g.bar != nil {
		g.bar.Abort(true)
		g.p.Wait()
	}
}
