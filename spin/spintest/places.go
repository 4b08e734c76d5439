package spintest

import "github.com/spinsim/spinsim/spin"

// wrongWrite reports whether a is a posted write with TellFaults. Nobody could
// be told of its faults.
func (d *Device) wrongWrite(a *spin.Action) bool {
	posted := a.Name == "dma_to_host_posted" || a.Name == "host_write"
	return posted && a.Space&spin.TellFaults != 0
}

// rounds is how often others may act before a word changes that a handler waits
// for.
const rounds = 1000

// await lets others act until a word has another value. A handler that waits
// for ever traps.
func (d *Device) await(a *spin.Action) {
	for range rounds {
		if *a.Word32 != uint32(a.A) {
			return
		}
		if d.OnYield != nil {
			d.OnYield()
		}
	}
	panic("spintest: wait32: nobody changes the word (Device.OnYield)")
}

// where answers a handler's questions about its place, its message and their
// memories.
func (d *Device) where(a *spin.Action) int64 {
	each := max(1, d.config.HPUs/d.config.Clusters)
	switch a.Name {
	case "my_cluster":
		return int64(d.HPU / each)
	case "num_clusters":
		return int64(d.config.Clusters)
	case "flow_id":
		return 0 // there is only one message
	case "message_memory":
		if d.own == 0 && d.config.MessageMemory > 0 {
			b, at := d.memory.allocate(d.config.MessageMemory)
			for i := range b {
				b[i] = 0xa5
			}
			d.own = at
		}
		return packed(d.own, d.config.MessageMemory)
	}
	if a.A >= uint64(d.config.Clusters) || d.config.Scratchpad == 0 {
		return 0
	}
	for len(d.clusters) < d.config.Clusters {
		_, at := d.memory.allocate(d.config.Scratchpad)
		d.clusters = append(d.clusters, at)
	}
	return packed(d.clusters[a.A], d.config.Scratchpad)
}

// Scratchpad returns the memory of a cluster, for the test to read.
func (d *Device) Scratchpad(cluster int) []byte {
	at := d.where(&spin.Action{Name: "scratchpad", A: uint64(cluster)})
	if at == 0 {
		return nil
	}
	detach := spin.Attach(d)
	defer detach()
	return spin.Ptr(at).Bytes(uint32(d.config.Scratchpad))
}

// packed puts address and bytes into the form of a device's answer; without
// bytes it is 0.
func packed(at spin.Ptr, n int) int64 {
	if n == 0 {
		return 0
	}
	return int64(uint64(at) | uint64(n)<<32)
}
