package manifest

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/spinsim/spinsim/internal/expr"
)

// Device is the device on which handlers are installed. Expressions can use its
// values.
type Device struct {
	MTU      int64 // bytes of the largest packet
	HPUs     int64 // handler processing units
	Contexts int64 // of each HPU
	Rank     int64 // of the node, from 0
	Ranks    int64 // nodes
	Clusters int64 // groups of HPUs
}

// Variables are the names in expressions, with their meaning.
var Variables = []struct{ Name, Help string }{
	{"mtu", "bytes of the largest packet"},
	{"hpus", "HPUs of the device"},
	{"contexts", "contexts of an HPU"},
	{"rank", "the device's own node, from 0"},
	{"ranks", "the number of nodes"},
	{"clusters", "clusters of the HPUs"},
}

var errDevice = errors.New("depends on the device")

// value returns the value of a variable by its place in Variables. Without a
// device it is an error.
func (d *Device) value(variable int) (int64, error) {
	if d == nil {
		return 0, errDevice
	}
	return [...]int64{d.MTU, d.HPUs, d.Contexts, d.Rank, d.Ranks, d.Clusters}[variable], nil
}

// Expr is a number. It is a constant such as 8, 0x10, 4KiB, -1 or 0.5, or
// whole-number arithmetic with values of the device. For example,
// "min(hpus * contexts, 64) * mtu". Operators are + - * / % << and parentheses,
// functions min and max of two numbers. It is exact; division rounds towards
// zero. The zero value is not set.
type Expr struct {
	whole    expr.Expr
	fraction string // as written, if whole is not set
	float    float64
}

// ParseExpr reads an expression.
func ParseExpr(s string) (Expr, error) {
	names := make([]string, len(Variables))
	for i, v := range Variables {
		names[i] = v.Name
	}
	whole, err := expr.Parse(s, names)
	if err == nil {
		return Expr{whole: whole}, nil
	}
	if f, wrong := strconv.ParseFloat(s, 64); wrong == nil && len(s) <= expr.Longest && !math.IsInf(f, 0) && !math.IsNaN(f) && decimal(s) {
		return Expr{fraction: s, float: f}, nil
	}
	return Expr{}, err
}

// decimal reports whether a number is decimal and not whole. The number must be
// valid.
func decimal(s string) bool { return strings.ContainsAny(s, ".eE") && !strings.ContainsAny(s, "xX_") }

// Const returns the expression of a whole number.
func Const(v int64) Expr { return Expr{whole: expr.Const(v)} }

// IsSet reports whether there is an expression.
func (e Expr) IsSet() bool { return e.whole.IsSet() || e.fraction != "" }

// String returns the expression as written.
func (e Expr) String() string { return e.whole.String() + e.fraction }

// MarshalText is String.
func (e Expr) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// Whole reports whether the value is a whole number. Only constants with a
// fraction are not.
func (e Expr) Whole() bool { return e.fraction == "" }

// Constant reports whether the value does not depend on the device.
func (e Expr) Constant() bool {
	_, err := e.Int(nil)
	return !errors.Is(err, errDevice)
}

// Int evaluates to a whole number, 0 if the expression is not set.
func (e Expr) Int(d *Device) (*big.Int, error) {
	switch {
	case e.fraction != "":
		return nil, fmt.Errorf("%s: expected a whole number", e)
	case !e.IsSet():
		return new(big.Int), nil
	}
	v, err := e.whole.Value(d.value)
	if err != nil {
		err = fmt.Errorf("%s: %w", e, err)
	}
	return v, err
}

// Between evaluates to a whole number from least to most, 0 if the expression is not set.
func (e Expr) Between(d *Device, least, most int64) (int64, error) {
	if !e.IsSet() {
		return 0, nil
	}
	v, err := e.Int(d)
	if err != nil {
		return 0, err
	}
	if v.Cmp(big.NewInt(least)) < 0 || v.Cmp(big.NewInt(most)) > 0 {
		if e.String() == v.String() {
			return 0, fmt.Errorf("%v, expected %d to %d", v, least, most)
		}
		return 0, fmt.Errorf("%s is %v, expected %d to %d", e, v, least, most)
	}
	return v.Int64(), nil
}

// Float evaluates to a number that may have a fraction, 0 if the expression is not set.
func (e Expr) Float(d *Device) (float64, error) {
	if e.fraction != "" {
		return e.float, nil
	}
	v, err := e.Int(d)
	if err != nil {
		return 0, err
	}
	f, _ := new(big.Float).SetInt(v).Float64()
	return f, nil
}
