package spin17

import (
	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// Modes that call MPI, and the matching in each.
const (
	modeMPIHost    = "mpi-host"
	modeMPIOffload = "mpi-offload"
)

var mpiForms = map[string]mpi.Matching{modeMPIHost: mpi.Host, modeMPIOffload: mpi.Offload}

// called is a measurement with MPI's calls. Each rank sets its own field; the
// result is computed after the run.
type called struct {
	*vectors
	began, ended sim.Time
}

// runMPI has two ranks send and receive.
func (v *vectors) runMPI(form mpi.Matching) error {
	world, err := mpi.New(v.Cluster, mpi.DefaultOptions(form))
	if err != nil {
		return err
	}
	m := &called{vectors: v}
	v.Finish = m.finished
	if err := world.Spawn(0, m.send); err != nil {
		return err
	}
	return world.Spawn(1, m.receive)
}

// elements allocates a rank's data: the vector if apart, else its packed bytes.
func (m *called) elements(r *mpi.Rank, apart bool) (mpi.Data, error) {
	t := mpi.Data{Count: 1, Type: m.of}
	n := int(reach(m.of))
	if !apart {
		t.Count, t.Type, n = m.Bytes, packedByte, m.Bytes
	}
	var err error
	t.Memory, err = r.Alloc(n)
	return t, err
}

func (m *called) send(r *mpi.Rank) error {
	t, err := m.elements(r, m.sends)
	if err != nil {
		return err
	}
	if err := t.Type.Unpack(t.Memory.Raw(), 0, m.stream, t.Count); err != nil {
		return err
	}
	m.began = r.Now()
	return r.World().Do(mpi.Send{Data: t, To: 1})
}

func (m *called) receive(r *mpi.Rank) error {
	t, err := m.elements(r, m.receives)
	if err != nil {
		return err
	}
	if err := r.World().Do(mpi.Recv{Data: t, From: 0}); err != nil {
		return err
	}
	m.ended = r.Now()
	return m.compare(t.Memory)
}

func (m *called) finished() error {
	m.took(m.ended - m.began)
	m.NoteOperation(1, "", m.began, m.ended)
	return m.costs()
}

// took sets the latency and the throughput.
func (v *vectors) took(latency sim.Time) {
	v.Latency = latency
	v.More["throughput"] = float64(v.Bytes) / (1 << 30) * float64(sim.Second) / float64(latency)
}

// compare compares the received data with the sent data.
func (v *vectors) compare(memory runtime.View) error {
	want := v.stream
	if v.receives {
		want = make([]byte, memory.Len())
		if err := v.of.Unpack(want, 0, v.stream, 1); err != nil {
			return err
		}
	}
	return experiment.SameView("vector", memory, want)
}
