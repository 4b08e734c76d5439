package lab

import (
	"encoding/hex"
	"fmt"
	"reflect"
	"strings"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/sim"
)

// Rows of a table are structs: a field with the tag column is a column, with
// ",hex" one of hexadecimal digits, with ",size" one of bytes. Times have ns; in a
// table for people those with the same tag scale have the same unit. Of a pointer
// the value counts, and nil is no value.

// fieldsOf are the fields of the type of a row that are columns.
func fieldsOf(row reflect.Type) (list []reflect.StructField) {
	if row.Kind() == reflect.Pointer {
		row = row.Elem()
	}
	for f := range row.Fields() {
		if _, is := f.Tag.Lookup("column"); is {
			list = append(list, f)
		}
	}
	return list
}

// TableOf makes a table for rows of type T, or of pointers to it.
func TableOf[T any](name, title string) experiment.Detail {
	d := experiment.Detail{Name: name, Title: title}
	for _, f := range fieldsOf(reflect.TypeFor[T]()) {
		d.Columns = append(d.Columns, columnOf(f))
	}
	return d
}

// RowsOf returns a list as rows of its table.
func RowsOf[T any](list []T) (rows experiment.Rows) {
	fields := fieldsOf(reflect.TypeFor[T]())
	for i := range list {
		v := reflect.Indirect(reflect.ValueOf(list[i]))
		row := make([]any, len(fields))
		for k, f := range fields {
			_, form, _ := strings.Cut(f.Tag.Get("column"), ",")
			row[k] = cell(v.FieldByIndex(f.Index), form)
		}
		rows = append(rows, row)
	}
	return rows
}

// columnOf is the column of a field.
func columnOf(f reflect.StructField) report.Column {
	name, form, _ := strings.Cut(f.Tag.Get("column"), ",")
	c := report.Column{Name: name, Kind: report.Count, Help: f.Tag.Get("help"), Scale: f.Tag.Get("scale")}
	t := f.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case form == "hex" || t.Kind() == reflect.String:
		c.Kind = report.Text
	case form == "size":
		c.Kind = report.Size
	case t.Kind() == reflect.Bool:
		c.Kind = report.Flag
	case t == reflect.TypeFor[sim.Time]():
		c.Kind, c.Unit = report.Duration, "ns"
	}
	return c
}

// cell is the value of a field in a column of a form.
func cell(v reflect.Value, form string) any {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return nil
		}
		v = v.Elem()
	}
	switch x := v.Interface().(type) {
	case []byte:
		return hex.EncodeToString(x)
	case uint64:
		switch form {
		case "hex":
			return fmt.Sprintf("%#x", x)
		case "size":
			return int64(x)
		}
	}
	if v.Kind() == reflect.String {
		return v.String()
	}
	return v.Interface()
}
