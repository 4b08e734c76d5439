package spintest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"sort"
	"strings"

	"github.com/spinsim/spinsim/spin"
)

// pending is a non-blocking DMA operation that has not taken effect yet.
type pending struct {
	call   int // index in Calls
	run    func() (int64, []byte)
	tested bool
}

// Act implements [spin.Device].
func (d *Device) Act(a *spin.Action) int64 {
	c := Call{
		Name: a.Name, HPU: d.HPU, Space: a.Space, Offset: a.Offset, A: a.A, B: a.B,
		Counter: a.Counter, Handle: a.Handle,
	}
	if a.Op != nil {
		c.Op = *a.Op
		c.UserHdr = bytes.Clone(d.bytes(a.Op.UserHdr, uint64(a.Op.UserHdrLen)))
	}
	at := len(d.Calls)
	d.Calls = append(d.Calls, c)
	result, data := d.perform(a, at)
	d.Calls[at].Result = result
	if data != nil {
		d.Calls[at].Data = data
	}
	return result
}

// perform carries out an action, the call with index at. It returns the
// action's result and the data that it moved.
func (d *Device) perform(a *spin.Action, at int) (int64, []byte) {
	if queue := d.failures[a.Name]; len(queue) > 0 {
		d.failures[a.Name] = queue[1:]
		if a.Name == "dma_wait" || a.Name == "dma_test" {
			delete(d.pending, a.Handle)
		}
		return int64(queue[0]), nil
	}
	switch {
	case a.Op != nil:
		return d.operation(a, &d.Calls[at])
	case a.Name == "dma_wait" || a.Name == "dma_test":
		return d.ended(a), nil
	case strings.HasPrefix(a.Name, "dma_"), strings.HasPrefix(a.Name, "host_write"):
		if d.wrongWrite(a) {
			return int64(spin.Invalid), nil
		}
		operation, blocking := strings.CutSuffix(a.Name, "_nb")
		run := func() (int64, []byte) { return d.dma(operation, a) }
		if !blocking {
			return run()
		}
		h := d.handles
		d.handles++
		d.pending[h] = &pending{call: at, run: run}
		return int64(h), nil
	}
	return d.local(a)
}

// ended carries out the operation of a handle. It returns the result of
// dma_wait or dma_test.
func (d *Device) ended(a *spin.Action) int64 {
	p := d.pending[a.Handle]
	if p == nil {
		return int64(spin.Invalid)
	}
	if a.Name == "dma_test" && !p.tested {
		p.tested = true
		return 0
	}
	result := d.take(a.Handle)
	if a.Name == "dma_test" && result >= 0 {
		return 1
	}
	return result
}

// take lets the operation of a handle take effect, frees the handle and returns
// the result.
func (d *Device) take(h spin.Handle) int64 {
	p := d.pending[h]
	delete(d.pending, h)
	result, data := p.run()
	d.Calls[p.call].Data = data
	return result
}

// land lets all operations take effect that a handler left behind at its end.
func (d *Device) land() {
	var left []int
	for h := range d.pending {
		left = append(left, int(h))
	}
	sort.Ints(left)
	for _, h := range left {
		d.take(spin.Handle(h))
	}
}

// host returns n bytes of host memory, or the reason why it cannot.
func (d *Device) host(space spin.Space, offset, n uint64) ([]byte, spin.Result) {
	var m []byte
	switch space {
	case spin.MEHostMem:
		m = d.Host
	case spin.HandlerHostMem:
		m = d.HandlerHost
	default:
		if int(space-spin.Granted) >= len(d.Granted) {
			return nil, spin.Denied
		}
		m = d.Granted[space-spin.Granted]
	}
	if offset > uint64(len(m)) || n > uint64(len(m))-offset {
		return nil, spin.Denied
	}
	return m[offset : offset+n], spin.OK
}

// dma performs a DMA operation now. It returns the operation's result and the
// data that it moved.
func (d *Device) dma(operation string, a *spin.Action) (int64, []byte) {
	n, word := uint64(len(a.Mem)), uint64(1)
	switch {
	case a.Word != nil || strings.HasPrefix(operation, "host_write"):
		n, word = 8, 8
	case a.Word32 != nil:
		n, word = 4, 4
	}
	if a.Offset%word != 0 {
		return int64(spin.Invalid), nil
	}
	space := a.Space &^ spin.TellFaults
	host, r := d.host(space, a.Offset, n)
	if r.Failed() {
		return int64(r), nil
	}
	if space != a.Space && d.Absent != nil && d.Absent(space, a.Offset, n, operation != "dma_from_host") {
		return int64(spin.Fault), nil
	}
	switch operation {
	case "host_write":
		binary.LittleEndian.PutUint64(host, a.A)
		return 0, bytes.Clone(host)
	case "dma_to_host", "dma_to_host_posted":
		copy(host, a.Mem)
		return 0, bytes.Clone(host)
	case "dma_from_host":
		copy(a.Mem, host)
		return 0, bytes.Clone(host)
	case "dma_cas":
		*a.Word = binary.LittleEndian.Uint64(host)
		if *a.Word != a.A {
			return 0, nil
		}
		binary.LittleEndian.PutUint64(host, a.B)
		return 1, nil
	case "dma_fadd":
		*a.Word = binary.LittleEndian.Uint64(host)
		binary.LittleEndian.PutUint64(host, *a.Word+a.A)
		return 0, nil
	case "dma_fadd_typed":
		*a.Word32 = binary.LittleEndian.Uint32(host)
		binary.LittleEndian.PutUint32(host, *a.Word32+uint32(a.A))
		return 0, nil
	}
	panic("spintest: unknown action " + operation)
}

// local performs an action within the device.
func (d *Device) local(a *spin.Action) (int64, []byte) {
	switch a.Name {
	case "cas":
		if *a.Word != a.A {
			return 0, nil
		}
		*a.Word = a.B
		return 1, nil
	case "fadd":
		before := *a.Word
		*a.Word += a.A
		return int64(before), nil
	case "atomic32":
		before := *a.Word32
		*a.Word32 = a.Atomic32.Apply(before, uint32(a.A), uint32(a.B))
		return int64(before), nil
	case "ct_get", "ct_set", "ct_inc":
		return int64(d.count(a)), nil
	case "ack":
		if d.acked {
			return int64(spin.Invalid), nil
		}
		d.acked = true
		return 0, nil
	case "wait32":
		d.await(a)
		return 0, nil
	case "my_cluster", "num_clusters", "flow_id", "scratchpad", "message_memory":
		return d.where(a), nil
	case "num_hpus":
		return int64(d.config.HPUs), nil
	case "my_hpu":
		return int64(d.HPU), nil
	case "now":
		return int64(d.Now), nil
	case "expiries":
		return int64(d.Expiries), nil
	case "cycles":
		return int64(len(d.Calls)), nil // it grows, like cycles
	case "log":
		d.tb.Logf("spintest: HPU %d: %s", d.HPU, a.Mem)
		return 0, bytes.Clone(a.Mem)
	case "yield":
		if d.OnYield != nil {
			d.OnYield()
		}
		return 0, nil
	// the test delivers the messages, so the test also decides which timers
	// have expired
	case "timer_cancel":
		if a.Handle < 0 || a.Handle >= d.timers || d.cancelled[a.Handle] {
			return int64(spin.Invalid), nil
		}
		d.cancelled[a.Handle] = true
		return 0, nil
	}
	panic("spintest: unknown action " + a.Name)
}

func (d *Device) count(a *spin.Action) spin.Result {
	c := d.Counters[a.Counter]
	if c == nil {
		return spin.Invalid
	}
	switch a.Name {
	case "ct_get":
		*a.Pair = [2]uint64{c.Success, c.Failure}
	case "ct_set":
		*c = Count{a.A, a.B}
	case "ct_inc":
		c.Success += a.A
		c.Failure += a.B
	}
	return spin.OK
}

// operation performs a put, get, atomic, timer, timer_at or message to self.
func (d *Device) operation(a *spin.Action, c *Call) (int64, []byte) {
	op := &c.Op
	if op.UserHdrLen > 0 && a.Name != "put_from_device" && !strings.HasPrefix(a.Name, "timer") && a.Name != "to_self" {
		return int64(spin.NotSupported), nil
	}
	if strings.HasSuffix(a.Name, "_from_host") {
		host, r := d.host(op.Space, op.Offset, op.Length)
		if r.Failed() {
			return int64(r), nil
		}
		if a.Name == "get_from_host" {
			reply := d.remote(c, op.Length)
			copy(host, reply)
			return 0, reply
		}
		c.Data = bytes.Clone(host)
		const none = ^uint64(0)
		if a.Name == "atomic_from_host" && op.FetchOffset != none {
			into, r := d.host(op.Space, op.FetchOffset, op.Length)
			if r.Failed() {
				return int64(r), nil
			}
			copy(into, d.remote(c, op.Length))
		}
		return 0, nil
	}
	local := d.bytes(op.Local, op.Length)
	if a.Name == "get_from_device" {
		reply := d.remote(c, op.Length)
		copy(local, reply)
		return 0, reply
	}
	if op.Length+uint64(op.UserHdrLen) > uint64(d.config.MTU) {
		return int64(spin.Invalid), nil
	}
	c.Data = bytes.Clone(local)
	if strings.HasPrefix(a.Name, "timer") {
		d.timers++
		return int64(d.timers - 1), nil
	}
	if a.Name == "atomic_from_device" && op.Fetch != 0 {
		copy(d.bytes(op.Fetch, op.Length), d.remote(c, op.Length))
	}
	return 0, nil
}

// remote returns the n bytes that another process answers to c.
func (d *Device) remote(c *Call, n uint64) []byte {
	if d.Remote == nil {
		return make([]byte, n)
	}
	reply := d.Remote(c)
	if uint64(len(reply)) != n {
		panic(fmt.Sprintf("spintest: Remote returned %d bytes for %s of %d", len(reply), c.Name, n))
	}
	return bytes.Clone(reply)
}
