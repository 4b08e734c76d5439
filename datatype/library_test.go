//go:build mpilibrary

package datatype_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"hash/fnv"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/datatype"
	"github.com/spinsim/spinsim/internal/typetest"
)

// program is a set of types in the language of
// scripts/mpi-datatypes/reference.c.
type program struct {
	bytes.Buffer
	numbers map[*datatype.Type]int
}

func (p *program) number(d *datatype.Type) int {
	if n, ok := p.numbers[d]; ok {
		return n
	}
	c, integers, addresses, types := d.Envelope()
	var line string
	if c == datatype.Named {
		line = fmt.Sprintf("named %d", d.Size())
	} else {
		args, err := d.Contents()
		if err != nil {
			panic(err)
		}
		line = fmt.Sprintf("%s %d %d %d", strings.ReplaceAll(c.String(), " ", "-"), integers, addresses, types)
		for _, v := range args.Integers {
			line += fmt.Sprintf(" %d", v)
		}
		for _, v := range args.Addresses {
			line += fmt.Sprintf(" %d", v)
		}
		for _, old := range args.Types {
			line += fmt.Sprintf(" %d", p.number(old))
		}
	}
	n := len(p.numbers)
	p.numbers[d] = n
	fmt.Fprintf(p, "%d %s\n", n, line)
	return n
}

// check adds a query for a type, and returns our own answer.
func (p *program) check(t *testing.T, d *datatype.Type, count int) string {
	low, high := int64(0), int64(0)
	if places := mapOf(d).places(count); len(places) > 0 {
		low, high = min(0, slices.Min(places)), max(0, slices.Max(places)+1)
	}
	memory, stream := make([]byte, high-low), make([]byte, d.Size()*int64(count))
	lb, extent := d.Extent()
	trueLB, trueExtent := d.TrueExtent()
	numbers := fmt.Sprintf("%d %d %d %d %d", d.Size(), lb, extent, trueLB, trueExtent)
	fmt.Fprintf(p, "check %d %d %d %d %s\n", p.number(d), count, -low, len(memory), numbers)
	for i := range memory {
		memory[i] = byte(i*7 + i>>8 + 1)
	}
	require.NoError(t, d.Pack(stream, memory, int(-low), count))
	packed := hash(stream)
	clear(memory)
	for i := range stream {
		stream[i] = byte(i*13 + 5)
	}
	require.NoError(t, d.Unpack(memory, int(-low), stream, count))
	return fmt.Sprintf("%s %016x %016x", numbers, packed, hash(memory))
}

func hash(b []byte) uint64 {
	h := fnv.New64a()
	h.Write(b)
	return h.Sum64()
}

// Types agree with Open MPI: with the program scripts/mpi-datatypes/reference.c
// and the library of mpicc.openmpi, or of $MPICC. MPICH 4.0 differs in one type
// of a hundred. There a bound that was set hides no other (MPI-3.1 §4.1.7), and
// an empty part of an array counts as data.
func TestAgainstLibrary(t *testing.T) {
	compiler := os.Getenv("MPICC")
	if compiler == "" {
		compiler = "mpicc.openmpi"
	}
	binary := filepath.Join(t.TempDir(), "reference")
	out, err := exec.CommandContext(context.Background(), compiler, "-O1", "-Wno-deprecated-declarations", "-o", binary, "../scripts/mpi-datatypes/reference.c").CombinedOutput()
	require.NoError(t, err, "%s", out)
	const batches, each = 25, 200
	random := rapid.Custom(func(t *rapid.T) *datatype.Type { return typetest.Source{Plain: true}.Draw(t, 3) })
	for batch := range batches {
		p := &program{numbers: map[*datatype.Type]int{}}
		var expected []string
		var types []*datatype.Type
		for i := range each {
			d := random.Example(batch*each + i)
			types = append(types, d)
			expected = append(expected, p.check(t, d, i%4))
		}
		command := exec.CommandContext(context.Background(), binary)
		command.Stdin, command.Stderr = &p.Buffer, os.Stderr
		command.Env = append(os.Environ(), "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
		out, err := command.Output()
		require.NoError(t, err)
		s := bufio.NewScanner(bytes.NewReader(out))
		for i := range each {
			require.True(t, s.Scan(), "type %d of batch %d: no answer", i, batch)
			if s.Text() != expected[i] {
				t.Errorf("type %d of batch %d, %v: here %s, library %s", i, batch, describe(types[i]), expected[i], s.Text())
			}
		}
	}
}

// describe returns a type and its parts as text.
func describe(d *datatype.Type) string {
	args, err := d.Contents()
	if err != nil {
		return d.String()
	}
	of := make([]string, len(args.Types))
	for i, old := range args.Types {
		of[i] = describe(old)
	}
	return fmt.Sprintf("%s%v%v{%s}", d, args.Integers, args.Addresses, strings.Join(of, ", "))
}
