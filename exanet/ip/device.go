package ip

import "github.com/spinsim/spinsim/runtime"

// Device is the source and destination of IP packets: the service's interface
// to the kernel, like the file descriptor of a non-blocking TUN device.
type Device interface {
	// Read takes the next packet to send and returns its length, or 0 if
	// there is none now. A packet longer than b is cut.
	Read(b []byte) (int, error)
	// Write gives a received packet to the kernel. The kernel's code for it
	// runs on the core of p, the calling process.
	Write(p *runtime.Proc, b []byte) error
	// Ready sets the function to call when there is a packet to read.
	Ready(f func())
}

// TUN is the simulated device, with the kernel's packet queue.
type TUN struct {
	queue   [][]byte
	most    int
	ready   func()
	room    func() // called when half of the queue is free again
	in      func(p *runtime.Proc, packet []byte)
	Dropped uint64 // packets of the kernel that found the queue full
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

// send is the kernel's side: it queues a packet, or drops it.
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
