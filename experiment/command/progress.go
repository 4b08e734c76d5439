package command

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

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

// Progress shows on a terminal how many measurements are done, and how long the others will take if they are like those. What ends within
// two seconds shows nothing.
type Progress struct {
	p   *mpb.Progress
	bar *mpb.Bar
	end chan struct{} // closed by Stop
}

// quick is how long a command may take without saying how far it is.
const quick = 2 * time.Second

// NewProgress is for a command's stderr, and what it is called there.
func NewProgress(w io.Writer, name string, total int) *Progress {
	f, ok := w.(*os.File)
	if !ok || total < 2 {
		return &Progress{}
	}
	if info, err := f.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return &Progress{}
	}
	g := &Progress{end: make(chan struct{})}
	begin := make(chan struct{})
	go func() {
		defer close(begin)
		select {
		case <-time.After(quick):
		case <-g.end:
		}
	}()
	g.p = mpb.New(mpb.WithOutput(f), mpb.WithWidth(40), mpb.WithRenderDelay(begin))
	g.bar = g.p.AddBar(int64(total), mpb.PrependDecorators(decor.Name(name+" ")),
		mpb.AppendDecorators(decor.CountersNoUnit("%d/%d"), decor.Name(", about "), decor.AverageETA(decor.ET_STYLE_GO), decor.Name(" left")), mpb.BarRemoveOnComplete())
	return g
}

// Step counts one measurement; it may be called from any goroutine.
func (g *Progress) Step() {
	if g.bar != nil {
		g.bar.Increment()
	}
}

// Stop removes what is shown.
func (g *Progress) Stop() {
	if g.bar != nil {
		close(g.end)
		g.bar.Abort(true)
		g.p.Wait()
	}
}
