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
	ClearEarly = "handler" // in the interrupt handler, as the Linux driver does
	ClearLate  = "tasklet" // when the page is present
)

// Values of OSSpec.DeviceTables.
const (
	ProcessTables = "process"
	OwnTables     = "own"
)

// Sizes of pages: granules of 4 KiB, as in the SMMU.
const (
	PageBytes = 1 << pageBits
	HugeBytes = 1 << hugeBits

	pageBits     = 12
	hugeBits     = 21
	hugePages    = HugeBytes / PageBytes
	maxMemory    = sim.Size(1 << 44) // physical memory: frames have 32-bit numbers
	addressBits3 = 39
	addressBits4 = 48
)

// OSSpec describes the operating system of a node: its memory, and the costs of
// its work. It is the os section of a profile, which also has the source of
// each value. There are no defaults. All times are core times of at most 1 s. P
// is PART'22, T Psistakis'19.
type OSSpec struct {
	// Kind is NoOS (also the empty string) or Linux. With NoOS every page is
	// present, and the other fields have no effect.
	Kind string `yaml:"kind"`
	// Memory is the physical memory for pages, a multiple of 2 MiB up to 16 TiB.
	// P: 16 GiB.
	Memory sim.Size `yaml:"memory"`
	// WatermarkMin is the free memory reserved for the kernel. Below it, a thread
	// that needs a page must free some memory itself.
	WatermarkMin sim.Size `yaml:"watermark_min"`
	// WatermarkLow is the free memory at which kswapd begins to free memory, at
	// least WatermarkMin.
	WatermarkLow sim.Size `yaml:"watermark_low"`
	// WatermarkHigh is the free memory at which kswapd stops, at least
	// WatermarkLow and less than Memory.
	WatermarkHigh sim.Size `yaml:"watermark_high"`
	// AddressBits is the length of a virtual address: 39 (three levels of tables)
	// or 48 (four). P: 39.
	AddressBits int `yaml:"address_bits"`
	// InterruptCore is the core of the SMMU's interrupt and its tasklets. T: 0.
	InterruptCore int `yaml:"interrupt_core"`
	// PollBudget is how many frames the kernel takes from a network device in one
	// go before threads have a turn, 0 to 2^20 (NAPI; Linux:
	// net.core.netdev_budget, 300). 0, or absent: no polling, the interrupt
	// handler takes all frames.
	PollBudget int `yaml:"poll_budget,omitempty"`
	// PollWeight is the number of frames in a batch, 1 to 2^20 with a PollBudget;
	// without it, it has no effect (Linux: NAPI_POLL_WEIGHT, 64).
	PollWeight int `yaml:"poll_weight,omitempty"`
	// PollRest is how long a polled network device raises no interrupt after a go
	// that took all frames, so that frames gather (interrupt moderation; mlx4:
	// rx-usecs, 16 us). Absent: 0.
	PollRest sim.Time `yaml:"poll_rest,omitempty"`
	// KernelCore is the core of kernel threads (kswapd, khugepaged) and of the storage's interrupt.
	KernelCore int `yaml:"kernel_core"`

	// CPUSpec gives the costs of switching between kinds of work.
	CPUSpec `yaml:",inline"`
	// ResolveSpec says how drivers and processes resolve page faults of devices.
	ResolveSpec `yaml:",inline"`

	// FaultAbsent is the time of the first write to an anonymous page. P: 3 us
	// (touch).
	FaultAbsent sim.Time `yaml:"fault_absent"`
	// FaultZero is the time of the first read of an anonymous page: it maps the
	// shared page of zeros.
	FaultZero sim.Time `yaml:"fault_zero"`
	// FaultCopy is the time of the first write to a copy-on-write page, after fork
	// or of a file.
	FaultCopy sim.Time `yaml:"fault_copy"`
	// FaultDirty is the time of the first write to a clean page with one owner:
	// neither cores nor devices mark pages dirty in hardware.
	FaultDirty sim.Time `yaml:"fault_dirty"`

	// GupCall is the time of get_user_pages per call. P: 6 us.
	GupCall sim.Time `yaml:"gup_call"`
	// GupAbsent is its time per absent anonymous page, instead of FaultAbsent or
	// FaultZero. P: 3 us.
	GupAbsent sim.Time `yaml:"gup_absent"`
	// GupFault is an additional time per call, once, if a page was absent: a
	// device with its own tables is notified. NPF'17: 198 us of firmware. Absent:
	// 0.
	GupFault sim.Time `yaml:"gup_fault,omitempty"`
	// GupPresent is the time of get_user_pages per present page.
	GupPresent sim.Time `yaml:"gup_present"`
	// DeviceTables selects the tables that devices use. ProcessTables (also the
	// empty string) is the tables of the process: pages that a program has touched
	// are present for devices. OwnTables is tables of the device. A page enters
	// them by get_user_pages (for a fault or a pin), by mlock, or if it is
	// prepared before the program begins. It leaves them by an invalidation; pages
	// that were not there cost nothing to invalidate.
	DeviceTables string `yaml:"device_tables,omitempty"`
	// PutPage is the time of put_page per page.
	PutPage sim.Time `yaml:"put_page"`
	// DeviceMapCall is the driver's time per call to map pinned pages for a device
	// with its own tables. Absent: the device walks the tables of the process, and
	// no mapping is needed.
	DeviceMapCall sim.Time `yaml:"device_map_call,omitempty"`
	// DeviceMapPage is that time per page. Absent: as DeviceMapCall.
	DeviceMapPage sim.Time `yaml:"device_map_page,omitempty"`
	// DeviceUnmapCall is the driver's time per call to unmap the pages, besides
	// Invalidate. Absent: as DeviceMapCall.
	DeviceUnmapCall sim.Time `yaml:"device_unmap_call,omitempty"`
	// DeviceUnmapPage is that time per page. Absent: as DeviceMapCall.
	DeviceUnmapPage sim.Time `yaml:"device_unmap_page,omitempty"`
	// LockCall is the time of mlock per call. P: 3 us.
	LockCall sim.Time `yaml:"lock_call"`
	// LockAbsent is the time of mlock per absent anonymous page. P, T: 3 us.
	LockAbsent sim.Time `yaml:"lock_absent"`
	// LockPresent is the time of mlock per present page.
	LockPresent sim.Time `yaml:"lock_present"`
	// LockDrain is an additional time of mlock per call, once, if a page was
	// present: pages that were touched wait in lists of the cores before they are
	// in those of the kernel, and mlock empties these on each core
	// (lru_add_drain_all). P: present pages, 13 us in all. Absent: 0.
	LockDrain sim.Time `yaml:"lock_drain,omitempty"`
	// UnlockCall is the time of munlock per call.
	UnlockCall sim.Time `yaml:"unlock_call"`
	// UnlockPage is the time of munlock per page.
	UnlockPage sim.Time `yaml:"unlock_page"`
	// MapCall is the time of mmap. T: 2 us.
	MapCall sim.Time `yaml:"map_call"`
	// UnmapCall is the time of munmap per call.
	UnmapCall sim.Time `yaml:"unmap_call"`
	// UnmapPage is the time of munmap per page that was present.
	UnmapPage sim.Time `yaml:"unmap_page"`
	// ProtectCall is the time of mprotect per call.
	ProtectCall sim.Time `yaml:"protect_call"`
	// ProtectPage is the time of mprotect per page that was present.
	ProtectPage sim.Time `yaml:"protect_page"`
	// ForkCall is the time of fork per call.
	ForkCall sim.Time `yaml:"fork_call"`
	// ForkPage is the time of fork per page that is present or on storage.
	ForkPage sim.Time `yaml:"fork_page"`
	// SyncCall is the time of fsync per call.
	SyncCall sim.Time `yaml:"sync_call"`
	// SyncPage is the time of fsync per page written, besides storage.
	SyncPage sim.Time `yaml:"sync_page"`
	// FaultMap is the time of the first access to a page of a file, or of shared
	// memory, that is in memory.
	FaultMap sim.Time `yaml:"fault_map"`
	// FaultMajor is the core time for a page that must be read from storage,
	// besides the wait for storage.
	FaultMajor sim.Time `yaml:"fault_major"`
	// ReclaimScan is the time to check whether a page was used.
	ReclaimScan sim.Time `yaml:"reclaim_scan"`
	// ReclaimPage is the time to evict a page, besides storage.
	ReclaimPage sim.Time `yaml:"reclaim_page"`
	// HugePages selects pages of 2 MiB for anonymous memory: HugeNever (also the
	// empty string) or HugeAlways (transparent_hugepage).
	HugePages string `yaml:"huge_pages"`
	// CollapseMin is how many of the 512 pages must be present before khugepaged
	// collapses them into a huge page, 1 to 512 (512 less max_ptes_none).
	CollapseMin int `yaml:"collapse_min"`
	// CollapseDelay is how long khugepaged waits before it handles new work.
	CollapseDelay sim.Time `yaml:"collapse_delay"`
	// FaultHuge is the time of the first write to a huge page.
	FaultHuge sim.Time `yaml:"fault_huge"`
	// CollapseCall is khugepaged's time to check 2 MiB.
	CollapseCall sim.Time `yaml:"collapse_call"`
	// CollapsePage is khugepaged's time for each of the 512 pages that it
	// collapses.
	CollapsePage sim.Time `yaml:"collapse_page"`
	// SplitHuge is the time to split a huge page into 512 small ones.
	SplitHuge sim.Time `yaml:"split_huge"`
	// CopyPage is the time to move a page to another frame.
	CopyPage sim.Time `yaml:"copy_page"`
	// FaultInterrupt is the time of the SMMU's interrupt handler, besides
	// Interrupt. P: 1 us in all.
	FaultInterrupt sim.Time `yaml:"fault_interrupt"`
	// FaultTasklet is the time per run of a tasklet that resolves device faults,
	// besides reading from the device, bringing in pages and sending. P: 4 us with
	// up to 16 reads of the FIFO.
	FaultTasklet sim.Time `yaml:"fault_tasklet"`
	// HandlerClock is the clock of a core on which the kernel runs a handler
	// module, such as a page-fault policy of a user, 1 MHz to 1 THz. hpu.costs
	// counts its cycles. Absent: hpu.clock. No publication has such a handler.
	HandlerClock sim.Frequency `yaml:"handler_clock,omitempty"`
	// FaultBatch is how many absent pages such a tasklet handles in one run, 0 to
	// 2^20. If there are more, it schedules itself again. P: it reads the FIFO up
	// to 16 times, two reads per page. 0, or absent: all that come while it runs.
	FaultBatch int `yaml:"fault_batch,omitempty"`
	// NetlinkSend is the kernel's time to send a message to a process (netlink).
	// P: 7 us.
	NetlinkSend sim.Time `yaml:"netlink_send"`
	// NetlinkReceive is the time of a spinning thread to read and decode a
	// message. P: the explicit request to send again, in user space, takes 1 us in
	// all.
	NetlinkReceive sim.Time `yaml:"netlink_receive"`
	// NetlinkQueue is how many unread messages a process may have, 0 to 2^20; the
	// kernel drops more.
	NetlinkQueue int `yaml:"netlink_queue"`
	// ClearFault selects when the SMMU driver clears a bank's FSR: ClearEarly or
	// ClearLate.
	ClearFault string `yaml:"clear_fault"`
	// BankHold is how long a process keeps an SMMU bank at least after taking it
	// from another process, at least 1 us. It matters if there are more processes
	// than banks. If it is shorter than nic.fault_pause and a page-in, processes
	// may take banks from each other without progress.
	BankHold sim.Time `yaml:"bank_hold"`
	// InvalidatePages is up to how many pages are invalidated one by one, 0 to
	// 2^20. For more pages the whole bank is invalidated.
	InvalidatePages int `yaml:"invalidate_pages"`
	// Invalidate is the time to notify a device of a changed range of addresses,
	// per range.
	Invalidate sim.Time `yaml:"invalidate"`
	// Acknowledge is how long the driver then waits on its core, per range, until
	// the device confirms that it makes no new access to the range. Accesses in
	// flight may take longer. Absent: included in Invalidate.
	Acknowledge sim.Time `yaml:"acknowledge,omitempty"`
}

// ownTables reports whether devices have their own tables.
func (s *OSSpec) ownTables() bool { return s.DeviceTables == OwnTables }

// Batch returns FaultBatch. If it has no bound, Batch returns a number larger
// than that of all pages.
func (s *OSSpec) Batch() int {
	if s.FaultBatch == 0 {
		return math.MaxInt
	}
	return s.FaultBatch
}

// On reports whether there is an operating system.
func (s *OSSpec) On() bool { return s.Kind != "" && s.Kind != NoOS }

// Validate returns every violation, each with the field's name in a profile.
// cores is the number of cores of the node.
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
	if s.HandlerClock != 0 {
		fields.Between(&wrong, "handler_clock", s.HandlerClock, 1e6, 1e12)
	}
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
	s.ResolveSpec.validate(&wrong)
	for _, c := range s.times() {
		fields.Between(&wrong, c.field, *c.value, 0, maxTime)
	}
	if wrong == nil && s.On() {
		s.consistent(&wrong)
	}
	return wrong.Join()
}

// consistent reports sizes that contradict each other.
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
		{"lock_drain", &s.LockDrain},
		{"unlock_call", &s.UnlockCall},
		{"unlock_page", &s.UnlockPage},
		{"map_call", &s.MapCall},
		{"unmap_call", &s.UnmapCall},
		{"unmap_page", &s.UnmapPage},
		{"fault_interrupt", &s.FaultInterrupt},
		{"fault_tasklet", &s.FaultTasklet},
		{"netlink_send", &s.NetlinkSend},
		{"netlink_receive", &s.NetlinkReceive},
		{"netlink_wake", &s.NetlinkWake},
		{"fault_search", &s.FaultSearch},
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
