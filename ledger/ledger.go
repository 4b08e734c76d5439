// Package ledger holds what publications say about the systems that spinsim
// simulates: numbers and claims, each a row with an id. It knows nothing of
// experiments. An experiment names the rows that it answers, by id.
//
// A row has one class. It says whether the row is evidence. For example, the
// latency that set a parameter of a profile is none, because the simulator
// gives it by construction. Classes were fixed before the rows were measured.
//
// Distance compares a number of ours with a row. It is 0.25 if ours is a
// quarter larger, and also if the published number is a quarter larger.
package ledger

import (
	"embed"
	"fmt"
	"path"
	"sync"
)

// Class is what a row is worth as evidence.
type Class string

// The classes. Predicted rows are evidence, Checked rows are a little.
const (
	Sets       Class = "sets a parameter" // of a profile, which Why names
	Checked    Class = "checks"           // follows from rows that set parameters, which Why names
	Predicted  Class = "predicted"        // nothing was set by it
	WhatIf     Class = "what-if"          // a term, which Why names, was made for it
	NotModeled Class = "not modelled"     // Why gives the reason
)

// Classes are all classes, in the order of tables.
func Classes() []Class { return []Class{Predicted, Checked, Sets, WhatIf, NotModeled} }

// Kind is what a publication does with a row.
type Kind string

// The kinds of rows.
const (
	Parameter Kind = "parameter" // it describes the system
	Result    Kind = "result"    // it was measured or computed
	Claim     Kind = "claim"     // a sentence that is true or false of a system
)

// Row is a number or a claim of a publication.
type Row struct {
	ID          string // unique, for example "part22-5.2-03"
	Publication string // its name, for example "PART'22"
	Section     string
	Kind        Kind
	Quantity    string
	Conditions  string
	Published   Value
	Unit        string // of the numbers in Published; "" if they have none
	Class       Class
	// Why is what the class needs: a parameter, rows, a term, a reason. A number that
	// is predicted and far has the answers to open questions that bring it near, or
	// what stands against it.
	Why  string
	Same string // the row that it repeats or is computed from, which counts instead; "": none
}

// Source names publication and section, for example "PART'22 §5.2".
func (r *Row) Source() string { return r.Publication + " §" + r.Section }

// Note says in a few words what the row is worth; "": it is predicted.
func (r *Row) Note() string {
	switch r.Class {
	case Sets:
		return "set " + r.Why
	case WhatIf:
		return "made for it"
	case Predicted:
		return ""
	}
	return string(r.Class)
}

// Publication is a publication with its rows, in their order in the text.
type Publication struct {
	Tag      string // for example "part22"
	Name     string // for example "PART'22"
	Citation string
	Rows     []Row
}

// Publications are all publications, the five that spinsim reproduces first.
func Publications() []Publication { return load() }

// Find returns the row with an id.
func Find(id string) (row *Row, ok bool) {
	for _, p := range load() {
		for i := range p.Rows {
			if p.Rows[i].ID == id {
				return &p.Rows[i], true
			}
		}
	}
	return nil, false
}

//go:embed data/*.tsv
var data embed.FS

// load reads the rows of all publications. They are part of the program, so a
// mistake in them is a mistake of ours.
var load = sync.OnceValue(func() []Publication {
	list := make([]Publication, len(publications))
	for i, p := range publications {
		text, err := data.ReadFile(path.Join("data", p.Tag+".tsv"))
		if err == nil {
			p.Rows, err = parse(p.Name, string(text))
		}
		if err != nil {
			panic(fmt.Sprintf("ledger: %s: %v", p.Tag, err))
		}
		list[i] = p
	}
	return list
})

var publications = []Publication{
	{Tag: "spin17", Name: "sPIN'17", Citation: "T. Hoefler et al.: sPIN: High-performance streaming Processing in the Network. SC'17"},
	{Tag: "tr488", Name: "TR-488", Citation: "M. Ploumidis et al.: The ExaNeSt Prototype: Evaluation of Efficient HPC Communication Hardware in an ARM-based Multi-FPGA Rack. FORTH-ICS TR-488"},
	{Tag: "part22", Name: "PART'22", Citation: "A. Psistakis et al.: Optimized Page Fault Handling During RDMA. IEEE TPDS 33(12), 2022"},
	{Tag: "psistakis19", Name: "Psistakis'19", Citation: "A. Psistakis: Handling of Memory Page Faults during Virtual-Address RDMA. Thesis, 2019"},
	{Tag: "npf17", Name: "NPF'17", Citation: "I. Lesokhin et al.: Page Fault Support for Network Controllers. ASPLOS'17"},
	{Tag: "followups", Name: "after sPIN'17", Citation: "public results of PsPIN, of FPsPIN's FPGA, of BlueField-3's DPA, and of papers at SC'19 and SC'22"},
	{Tag: "inc", Name: "atlahs-inc", Citation: "results of SPCL's simulator of allreduce within switches (miharulidze/atlahs-inc)"},
	{Tag: "pspin-rtl", Name: "PsPIN's RTL", Citation: "cycles of PsPIN's public RTL, simulated whole"},
}

// columns are the columns of the files in data.
const columns = "id\tsection\tkind\tquantity\tconditions\tvalue\tunit\tprecision\tclass\twhy\tsame\n"

// parse reads the rows of a publication from a file in data.
func parse(publication, text string) (rows []Row, err error) {
	err = eachLine(text, columns, func(f []string) error {
		v, err := ParseValue(f[5], Precision(f[7]))
		rows = append(rows, Row{
			ID: f[0], Publication: publication, Section: f[1], Kind: Kind(f[2]), Quantity: f[3], Conditions: f[4],
			Published: v, Unit: f[6], Class: Class(f[8]), Why: f[9], Same: f[10],
		})
		return err
	})
	return rows, err
}
