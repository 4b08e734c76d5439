package handlerlab

import (
	"encoding/hex"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/sim"
)

// The parts of a report are rows of tables: a field with the tag column is a
// column, with ",hex" one of hexadecimal digits.

// tagged lists the fields of a struct that are columns.
func tagged(t reflect.Type) (list []reflect.StructField) {
	for f := range t.Fields() {
		if f.Tag.Get("column") != "" {
			list = append(list, f)
		}
	}
	return list
}

// columnsOf are the columns of rows of T.
func columnsOf[T any]() (list []report.Column) {
	for _, f := range tagged(reflect.TypeFor[T]()) {
		name, _, isHex := strings.Cut(f.Tag.Get("column"), ",")
		c := report.Column{Name: name, Kind: report.Count, Help: f.Tag.Get("help")}
		switch of := f.Type; {
		case isHex || of.Kind() == reflect.String:
			c.Kind = report.Text
		case of.Kind() == reflect.Bool:
			c.Kind = report.Flag
		case of == reflect.TypeFor[Nanoseconds](), of == reflect.TypeFor[*Nanoseconds]():
			c.Kind, c.Unit = report.Duration, "ns"
		}
		list = append(list, c)
	}
	return list
}

// rowOf is the row of a struct.
func rowOf(v any) (row []any) {
	of := reflect.Indirect(reflect.ValueOf(v))
	for _, f := range tagged(of.Type()) {
		var cell any
		switch x := of.FieldByIndex(f.Index); at := x.Interface().(type) {
		case Nanoseconds:
			cell = sim.Time(at)
		case *Nanoseconds:
			if at != nil {
				cell = sim.Time(*at)
			}
		case []byte:
			cell = hex.EncodeToString(at)
		default:
			if cell = at; x.Kind() == reflect.String {
				cell = x.String()
			} else if strings.HasSuffix(f.Tag.Get("column"), ",hex") {
				cell = fmt.Sprintf("%#x", at)
			}
		}
		row = append(row, cell)
	}
	return row
}

// rowsOf are the rows of a list.
func rowsOf[T any](list []T) (rows experiment.Rows) {
	for i := range list {
		rows = append(rows, rowOf(&list[i]))
	}
	return rows
}

// fill is the inverse of rowOf. It panics if rowOf has not made the row: a
// programmer's mistake.
func fill(v any, row []any) {
	of := reflect.ValueOf(v).Elem()
	for i, f := range tagged(of.Type()) {
		x := of.FieldByIndex(f.Index)
		text, isText := row[i].(string)
		switch {
		case row[i] == nil:
		case x.Kind() == reflect.Pointer:
			at := Nanoseconds(row[i].(sim.Time))
			x.Set(reflect.ValueOf(&at))
		case x.Kind() == reflect.Slice:
			b, err := hex.DecodeString(text)
			must(err)
			x.SetBytes(b)
		case x.Kind() == reflect.Uint64 && isText:
			n, err := strconv.ParseUint(text, 0, 64)
			must(err)
			x.SetUint(n)
		default:
			x.Set(reflect.ValueOf(row[i]).Convert(x.Type()))
		}
	}
}

// must panics if a row is none of rowOf.
func must(err error) {
	if err != nil {
		panic("handlerlab: a row: " + err.Error()) //lint:panic programmer's mistake
	}
}

// from makes a list of its rows.
func from[T any](v any) []T {
	rows, _ := v.(experiment.Rows)
	list := make([]T, len(rows))
	for i := range rows {
		fill(&list[i], rows[i])
	}
	return list
}
