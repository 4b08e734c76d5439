package scenario

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/sim"
)

// Expr is a whole number, or arithmetic on some that depends on where it is evaluated: "4KiB", "0x10 + rank",
// "(rank + 1) % ranks". It is exact; division rounds towards zero, and the result of % has the sign of the left side.
// The zero value is an absent expression.
type Expr struct {
	text string
	root node
}

// IsSet reports whether there is an expression.
func (e Expr) IsSet() bool { return e.root != nil }

// String is the expression as it was written.
func (e Expr) String() string { return e.text }

// variables are what an expression can name, with the text of the manual.
var variables = []struct{ name, help string }{
	{"rank", "the rank for which the value is computed"},
	{"ranks", "the number of ranks"},
	{"last", "ranks - 1"},
	{"mtu", "bytes of the largest packet"},
	{"hpus", "HPUs of a device"},
	{"contexts", "contexts of an HPU"},
	{"clusters", "clusters of the HPUs"},
	{"i", "in operations: number of the repetition, from 0"},
	{"round", "in the steps of repeat: number of the round, from 0"},
}

// The variables by their place in the list.
const (
	varRank = iota
	varRanks
	varLast
	varMTU
	varHPUs
	varContexts
	varClusters
	varI
	varRound
	numVars
)

// env gives variables their values.
type env struct {
	value [numVars]int64
	known [numVars]bool
}

func newEnv(p *profile.Profile, ranks int) *env {
	e := &env{}
	e.set(varRanks, int64(ranks))
	e.set(varLast, int64(ranks-1))
	e.set(varMTU, int64(p.Fabric.MTU))
	e.set(varHPUs, int64(p.HPU.Cores))
	e.set(varContexts, int64(p.HPU.Contexts))
	e.set(varClusters, int64(max(1, p.HPU.Clusters)))
	return e
}

func (e *env) set(variable int, v int64) { e.value[variable], e.known[variable] = v, true }

// with returns a copy in which a variable has a value.
func (e *env) with(variable int, v int64) *env {
	c := *e
	c.set(variable, v)
	return &c
}

// node is a part of an expression.
type node interface {
	eval(e *env) (*big.Int, error)
}

type literal struct{ v *big.Int }

func (l literal) eval(*env) (*big.Int, error) { return l.v, nil }

type variable int

func (v variable) eval(e *env) (*big.Int, error) {
	if !e.known[v] {
		return nil, fmt.Errorf("%s has no value here", variables[v].name)
	}
	return big.NewInt(e.value[v]), nil
}

type operation struct {
	op          byte
	left, right node
}

func (o operation) eval(e *env) (*big.Int, error) {
	a, err := o.left.eval(e)
	if err != nil {
		return nil, err
	}
	b, err := o.right.eval(e)
	if err != nil {
		return nil, err
	}
	r := new(big.Int)
	switch o.op {
	case '+':
		return r.Add(a, b), nil
	case '-':
		return r.Sub(a, b), nil
	case '*':
		return r.Mul(a, b), nil
	}
	if b.Sign() == 0 {
		return nil, errors.New("division by zero")
	}
	if o.op == '/' {
		return r.Quo(a, b), nil
	}
	return r.Rem(a, b), nil
}

// maxExpr is how many characters an expression may have; it bounds the depth of parentheses and the size of numbers.
const maxExpr = 200

// ParseExpr reads an expression.
func ParseExpr(s string) (Expr, error) {
	if len(s) > maxExpr {
		return Expr{}, fmt.Errorf("an expression of %d characters, expected at most %d", len(s), maxExpr)
	}
	p := parser{rest: s}
	root, err := p.sum()
	if err == nil && p.peek() != 0 {
		err = fmt.Errorf("unexpected %q", p.rest)
	}
	if err != nil {
		return Expr{}, fmt.Errorf("%q: %w; expected a whole number such as 8, 0x10 or 4KiB, or arithmetic (+ - * / %% and parentheses) with %s",
			s, err, variableNames())
	}
	return Expr{text: s, root: root}, nil
}

func variableNames() string {
	names := make([]string, len(variables))
	for i, v := range variables {
		names[i] = v.name
	}
	return strings.Join(names, ", ")
}

// parser reads an expression from the left.
type parser struct{ rest string }

// peek returns the next character that is no space, 0 at the end.
func (p *parser) peek() byte {
	p.rest = strings.TrimLeft(p.rest, " \t")
	if p.rest == "" {
		return 0
	}
	return p.rest[0]
}

func (p *parser) sum() (node, error) { return p.chain("+-", p.product) }

func (p *parser) product() (node, error) { return p.chain("*/%", p.factor) }

// chain reads parts that operators of equal rank join, from left to right.
func (p *parser) chain(operators string, part func() (node, error)) (node, error) {
	left, err := part()
	for err == nil && p.peek() != 0 && strings.IndexByte(operators, p.peek()) >= 0 {
		op := p.rest[0]
		p.rest = p.rest[1:]
		var right node
		right, err = part()
		left = operation{op, left, right}
	}
	return left, err
}

func (p *parser) factor() (node, error) {
	switch p.peek() {
	case 0:
		return nil, errors.New("a number is missing")
	case '-':
		p.rest = p.rest[1:]
		f, err := p.factor()
		return operation{'-', literal{new(big.Int)}, f}, err
	case '(':
		p.rest = p.rest[1:]
		n, err := p.sum()
		if err == nil && p.peek() != ')' {
			err = errors.New("a closing parenthesis is missing")
		}
		if err == nil {
			p.rest = p.rest[1:]
		}
		return n, err
	}
	return p.word()
}

// word reads a number or the name of a variable.
func (p *parser) word() (node, error) {
	n := strings.IndexFunc(p.rest, func(r rune) bool {
		return r != '_' && r != '.' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
	if n < 0 {
		n = len(p.rest)
	}
	w := p.rest[:n]
	p.rest = p.rest[n:]
	switch {
	case w == "":
		return nil, fmt.Errorf("unexpected %q", p.rest[:1])
	case w[0] >= '0' && w[0] <= '9':
		return number(w)
	}
	for i, v := range variables {
		if v.name == w {
			return variable(i), nil
		}
	}
	return nil, fmt.Errorf("there is no variable %s", w)
}

func number(w string) (node, error) {
	if len(w) > 1 && w[0] == '0' && w[1] >= '0' && w[1] <= '9' {
		return nil, fmt.Errorf("%s: a decimal number does not begin with 0", w)
	}
	if v, err := strconv.ParseUint(w, 0, 64); err == nil {
		return literal{new(big.Int).SetUint64(v)}, nil
	}
	size, err := sim.ParseSize(w)
	if err != nil {
		return nil, fmt.Errorf("%s is no whole number below 2^64", w)
	}
	return literal{big.NewInt(int64(size))}, nil
}

// rangeError is a value that does not fit.
func rangeError(v, least, most fmt.Stringer) error {
	return fmt.Errorf("%v, expected %v to %v", v, least, most)
}

func (e Expr) between(at *env, least, most *big.Int) (*big.Int, error) {
	v, err := e.root.eval(at)
	if err == nil && (v.Cmp(least) < 0 || v.Cmp(most) > 0) {
		err = rangeError(v, least, most)
	}
	if err != nil && e.text != fmt.Sprint(v) {
		err = fmt.Errorf("%s: %w", e.text, err)
	}
	return v, err
}

var (
	zero   = new(big.Int)
	maxU64 = new(big.Int).SetUint64(math.MaxUint64)
)

// int evaluates to a number in a range; an absent expression is worth fallback, whatever the range.
func (e Expr) int(at *env, fallback, least, most int64) (int64, error) {
	if !e.IsSet() {
		return fallback, nil
	}
	v, err := e.between(at, big.NewInt(least), big.NewInt(most))
	if err != nil {
		return 0, err
	}
	return v.Int64(), nil
}

// u64 evaluates to 0 to 2^64-1; an absent expression is worth 0.
func (e Expr) u64(at *env) (uint64, error) {
	if !e.IsSet() {
		return 0, nil
	}
	v, err := e.between(at, zero, maxU64)
	if err != nil {
		return 0, err
	}
	return v.Uint64(), nil
}
