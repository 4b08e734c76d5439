package cli

import (
	"io"
	"os"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"

	"github.com/spinsim/spinsim/report"
)

// Progress shows on a terminal how many measurements are done, and estimates
// the time for the others from these. It shows nothing in the first two
// seconds.
type Progress struct {
	end, ended chan struct{} // closed by Stop, and when nothing more is drawn; nil: no terminal

	mu   sync.Mutex
	done int
	p    *mpb.Progress
	bar  *mpb.Bar // nil: not shown yet
}

// quick is how long a command may run without showing its progress.
const quick = 2 * time.Second

// NewProgress is for the stderr of a command. name stands before the progress.
func NewProgress(w io.Writer, name string, total int) *Progress {
	f, ok := report.Exact(w).(*os.File)
	if !ok || total < 2 {
		return &Progress{}
	}
	if info, err := f.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return &Progress{}
	}
	return newProgress(f, name, total, time.After(quick))
}

// newProgress shows nothing until begin.
func newProgress(f *os.File, name string, total int, begin <-chan time.Time) *Progress {
	g := &Progress{end: make(chan struct{}), ended: make(chan struct{})}
	start := time.Now()
	go func() {
		defer close(g.ended)
		select {
		case <-begin:
			g.show(f, name, total, start)
		case <-g.end:
		}
	}()
	return g
}

// unknownWidth is the width for a terminal that reports no columns, as in some
// containers.
const unknownWidth = 80

func (g *Progress) show(f *os.File, name string, total int, start time.Time) {
	options := []mpb.ContainerOption{mpb.WithOutput(f), mpb.WithWidth(40)}
	if columns, _, err := term.GetSize(int(f.Fd())); err == nil && columns == 0 {
		options = []mpb.ContainerOption{mpb.WithOutput(struct{ io.Writer }{f}), mpb.WithWidth(unknownWidth), mpb.WithAutoRefresh()}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.p = mpb.New(options...)
	g.bar = g.p.AddBar(int64(total), mpb.PrependDecorators(decor.Name(name+" ")),
		mpb.AppendDecorators(decor.CountersNoUnit("%d/%d"), decor.Name(", about "), decor.NewAverageETA(decor.ET_STYLE_GO, start, nil), decor.Name(" left")), mpb.BarRemoveOnComplete())
	g.bar.IncrBy(g.done)
}

// Step counts one measurement. Any goroutine may call it.
func (g *Progress) Step() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.done++
	if g.bar != nil {
		g.bar.Increment()
	}
}

// Stop removes the progress from the terminal.
func (g *Progress) Stop() {
	if g.end == nil {
		return
	}
	close(g.end)
	<-g.ended
	if g.bar != nil {
		g.bar.Abort(true)
		g.p.Wait()
	}
}
