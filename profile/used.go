package profile

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/spinsim/spinsim/internal/strictyaml"
	"github.com/spinsim/spinsim/internal/used"
)

// Fact is something that happens in a simulation so that values of a profile
// count, such as a page fault.
type Fact = used.Fact

// Used are the facts of a run, or those behind a field.
type Used = used.Set

// behind are the facts behind the fields of a profile: a run without any of
// them has the same results whatever the value is. A field has the facts of the
// longest prefix of its path.
var behind = []struct {
	prefixes string
	facts    Used
}{
	{"fabric.", used.Of(used.Network)},
	{"fabric.mtu", used.Of(used.Arrival, used.Module)},
	{"fabric.header", used.Of(used.Network, used.Loopback)},

	{"nic.overhead", used.Of(used.Post)},
	{"nic.match_ nic.receive", used.Of(used.Arrival)},
	{"nic.packet_buffer", used.Of(used.Handler)},
	{"nic.egress_packets nic.handler_commands", used.Of(used.Command)},
	{"nic.loopback", used.Of(used.Loopback)},
	{"nic.fault_", used.Of(used.AbsentPage)},

	{"transport.", used.Of(used.Reliable)},
	{"transport.kind", used.Of(used.Arrival)},

	{"dma.", used.Of(used.Transfer)},

	{"hpu.", used.Of(used.HPU)},
	{"hpu.clock", used.Of(used.HPU, used.KernelHandler)},
	{"hpu.costs", used.Of(used.Handler, used.KernelHandler)},
	{"hpu.dma_", used.Of(used.DMA)},
	{"hpu.send", used.Of(used.Command)},
	{"hpu.max_ hpu.stack_bytes hpu.node_memory", used.Of(used.Module)},
	{"hpu.max_cycles", used.Of(used.Handler, used.KernelHandler)},
	{"hpu.waiting_handlers", used.Of(used.Handler)},
	{"pools", used.Of(used.Pool)},
	{"serve", used.Of(used.Handler)},
	{"tenants", used.Of(used.Handler)},

	{"host.cores", used.Of(used.Cores, used.ComputeBeside)},
	{"host.poll", used.Of(used.Look, used.LookCached)},
	{"host.poll_cached", used.Of(used.LookCached)},
	{"host.message", used.Of(used.Message)},
	{"host.match", used.Of(used.Match)},
	{"host.memory_latency", used.Of(used.MemoryLatency, used.Walk)},
	{"host.memory_bandwidth host.cores_bandwidth", used.Of(used.Controller, used.Compute)},
	{"host.line_bytes host.core_bandwidth host.copy_chunk", used.Of(used.Stream, used.Compute)},
	{"host.strided_bandwidth", used.Of(used.Strided)},
	{"host.cache", used.Of(used.Known)},
	{"host.compute host.jitter", used.Of(used.Compute)},
	{"host.cores_penalty", used.Of(used.ComputeBeside)},
	{"host.library.eager_copy", used.Of(used.Eager)},
	{"host.library.eager_send", used.Of(used.EagerSend)},
	{"host.library.start", used.Of(used.Large)},
	{"host.library.exchange", used.Of(used.Exchange)},
	{"host.library.fanout", used.Of(used.Fanout)},
	{"host.library.collective", used.Of(used.Collective)},
	{"host.library.copy", used.Of(used.CopyCall)},
	{"host.library.reduce", used.Of(used.ReduceCall)},
	{"host.library.allocate", used.Of(used.Temporary)},
	{"host.library.vectors host.library.runs host.library.notice", used.Of(used.Accelerator)},

	{"smmu.", used.Of(used.Translation)},
	{"smmu.kind", used.Of(used.Process)},
	{"smmu.banks smmu.address_bits", used.Of(used.Admitted)},
	{"smmu.walk", used.Of(used.Walk)},
	{"smmu.on_fault smmu.hit_under_fault smmu.stall_limit", used.Of(used.SMMUFault)},

	{"os.kind", used.Of(used.Process)},
	{"os.memory os.address_bits", used.Of(used.OS)},
	{"os.watermark_", used.Of(used.Page)},
	{"os.reclaim_", used.Of(used.Reclaim)},
	{"os.poll_", used.Of(used.Napi)},
	{"os.interrupt", used.Of(used.Interrupt)},
	{"os.softirq", used.Of(used.Softirq)},
	{"os.context_switch", used.Of(used.ContextSwitch)},
	{"os.interrupt_core", used.Of(used.SMMUInterrupt, used.BankHold, used.Listener, used.Napi)},
	{"os.kernel_core", used.Of(used.KernelThread, used.Storage)},
	{"os.fault_ask os.fault_look os.fault_gather os.fault_forget", used.Of(used.Block)},
	{"os.fault_search", used.Of(used.Search)},
	{"os.fault_touch", used.Of(used.Touch)},
	{"os.handler_clock", used.Of(used.KernelHandler)},
	{"os.fault_interrupt os.clear_fault", used.Of(used.SMMUInterrupt)},
	{"os.fault_tasklet os.fault_batch", used.Of(used.SMMUServed)},
	{"os.netlink_", used.Of(used.Netlink)},
	{"os.netlink_wake os.netlink_core", used.Of(used.Listener)},
	{"os.fault_absent os.fault_zero", used.Of(used.PageFault)},
	{"os.fault_copy", used.Of(used.CopyFault)},
	{"os.fault_dirty", used.Of(used.DirtyFault)},
	{"os.fault_map", used.Of(used.MapFault)},
	{"os.fault_major", used.Of(used.MajorFault)},
	{"os.fault_huge os.split_huge os.collapse_", used.Of(used.Huge)},
	{"os.huge_pages", used.Of(used.Page)},
	{"os.gup_", used.Of(used.Gup)},
	{"os.put_page", used.Of(used.PutPage)},
	{"os.device_tables", used.Of(used.OS)},
	{"os.device_map_ os.device_unmap_", used.Of(used.DeviceMap)},
	{"os.lock_", used.Of(used.Lock)},
	{"os.unlock_", used.Of(used.Unlock)},
	{"os.map_call", used.Of(used.Map)},
	{"os.unmap_", used.Of(used.Unmap)},
	{"os.protect_", used.Of(used.Protect)},
	{"os.fork_", used.Of(used.Fork)},
	{"os.sync_", used.Of(used.Sync)},
	{"os.copy_page", used.Of(used.CopyPage)},
	{"os.bank_hold", used.Of(used.BankHold)},
	{"os.invalidate os.acknowledge", used.Of(used.Invalidation, used.BankHold)},

	{"storage.", used.Of(used.Storage)},
	{"storage.kind storage.swap", used.Of(used.Storage, used.Swap, used.Reclaim, used.Sync)},

	{"limits.max_entries limits.max_list_size", used.Of(used.Entry)},
	{"limits.max_unexpected_headers", used.Of(used.Unexpected)},
	{"limits.max_mds", used.Of(used.Descriptor)},
	{"limits.max_eqs", used.Of(used.Queue)},
	{"limits.max_cts", used.Of(used.Counter)},
	{"limits.max_pt_index", used.Of(used.Table)},
	{"limits.max_iovecs", used.Of(used.Vectors)},
	{"limits.max_triggered_ops", used.Of(used.Triggered)},
	{"limits.max_msg_size", used.Of(used.Post, used.Command)},
	{"limits.max_atomic_size", used.Of(used.Atomic, used.FetchAtomic)}, // it bounds both
	{"limits.max_fetch_atomic_size", used.Of(used.FetchAtomic)},
	{"limits.max_waw_ordered_size limits.max_war_ordered_size", used.Of(used.Ordered)},
	{"limits.max_volatile_size", used.Of(used.Volatile)},
	{"limits.max_user_hdr_size limits.max_initial_state", used.Of(used.Module)},
}

// Facts returns the facts behind a field or a value below it, such as
// hpu.costs.int_div. A section is all its fields. false: there is no
// such field.
func Facts(path string) (all Used, known bool) {
	for _, field := range Fields() {
		switch {
		case field == path || strings.HasPrefix(path, field+"."):
			return factsOf(field), true
		case strings.HasPrefix(field, path+"."):
			all.Join(factsOf(field))
			known = true
		}
	}
	return all, known
}

// factsOfAll has the facts of Fields, found once: a search asks for them at
// each of its points.
var factsOfAll = sync.OnceValue(func() map[string]Used {
	all := make(map[string]Used)
	for _, field := range Fields() {
		all[field] = factsOf(field)
	}
	return all
})

func factsOf(field string) (facts Used) {
	longest := -1
	for i := range behind {
		for prefix := range strings.FieldsSeq(behind[i].prefixes) {
			if strings.HasPrefix(field, prefix) && len(prefix) > longest {
				longest, facts = len(prefix), behind[i].facts
			}
		}
	}
	return facts
}

// Unused lists the overrides without effect on runs that had some facts, each
// with the reason, such as "os.fault_ask (no fault of PART was handled)".
func Unused(overrides []string, had Used) (notes []string) {
	for _, o := range overrides {
		path, value, _ := strings.Cut(o, "=")
		path = strings.TrimSpace(path)
		facts, known := set(path, value)
		if !known || facts.Meets(had) || path == "name" || path == "description" {
			continue
		}
		var why []string
		for _, f := range facts.Facts() {
			if !slices.Contains(why, f.Missing()) {
				why = append(why, f.Missing())
			}
		}
		notes = append(notes, path+" ("+strings.Join(why, ", and ")+")")
	}
	return notes
}

// set returns the facts behind the fields that an override sets: of a section
// those of the fields in its mapping.
func set(path, value string) (all Used, known bool) {
	all, known = Facts(path)
	tree, err := strictyaml.Parse("", []byte(value))
	section := slices.ContainsFunc(Fields(), func(field string) bool { return strings.HasPrefix(field, path+".") })
	if err != nil || tree.Kind != yaml.MappingNode || !section {
		return all, known
	}
	all = Used{}
	for i := 0; i+1 < len(tree.Content); i += 2 {
		one, _ := Facts(path + "." + tree.Content[i].Value)
		all.Join(one)
	}
	return all, known
}

// Counting writes the fields that count in runs with some facts. Runs of two
// profiles with the same text have the same results, if one of them had these
// facts.
func (p *Profile) Counting(had Used) []byte {
	var text bytes.Buffer
	for _, field := range Fields() {
		if !factsOfAll()[field].Meets(had) {
			continue
		}
		v := reflect.ValueOf(p).Elem()
		for name := range strings.SplitSeq(field, ".") {
			list := strictyaml.FieldsOf(v.Type()).List
			i := slices.IndexFunc(list, func(f strictyaml.Field) bool { return f.Name == name })
			v = v.FieldByIndex(list[i].Index)
		}
		fmt.Fprintf(&text, "%s %#v\n", field, v.Interface()) // times with all their digits
	}
	return text.Bytes()
}
