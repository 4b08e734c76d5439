// Package expr evaluates arithmetic that users write in scenarios, and that
// handler modules use for their states. It is exact for whole numbers of any
// size. The caller names the variables.
package expr

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/spinsim/spinsim/internal/size"
)

// Longest is the largest length of an expression in bytes. It bounds the depth
// of parentheses and the size of numbers.
const Longest = 200

// maxShift is the largest distance of <<.
const maxShift = 64

// Expr is a whole number or arithmetic on numbers, for example 8, 0x10, 4KiB,
// "(rank + 1) % ranks", "min(hpus * contexts, 64) * mtu". Operators are + and
// -, and with higher precedence * / % and <<. Functions are min and max of two
// numbers. Division rounds towards zero, and the result of % has the sign of
// the left side. The zero value means that there is no expression.
type Expr struct {
	text string
	root node
}

// Values returns the value of a variable, given its index in the names for
// Parse.
type Values func(variable int) (int64, error)

// IsSet reports whether there is an expression.
func (e Expr) IsSet() bool { return e.root != nil }

// String returns the expression as it was written.
func (e Expr) String() string { return e.text }

// Value evaluates an expression that is set. It fails if at fails, on division
// by zero, and on a shift by less than 0 or more than 64.
func (e Expr) Value(at Values) (*big.Int, error) { return e.root.value(at) }

// Const returns the expression of a number.
func Const(v int64) Expr { return Expr{strconv.FormatInt(v, 10), literal{big.NewInt(v)}} }

// Max returns the expression of the larger of two that are set. Its text may be
// longer than Parse accepts.
func Max(a, b Expr) Expr {
	return Expr{"max(" + a.text + ", " + b.text + ")", operation{"max", a.root, b.root}}
}

// Parse reads an expression with variables of the given names.
func Parse(text string, names []string) (Expr, error) {
	if len(text) > Longest {
		return Expr{}, fmt.Errorf("an expression of %d bytes, expected at most %d", len(text), Longest)
	}
	p := parser{text, names}
	root, err := p.sum()
	if err == nil && p.peek() != "" {
		err = fmt.Errorf("unexpected %q", p.rest)
	}
	if err != nil {
		return Expr{}, fmt.Errorf("%q: %w; expected a whole number such as 8, 0x10 or 4KiB, or + - * / %% << min max and parentheses with %s",
			text, err, strings.Join(names, ", "))
	}
	return Expr{text, root}, nil
}

// node is a part of an expression.
type node interface {
	value(at Values) (*big.Int, error)
}

type literal struct{ v *big.Int }

func (l literal) value(Values) (*big.Int, error) { return l.v, nil }

type variable int

func (v variable) value(at Values) (*big.Int, error) {
	x, err := at(int(v))
	return big.NewInt(x), err
}

type operation struct {
	op          string
	left, right node
}

func (o operation) value(at Values) (*big.Int, error) {
	a, err := o.left.value(at)
	if err != nil {
		return nil, err
	}
	b, err := o.right.value(at)
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

// parser reads an expression from the left.
type parser struct {
	rest  string
	names []string
}

var (
	// everything but words, the longer first
	operators = []string{"<<", "+", "-", "*", "/", "%", "(", ")", ","}
	sums      = []string{"+", "-"}
	products  = []string{"*", "/", "%", "<<"}
)

// peek returns the next operator, the next byte if there is none, "" at the end.
func (p *parser) peek() string {
	p.rest = strings.TrimLeft(p.rest, " \t")
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

func (p *parser) sum() (node, error) { return p.chain(sums, p.product) }

func (p *parser) product() (node, error) { return p.chain(products, p.factor) }

// chain parses parts that operators of equal precedence join, from left to
// right.
func (p *parser) chain(of []string, part func() (node, error)) (node, error) {
	left, err := part()
	for err == nil && slices.Contains(of, p.peek()) {
		op := p.peek()
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
		return r != '_' && r != '.' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
	if n < 0 {
		n = len(p.rest)
	}
	w := p.rest[:n]
	if w == "" {
		return nil, fmt.Errorf("unexpected %q", p.peek())
	}
	p.rest = p.rest[n:]
	if i := slices.Index(p.names, w); i >= 0 {
		return variable(i), nil
	}
	switch {
	case w == "min" || w == "max":
		return p.call(w)
	case w[0] < '0' || w[0] > '9':
		return nil, fmt.Errorf("there is no variable %s", w)
	}
	return number(w)
}

func number(w string) (node, error) {
	if len(w) > 1 && w[0] == '0' && w[1] >= '0' && w[1] <= '9' {
		return nil, fmt.Errorf("%s: a decimal number does not begin with 0", w)
	}
	if v, err := strconv.ParseUint(w, 0, 64); err == nil {
		return literal{new(big.Int).SetUint64(v)}, nil
	}
	bytes, err := size.Parse(w)
	if err != nil {
		return nil, fmt.Errorf("%s is no whole number below 2^64", w)
	}
	return literal{big.NewInt(bytes)}, nil
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
