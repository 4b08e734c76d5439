package hpu

// fiber runs a function that may suspend itself. *sim.Coro is one.
type fiber interface {
	Start(f func()) (done bool)
	Yield()
	Resume() (done bool)
	Close()
}

// worker runs handlers that may suspend themselves, one at a time.
type worker struct {
	fiber
	of  *workers
	c   *Context // its handler is run
	run func()   // runs the handler of c; made once, so that a start allocates nothing
}

// workers are shared by all programs of an engine. So are the actions that
// calls of imports are decoded into. The last one used is used next, because it
// is still in the processor's cache, even with a thousand programs.
type workers struct {
	idle    []*worker
	actions []*Action // free actions
	// free contexts, of any program
	contexts []*Context
	fiber    func() fiber
}

// get returns an idle worker for c.
func (w *workers) get(c *Context) *worker {
	n := len(w.idle)
	if n == 0 {
		x := &worker{fiber: w.fiber(), of: w, c: c}
		x.run = func() { x.c.run() }
		return x
	}
	x := w.idle[n-1]
	w.idle = w.idle[:n-1]
	x.c = c
	return x
}

func (x *worker) put() { x.of.idle = append(x.of.idle, x) }

// action returns an empty action. give takes it back.
func (w *workers) action() *Action {
	a := taken(&w.actions)
	*a = Action{}
	return a
}

// context returns a context for the caller to fill in.
func (w *workers) context() *Context { return taken(&w.contexts) }

// taken removes an object from a list of free ones; without one it makes one.
func taken[T any](free *[]*T) *T {
	n := len(*free)
	if n == 0 {
		return new(T)
	}
	x := (*free)[n-1]
	*free = (*free)[:n-1]
	return x
}

func (w *workers) give(a *Action) { w.actions = append(w.actions, a) }

func (w *workers) close() {
	for _, x := range w.idle {
		x.Close()
	}
	*w = workers{}
}
