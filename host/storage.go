package host

import (
	"errors"

	"github.com/spinsim/spinsim/internal/fields"
	"github.com/spinsim/spinsim/internal/lazy"
	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/sim"
)

// Values of StorageSpec.Kind.
const (
	NoStorage = "none"
	NVMe      = "nvme"
)

// Bounds of a StorageSpec.
const maxQueueDepth = 1 << 16

// StorageSpec describes the storage device of a node, for files and swap. It is
// the storage section of a profile, which also has the source of each value.
// There are no defaults.
type StorageSpec struct {
	// Kind is NoStorage (also the empty string) or NVMe.
	Kind string `yaml:"kind"`
	// ReadLatency is the time from a command to its first byte, at most 1 s.
	ReadLatency sim.Time `yaml:"read_latency"`
	// WriteLatency is the time from a command until the device takes its first
	// byte, at most 1 s.
	WriteLatency sim.Time `yaml:"write_latency"`
	// Bandwidth is shared by all commands. A byte takes at most 1 ms.
	Bandwidth sim.Rate `yaml:"bandwidth"`
	// QueueDepth is how many commands the device handles at once, 1 to 65,536;
	// others wait in the order of arrival.
	QueueDepth int `yaml:"queue_depth"`
	// Completion is the interrupt core's time per completed command, at most 1 s.
	Completion sim.Time `yaml:"completion"`
	// Swap is the part of the device for pages of anonymous memory, up to 16 TiB;
	// 0: none.
	Swap sim.Size `yaml:"swap"`
}

// On reports whether there is a storage device.
func (s *StorageSpec) On() bool { return s.Kind != "" && s.Kind != NoStorage }

// Validate returns every violation, each with the field's name in a profile.
func (s *StorageSpec) Validate() error {
	var wrong fields.Errors
	if s.Kind != "" {
		wrong.OneOf("kind", s.Kind, NoStorage, NVMe)
	}
	least := 0
	if s.On() {
		least = 1
	}
	fields.Between(&wrong, "read_latency", s.ReadLatency, 0, maxTime)
	fields.Between(&wrong, "write_latency", s.WriteLatency, 0, maxTime)
	wrong.Add("bandwidth", s.Bandwidth.Check())
	fields.Between(&wrong, "queue_depth", s.QueueDepth, least, maxQueueDepth)
	fields.Between(&wrong, "completion", s.Completion, 0, maxTime)
	fields.Between(&wrong, "swap", s.Swap, 0, maxMemory)
	return wrong.Join()
}

// errNoStorage is the error of calls that need storage on a node without any.
var errNoStorage = errors.New("the node has no storage")

// NewStorage makes a storage device for a node without an operating system:
// programs drive it themselves. Its interrupt goes to core.
func NewStorage(eng *sim.Engine, name string, cpu *CPU, core int, spec *StorageSpec) *Storage {
	return newStorage(eng, name, cpu, core, spec)
}

// Storage is the storage device of a node. A command waits until fewer commands
// than the queue depth are active. Then it takes its latency, and then the
// bandwidth for its bytes, in the order in which commands began. It ends with
// an interrupt.
type Storage struct {
	spec    *StorageSpec
	engine  *sim.Engine
	id      sim.ID
	wire    Server
	waiting []*command
	active  int
	ended   []*command
	irq     *IRQ
	stats   StorageStats
	tracer  sim.Tracer // nil: commands are not drawn
	track   sim.TrackID
}

// StorageStats counts the work of a storage device.
type StorageStats struct {
	Reads, Writes           int64
	BytesRead, BytesWritten int64
	MostActive, MostWaiting int // at one time
}

// command is a transfer for a waiting thread.
type command struct {
	t     *Thread
	write bool
	bytes int
	asked sim.Time
	done  bool
}

const kindStored sim.Kind = 1 // P: the command

// newStorage makes a device with an actor of its own. Its interrupt goes to
// core.
func newStorage(eng *sim.Engine, name string, cpu *CPU, core int, spec *StorageSpec) *Storage {
	s := &Storage{spec: spec, engine: eng, wire: Server{Rate: spec.Bandwidth}}
	s.id = eng.Add(name, s)
	s.irq = cpu.RequestIRQ(core, "storage", s.completions)
	if eng.Tracing() && cpu.shown != nil {
		s.tracer = eng.Tracer()
		s.track = s.tracer.Track(cpu.shown.group, cpu.shown.rank, "storage")
	}
	return s
}

// Stats returns the device's counts.
func (s *Storage) Stats() StorageStats { return s.stats }

// submit gives a command to the device.
func (s *Storage) submit(c *command) {
	c.asked = s.engine.Now()
	c.t.cpu.Use(used.Storage)
	s.waiting = append(s.waiting, c)
	s.begin()
	s.stats.MostWaiting = max(s.stats.MostWaiting, len(s.waiting))
}

func (s *Storage) begin() {
	for len(s.waiting) > 0 && s.active < s.spec.QueueDepth {
		c := s.waiting[0]
		s.waiting = append(s.waiting[:0], s.waiting[1:]...)
		s.active++
		s.stats.MostActive = max(s.stats.MostActive, s.active)
		latency := s.spec.ReadLatency
		if c.write {
			latency = s.spec.WriteLatency
			s.stats.Writes++
			s.stats.BytesWritten += int64(c.bytes)
		} else {
			s.stats.Reads++
			s.stats.BytesRead += int64(c.bytes)
		}
		_, end := s.wire.Reserve(s.engine.Now().Later(latency), int64(c.bytes))
		s.engine.Post(end, s.id, s.id, kindStored, 0, 0, c)
	}
}

// Handle implements sim.Actor: a command has ended.
func (s *Storage) Handle(e *sim.Event) {
	c, _ := e.P.(*command)
	s.active--
	s.ended = append(s.ended, c)
	s.begin()
	s.irq.Raise()
	s.draw(c)
}

// draw draws an ended command, from the moment a thread submitted it.
func (s *Storage) draw(c *command) {
	if s.tracer == nil {
		return
	}
	name := "read"
	if c.write {
		name = "write"
	}
	s.tracer.Span(s.track, name, c.asked, s.engine.Now(), 0, sim.Arg{Key: "bytes", Num: int64(c.bytes)}, sim.Arg{Key: "process", Text: c.t.name})
}

// completions is the device's interrupt handler.
func (s *Storage) completions(t *Thread) {
	for len(s.ended) > 0 {
		c := s.ended[0]
		s.ended = append(s.ended[:0], s.ended[1:]...)
		run(t, s.spec.Completion, "storage")
		c.done = true
		c.t.Wake()
	}
}

// wait waits until all commands have ended.
func (s *Storage) wait(t *Thread, all []*command) {
	for _, c := range all {
		for !c.done {
			t.Wait("storage")
		}
	}
}

// transfer moves bytes and makes the thread wait for the end.
func (s *Storage) transfer(t *Thread, bytes int, write bool) {
	c := &command{t: t, write: write, bytes: bytes}
	s.submit(c)
	s.wait(t, []*command{c})
}

// Disk is space on a storage device for a program that bypasses the page cache.
// Its content survives a power loss.
type Disk struct {
	storage *Storage
	content []byte
}

// Extent is a range of a Disk, in bytes.
type Extent struct{ At, Length int }

// Disk allocates a Disk of n zeros.
func (s *Storage) Disk(n int) *Disk { return &Disk{s, lazy.Bytes(n)} }

// Content returns the stored bytes, for setting up and for observers.
func (d *Disk) Content() []byte { return d.content }

// Store makes the device write extents, one command each, and returns when all
// are stored. memory copies the bytes of an extent at the end of its command.
// If the bytes change before, the stored content is undefined.
func (d *Disk) Store(t *Thread, list []Extent, memory func(e Extent, into []byte)) {
	all := make([]*command, len(list))
	for i, e := range list {
		all[i] = &command{t: t, write: true, bytes: e.Length}
		d.storage.submit(all[i])
	}
	for i, e := range list {
		d.storage.wait(t, all[i:i+1])
		memory(e, d.content[e.At:e.At+e.Length])
	}
}
