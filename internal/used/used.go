// Package used names what can happen in a simulation so that values of a
// profile count, and records what has happened.
//
// A component marks a [Fact] before it first acts on a value that the fact
// stands for. For example, a process marks [Match] when it searches its own
// list, and host.match counts for nothing before. Package profile knows the
// facts behind each field. So a run without a fact has the same results with
// any value of the fields behind it.
//
// A mark is one instruction on a word of the node. It allocates nothing.
package used

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Fact is something that happens in a simulation.
type Fact uint8

// Facts. The comment in facts is what a user reads if one is missing.
const (
	Network Fact = iota
	Reliable
	Arrival
	Loopback
	Post
	AbsentPage
	Transfer
	Module
	Handler
	HPU
	Pool
	DMA
	Command

	Process
	OS
	Admitted
	Cores
	Look
	LookCached
	Message
	Match
	MemoryLatency
	Controller
	Stream
	Known
	Strided
	Compute
	ComputeBeside

	Eager
	EagerSend
	Large
	Exchange
	Fanout
	Collective
	Temporary
	CopyCall
	ReduceCall
	Accelerator

	Translation
	Walk
	SMMUFault

	Page
	PageFault
	CopyFault
	DirtyFault
	MapFault
	MajorFault
	Huge
	Gup
	PutPage
	DeviceMap
	Lock
	Unlock
	Map
	Unmap
	Protect
	Fork
	Sync
	Reclaim
	CopyPage
	Napi
	Interrupt
	Softirq
	ContextSwitch
	KernelThread
	SMMUInterrupt
	SMMUServed
	Block
	Search
	KernelHandler
	Netlink
	Listener
	Touch
	BankHold
	Invalidation

	Storage
	Swap

	Entry
	Unexpected
	Descriptor
	Queue
	Counter
	Table
	Vectors
	Triggered
	Atomic
	FetchAtomic
	Volatile
	Ordered

	count
)

// facts are the names of facts in files, and sentences without a full stop
// about runs where they are missing.
var facts = [count]struct{ name, missing string }{
	Network:    {"network", "no packet was on the network"},
	Reliable:   {"reliable", "no packet went by a reliable transport"},
	Arrival:    {"arrival", "no packet arrived"},
	Loopback:   {"loopback", "no packet went to its own node"},
	Post:       {"post", "no core posted an operation"},
	AbsentPage: {"absent_page", "no access of the NIC met an absent page"},
	Transfer:   {"transfer", "no device reached for memory"},
	Module:     {"module", "no handlers were installed"},
	Handler:    {"handler", "no handler ran"},
	HPU:        {"hpu", "no handler ran on the HPUs"},
	Pool:       {"pool", "no handler ran on another pool than the HPUs"},
	DMA:        {"dma", "no handler reached for host memory"},
	Command:    {"command", "no handler sent anything"},

	Process:       {"process", "no process was started"},
	OS:            {"os", "no process had an operating system"},
	Admitted:      {"admitted", "no process had an SMMU"},
	Cores:         {"cores", "no node had work for more than one core"},
	Look:          {"look", "no process looked at a completion in memory"},
	LookCached:    {"look_cached", "no process looked at a completion in a mailbox"},
	Message:       {"message", "no message went through the code that it is for"},
	Match:         {"match", "no process matched messages itself"},
	MemoryLatency: {"memory_latency", "no single access to memory was waited for"},
	Controller:    {"controller", "nothing used the memory controller"},
	Stream:        {"stream", "no core moved bytes of memory"},
	Known:         {"known", "no core moved memory whose addresses are known"},
	Strided:       {"strided", "no core moved pieces that lie apart"},
	Compute:       {"compute", "no application computed"},
	ComputeBeside: {"compute_beside", "no cores computed for an application side by side"},

	Eager:       {"eager", "no eager message of ExaNet-MPI arrived"},
	EagerSend:   {"eager_send", "no eager message of ExaNet-MPI was sent"},
	Large:       {"large", "no large message of ExaNet-MPI was transferred"},
	Exchange:    {"exchange", "no pair of ranks exchanged messages with ExaNet-MPI's algorithms"},
	Fanout:      {"fanout", "no broadcast ran with ExaNet-MPI's algorithms"},
	Collective:  {"collective", "no collective ran with ExaNet-MPI's algorithms"},
	Temporary:   {"temporary", "no collective of ExaNet-MPI allocated a buffer"},
	CopyCall:    {"copy_call", "no collective of ExaNet-MPI copied bytes"},
	ReduceCall:  {"reduce_call", "no collective of ExaNet-MPI reduced bytes"},
	Accelerator: {"accelerator", "no Allreduce went to an accelerator"},

	Translation: {"translation", "no address was translated"},
	Walk:        {"walk", "no page table was walked"},
	SMMUFault:   {"smmu_fault", "the SMMU had no fault"},

	Page:          {"page", "no operating system provided a page"},
	PageFault:     {"page_fault", "no thread touched an absent page"},
	CopyFault:     {"copy_fault", "no page was copied on write"},
	DirtyFault:    {"dirty_fault", "no clean page was written"},
	MapFault:      {"map_fault", "no page of a file was mapped by a fault"},
	MajorFault:    {"major_fault", "no page came from storage"},
	Huge:          {"huge", "no memory could have had huge pages"},
	Gup:           {"gup", "no driver called get_user_pages"},
	PutPage:       {"put_page", "no page was unpinned"},
	DeviceMap:     {"device_map", "no page was mapped for a device"},
	Lock:          {"lock", "nobody called mlock"},
	Unlock:        {"unlock", "nobody called munlock"},
	Map:           {"map", "nobody called mmap"},
	Unmap:         {"unmap", "nothing was unmapped"},
	Protect:       {"protect", "nobody called mprotect"},
	Fork:          {"fork", "nobody called fork"},
	Sync:          {"sync", "nobody called fsync"},
	Reclaim:       {"reclaim", "no memory was reclaimed"},
	CopyPage:      {"copy_page", "no page was migrated"},
	Napi:          {"napi", "no network device gave frames to a kernel"},
	Interrupt:     {"interrupt", "no interrupt was handled"},
	Softirq:       {"softirq", "no tasklet ran"},
	ContextSwitch: {"context_switch", "no thread was woken or slept"},
	KernelThread:  {"kernel_thread", "no kernel thread worked"},
	SMMUInterrupt: {"smmu_interrupt", "no fault of the NIC was handled"},
	SMMUServed:    {"smmu_served", "no fault of the NIC was handled"},
	Block:         {"block", "no fault of PART was handled"},
	Search:        {"search", "no policy looked how far it goes"},
	KernelHandler: {"kernel_handler", "no kernel ran a handler"},
	Netlink:       {"netlink", "no process was told of a fault"},
	Listener:      {"listener", "no process listened for faults"},
	Touch:         {"touch", "no process touched a page for a device"},
	BankHold:      {"bank_hold", "no process waited for a bank of the SMMU"},
	Invalidation:  {"invalidation", "no translation was invalidated"},

	Storage: {"storage", "no command went to a storage device"},
	Swap:    {"swap", "no page went to swap"},

	Entry:       {"entry", "no list or match list entry was made"},
	Unexpected:  {"unexpected", "no header went to an unexpected list"},
	Descriptor:  {"descriptor", "no memory descriptor was bound"},
	Queue:       {"queue", "no event queue was allocated"},
	Counter:     {"counter", "no counting event was allocated"},
	Table:       {"table", "no portal table entry was allocated"},
	Vectors:     {"vectors", "no descriptor or entry had vectors"},
	Triggered:   {"triggered", "no triggered operation was made"},
	Atomic:      {"atomic", "no Atomic was posted"},
	FetchAtomic: {"fetch_atomic", "no FetchAtomic or Swap was posted"},
	Volatile:    {"volatile", "no message left a VOLATILE descriptor"},
	Ordered:     {"ordered", "no get was answered from memory"},
}

// Missing says that a fact is missing, without a full stop.
func (f Fact) Missing() string { return facts[f].missing }

// String returns the name of a fact.
func (f Fact) String() string { return facts[f].name }

// All lists the facts.
func All() []Fact {
	list := make([]Fact, count)
	for i := range list {
		list[i] = Fact(i)
	}
	return list
}

// Set is the facts of a run. The zero value is empty.
type Set [2]uint64

// Add adds a fact.
func (s *Set) Add(f Fact) { s[f/64] |= 1 << (f % 64) }

// AddIf adds a fact if it is so.
func (s *Set) AddIf(so bool, f Fact) {
	if so {
		s.Add(f)
	}
}

// Join adds the facts of another set.
func (s *Set) Join(o Set) {
	s[0] |= o[0]
	s[1] |= o[1]
}

// Has reports whether the set has a fact.
func (s Set) Has(f Fact) bool { return s[f/64]&(1<<(f%64)) != 0 }

// Meets reports whether two sets have a fact in common.
func (s Set) Meets(o Set) bool { return s[0]&o[0]|s[1]&o[1] != 0 }

// Of makes a set.
func Of(list ...Fact) (s Set) {
	for _, f := range list {
		s.Add(f)
	}
	return s
}

// Facts lists the facts of the set.
func (s Set) Facts() (list []Fact) {
	for _, f := range All() {
		if s.Has(f) {
			list = append(list, f)
		}
	}
	return list
}

// MarshalJSON writes the names of the facts.
func (s Set) MarshalJSON() ([]byte, error) {
	names := []string{}
	for _, f := range s.Facts() {
		names = append(names, f.String())
	}
	return json.Marshal(names)
}

// UnmarshalJSON reads what MarshalJSON has written.
func (s *Set) UnmarshalJSON(text []byte) error {
	var names []string
	if err := json.Unmarshal(text, &names); err != nil {
		return err
	}
	*s = Set{}
	for _, name := range names {
		i := slices.IndexFunc(facts[:], func(f struct{ name, missing string }) bool { return f.name == name })
		if i < 0 {
			return fmt.Errorf("no fact %q of a simulation", name)
		}
		s.Add(Fact(i))
	}
	return nil
}
