package mpirun

import (
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

// near has copies of a process's memory, while it is the simulator's turn: nobody
// changes the memory then. Devices move a packet at a time, and a system call for
// each would take most of a run with large messages.
type near struct {
	buffers [8]piece // of the latest operations
	next    int
	read    []byte // of the process, from at on
	at      uint64
	written []byte // for the process, from to on
	to      uint64
}

// most is how much is moved together.
const most = 256 << 10

// uses notes the buffer of an operation: what follows a read in it will be read.
func (l *link) uses(addr, n uint64) {
	if n > 1 {
		l.near.buffers[l.near.next] = piece{addr, n}
		l.near.next = (l.near.next + 1) % len(l.near.buffers)
	}
}

// read copies memory of the process.
func (l *link) read(addr uint64, b []byte) error {
	m, n := &l.near, uint64(len(b))
	if off := addr - m.at; addr >= m.at && off+n <= uint64(len(m.read)) {
		copy(b, m.read[off:])
		return nil
	}
	if err := l.flush(); err != nil {
		return err
	}
	for i := range m.buffers {
		x := &m.buffers[i]
		if off := addr - x.addr; addr < x.addr || off+n >= x.length || n >= most {
			continue
		}
		m.read = slices.Grow(m.read[:0], most)[:min(x.length-(addr-x.addr), most)]
		if m.at = addr; l.move(addr, m.read, false) == nil {
			copy(b, m.read)
			return nil
		}
		m.read = m.read[:0] // its end is gone
		break
	}
	return l.move(addr, b, false)
}

// write changes memory of the process, before its next turn.
func (l *link) write(addr uint64, b []byte) error {
	m := &l.near
	if n := uint64(len(b)); addr < m.at+uint64(len(m.read)) && addr+n > m.at {
		m.read = m.read[:0]
	}
	if len(m.written) > 0 && (addr != m.to+uint64(len(m.written)) || len(m.written)+len(b) > most) {
		if err := l.flush(); err != nil {
			return err
		}
	}
	if len(m.written) == 0 {
		m.to = addr
	}
	m.written = append(m.written, b...)
	return nil
}

// flush brings all that was written to the process.
func (l *link) flush() error {
	b := l.near.written
	l.near.written = b[:0]
	return l.move(l.near.to, b, true)
}

// turns ends the simulator's turn.
func (l *link) turns() error {
	l.near.read = l.near.read[:0]
	return l.flush()
}

func (l *link) move(addr uint64, b []byte, there bool) error {
	for len(b) > 0 {
		local, remote := [1]unix.Iovec{{Base: &b[0]}}, [1]unix.RemoteIovec{{Base: uintptr(addr), Len: len(b)}}
		local[0].SetLen(len(b))
		var n int
		var err error
		if there {
			n, err = unix.ProcessVMWritev(int(l.pid), local[:], remote[:], 0)
		} else {
			n, err = unix.ProcessVMReadv(int(l.pid), local[:], remote[:], 0)
		}
		if err == nil && n == 0 {
			err = unix.EFAULT
		}
		if err != nil {
			return fmt.Errorf("%d bytes at %#x: %w", len(b), addr, err)
		}
		addr, b = addr+uint64(n), b[n:]
	}
	return nil
}
