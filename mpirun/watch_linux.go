package mpirun

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// watch waits for the ends of the processes of a run, in the order in which they
// end: the first is the one that counts, as mpirun ends the others at once.
type watch struct {
	epoll, over int // files; the second says that it is over
	links       []*link
	ended       func(error)
}

func newWatch(ranks int, ended func(error)) (*watch, error) {
	w := &watch{links: make([]*link, ranks), ended: ended}
	var err error
	if w.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, err
	}
	if w.over, err = unix.Eventfd(0, unix.EFD_CLOEXEC); err != nil {
		return nil, err
	}
	return w, w.wait(w.over, unix.EPOLLIN, 2*ranks)
}

func (w *watch) wait(fd int, events uint32, number int) error {
	return unix.EpollCtl(w.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: events | unix.EPOLLONESHOT, Fd: int32(number)})
}

// add adds a process. A child of it may have its connection for longer, and it may
// close that and live on.
func (w *watch) add(l *link) error {
	w.links[l.rank] = l
	return errors.Join(w.wait(l.fd, unix.EPOLLIN, 2*int(l.rank)), w.wait(int(l.socket.Fd()), unix.EPOLLRDHUP, 2*int(l.rank)+1))
}

// close ends run.
func (w *watch) close() {
	_, _ = unix.Write(w.over, binary.NativeEndian.AppendUint64(nil, 1)) // it has room
}

func (w *watch) run() {
	defer func() {
		for _, l := range w.links {
			if l != nil && !l.gone.Load() {
				w.died(l)
			}
		}
		_ = errors.Join(unix.Close(w.epoll), unix.Close(w.over)) // nothing was written
	}()
	for events := make([]unix.EpollEvent, 16); ; {
		n, err := unix.EpollWait(w.epoll, events, -1)
		if err != nil && !errors.Is(err, unix.EINTR) {
			w.ended(fmt.Errorf("mpirun: %w", err))
			return
		}
		for _, e := range events[:max(n, 0)] {
			switch number := int(e.Fd); {
			case number == 2*len(w.links):
				return
			case number%2 == 0:
				w.died(w.links[number/2])
			default:
				time.AfterFunc(patience, func() { w.closed(w.links[number/2]) })
			}
		}
	}
}

// closed is called some time after a connection has been closed.
func (w *watch) closed(l *link) {
	if !l.gone.Load() && !l.finished.Load() {
		w.ended(fmt.Errorf("rank %d: the process has closed its connection with the simulator", l.rank))
	}
}

// died notes the end of a process. Then it is the simulator's turn.
func (w *watch) died(l *link) {
	var b [4]byte
	if n, _, err := unix.Recvfrom(int(l.socket.Fd()), b[:], unix.MSG_DONTWAIT); err == nil && n == len(b) {
		l.code.Store(1<<32 | int64(binary.NativeEndian.Uint32(b[:])))
	}
	l.at = time.Now()
	l.gone.Store(true)
	if !l.finished.Load() {
		w.ended(l.early())
	}
	l.wake(turnSimulator)
	close(l.over)
	_ = errors.Join(unix.Close(l.fd), l.socket.Close()) // nothing was written
}

// polled waits for the end of a process, and says whether it has come.
func polled(fd int, patience time.Duration) bool {
	list := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(list, int(patience.Milliseconds()))
		if !errors.Is(err, unix.EINTR) {
			return n > 0
		}
	}
}
