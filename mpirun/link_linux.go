package mpirun

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The layout of provider/link.h.
const (
	linkVersion = 1
	linkPosts   = 256
	linkDone    = 1024
	linkInject  = 128
)

const (
	turnProcess = iota
	turnSimulator
)

const (
	stateStarting = iota
	stateRunning
	stateEnded
)

type why uint32

const (
	whyInit why = iota + 1
	whyWait
	whyLook
	whyClock
	whySleep
	whyFull
	whyFinalize
	whyGone // the process has ended: ours alone
)

const (
	postSend = iota + 1
	postReceive
	postPeek
	postCancel
)

const (
	postInlined = 1 << iota
	postQuiet
	postDelivered
	postClaim
	postClaimed
	postDiscard
	postMessage
)

type post struct {
	kind, flags  uint32
	context      uint64
	addr, length uint64
	tag, ignore  uint64
	data         uint64
	peer         int32
	hasData      uint32
	inlined      [linkInject]byte
}

type done struct {
	context uint64
	flags   uint64
	length  uint64
	addr    uint64
	data    uint64
	tag     uint64
	err     int32
	source  int32
	over    uint64
}

type shared struct {
	version, size      uint32
	turn               uint32
	why                why
	state              uint32
	rank, ranks, pid   int32
	arg, now           uint64
	posted             uint32
	doneHead, doneTail uint32
	_                  uint32
	posts              [linkPosts]post
	done               [linkDone]done
}

// link is the simulator's end of what it shares with the process of a rank.
type link struct {
	*shared
	conn *net.UnixConn
	gone atomic.Bool   // the process has ended
	over chan struct{} // closed then
	file []byte
}

// hello is what a process says first.
type hello struct {
	version          uint32
	rank, ranks, pid int32
}

// accept connects with a process.
func accept(conn *net.UnixConn, ranks int) (*link, error) {
	var h hello
	b := unsafe.Slice((*byte)(unsafe.Pointer(&h)), unsafe.Sizeof(h))
	if n, err := conn.Read(b); err != nil || n != len(b) {
		return nil, fmt.Errorf("mpirun: a process said %d bytes, expected %d: %w", n, len(b), err)
	}
	if h.version != linkVersion || h.rank < 0 || int(h.rank) >= ranks || int(h.ranks) != ranks {
		return nil, fmt.Errorf("mpirun: process %d is rank %d of %d, expected one of %d", h.pid, h.rank, h.ranks, ranks)
	}
	fd, err := unix.MemfdCreate("spinsim", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("mpirun: %w", err)
	}
	defer func() { _ = unix.Close(fd) }() // the mapping stays
	size := int(unsafe.Sizeof(shared{}))
	if err := unix.Ftruncate(fd, int64(size)); err != nil {
		return nil, fmt.Errorf("mpirun: %w", err)
	}
	file, err := unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("mpirun: %w", err)
	}
	l := &link{shared: (*shared)(unsafe.Pointer(&file[0])), conn: conn, over: make(chan struct{}), file: file}
	l.version, l.size, l.rank, l.ranks, l.pid = linkVersion, uint32(size), h.rank, h.ranks, h.pid
	if _, _, err := conn.WriteMsgUnix([]byte{1}, unix.UnixRights(fd), nil); err != nil {
		return nil, fmt.Errorf("mpirun: %w", err)
	}
	return l, nil
}

// watch waits for the end of the process. Then it is the simulator's turn.
func (l *link) watch() {
	var b [1]byte
	_, _ = l.conn.Read(b[:])
	l.gone.Store(true)
	l.wake(turnSimulator)
	close(l.over)
}

// kill ends the process, and returns when it is gone, as a rule. A nil link is no process.
func (l *link) kill() {
	if l == nil || l.gone.Load() {
		return
	}
	_ = unix.Kill(int(l.pid), unix.SIGKILL) // it may have ended meanwhile
	select {
	case <-l.over:
	case <-time.After(time.Second): // a child of the process still has its connection
	}
}

func (l *link) wake(turn uint32) {
	atomic.StoreUint32(&l.turn, turn)
	l.futex(1, 1) // FUTEX_WAKE
}

func (l *link) futex(op, value uintptr) {
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&l.turn)), op, value, 0, 0, 0)
}

// await waits until the process hands over, and says why.
func (l *link) await() why {
	for atomic.LoadUint32(&l.turn) != turnSimulator {
		l.futex(0, turnProcess) // FUTEX_WAIT
	}
	if l.gone.Load() {
		return whyGone
	}
	return l.why
}

// yield lets the process go on, and waits until it hands over.
func (l *link) yield() why {
	if l.gone.Load() {
		return whyGone
	}
	l.wake(turnProcess)
	return l.await()
}

// mover is ProcessVMReadv or ProcessVMWritev.
type mover func(pid int, local []unix.Iovec, remote []unix.RemoteIovec, flags uint) (n int, err error)

// read copies memory of the process.
func (l *link) read(addr uint64, b []byte) error { return l.move(addr, b, unix.ProcessVMReadv) }

// write changes memory of the process.
func (l *link) write(addr uint64, b []byte) error { return l.move(addr, b, unix.ProcessVMWritev) }

func (l *link) move(addr uint64, b []byte, call mover) error {
	for len(b) > 0 {
		local := []unix.Iovec{{Base: &b[0]}}
		local[0].SetLen(len(b))
		n, err := call(int(l.pid), local, []unix.RemoteIovec{{Base: uintptr(addr), Len: len(b)}}, 0)
		if err != nil || n == 0 {
			return fmt.Errorf("%d bytes at %#x of process %d: %w", len(b), addr, l.pid, errors.Join(err, os.ErrInvalid))
		}
		addr, b = addr+uint64(n), b[n:]
	}
	return nil
}
