package host

import (
	"fmt"
	"math"

	"github.com/spinsim/spinsim/internal/fields"
	"github.com/spinsim/spinsim/sim"
)

// Values of OSSpec.Kind.
const (
	NoOS  = "none"
	Linux = "linux"
)

// Values of OSSpec.ClearFault.
const (
	ClearEarly = "handler" // in the interrupt handler, as the driver of Linux does
	ClearLate  = "tasklet" // when the page has come
)

// Values of OSSpec.DeviceTables.
const (
	ProcessTables = "process"
	OwnTables     = "own"
)

// Sizes of pages: granules of 4 KiB, as the SMMU's.
const (
	PageBytes = 1 << pageBits
	HugeBytes = 1 << hugeBits

	pageBits     = 12
	hugeBits     = 21
	hugePages    = HugeBytes / PageBytes
	maxMemory    = sim.Size(1 << 44) // physical: frames have 32-bit numbers
	addressBits3 = 39
	addressBits4 = 48
)

// OSSpec describes the operating system of a node: its memory, and what its
// work costs. It is the os section of a profile, where each value's source
// stands; there are no defaults. All times are of a core and at most 1 s. P is
// PART'22, T Psistakis'19.
type OSSpec struct {
	// Kind is NoOS, as is an empty text, or Linux. With NoOS every page is
	// there, and nothing below means anything.
	Kind string `yaml:"kind"`
	// Memory is the physical memory for pages, a multiple of 2 MiB up to 16 TiB. P: 16 GiB.
	Memory sim.Size `yaml:"memory"`
	// WatermarkMin is how much free memory is kept for the kernel: whoever
	// wants a page when there is less has to free some itself.
	WatermarkMin sim.Size `yaml:"watermark_min"`
	// WatermarkLow is the free memory at which kswapd begins to free some, at least WatermarkMin.
	WatermarkLow sim.Size `yaml:"watermark_low"`
	// WatermarkHigh is the free memory at which it ends, at least WatermarkLow and less than Memory.
	WatermarkHigh sim.Size `yaml:"watermark_high"`
	// AddressBits is the length of a virtual address: 39, three levels of tables, or 48, four. P: 39.
	AddressBits int `yaml:"address_bits"`
	// InterruptCore is the core of the SMMU's interrupt, and of the tasklets it schedules. T: 0.
	InterruptCore int `yaml:"interrupt_core"`
	// PollBudget is how many frames the kernel takes of a network device in one
	// go before its threads have a turn, 0 to 2^20 (NAPI; Linux:
	// net.core.netdev_budget, 300). 0, or absent: no polling, the interrupt
	// handler takes frames as long as there are any.
	PollBudget int `yaml:"poll_budget,omitempty"`
	// PollWeight is how many of them at a time, 1 to 2^20 with a PollBudget,
	// else of no consequence (Linux: NAPI_POLL_WEIGHT, 64).
	PollWeight int `yaml:"poll_weight,omitempty"`
	// PollRest is how long a network device that is polled does not interrupt
	// behind a go that has taken all frames, so that frames gather (interrupt
	// moderation; mlx4: rx-usecs, 16 us). Absent: 0.
	PollRest sim.Time `yaml:"poll_rest,omitempty"`
	// KernelCore is the core of kernel threads (kswapd, khugepaged) and of the storage's interrupt.
	KernelCore int `yaml:"kernel_core"`

	// CPUSpec is what its cores pay for going from one thing to the next.
	CPUSpec `yaml:",inline"`

	// FaultAbsent is the first write to an anonymous page. P: 3 us (touch).
	FaultAbsent sim.Time `yaml:"fault_absent"`
	// FaultZero is the first read of an anonymous page: it gets the page of zeros that all share.
	FaultZero sim.Time `yaml:"fault_zero"`
	// FaultCopy is the first write to a page that is shared until then, after
	// fork or of a file: copy on write.
	FaultCopy sim.Time `yaml:"fault_copy"`
	// FaultDirty is the first write to a clean page that is nobody else's:
	// cores and devices have no hardware for dirty pages.
	FaultDirty sim.Time `yaml:"fault_dirty"`

	// GupCall is get_user_pages, for each call. P: 6 us.
	GupCall sim.Time `yaml:"gup_call"`
	// GupAbsent is what it needs for an absent anonymous page, in the place of
	// FaultAbsent and FaultZero. P: 3 us.
	GupAbsent sim.Time `yaml:"gup_absent"`
	// GupFault is what a call needs besides, once, if a page of it was absent:
	// a device with tables of its own is told. NPF'17: 198 us of firmware.
	// Absent: 0.
	GupFault sim.Time `yaml:"gup_fault,omitempty"`
	// GupPresent is what it needs for a page that is there.
	GupPresent sim.Time `yaml:"gup_present"`
	// DeviceTables says what devices find pages by: ProcessTables, as is an
	// empty text, walks the tables of the process, so that what a program has
	// touched is there for them; OwnTables are the device's own, into which a
	// page comes by get_user_pages for a fault or to be pinned, by mlock, or
	// because it was prepared before the program began, and out of which it
	// goes with an invalidation, which costs nothing for others.
	DeviceTables string `yaml:"device_tables,omitempty"`
	// PutPage is put_page, for each page.
	PutPage sim.Time `yaml:"put_page"`
	// DeviceMapCall is what the driver needs to give pinned pages to a device
	// that has tables of its own, for each call; absent: the device walks those
	// of the process, and there is nothing to do.
	DeviceMapCall sim.Time `yaml:"device_map_call,omitempty"`
	// DeviceMapPage is what it needs for each page; absent likewise.
	DeviceMapPage sim.Time `yaml:"device_map_page,omitempty"`
	// DeviceUnmapCall is what it needs to take them back, for each call, beside
	// Invalidate; absent likewise.
	DeviceUnmapCall sim.Time `yaml:"device_unmap_call,omitempty"`
	// DeviceUnmapPage is what it needs for each page; absent likewise.
	DeviceUnmapPage sim.Time `yaml:"device_unmap_page,omitempty"`
	// LockCall is mlock, for each call. P: 3 us.
	LockCall sim.Time `yaml:"lock_call"`
	// LockAbsent is what it needs for an absent anonymous page. P, T: 3 us.
	LockAbsent sim.Time `yaml:"lock_absent"`
	// LockPresent is what it needs for a page that is there.
	LockPresent sim.Time `yaml:"lock_present"`
	// UnlockCall is munlock, for each call.
	UnlockCall sim.Time `yaml:"unlock_call"`
	// UnlockPage is what it needs for each page.
	UnlockPage sim.Time `yaml:"unlock_page"`
	// MapCall is mmap. T: 2 us.
	MapCall sim.Time `yaml:"map_call"`
	// UnmapCall is munmap, for each call.
	UnmapCall sim.Time `yaml:"unmap_call"`
	// UnmapPage is what it needs for each page that was there.
	UnmapPage sim.Time `yaml:"unmap_page"`
	// ProtectCall is mprotect, for each call.
	ProtectCall sim.Time `yaml:"protect_call"`
	// ProtectPage is what it needs for each page that was there.
	ProtectPage sim.Time `yaml:"protect_page"`
	// ForkCall is fork, for each call.
	ForkCall sim.Time `yaml:"fork_call"`
	// ForkPage is what it needs for each page that is there, or on storage.
	ForkPage sim.Time `yaml:"fork_page"`
	// SyncCall is fsync, for each call.
	SyncCall sim.Time `yaml:"sync_call"`
	// SyncPage is what it needs for each page that it writes, beside storage.
	SyncPage sim.Time `yaml:"sync_page"`
	// FaultMap is the first access to a page of a file, or of shared memory, that is in memory.
	FaultMap sim.Time `yaml:"fault_map"`
	// FaultMajor is what a core does for a page that has to be read from
	// storage, beside the wait for that.
	FaultMajor sim.Time `yaml:"fault_major"`
	// ReclaimScan is what it takes to look at a page to see whether it was used.
	ReclaimScan sim.Time `yaml:"reclaim_scan"`
	// ReclaimPage is what it takes to take a page away, beside storage.
	ReclaimPage sim.Time `yaml:"reclaim_page"`
	// HugePages says whether anonymous memory gets pages of 2 MiB: HugeNever,
	// as is an empty text, or HugeAlways (transparent_hugepage).
	HugePages string `yaml:"huge_pages"`
	// CollapseMin is how many pages of 2 MiB have to be there for khugepaged to
	// make them one, 1 to 512 (512 less max_ptes_none).
	CollapseMin int `yaml:"collapse_min"`
	// CollapseDelay is how long khugepaged waits when there is something for it.
	CollapseDelay sim.Time `yaml:"collapse_delay"`
	// FaultHuge is the first write to a huge page.
	FaultHuge sim.Time `yaml:"fault_huge"`
	// CollapseCall is what khugepaged needs to look at 2 MiB.
	CollapseCall sim.Time `yaml:"collapse_call"`
	// CollapsePage is what it needs for each of their 512 pages when it makes them one.
	CollapsePage sim.Time `yaml:"collapse_page"`
	// SplitHuge is what it takes to make a huge page 512 small ones.
	SplitHuge sim.Time `yaml:"split_huge"`
	// CopyPage is what it takes to give a page another frame.
	CopyPage sim.Time `yaml:"copy_page"`
	// FaultInterrupt is the handler of the SMMU's interrupt, beside Interrupt. P: 1 us in all.
	FaultInterrupt sim.Time `yaml:"fault_interrupt"`
	// FaultTasklet is what a tasklet that resolves faults of devices needs for
	// each run, beside what it reads from the device, brings in and sends. P: 4
	// us with up to 16 reads of the FIFO.
	FaultTasklet sim.Time `yaml:"fault_tasklet"`
	// FaultBatch is how many absent pages such a tasklet deals with in a run, 0 to 2^20; if there are
	// more it schedules itself. P: it reads the FIFO up to 16 times, two reads for each page. 0, or
	// absent: as many as come while it runs.
	FaultBatch int `yaml:"fault_batch,omitempty"`
	// NetlinkSend is what the kernel needs to give a message to a process (netlink). P: 7 us.
	NetlinkSend sim.Time `yaml:"netlink_send"`
	// NetlinkReceive is what a thread that waits for it busily needs to read
	// and decode a message. P: the explicit request to send again, in user
	// space, takes 1 us in all.
	NetlinkReceive sim.Time `yaml:"netlink_receive"`
	// NetlinkQueue is how many messages a process may have that it has not
	// read; the kernel drops others. 0 to 2^20.
	NetlinkQueue int `yaml:"netlink_queue"`
	// ClearFault says when the driver of the SMMU clears a bank's FSR: ClearEarly or ClearLate.
	ClearFault string `yaml:"clear_fault"`
	// BankHold is how long a process keeps a bank of the SMMU at least that it
	// has taken from another, if there are more processes than banks; at least
	// 1 us. Less than nic.fault_pause and a page-in let processes take banks
	// from each other in vain.
	BankHold sim.Time `yaml:"bank_hold"`
	// InvalidatePages is how many pages are invalidated one by one, 0 to 2^20;
	// for more of them the bank forgets all.
	InvalidatePages int `yaml:"invalidate_pages"`
	// Invalidate is what it costs to tell a device that a range of addresses
	// has changed, for each range.
	Invalidate sim.Time `yaml:"invalidate"`
	// Acknowledge is how long the driver then waits on its core until the
	// device says that it uses the range no more, for each range; what is on
	// its way at the device may take longer. Absent: it is part of Invalidate.
	Acknowledge sim.Time `yaml:"acknowledge,omitempty"`
}

// ownTables reports whether devices have tables of their own.
func (s *OSSpec) ownTables() bool { return s.DeviceTables == OwnTables }

// Batch is FaultBatch, or how many pages are more than there are if it has no bound.
func (s *OSSpec) Batch() int {
	if s.FaultBatch == 0 {
		return math.MaxInt
	}
	return s.FaultBatch
}

// On reports whether there is an operating system.
func (s *OSSpec) On() bool { return s.Kind != "" && s.Kind != NoOS }

// Validate returns every violation, each with the field's name in a profile.
// cores is how many the node has.
func (s *OSSpec) Validate(cores int) error {
	var wrong fields.Errors
	if s.Kind != "" {
		wrong.OneOf("kind", s.Kind, NoOS, Linux)
	}
	fields.Between(&wrong, "memory", s.Memory, 0, maxMemory)
	fields.Between(&wrong, "watermark_min", s.WatermarkMin, 0, maxMemory)
	fields.Between(&wrong, "watermark_low", s.WatermarkLow, 0, maxMemory)
	fields.Between(&wrong, "watermark_high", s.WatermarkHigh, 0, maxMemory)
	fields.Between(&wrong, "address_bits", s.AddressBits, 0, addressBits4)
	fields.Between(&wrong, "collapse_min", s.CollapseMin, 0, hugePages)
	fields.Between(&wrong, "kernel_core", s.KernelCore, 0, max(0, cores-1))
	fields.Between(&wrong, "interrupt_core", s.InterruptCore, 0, max(0, cores-1))
	fields.Between(&wrong, "poll_budget", s.PollBudget, 0, maxPoll)
	fields.Between(&wrong, "poll_weight", s.PollWeight, 0, maxPoll)
	fields.Between(&wrong, "netlink_queue", s.NetlinkQueue, 0, 1<<20)
	fields.Between(&wrong, "softirq_rounds", s.SoftirqRounds, 0, 1<<20)
	fields.Between(&wrong, "fault_batch", s.FaultBatch, 0, 1<<20)
	fields.Between(&wrong, "invalidate_pages", s.InvalidatePages, 0, 1<<20)
	if s.HugePages != "" {
		wrong.OneOf("huge_pages", s.HugePages, HugeNever, HugeAlways)
	}
	if s.DeviceTables != "" {
		wrong.OneOf("device_tables", s.DeviceTables, ProcessTables, OwnTables)
	}
	if s.On() || s.ClearFault != "" {
		wrong.OneOf("clear_fault", s.ClearFault, ClearEarly, ClearLate)
	}
	for _, c := range s.times() {
		fields.Between(&wrong, c.field, *c.value, 0, maxTime)
	}
	if wrong == nil && s.On() {
		s.consistent(&wrong)
	}
	return wrong.Join()
}

// consistent notes what of the sizes does not go together.
func (s *OSSpec) consistent(wrong *fields.Errors) {
	if s.Memory < HugeBytes || s.Memory%HugeBytes != 0 {
		wrong.Add("memory", fmt.Errorf("%v, expected a multiple of %v", s.Memory, sim.Size(HugeBytes)))
	}
	if s.AddressBits != addressBits3 && s.AddressBits != addressBits4 {
		wrong.Add("address_bits", fmt.Errorf("%d, expected %d or %d", s.AddressBits, addressBits3, addressBits4))
	}
	if s.HugePages == HugeAlways {
		fields.Between(wrong, "collapse_min", s.CollapseMin, 1, hugePages)
	}
	if s.PollBudget > 0 {
		fields.Between(wrong, "poll_weight", s.PollWeight, 1, maxPoll)
	}
	fields.Between(wrong, "bank_hold", s.BankHold, sim.Microsecond, maxTime)
	fields.Between(wrong, "watermark_low", s.WatermarkLow, s.WatermarkMin, s.Memory)
	fields.Between(wrong, "watermark_high", s.WatermarkHigh, s.WatermarkLow, s.Memory-1)
}

const maxPoll = 1 << 20

type namedTime struct {
	field string
	value *sim.Time
}

func (s *OSSpec) times() []namedTime {
	return []namedTime{
		{"interrupt", &s.Interrupt},
		{"softirq", &s.Softirq},
		{"softirq_time", &s.SoftirqTime},
		{"context_switch", &s.ContextSwitch},
		{"poll_rest", &s.PollRest},
		{"fault_absent", &s.FaultAbsent},
		{"fault_zero", &s.FaultZero},
		{"fault_copy", &s.FaultCopy},
		{"fault_dirty", &s.FaultDirty},
		{"gup_call", &s.GupCall},
		{"gup_absent", &s.GupAbsent},
		{"gup_fault", &s.GupFault},
		{"gup_present", &s.GupPresent},
		{"put_page", &s.PutPage},
		{"device_map_call", &s.DeviceMapCall},
		{"device_map_page", &s.DeviceMapPage},
		{"device_unmap_call", &s.DeviceUnmapCall},
		{"device_unmap_page", &s.DeviceUnmapPage},
		{"lock_call", &s.LockCall},
		{"lock_absent", &s.LockAbsent},
		{"lock_present", &s.LockPresent},
		{"unlock_call", &s.UnlockCall},
		{"unlock_page", &s.UnlockPage},
		{"map_call", &s.MapCall},
		{"unmap_call", &s.UnmapCall},
		{"unmap_page", &s.UnmapPage},
		{"fault_interrupt", &s.FaultInterrupt},
		{"fault_tasklet", &s.FaultTasklet},
		{"netlink_send", &s.NetlinkSend},
		{"netlink_receive", &s.NetlinkReceive},
		{"bank_hold", &s.BankHold},
		{"invalidate", &s.Invalidate},
		{"acknowledge", &s.Acknowledge},
		{"protect_call", &s.ProtectCall},
		{"protect_page", &s.ProtectPage},
		{"fork_call", &s.ForkCall},
		{"fork_page", &s.ForkPage},
		{"sync_call", &s.SyncCall},
		{"sync_page", &s.SyncPage},
		{"fault_map", &s.FaultMap},
		{"fault_major", &s.FaultMajor},
		{"collapse_delay", &s.CollapseDelay},
		{"fault_huge", &s.FaultHuge},
		{"collapse_call", &s.CollapseCall},
		{"collapse_page", &s.CollapsePage},
		{"split_huge", &s.SplitHuge},
		{"copy_page", &s.CopyPage},
		{"reclaim_scan", &s.ReclaimScan},
		{"reclaim_page", &s.ReclaimPage},
	}
}
