package checkpoint

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/spinsim/spinsim/sim"
)

// Value is a table value in a form that preserves its type and every digit.
// Texts, booleans and nil are plain JSON. A number (int, int64, uint64, float64
// or sim.Time) is an object with its type and its text.
type Value struct{ V any }

// Types of numbers in a file.
const (
	kindTime   = "ps"
	kindInt    = "int"
	kindInt64  = "int64"
	kindUint64 = "uint64"
	kindFloat  = "float64"
)

// MarshalJSON writes the value. A type that Value does not support is an error.
func (v Value) MarshalJSON() ([]byte, error) {
	number := func(kind, digits string) ([]byte, error) { return json.Marshal(map[string]string{kind: digits}) }
	switch x := v.V.(type) {
	case nil, string, bool:
		return json.Marshal(x)
	case sim.Time:
		return number(kindTime, strconv.FormatInt(int64(x), 10))
	case int:
		return number(kindInt, strconv.Itoa(x))
	case int64:
		return number(kindInt64, strconv.FormatInt(x, 10))
	case uint64:
		return number(kindUint64, strconv.FormatUint(x, 10))
	case float64:
		return number(kindFloat, strconv.FormatFloat(x, 'g', -1, 64))
	}
	return nil, fmt.Errorf("a %T cannot be kept", v.V)
}

// UnmarshalJSON is the inverse of MarshalJSON.
func (v *Value) UnmarshalJSON(text []byte) error {
	var plain any
	if err := json.Unmarshal(text, &plain); err != nil {
		return err
	}
	switch x := plain.(type) {
	case nil, string, bool:
		v.V = x
		return nil
	case map[string]any:
		for kind, digits := range x { //lint:maporder there is one
			if d, is := digits.(string); is && len(x) == 1 {
				return v.number(kind, d)
			}
		}
	}
	return fmt.Errorf("%s is no value with its type", text)
}

// number parses a number of the given type.
func (v *Value) number(kind, digits string) error {
	var err error
	var x int64
	switch kind {
	case kindTime:
		x, err = strconv.ParseInt(digits, 10, 64)
		v.V = sim.Time(x)
	case kindInt:
		v.V, err = strconv.Atoi(digits)
	case kindInt64:
		v.V, err = strconv.ParseInt(digits, 10, 64)
	case kindUint64:
		v.V, err = strconv.ParseUint(digits, 10, 64)
	case kindFloat:
		v.V, err = strconv.ParseFloat(digits, 64)
	default:
		err = fmt.Errorf("no type of numbers %q", kind)
	}
	return err
}
