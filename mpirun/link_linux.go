package mpirun

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/spinsim/spinsim/mpi"
)

// The layout of provider/link.h.
const (
	linkVersion = 4
	linkPosts   = 256
	linkDone    = 1024
	linkInject  = 128
	linkAtomic  = 4096

	linkEndpoints = 64

	maxMessage = 1<<31 - 1 // bytes, of the endpoints
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
	whyRegion
	whyRefused
	whyCollective
	// ours alone
	whyGone    // the process has ended
	whySpoiled // it is nobody's turn
)

const (
	postSend = iota + 1
	postReceive
	postPeek
	postCancel
	postRegister
	postForget
	postWrite
	postRead
	postAtomic
	postFetch
	postCompare
)

const (
	postInlined = 1 << iota
	postQuiet
	postDelivered
	postClaim
	postClaimed
	postDiscard
	postMessage
	postCounted
	postVirtual
	postSeen
	postMulti
	postVector
)

type post struct {
	kind, flags  uint32
	context      uint64
	addr, length uint64
	tag, ignore  uint64
	data         uint64
	peer         int32
	hasData      uint32
	endpoint     uint16
	peerEndpoint uint16
	op, kindOf   uint8 // of an atomic operation: of libfabric
	pieces       uint16
	remote, key  uint64
	result       uint64
	compare      uint64
	access       uint64
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

	endpoint, sourceEndpoint uint16
	quiet                    uint32
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
	timed              uint32
	used               uint64
	collective         collective
	takes, taking      uint32
	posts              [linkPosts]post
	done               [linkDone]done
}

// refusedCalls are calls of MPI for processes that are not simulated, and then
// dynamicWindow: a put of Open MPI 4.1.4 to a dynamic window of another node ends
// the program over libfabric's other providers, and does not end over this one.
var refusedCalls = []string{"MPI_Comm_spawn", "MPI_Comm_spawn_multiple", "MPI_Open_port", "MPI_Comm_accept", "MPI_Comm_connect", "MPI_Comm_join", "MPI_Win_create_dynamic"}

const dynamicWindow = 6

// refuse returns why a call of refusedCalls is an error, if it is.
func (k *rank) refuse(call int) error {
	switch {
	case call < 0 || call >= len(refusedCalls):
		return fmt.Errorf("rank %d: %w", k.rank, k.spoiled("call %d", call))
	case call != dynamicWindow:
		return fmt.Errorf("rank %d calls %s, which is not supported: only the ranks that mpirun has started are simulated", k.rank, refusedCalls[call])
	case k.of.MPI.PerNode > 1 || len(k.all) == 1:
		return nil
	}
	return fmt.Errorf("rank %d calls %s, which is not supported with one rank on each node: Open MPI's puts to such windows do not end there; with several it takes messages", k.rank, refusedCalls[call])
}

// collective is a collective operation of all ranks that the process calls.
type collective struct {
	send, receive, count uint64
	kind, op, call       uint32
	root                 int32
}

// Its calls.
const (
	callAllreduce = 1 + iota
	callReduce
	callBcast
	callBarrier
)

// link is the simulator's end of what it shares with the process of a rank.
type link struct {
	*shared
	socket   *os.File      // the connection
	gone     atomic.Bool   // the process has ended
	at       time.Time     // when over was closed
	finished atomic.Bool   // it may end
	over     chan struct{} // closed then
	file     []byte
	fd       int          // of the process: pidfd_open
	node     string       // its UTS namespace
	space    *os.File     // the same, open: nobody else has its number
	held     atomic.Bool  // it had had its turn for long when it was killed
	began    atomic.Int64 // its turn, nanoseconds
	near     near
	code     atomic.Int64 // its status at exit, and 1<<32; 0: it has not said so
	// the process cannot change these
	tail             uint32 // of done
	rank, ranks, pid int32
}

// hello is what a process says first.
type hello struct {
	version          uint32
	rank, ranks, pid int32
}

// accept connects with a process.
func accept(conn *net.UnixConn, ranks int) (*link, error) {
	pid, err := peer(conn)
	if err != nil {
		return nil, fmt.Errorf("mpirun: %w", err)
	}
	rank, _ := member(int(pid), "")
	var h hello
	b := unsafe.Slice((*byte)(unsafe.Pointer(&h)), unsafe.Sizeof(h))
	n, err := conn.Read(b)
	switch {
	case err != nil || n != len(b):
		return nil, fmt.Errorf("mpirun: rank %s: process %d said %d bytes, expected %d", rank, pid, n, len(b))
	case h.version != linkVersion || h.rank < 0 || int(h.rank) >= ranks || int(h.ranks) != ranks || pid != h.pid:
		return nil, fmt.Errorf("mpirun: rank %s: process %d says that it is process %d and rank %d of %d, expected one of %d", rank, pid, h.pid, h.rank, h.ranks, ranks)
	}
	process, err := unix.PidfdOpen(int(h.pid), 0)
	if err != nil {
		return nil, fmt.Errorf("mpirun: rank %d: the process has ended in MPI_Init: %w", h.rank, err)
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
	l := &link{shared: (*shared)(unsafe.Pointer(&file[0])), over: make(chan struct{}), file: file, fd: process, rank: h.rank, ranks: h.ranks, pid: h.pid}
	l.version, l.size, l.shared.rank, l.shared.ranks, l.shared.pid = linkVersion, uint32(size), h.rank, h.ranks, h.pid
	space := fmt.Sprintf("/proc/%d/ns/uts", h.pid)
	if l.space, err = os.Open(space); err == nil { //lint:files of the kernel
		l.node, err = os.Readlink(space)
	}
	if err != nil {
		return nil, fmt.Errorf("mpirun: rank %d: the process has ended in MPI_Init: %w", h.rank, err)
	}
	if l.socket, err = conn.File(); err != nil {
		return nil, fmt.Errorf("mpirun: %w", err)
	}
	if _, _, err := conn.WriteMsgUnix([]byte{1}, unix.UnixRights(fd), nil); err != nil {
		return nil, fmt.Errorf("mpirun: %w", err)
	}
	return l, conn.Close()
}

// forget gives up the namespaces of processes.
func forget(links []*link) {
	for _, l := range links {
		if l != nil {
			_ = l.space.Close() // nothing was written
		}
	}
}

// peer returns the process at the other end.
func peer(conn *net.UnixConn) (pid int32, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var credentials *unix.Ucred
	wrong := raw.Control(func(fd uintptr) { credentials, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err = errors.Join(wrong, err); err != nil {
		return 0, err
	}
	return credentials.Pid, nil
}

// early is the error of a process that has ended too early.
func (l *link) early() error {
	return fmt.Errorf("rank %d: the process has ended before MPI_Finalize, %s", l.rank, l.how())
}

// how says how the process has ended.
func (l *link) how() string {
	if status, said := l.status(); said {
		return fmt.Sprintf("with status %d", status)
	}
	return "by a signal, or by _exit"
}

// status returns the status that the process has said when it ended.
func (l *link) status() (code uint32, said bool) {
	c := l.code.Load()
	return uint32(c), c != 0
}

// kill ends the process. Then watch says so.
func (l *link) kill() {
	if l.gone.Load() {
		return
	}
	l.held.Store(l.finished.Load() || atomic.LoadUint32(&l.turn) == turnProcess && time.Since(time.Unix(0, l.began.Load())) > patience)
	_ = unix.Kill(int(l.pid), unix.SIGKILL) // it may have ended
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
	for turn := atomic.LoadUint32(&l.turn); turn != turnSimulator; turn = atomic.LoadUint32(&l.turn) {
		switch {
		case l.gone.Load(): // watch has given the turn before it was the process's
			return whyGone
		case turn != turnProcess:
			return whySpoiled
		}
		l.futex(0, turnProcess) // FUTEX_WAIT
	}
	if l.gone.Load() {
		return whyGone
	}
	if w := l.why; w < whyGone {
		return w
	}
	return whySpoiled
}

// push adds a completion.
func (l *link) push(d done) {
	l.done[l.tail%linkDone] = d
	l.tail++
	l.doneTail = l.tail
}

// waiting returns how many completions the process has not taken.
func (l *link) waiting() (int, error) {
	n := l.tail - l.doneHead
	if n > linkDone {
		return 0, l.spoiled("%d completions taken of %d", l.doneHead, l.tail)
	}
	return int(n), nil
}

// taken returns what the process has posted, after checks: a copy.
func (l *link) taken() ([]post, error) {
	n := l.posted
	if n > linkPosts {
		return nil, l.spoiled("%d posts, expected at most %d", n, linkPosts)
	}
	list := slices.Clone(l.posts[:n])
	for i := range list {
		p, least := &list[i], int32(0)
		if p.kind == postReceive || p.kind == postPeek {
			least = -1
		}
		switch {
		case p.kind < postSend || p.kind > postCompare:
			return nil, l.spoiled("operation %d", p.kind)
		case p.endpoint >= linkEndpoints || p.peerEndpoint >= linkEndpoints:
			return nil, l.spoiled("endpoints %d and %d", p.endpoint, p.peerEndpoint)
		case p.kind >= postRegister:
			if err := l.checked(p); err != nil {
				return nil, err
			}
		case p.peer < least || p.peer >= l.ranks:
			return nil, l.spoiled("rank %d", p.peer)
		case p.length > maxMessage || p.flags&postInlined != 0 && p.length > linkInject || !p.whole():
			return nil, l.spoiled("a message of %d B", p.length)
		case (p.tag|p.ignore)>>(mpi.TagBits-1) != 0:
			return nil, l.spoiled("tag %#x", p.tag|p.ignore)
		}
	}
	l.posted = 0
	return list, nil
}

// piece is a part of the memory of an operation.
type piece struct{ addr, length uint64 }

// list returns the parts of the memory of an operation.
func (p *post) list() []piece {
	if p.flags&postVector == 0 {
		return []piece{{p.addr, p.length}}
	}
	return unsafe.Slice((*piece)(unsafe.Pointer(&p.inlined)), p.pieces)
}

// whole reports whether the parts of the memory have the length of the operation.
func (p *post) whole() bool {
	if p.flags&postVector == 0 {
		return true
	}
	if p.flags&postInlined != 0 || uintptr(p.pieces) > linkInject/unsafe.Sizeof(piece{}) {
		return false
	}
	left := p.length
	for _, part := range p.list() {
		if part.length > left {
			return false
		}
		left -= part.length
	}
	return left == 0
}

// spoiled is the error of a process that has changed what is the simulator's.
func (l *link) spoiled(format string, args ...any) error {
	return fmt.Errorf("the process has spoiled the memory that it shares with the simulator: %s", fmt.Sprintf(format, args...))
}

// yield lets the process go on, and waits until it hands over.
func (l *link) yield() why {
	if l.gone.Load() {
		return whyGone
	}
	l.began.Store(time.Now().UnixNano())
	l.wake(turnProcess)
	return l.await()
}
