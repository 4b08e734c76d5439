package manifest

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// Device is what expressions can name: where handlers are installed.
type Device struct {
	MTU      int64 // bytes of the largest packet
	HPUs     int64 // handler processing units
	Contexts int64 // of each HPU
	Rank     int64 // of the node, from 0
	Ranks    int64 // nodes
	Clusters int64 // that the HPUs form
}

// Variables are what expressions can name, with what it is.
var Variables = []struct{ Name, Help string }{
	{"mtu", "bytes of the largest packet"},
	{"hpus", "HPUs of the device"},
	{"contexts", "contexts of an HPU"},
	{"rank", "the device's own node, from 0"},
	{"ranks", "the number of nodes"},
	{"clusters", "clusters of the HPUs"},
}

// value is that of a variable by its place in Variables.
func (d *Device) value(variable int) int64 {
	return [...]int64{d.MTU, d.HPUs, d.Contexts, d.Rank, d.Ranks, d.Clusters}[variable]
}

// Expr is a number: a constant such as 8, 0x10, -1 or 0.5, or whole arithmetic on the device, such
// as "min(hpus * contexts, 64) * mtu". Operators are + - * / % << and parentheses, functions min
// and max of two numbers. It is exact; division rounds towards zero. The zero value is not set.
type Expr struct {
	text  string
	root  node    // of a whole number
	float float64 // without root
}

// maxExpr bounds an expression, bytes, and with it the depth of parentheses and the size of numbers.
const maxExpr = 200

// maxShift bounds what << shifts by.
const maxShift = 64

// node is a part of an expression.
type node interface {
	eval(d *Device) (*big.Int, error) // d nil: no variable has a value
}

type literal struct{ v *big.Int }

func (l literal) eval(*Device) (*big.Int, error) { return l.v, nil }

type variable int

var errDevice = errors.New("depends on the device")

func (v variable) eval(d *Device) (*big.Int, error) {
	if d == nil {
		return nil, errDevice
	}
	return big.NewInt(d.value(int(v))), nil
}

type operation struct {
	op          string
	left, right node
}

func (o operation) eval(d *Device) (*big.Int, error) {
	a, err := o.left.eval(d)
	if err != nil {
		return nil, err
	}
	b, err := o.right.eval(d)
	if err != nil {
		return nil, err
	}
	r := new(big.Int)
	switch o.op {
	case "+":
		return r.Add(a, b), nil
	case "-":
		return r.Sub(a, b), nil
	case "*":
		return r.Mul(a, b), nil
	case "min", "max":
		if (a.Cmp(b) < 0) == (o.op == "min") {
			return a, nil
		}
		return b, nil
	case "<<":
		if !b.IsInt64() || b.Int64() < 0 || b.Int64() > maxShift {
			return nil, fmt.Errorf("a shift by %v, expected 0 to %d", b, maxShift)
		}
		return r.Lsh(a, uint(b.Int64())), nil
	}
	if b.Sign() == 0 {
		return nil, errors.New("division by zero")
	}
	if o.op == "/" {
		return r.Quo(a, b), nil
	}
	return r.Rem(a, b), nil
}

// ParseExpr reads an expression.
func ParseExpr(s string) (Expr, error) {
	if len(s) > maxExpr {
		return Expr{}, fmt.Errorf("an expression of %d bytes, expected at most %d", len(s), maxExpr)
	}
	p := parser{rest: s}
	root, err := p.sum()
	if err == nil && p.peek() != "" {
		err = fmt.Errorf("unexpected %q", p.rest)
	}
	if err == nil {
		return Expr{text: s, root: root}, nil
	}
	if f, wrong := strconv.ParseFloat(s, 64); wrong == nil && !math.IsInf(f, 0) && !math.IsNaN(f) && fraction(s) {
		return Expr{text: s, float: f}, nil
	}
	return Expr{}, fmt.Errorf("%q: %w; expected a number, or + - * / %% << min max and parentheses with %s", s, err, variableNames())
}

// fraction reports whether a number that can be parsed is decimal, and no whole number.
func fraction(s string) bool { return strings.ContainsAny(s, ".eE") && !strings.ContainsAny(s, "xX_") }

// Const returns the expression of a whole number.
func Const(v int64) Expr {
	return Expr{text: strconv.FormatInt(v, 10), root: literal{big.NewInt(v)}}
}

func variableNames() string {
	names := make([]string, len(Variables))
	for i, v := range Variables {
		names[i] = v.Name
	}
	return strings.Join(names, ", ")
}

// IsSet reports whether there is an expression.
func (e Expr) IsSet() bool { return e.text != "" }

// String is the expression as it was written.
func (e Expr) String() string { return e.text }

// Whole reports whether the value is a whole number, as it is for all expressions but constants with
// a fraction or an exponent.
func (e Expr) Whole() bool { return e.root != nil || e.text == "" }

// Constant reports whether the value does not depend on the device.
func (e Expr) Constant() bool {
	if e.root == nil {
		return true
	}
	_, err := e.root.eval(nil)
	return !errors.Is(err, errDevice)
}

// Int evaluates to a whole number, 0 if the expression is not set.
func (e Expr) Int(d *Device) (*big.Int, error) {
	switch {
	case e.root != nil:
		v, err := e.root.eval(d)
		if err != nil {
			err = fmt.Errorf("%s: %w", e.text, err)
		}
		return v, err
	case e.text != "":
		return nil, fmt.Errorf("%s: expected a whole number", e.text)
	}
	return new(big.Int), nil
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
		if e.text == v.String() {
			return 0, fmt.Errorf("%v, expected %d to %d", v, least, most)
		}
		return 0, fmt.Errorf("%s is %v, expected %d to %d", e.text, v, least, most)
	}
	return v.Int64(), nil
}

// Float evaluates to a number that may have a fraction, 0 if the expression is not set.
func (e Expr) Float(d *Device) (float64, error) {
	if e.root == nil {
		return e.float, nil
	}
	v, err := e.Int(d)
	if err != nil {
		return 0, err
	}
	f, _ := new(big.Float).SetInt(v).Float64()
	return f, nil
}

// parser reads an expression from the left.
type parser struct{ rest string }

// operators are all that is not a word; the longer first.
var operators = []string{"<<", "+", "-", "*", "/", "%", "(", ")", ","}

// peek returns the next operator, the next byte if there is none, "" at the end.
func (p *parser) peek() string {
	p.rest = strings.TrimLeft(p.rest, " ")
	for _, op := range operators {
		if strings.HasPrefix(p.rest, op) {
			return op
		}
	}
	return p.rest[:min(1, len(p.rest))]
}

// take reads op if it is next.
func (p *parser) take(op string) bool {
	if p.peek() != op {
		return false
	}
	p.rest = p.rest[len(op):]
	return true
}

func (p *parser) expect(op string) error {
	if !p.take(op) {
		return fmt.Errorf("%q is missing", op)
	}
	return nil
}

func (p *parser) sum() (node, error) { return p.chain([]string{"+", "-"}, p.product) }

func (p *parser) product() (node, error) { return p.chain([]string{"*", "/", "%", "<<"}, p.factor) }

// chain reads parts that operators of equal rank join, from left to right.
func (p *parser) chain(of []string, part func() (node, error)) (node, error) {
	left, err := part()
	for err == nil {
		op := p.peek()
		known := false
		for _, o := range of {
			known = known || op == o
		}
		if !known {
			break
		}
		p.rest = p.rest[len(op):]
		var right node
		right, err = part()
		left = operation{op, left, right}
	}
	return left, err
}

func (p *parser) factor() (node, error) {
	switch {
	case p.peek() == "":
		return nil, errors.New("a number is missing")
	case p.take("-"):
		f, err := p.factor()
		return operation{"-", literal{new(big.Int)}, f}, err
	case p.take("("):
		n, err := p.sum()
		if err == nil {
			err = p.expect(")")
		}
		return n, err
	}
	return p.word()
}

// word reads a number, a variable or a function.
func (p *parser) word() (node, error) {
	n := strings.IndexFunc(p.rest, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
	if n < 0 {
		n = len(p.rest)
	}
	w := p.rest[:n]
	if w == "" {
		return nil, fmt.Errorf("unexpected %q", p.peek())
	}
	p.rest = p.rest[n:]
	if w == "min" || w == "max" {
		return p.call(w)
	}
	for i, v := range Variables {
		if v.Name == w {
			return variable(i), nil
		}
	}
	if w[0] < '0' || w[0] > '9' {
		return nil, fmt.Errorf("there is no variable %s", w)
	}
	v, err := strconv.ParseUint(w, 0, 64)
	if err != nil || strings.Contains(w, "_") || len(w) > 1 && w[0] == '0' && w[1] >= '0' && w[1] <= '9' {
		return nil, fmt.Errorf("%s is no whole number below 2^64", w)
	}
	return literal{new(big.Int).SetUint64(v)}, nil
}

// call reads the two arguments of a function.
func (p *parser) call(function string) (node, error) {
	if err := p.expect("("); err != nil {
		return nil, err
	}
	a, err := p.sum()
	if err != nil {
		return nil, err
	}
	if err := p.expect(","); err != nil {
		return nil, err
	}
	b, err := p.sum()
	if err != nil {
		return nil, err
	}
	return operation{function, a, b}, p.expect(")")
}
