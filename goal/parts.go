package goal

// Contents counts what belongs to a collective.
type Contents struct {
	// Ranks is the number of members.
	Ranks int
	// Messages and Bytes count its sends.
	Messages int64
	Bytes    uint64
}

// Contents returns the contents of each of Collectives.
func (s *Schedule) Contents() []Contents {
	list := make([]Contents, len(s.colls))
	if len(list) == 0 {
		return nil
	}
	last := make([]int, len(list)) // the last rank that belongs to it, from 1
	for r, v := range s.All() {
		for i := range v.Len() {
			n := v.Collective(i)
			if n < 0 {
				continue
			}
			c := &list[n]
			if last[n] != r+1 {
				last[n] = r + 1
				c.Ranks++
			}
			if op := v.Op(i); op.Kind == Send {
				c.Messages++
				c.Bytes += op.Size
			}
		}
	}
	return list
}

// Window is the time of a collective in a run, in ns: from the first of its
// operations that begins to take time on any rank, to the end of the last one. A
// receive takes time when its message does.
type Window struct{ Start, End int64 }

// WithWindows fills a window for each of Schedule.Collectives. One whose
// operations take no time stays as it is. WithTrace comes before it.
func WithWindows(list []Window) Option {
	return func(m *Simulator) {
		w := &windows{watcher: m.watch, m: m, list: list, began: make([]bool, len(list))}
		if w.watcher == nil {
			w.watcher = unseen{}
		}
		m.watch = w
	}
}

// windows is a watcher beside another one.
type windows struct {
	watcher

	m     *Simulator
	list  []Window
	began []bool
}

func (w *windows) busy(op uint32, t, end int64) {
	n := w.m.s.collective(op)
	if n == 0 {
		return
	}
	at := &w.list[n-1]
	if !w.began[n-1] {
		w.began[n-1] = true
		*at = Window{t, end}
	}
	at.Start, at.End = min(at.Start, t), max(at.End, end)
}

func (w *windows) calc(op uint32, t, end int64) {
	w.busy(op, t, end)
	w.watcher.calc(op, t, end)
}

func (w *windows) send(op uint32, t, end, gap int64) {
	w.busy(op, t, end)
	w.watcher.send(op, t, end, gap)
}

func (w *windows) message(op uint32, t, end, gap int64) {
	w.busy(op, t, end)
	w.watcher.message(op, t, end, gap)
}

func (w *windows) received(send, recv, by uint32, t, gap, end int64) {
	w.busy(send, t, end)
	w.watcher.received(send, recv, by, t, gap, end)
}

// unseen is a watcher that watches nothing.
type unseen struct{}

func (unseen) calc(uint32, int64, int64)                            {}
func (unseen) send(uint32, int64, int64, int64)                     {}
func (unseen) message(uint32, int64, int64, int64)                  {}
func (unseen) received(uint32, uint32, uint32, int64, int64, int64) {}
func (unseen) recv(uint32, int64)                                   {}
func (unseen) raised(uint32, unit, uint32, int64)                   {}
