package serve

import (
	"slices"
	"strings"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/internal/provenance"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/report"
)

// group is a publication with its experiments, for the list to choose from.
type group struct {
	Title       string  `json:"title"`
	Experiments []entry `json:"experiments"`
}

type entry struct {
	Name  string `json:"name"`
	Short string `json:"short"`
}

// described is all that the page knows about an experiment.
type described struct {
	*experiment.Description
	Long string `json:"long"`
	// Cells says for each axis which column of CSV has its values, and the unit
	// that a cell lacks.
	Cells   map[string]cell `json:"cells"`
	Value   string          `json:"value"`  // the column that answers the question
	Origin  []string        `json:"origin"` // columns with the origin of a row
	Broken  string          `json:"broken"` // why there is no breakdown; "": there is one
	Traced  bool            `json:"traced"` // a point has a timeline
	Devices bool            `json:"devices"`
}

type cell struct {
	Key  string `json:"key"`
	Unit string `json:"unit,omitempty"`
}

// device is an embedded profile.
type device struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

// index lists the experiments by their publications, and the profiles.
func index() (groups []group, devices []device, err error) {
	for _, p := range experiment.Publications() {
		g := group{Title: p.Title, Experiments: []entry{}}
		for _, e := range p.Experiments {
			g.Experiments = append(g.Experiments, entry{e.Name, e.Short})
		}
		if len(g.Experiments) > 0 {
			groups = append(groups, g)
		}
	}
	for _, name := range profile.Names() {
		p, err := profile.Load(name)
		if err != nil {
			return nil, nil, err
		}
		devices = append(devices, device{name, p.Description})
	}
	return groups, devices, nil
}

// describe describes an experiment for the page.
func describe(e *experiment.Experiment) *described {
	d := &described{
		Description: experiment.Describe(e), Long: e.Long, Cells: make(map[string]cell), Traced: !e.Untraced, Devices: !e.Deviceless,
	}
	columns := e.TableColumns()
	for i := range e.Axes {
		a := &e.Axes[i]
		name := a.Column
		if name == "" {
			name = strings.ReplaceAll(a.Name, "-", "_")
		}
		if k := slices.IndexFunc(columns, func(c report.Column) bool { return c.Name == name }); k >= 0 {
			c := cell{Key: columns[k].Key()}
			if a.Kind == report.Duration {
				c.Unit = columns[k].Unit
			}
			d.Cells[a.Name] = c
		}
	}
	for _, c := range provenance.Columns() {
		d.Origin = append(d.Origin, c.Key())
	}
	for _, c := range e.Columns {
		if c.Name == e.View.Value || e.View.Value == "" && c.Kind != report.Text && c.Kind != report.Flag {
			d.Value = c.Key()
			break
		}
	}
	if _, err := e.Broken(); err != nil {
		d.Broken = err.Error()
	}
	return d
}
