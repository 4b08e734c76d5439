//go:build !tinygo

package scan

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"text/scanner"
)

// Field is a column of a table.
type Field struct {
	Name   string // letters, digits and _, a letter first
	Kind   uint8
	Length int // of Bytes
	offset int
}

// Schema is the columns of a table, one behind the other without gaps, little-endian.
type Schema struct {
	fields []Field
	size   int
}

// ErrProgram is wrapped by every error about a predicate.
var ErrProgram = errors.New("predicate")

var kindNames = [kinds]string{"i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f32", "f64", "text"}

// NewSchema checks columns.
func NewSchema(fields ...Field) (*Schema, error) {
	s := &Schema{}
	for i, f := range fields {
		switch {
		case !isName(f.Name) || s.Field(f.Name) != nil:
			return nil, fmt.Errorf("scan: field %d: name %q, expected letters, digits and _, a letter first, and no name twice", i, f.Name)
		case f.Kind >= kinds:
			return nil, fmt.Errorf("scan: field %s: kind %d, expected 0 to %d", f.Name, f.Kind, kinds-1)
		case f.Kind == Bytes && (f.Length < 1 || f.Length > MaxRow):
			return nil, fmt.Errorf("scan: field %s: %d bytes, expected 1 to %d", f.Name, f.Length, MaxRow)
		}
		if f.Kind != Bytes {
			f.Length = int(sizes[f.Kind])
		}
		f.offset = s.size
		s.size += f.Length
		s.fields = append(s.fields, f)
	}
	if s.size < 1 || s.size > MaxRow {
		return nil, fmt.Errorf("scan: rows of %d B, expected 1 to %d", s.size, MaxRow)
	}
	return s, nil
}

func isName(name string) bool {
	for i, r := range name {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (i == 0 || r != '_' && (r < '0' || r > '9')) {
			return false
		}
	}
	return name != ""
}

// Size returns the size of a row, bytes.
func (s *Schema) Size() int { return s.size }

// Field returns a column by name, or nil.
func (s *Schema) Field(name string) *Field {
	for i := range s.fields {
		if s.fields[i].Name == name {
			return &s.fields[i]
		}
	}
	return nil
}

// Offset returns the place of the column in a row, bytes.
func (f *Field) Offset() int { return f.offset }

// typ is the type of an expression.
type typ uint8

const (
	boolean typ = iota
	signed
	unsigned
	floating
	text
	number // a literal without a point: takes the type of the other side
)

var typNames = [...]string{"a truth value", "signed", "unsigned", "floating point", "text", "a number"}

// Compile compiles a predicate such as `id == 100 && (age < 30 || name ==
// "Ada")`. It has comparisons == != < <= > >= of fields, numbers and texts,
// arithmetic + - *, and && || ! with parentheses. Both sides of an operator
// have one type: signed, unsigned or floating point; numbers adapt to the other
// side. Texts can be compared for equality; zeros fill up the shorter one. An
// empty predicate holds for every row. Errors name the column of the text.
func (s *Schema) Compile(predicate string) ([]Instruction, error) {
	if strings.TrimSpace(predicate) == "" {
		return []Instruction{{Op: Const, Value: 1}}, nil
	}
	c := &compiler{schema: s}
	c.scan.Init(strings.NewReader(predicate))
	c.scan.Mode = scanner.ScanIdents | scanner.ScanInts | scanner.ScanFloats | scanner.ScanStrings
	c.scan.Error = func(_ *scanner.Scanner, message string) { c.fail("%s", message) }
	c.next()
	e := c.either(0)
	if c.err == nil && e.is != boolean {
		c.fail("the predicate is %s, expected a truth value", typNames[e.is])
	}
	if c.err == nil && c.token != scanner.EOF {
		c.fail("%q, expected an operator or the end", c.scan.TokenText())
	}
	if c.err != nil {
		return nil, c.err
	}
	if len(e.code) > MaxProgram {
		return nil, fmt.Errorf("%w: %d instructions, at most %d", ErrProgram, len(e.code), MaxProgram)
	}
	if _, ok := Verify(e.code, uint32(s.size)); !ok {
		return nil, fmt.Errorf("%w: nested deeper than %d values", ErrProgram, MaxStack)
	}
	return e.code, nil
}

// compiler parses an expression by descent. After its first error it produces
// nothing.
type compiler struct {
	schema *Schema
	scan   scanner.Scanner
	token  rune
	err    error
}

// expr is an expression: its code, or the value of a number, or the bytes of a
// text.
type expr struct {
	is    typ
	code  []Instruction
	value int64 // number; if big is set, only an unsigned number has the value
	big   bool
	field *Field // text: a field of the table
	text  string // text: a literal
}

const maxNesting = 100

func (c *compiler) next() { c.token = c.scan.Scan() }

func (c *compiler) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("%w: column %d: %s", ErrProgram, c.scan.Column, fmt.Sprintf(format, args...))
	}
}

// double takes an operator of two equal characters.
func (c *compiler) double(r rune) bool {
	if c.token != r {
		return false
	}
	if c.next(); c.token != r {
		c.fail("%q, expected %c%c", c.scan.TokenText(), r, r)
		return false
	}
	c.next()
	return true
}

func (c *compiler) either(depth int) expr {
	e := c.both(depth)
	for c.err == nil && c.double('|') {
		e = c.truth(Or, e, c.both(depth))
	}
	return e
}

func (c *compiler) both(depth int) expr {
	e := c.comparison(depth)
	for c.err == nil && c.double('&') {
		e = c.truth(And, e, c.comparison(depth))
	}
	return e
}

func (c *compiler) truth(op uint8, a, b expr) expr {
	if c.err == nil && (a.is != boolean || b.is != boolean) {
		c.fail("&& and || are for truth values, got %s and %s", typNames[a.is], typNames[b.is])
	}
	return expr{is: boolean, code: append(append(a.code, b.code...), Instruction{Op: op})}
}

// comparison parses a sum, or two with an operator between.
func (c *compiler) comparison(depth int) expr {
	a := c.sum(depth)
	first := c.token
	if c.err != nil || !strings.ContainsRune("=!<>", first) {
		return a
	}
	c.next()
	equal := c.token == '='
	if equal {
		c.next()
	} else if first == '=' || first == '!' {
		c.fail("%q, expected %c=", c.scan.TokenText(), first)
		return a
	}
	b := c.sum(depth)
	if c.err != nil {
		return a
	}
	if a.is == text || b.is == text {
		return c.texts(first, a, b)
	}
	if first == '>' { // a > b is b < a
		a, b = b, a
	}
	t := c.unite(&a, &b)
	if c.err != nil {
		return a
	}
	op := map[rune][3]uint8{'=': {Equal, Equal, EqualF}, '!': {Unequal, Unequal, UnequalF}, '<': {LessI, LessU, LessF}, '>': {LessI, LessU, LessF}}[first][t-signed]
	if equal && (first == '<' || first == '>') {
		op++
	}
	return expr{is: boolean, code: join(a.code, b.code, op)}
}

// join appends an operation on two words. An operation on a field and a
// constant becomes one instruction.
func join(a, b []Instruction, op uint8) []Instruction {
	if len(a) > 0 && len(b) == 1 && b[0].Op == Const && a[len(a)-1].Op == Load {
		last := &a[len(a)-1]
		last.Op, last.Value = OnField+op, b[0].Value
		return a
	}
	return append(append(a, b...), Instruction{Op: op})
}

// unite gives numbers the type of the other side, and returns that type.
func (c *compiler) unite(a, b *expr) typ {
	t := a.is
	if t == number {
		t = b.is
	}
	if t == number {
		t = signed
		if a.big || b.big {
			t = unsigned
		}
	}
	for _, e := range []*expr{a, b} {
		if e.is == number {
			c.adapt(e, t)
		}
	}
	if c.err == nil && (a.is != b.is || t < signed || t > floating) {
		c.fail("%s and %s, expected two of the same: signed, unsigned or floating point", typNames[a.is], typNames[b.is])
	}
	return t
}

// adapt converts a number to a type.
func (c *compiler) adapt(e *expr, t typ) {
	v := uint64(e.value)
	switch {
	case t == signed && e.big, t == unsigned && e.value < 0 && !e.big:
		c.fail("a number that is out of range of the %s one beside it", typNames[t])
	case t == floating && e.big:
		v = math.Float64bits(float64(v))
	case t == floating:
		v = math.Float64bits(float64(e.value))
	}
	*e = expr{is: t, code: []Instruction{{Op: Const, Value: v}}}
}

// texts compares texts for equality, eight bytes at a time.
func (c *compiler) texts(op rune, a, b expr) expr {
	if a.field == nil {
		a, b = b, a
	}
	switch {
	case a.is != text || b.is != text || a.field == nil || b.field != nil:
		c.fail("a text is compared with a field of texts, got %s and %s", typNames[a.is], typNames[b.is])
	case op != '=' && op != '!':
		c.fail("texts are compared by == and !=")
	case len(b.text) > a.field.Length:
		c.fail("a text of %d B, the field %s has %d", len(b.text), a.field.Name, a.field.Length)
	}
	if c.err != nil {
		return a
	}
	e := expr{is: boolean}
	whole := b.text + strings.Repeat("\x00", a.field.Length-len(b.text))
	for at := 0; at < len(whole); at += 8 {
		n := min(8, len(whole)-at)
		w := uint64(0)
		for i := n - 1; i >= 0; i-- {
			w = w<<8 | uint64(whole[at+i])
		}
		e.code = append(e.code, Instruction{Op: OnField + Equal, Kind: Bytes, Offset: uint16(a.field.offset + at), Length: uint32(n), Value: w})
		if at > 0 {
			e.code = append(e.code, Instruction{Op: And})
		}
	}
	if op == '!' {
		e.code = append(e.code, Instruction{Op: Not})
	}
	return e
}

func (c *compiler) sum(depth int) expr {
	e := c.product(depth)
	for c.err == nil && (c.token == '+' || c.token == '-') {
		op := uint8(Add)
		if c.token == '-' {
			op = Sub
		}
		c.next()
		e = c.arithmetic(op, e, c.product(depth))
	}
	return e
}

func (c *compiler) product(depth int) expr {
	e := c.factor(depth)
	for c.err == nil && c.token == '*' {
		c.next()
		e = c.arithmetic(Mul, e, c.factor(depth))
	}
	return e
}

func (c *compiler) arithmetic(op uint8, a, b expr) expr {
	if c.err != nil {
		return a
	}
	t := c.unite(&a, &b)
	if t == floating {
		op += AddF - Add
	}
	return expr{is: t, code: join(a.code, b.code, op)}
}

func (c *compiler) factor(depth int) (e expr) {
	if depth > maxNesting {
		c.fail("nested deeper than %d", maxNesting)
	}
	if c.err != nil {
		return e
	}
	word := c.scan.TokenText()
	switch c.token {
	case '(':
		c.next()
		if e = c.either(depth + 1); c.err == nil && c.token != ')' {
			c.fail("%q, expected )", c.scan.TokenText())
		}
	case '!':
		c.next()
		if e = c.factor(depth + 1); c.err == nil && e.is != boolean {
			c.fail("! is for truth values, got %s", typNames[e.is])
		}
		e.code = append(e.code, Instruction{Op: Not})
		return e
	case '-':
		c.next()
		return c.negative(c.factor(depth + 1))
	case scanner.Int, scanner.Float:
		e = c.number(word)
	case scanner.String:
		t, err := strconv.Unquote(word)
		if err != nil {
			c.fail("%s is no text", word)
		}
		e = expr{is: text, text: t}
	case scanner.Ident:
		e = c.column(word)
	default:
		c.fail("%q, expected a field, a number, a text or (", word)
	}
	c.next()
	return e
}

func (c *compiler) negative(e expr) expr {
	switch {
	case c.err != nil:
	case e.is == number && !e.big:
		e.value = -e.value
	case e.is == number && uint64(e.value) == 1<<63:
		e.big = false
	case e.is == floating && len(e.code) == 1 && e.code[0].Op == Const:
		e.code[0].Value ^= 1 << 63
	case e.is == signed || e.is == floating:
		zero := expr{is: number}
		return c.arithmetic(Sub, zero, e)
	default:
		c.fail("- before %s, expected a signed or floating point value", typNames[e.is])
	}
	return e
}

func (c *compiler) number(word string) expr {
	if v, err := strconv.ParseUint(strings.ToLower(word), 0, 64); err == nil {
		return expr{is: number, value: int64(v), big: v > math.MaxInt64}
	}
	v, err := strconv.ParseFloat(word, 64)
	if err != nil || c.token == scanner.Int {
		c.fail("%s is out of range", word)
	}
	return expr{is: floating, code: []Instruction{{Op: Const, Value: math.Float64bits(v)}}}
}

// column parses a field of the table.
func (c *compiler) column(name string) expr {
	f := c.schema.Field(name)
	if f == nil {
		var names []string
		for i := range c.schema.fields {
			names = append(names, c.schema.fields[i].Name+" "+kindNames[c.schema.fields[i].Kind])
		}
		c.fail("no field %s, expected one of %s", name, strings.Join(names, ", "))
		return expr{}
	}
	t := unsigned
	switch f.Kind {
	case Bytes:
		return expr{is: text, field: f}
	case F32, F64:
		t = floating
	case I8, I16, I32, I64:
		t = signed
	}
	return expr{is: t, code: []Instruction{{Op: Load, Kind: f.Kind, Offset: uint16(f.offset)}}}
}
