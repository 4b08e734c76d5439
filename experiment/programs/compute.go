package programs

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/internal/file"
	"github.com/spinsim/spinsim/internal/provenance"
	"github.com/spinsim/spinsim/mpirun"
	"github.com/spinsim/spinsim/sim"
)

// Values of the axis compute, but for files.
const (
	computeNone   = "none"
	computeFactor = "factor="
	computeCount  = "instructions="
)

// computeOf reads a value of the axis compute.
func computeOf(value string) (c mpirun.Compute, err error) {
	if value == computeNone {
		return c, nil
	}
	if text, is := strings.CutPrefix(value, computeFactor); is {
		if c.Factor, err = strconv.ParseFloat(text, 64); err != nil || !(c.Factor > 0 && c.Factor <= 1e6) {
			err = fmt.Errorf("compute: %q, expected a number above 0, at most 1000000", value)
		}
		return c, err
	}
	if text, is := strings.CutPrefix(value, computeCount); is {
		if c.Instruction, err = sim.ParseTime(text); err != nil || c.Instruction <= 0 || c.Instruction > sim.Millisecond {
			err = fmt.Errorf("compute: %q, expected the time of an instruction, 1ps to 1ms", value)
		}
		return c, err
	}
	if !strings.HasSuffix(value, ".csv") {
		return c, fmt.Errorf("compute: %q, expected none, factor=NUMBER, instructions=TIME or a FILE.csv", value)
	}
	text, err := file.Read(value, file.MaxData)
	if err != nil {
		return c, fmt.Errorf("compute: %w", err)
	}
	c.Regions = make(map[int]sim.Time)
	for i, line := range strings.Split(strings.TrimRight(string(text), "\n"), "\n") {
		left, right, _ := strings.Cut(line, ",")
		level, wrong := strconv.Atoi(strings.TrimSpace(left))
		if i == 0 && names.MatchString(line) {
			continue
		}
		d, err := sim.ParseTime(strings.TrimSpace(right))
		if _, twice := c.Regions[level]; wrong != nil || err != nil || d < 0 || twice {
			return c, fmt.Errorf("compute: %s:%d: %q, expected another level of MPI_Pcontrol and a time, such as 3,250us", value, i+1, line)
		}
		c.Regions[level] = d
	}
	if len(c.Regions) == 0 {
		return c, fmt.Errorf("compute: %s has no lines, expected a level of MPI_Pcontrol and a time, such as 3,250us", value)
	}
	return c, nil
}

// names is a first line with the names of the columns.
var names = regexp.MustCompile(`^[A-Za-z_ ]+,[A-Za-z_ ]+\r?$`)

// tables are the files of a point, for its record.
func tables(p *experiment.Point) []provenance.Input {
	value := p.Text("compute")
	text, err := file.Read(value, file.MaxData)
	if c, wrong := computeOf(value); err != nil || wrong != nil || c.Regions == nil {
		return nil // a file that is gone is an error of the point
	}
	r := provenance.NewReader(bytes.NewReader(text))
	_, _ = io.Copy(io.Discard, r) // from memory
	in, err := r.Input(value)
	if err != nil {
		return nil
	}
	in.Flag = "compute"
	return []provenance.Input{in}
}

// computing describes the cost of computing, for an answer.
func computing(p *experiment.Point) string {
	switch value := p.Text("compute"); {
	case value == computeNone:
		return "in which computing took none"
	case strings.HasPrefix(value, computeFactor):
		return fmt.Sprintf("with %s times this computer's time for computing, which differs from run to run", strings.TrimPrefix(value, computeFactor))
	case strings.HasPrefix(value, computeCount):
		return fmt.Sprintf("with %s for each instruction, whose counts differ a little from run to run", strings.TrimPrefix(value, computeCount))
	default:
		return "with the times of " + value + " for computing"
	}
}
