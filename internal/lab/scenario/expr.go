package scenario

import (
	"fmt"
	"math"
	"math/big"

	"github.com/spinsim/spinsim/internal/expr"
	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/profile"
)

// Expr is a whole number, or arithmetic that depends on where it is evaluated:
// "4KiB", "0x10 + rank", "(rank + 1) % ranks". The zero value is an absent
// expression.
type Expr struct{ expr.Expr }

// variables are the names in expressions, with the text of the manual.
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

// env holds the values of variables.
type env struct {
	value [numVars]int64
	known [numVars]bool
	asked *[numVars]bool // whether an expression has read the variable; shared by copies, may be nil
}

// ofDevice are the fields of a profile whose values variables have.
var ofDevice = map[int]string{varMTU: "fabric.mtu", varHPUs: "hpu.cores", varContexts: "hpu.contexts", varClusters: "hpu.clusters"}

// facts are those behind the fields of the profile that expressions have read.
func (e *env) facts() (all used.Set) {
	for variable, path := range ofDevice { //lint:maporder a set has no order
		if e.asked[variable] {
			facts, _ := profile.Facts(path)
			all.Join(facts)
		}
	}
	return all
}

func newEnv(p *profile.Profile, ranks int) *env {
	e := &env{asked: new([numVars]bool)}
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

// of returns the value of a variable, by its place in the list.
func (e *env) of(variable int) (int64, error) {
	if !e.known[variable] {
		return 0, fmt.Errorf("%s has no value here", variables[variable].name)
	}
	if e.asked != nil {
		e.asked[variable] = true
	}
	return e.value[variable], nil
}

// ParseExpr reads an expression.
func ParseExpr(s string) (Expr, error) {
	e, err := expr.Parse(s, variableNames())
	return Expr{e}, err
}

func variableNames() []string {
	names := make([]string, len(variables))
	for i, v := range variables {
		names[i] = v.name
	}
	return names
}

func (e Expr) between(at *env, least, most *big.Int) (*big.Int, error) {
	v, err := e.Value(at.of)
	if err == nil && (v.Cmp(least) < 0 || v.Cmp(most) > 0) {
		err = fmt.Errorf("%v, expected %v to %v", v, least, most)
	}
	if err != nil && e.String() != fmt.Sprint(v) {
		err = fmt.Errorf("%s: %w", e, err)
	}
	return v, err
}

var (
	zero   = new(big.Int)
	maxU64 = new(big.Int).SetUint64(math.MaxUint64)
)

// int evaluates to a number in a range. An absent expression gives fallback,
// which may be outside the range.
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

// u64 evaluates to 0 to 2^64-1. An absent expression gives 0.
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
