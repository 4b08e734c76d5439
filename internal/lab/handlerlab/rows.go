package handlerlab

import (
	"encoding/hex"
	"fmt"
	"reflect"
	"strings"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/sim"
)

// The parts of a report are rows of tables: a field with the tag column is a
// column, with ",hex" one of hexadecimal digits.

// table is a list of a report.
type table struct {
	experiment.Detail

	rows experiment.Rows
}

// tables are the lists of a report.
func (r *Report) tables() []table {
	var actions []ActionReport
	for _, h := range r.Handlers {
		actions = append(actions, h.Actions...)
	}
	return []table{
		tableOf("sent", "Messages", r.Messages), tableOf("handlers", "Handlers", r.Handlers), tableOf(ActionsTable, "Actions", actions),
		tableOf("events", "Events", r.Events), tableOf("counters", "Counters", r.Counters), tableOf("fields", "State", r.Fields),
		tableOf("memory", "Memory", r.Memory),
	}
}

// tableOf makes a table of a list of structs, or of pointers to them.
func tableOf[T any](name, title string, list []T) table {
	of := reflect.TypeFor[T]()
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	t := table{Detail: experiment.Detail{Name: name, Title: title}}
	var columns []reflect.StructField
	for f := range of.Fields() {
		if text, is := f.Tag.Lookup("column"); is {
			columns = append(columns, f)
			t.Columns = append(t.Columns, columnOf(f, text))
		}
	}
	for i := range list {
		v := reflect.Indirect(reflect.ValueOf(list[i]))
		row := make([]any, len(columns))
		for k, f := range columns {
			row[k] = cell(v.FieldByIndex(f.Index), t.Columns[k])
		}
		t.rows = append(t.rows, row)
	}
	return t
}

// columnOf is the column of a field. text is its tag.
func columnOf(f reflect.StructField, text string) report.Column {
	name, _, isHex := strings.Cut(text, ",")
	c := report.Column{Name: name, Kind: report.Count, Help: f.Tag.Get("help")}
	switch {
	case isHex || f.Type.Kind() == reflect.String:
		c.Kind = report.Text
	case f.Type.Kind() == reflect.Bool:
		c.Kind = report.Flag
	case f.Type == reflect.TypeFor[Nanoseconds](), f.Type == reflect.TypeFor[*Nanoseconds]():
		c.Kind, c.Unit = report.Duration, "ns"
	}
	return c
}

// cell is the value of a field in its column.
func cell(v reflect.Value, c report.Column) any {
	switch x := v.Interface().(type) {
	case Nanoseconds:
		return sim.Time(x)
	case *Nanoseconds:
		if x == nil {
			return nil
		}
		return sim.Time(*x)
	case []byte:
		return hex.EncodeToString(x)
	case uint64:
		if c.Kind == report.Text {
			return fmt.Sprintf("%#x", x)
		}
	}
	if v.Kind() == reflect.String {
		return v.String()
	}
	return v.Interface()
}
