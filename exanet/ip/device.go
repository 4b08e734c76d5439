package ip

import "github.com/spinsim/spinsim/runtime"

// Device is where packets of IP come from and go to: what a service sees of the
// kernel, as the file descriptor of a TUN device that does not block.
type Device interface {
	// Read takes the next packet that is to be sent and returns its length; 0:
	// there is none now. A packet that is longer than b is cut.
	Read(b []byte) (int, error)
	// Write gives a packet that has come to the kernel; p is the process that
	// does, whose core the kernel's code for it runs on.
	Write(p *runtime.Proc, b []byte) error
	// Ready sets what is called when there is a packet to read.
	Ready(f func())
}

// TUN is the simulated device, with the kernel's queue of packets.
type TUN struct {
	queue   [][]byte
	most    int
	ready   func()
	room    func() // is called when half of the queue is free again
	in      func(p *runtime.Proc, packet []byte)
	Dropped uint64 // packets of the kernel for which there was no room
}

// Read implements Device.
func (t *TUN) Read(b []byte) (int, error) {
	if len(t.queue) == 0 {
		return 0, nil
	}
	n := copy(b, t.queue[0])
	if t.queue = t.queue[:copy(t.queue, t.queue[1:])]; len(t.queue) == t.most/2 {
		t.room()
	}
	return n, nil
}

// Write implements Device.
func (t *TUN) Write(p *runtime.Proc, b []byte) error {
	t.in(p, b)
	return nil
}

// Ready implements Device.
func (t *TUN) Ready(f func()) { t.ready = f }

// send is the kernel's side: it takes a packet, or drops it.
func (t *TUN) send(packet []byte) bool {
	if len(t.queue) == t.most {
		t.Dropped++
		return false
	}
	t.queue = append(t.queue, packet)
	if t.ready != nil {
		t.ready()
	}
	return true
}
