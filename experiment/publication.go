package experiment

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/internal/fields"
	"github.com/spinsim/spinsim/report"
)

// Publication is a publication with the experiments that measure what it has.
type Publication struct {
	Name    string   // what commands call it
	Title   string   // what people do
	Sources []string // how the sources of its numbers begin
	Minutes int      // how long all of it took on one processor, which other programs used as well; most of it is simulation and depends on no disk or network
	Runs    []PublicationRun
}

// PublicationRun is an experiment of a publication.
type PublicationRun struct {
	Experiment string
	Preset     string // "": none
	Full       Choice // all that the publication has
	Quick      Choice // what takes seconds
	Without    string // in words, what Quick leaves out; "": nothing but points between others
}

// Choice is what of an experiment is measured. The zero value is what it measures by default.
type Choice struct {
	Skip      bool // nothing
	Profiles  string
	Values    string // "axis=list", separated by blanks
	Waterfall string // "FROM,TO": the way between two profiles instead of a table
}

// Publications lists them in the order of All.
func Publications() []*Publication {
	return []*Publication{spin17Publication, exanestPublication, partPublication, npfPublication}
}

// FindPublication returns the publication of that name.
func FindPublication(name string) (*Publication, error) {
	var names []string
	for _, p := range Publications() {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	return nil, fmt.Errorf("no publication %q, expected one of %s%s", name, strings.Join(names, ", "), fields.DidYouMean(name, names))
}

// Choice is that of a run, full or quick.
func (r *PublicationRun) Choice(full bool) Choice {
	if full {
		return r.Full
	}
	return r.Quick
}

// Name names the run: the experiment, its preset, and the way of a waterfall.
func (r *PublicationRun) Name(full bool) string {
	name := r.Experiment
	if r.Preset != "" {
		name += "-" + r.Preset
	}
	if w := r.Choice(full).Waterfall; w != "" {
		name += "-" + strings.ReplaceAll(w, ",", "-to-")
	}
	return name
}

// Sweep is what a run measures.
func (r *PublicationRun) Sweep(full bool) (*Sweep, error) {
	e, err := Find(r.Experiment)
	if err == nil && r.Preset != "" {
		e, err = e.Preset(r.Preset)
	}
	if err != nil {
		return nil, err
	}
	s, err := New(e)
	if err != nil {
		return nil, err
	}
	c := r.Choice(full)
	if c.Profiles != "" {
		s.Profiles = strings.Split(c.Profiles, ",")
	}
	for value := range strings.FieldsSeq(c.Values) {
		axis, list, _ := strings.Cut(value, "=")
		if err := s.Choose(axis, list); err != nil {
			return nil, fmt.Errorf("%s: %w", r.Name(full), err)
		}
	}
	return s, nil
}

// Numbers are the published numbers of a sweep's experiment for which there is a point among those given, and those for which there is none.
func (s *Sweep) Numbers(points []*Point) (there, missing []report.Published) {
	for _, p := range s.Experiment.Published {
		if slices.ContainsFunc(points, func(at *Point) bool { return at.fits(p.At) && at.fits(p.With) }) {
			there = append(there, p)
		} else {
			missing = append(missing, p)
		}
	}
	missing = slices.DeleteFunc(missing, func(p report.Published) bool {
		return slices.ContainsFunc(there, func(o report.Published) bool { return sameNumber(&o, &p) })
	})
	return there, missing
}

// sameNumber reports whether two are one number of a publication, which stands beside runs of several kinds.
func sameNumber(a, b *report.Published) bool {
	return a.Column == b.Column && a.Value == b.Value && slices.Equal(a.At, b.At)
}

// fits reports whether the point has the values, of axes and of the profile.
func (p *Point) fits(values []report.Is) bool {
	for _, is := range values {
		if is.Column == profileColumn {
			if is.Value != p.Profile.Name {
				return false
			}
			continue
		}
		for i := range p.values {
			c := p.experiment.Axes[i].column()
			if (c.Name == is.Column || c.Key() == is.Column) && !c.Same(p.values[i], is.Value) {
				return false
			}
		}
	}
	return true
}

// Names says of published numbers in words which they are.
func Names(e *Experiment, list []report.Published) (names []string) {
	for _, p := range list {
		parts := []string{e.Name}
		for _, is := range p.At {
			parts = append(parts, fmt.Sprint(is.Value))
		}
		names = append(names, strings.Join(parts, " ")+": "+p.Column)
	}
	return names
}

var spin17Publication = &Publication{
	Name: "spin17", Title: "sPIN: high-performance streaming processing in the network (SC'17)", Sources: []string{"sPIN'17"}, Minutes: 3,
	Runs: []PublicationRun{
		{Experiment: "pingpong", Quick: Choice{Values: "size=8,512,4KiB,64KiB"}},
		{Experiment: "accumulate", Quick: Choice{Values: "size=64,4KiB,64KiB"}},
		{
			Experiment: "bcast", Full: Choice{Profiles: "spin-dis,spin-int,spin-int-sc17"},
			Quick: Choice{Profiles: "spin-int,spin-int-sc17", Values: "ranks=4,64,1024 mode=rdma,p4,spin-stream"},
		},
		{
			Experiment: "bcast", Full: Choice{Waterfall: "spin-int-sc17,spin-int", Values: "ranks=1024 size=64KiB mode=rdma,p4,spin-stream"},
			Quick: Choice{Waterfall: "spin-int-sc17,spin-int", Values: "ranks=64 size=64KiB mode=rdma,p4,spin-stream"}, Without: "the way from the authors' simulator to ours on 1024 ranks, 64 instead",
		},
		{Experiment: "hpus"},
		{Experiment: "matching", Quick: Choice{Values: "ranks=64,72"}, Without: "applications with 360 ranks"},
		{Experiment: "datatype", Quick: Choice{Values: "block=64,4KiB,64KiB"}},
		{Experiment: "raid5", Quick: Choice{Values: "size=64,4KiB,64KiB"}},
		{Experiment: "ftbcast", Quick: Choice{Values: "ranks=8 failed=0,1"}, Without: "64 ranks"},
		{Experiment: "txlog", Quick: Choice{Values: "ranks=2 size=8,64KiB"}, Without: "16 clients"},
		{Experiment: "kv", Quick: Choice{Values: "workload=B,C clients=4 records=1000"}, Without: "workloads A, D, E, F, and 16 clients"},
		{Experiment: "scan", Quick: Choice{Values: "size=256KiB selectivity=1%,100%"}, Without: "a table of 4 MiB"},
		{Experiment: "graph", Quick: Choice{Values: "scale=8 ranks=4"}, Without: "graphs of 1024 and 4096 vertices on 16 nodes"},
	},
}

var exanestPublication = &Publication{
	Name: "exanest", Title: "ExaNeSt prototype (FORTH-ICS TR-488)", Sources: []string{"TR-488"}, Minutes: 14,
	Runs: []PublicationRun{
		{Experiment: "exanet", Full: Choice{Values: "path=intra-fpga,intra-qfdb,d"}, Quick: Choice{Values: "path=intra-fpga,intra-qfdb size=0,64,4KiB,4MiB mode=mailbox,mpi"}},
		{Experiment: "gsas", Quick: Choice{Values: "size=8,64,4KiB path=intra-qfdb"}},
		{Experiment: "ip", Quick: Choice{Values: "traffic=rtt"}, Without: "throughput of TCP and UDP"},
		{
			Experiment: "osu", Full: Choice{Values: "benchmark=latency,bw,bibw"}, Quick: Choice{Values: "benchmark=latency,bw path=intra-fpga,intra-qfdb,intra-mezz:1 size=0,64,4KiB,4MiB"},
			Without: "distant paths, both directions at once",
		},
		{
			Experiment: "osu-ranks", Full: Choice{Values: "benchmark=bcast,allreduce ranks=4,16,64,128 ranks-per-node=1,4 size=1,4,32,64,256,1KiB,4KiB,16KiB"},
			Quick: Choice{Values: "benchmark=bcast,allreduce ranks=4,16 ranks-per-node=1,4 size=1,4,256"}, Without: "more than 16 ranks",
		},
		{Experiment: "osu-ranks", Preset: "collectives", Quick: Choice{Skip: true}, Without: "collective operations of 512 ranks"},
		{Experiment: "scaling", Quick: Choice{Values: "ranks=1,8 app=minife"}, Without: "64 ranks, HPCG and LAMMPS"},
		{
			Experiment: "allreduce", Full: Choice{Values: "ranks=4,16,32,64,128"}, Quick: Choice{Values: "ranks=4,16 size=4,256"}, Without: "more than 16 ranks",
		},
		{Experiment: "credits", Quick: Choice{Values: "ranks=16 size=4KiB"}, Without: "128 ranks"},
	},
}

var partPublication = &Publication{
	Name: "part", Title: "PART: page faults of RDMA in the ExaNeSt prototype (PART'22, Psistakis'19)", Sources: []string{"PART'22", "Psistakis'19"}, Minutes: 1,
	Runs: []PublicationRun{
		{
			Experiment: "pagefault", Full: Choice{Values: "policy=transfer,touch,touch-present,pin,pin-present,pio,pi4,pia size=16,4KiB,16KiB,32KiB,64KiB,1MiB,4MiB"},
			Quick: Choice{Values: "policy=transfer,touch,touch-present,pin,pin-present,pio,pia size=16,4KiB,16KiB,32KiB,64KiB"},
		},
		{Experiment: "pagefault", Preset: "no-fault", Quick: Choice{Skip: true}, Without: "transfers without faults by size"},
		{Experiment: "pagefault", Preset: "small", Quick: Choice{Skip: true}, Without: "small messages by timeout"},
		{Experiment: "pagefault", Preset: "sizes", Quick: Choice{Skip: true}, Without: "all policies by size"},
		{Experiment: "pagefault", Preset: "breakdown", Quick: Choice{Values: "size=4KiB,64KiB"}},
		{Experiment: "pagefault", Preset: "frequency", Quick: Choice{Values: "size=4KiB,64KiB frequency=0,20%,100%"}},
		{Experiment: "pagefault", Preset: "timeout", Quick: Choice{Skip: true}, Without: "timeouts"},
		{Experiment: "pagefault", Preset: "sides", Quick: Choice{Skip: true}, Without: "faults at the source"},
		{Experiment: "pagefault", Preset: "hupcf", Quick: Choice{Skip: true}, Without: "hit under previous context fault"},
		{Experiment: "isend", Quick: Choice{Values: "sample=1,8,16"}},
		{Experiment: "apps", Quick: Choice{Values: "ranks=4 rounds=5"}, Without: "1 and 16 ranks, 20 rounds"},
	},
}

var npfPublication = &Publication{
	Name: "npf", Title: "Page fault support for network controllers (ASPLOS'17)", Sources: []string{"NPF'17"}, Minutes: 5,
	Runs: []PublicationRun{
		{Experiment: "npf-latency", Quick: Choice{Values: "runs=200"}, Without: "300 of 500 runs, of which the largest is published"},
		{Experiment: "npf-latency", Preset: "waterfall", Quick: Choice{Values: "runs=200"}, Without: "1,800 of 2,000 runs of how parts of a fault would have to vary"},
		{Experiment: "npf-cold-ring", Quick: Choice{Values: "at=5s,60s"}},
		{Experiment: "npf-cold-ring", Preset: "waterfall"},
		{Experiment: "npf-ring-size", Quick: Choice{Values: "ring=16 mode=drop,backup"}, Without: "rings of more than 16 buffers"},
		{Experiment: "npf-ring-size", Preset: "waterfall"},
		{Experiment: "npf-instances", Quick: Choice{Values: "instances=1"}, Without: "2, 3 and 4 servers"},
		{Experiment: "npf-instances", Preset: "waterfall", Quick: Choice{Values: "instances=1"}, Without: "what an operation takes of 2, 3 and 4 servers"},
		{Experiment: "npf-working-set", Quick: Choice{Skip: true}, Without: "working sets that change"},
		{Experiment: "npf-storage", Quick: Choice{Skip: true}, Without: "the storage target"},
		{Experiment: "npf-storage", Preset: "waterfall", Quick: Choice{Skip: true}, Without: "the way to its published speedup"},
		{Experiment: "npf-imb", Quick: Choice{Values: "benchmark=sendrecv size=4KiB iterations=1"}, Without: "bcast, alltoall, and messages of more than 4 KiB"},
		{Experiment: "npf-beff", Quick: Choice{Skip: true}, Without: "effective bandwidth"},
		{Experiment: "npf-synthetic", Quick: Choice{Skip: true}, Without: "a stream of TCP into a ring"},
		{Experiment: "npf-synthetic-ib", Quick: Choice{Values: "messages=100 frequency=0%,1%,100%"}, Without: "400 of 500 messages"},
	},
}
