package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/spinsim/spinsim/goal"
	"github.com/spinsim/spinsim/internal/file"
)

func goalMergeCommand() *cobra.Command {
	var out outputFlags
	var place string
	c := &cobra.Command{
		Use:   "merge FILE FILE...",
		Short: "Make one schedule of several jobs on one machine",
		Long: `Merge places the ranks of several schedules on the nodes of one machine, which are the ranks of the new schedule. packed: one job behind the
other. strided: a node for each job in turn. A file has a line for each job, in their order: the nodes of its ranks, between spaces.

Jobs may share nodes, each with its own processors there; they share the network interfaces. Tags and labels are changed then.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return badInput(fmt.Errorf("%d schedules, expected at least two: FILE FILE", len(args)))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			m := newMaking(c, "goal merge")
			if err := m.WithArguments(map[string]string{"place": place}); err != nil {
				return err
			}
			return out.write(c, &m.Record, func() (*goal.Schedule, error) {
				var jobs []*goal.Schedule
				for _, name := range args {
					s, err := readSchedule(m, name)
					if err != nil {
						return nil, err
					}
					jobs = append(jobs, s)
				}
				places, err := placed(m, place, jobs)
				if err != nil {
					return nil, err
				}
				return goal.Merge(jobs, places)
			})
		},
	}
	out.register(c)
	c.Flags().StringVar(&place, "place", "packed", "packed, strided or a `FILE`")
	return c
}

// placed returns the nodes of the ranks of each job.
func placed(m *making, place string, jobs []*goal.Schedule) (places [][]int, err error) {
	switch place {
	case "packed":
		return goal.Packed(jobs), nil
	case "strided":
		return goal.Strided(jobs), nil
	}
	err = m.input(place, func(r io.Reader) error {
		text, err := file.ReadFrom(r, place, file.MaxData)
		if err == nil {
			places, err = parsePlaces(text, place, jobs)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("--place: %w", err)
	}
	return places, nil
}

// parsePlaces reads a line for each job.
func parsePlaces(text []byte, name string, jobs []*goal.Schedule) (places [][]int, err error) {
	in := bufio.NewScanner(bytes.NewReader(text))
	in.Buffer(nil, len(text)+1)
	line := 0
	for in.Scan() {
		line++
		words := strings.Fields(in.Text())
		if len(words) == 0 || words[0][0] == '#' {
			continue
		}
		job := len(places)
		if job == len(jobs) {
			return nil, fmt.Errorf("%s:%d: a line for job %d, expected %d jobs", name, line, job+1, len(jobs))
		}
		if len(words) != jobs[job].Ranks() {
			return nil, fmt.Errorf("%s:%d: %d nodes for job %d, expected %d, one for each of its ranks", name, line, len(words), job+1, jobs[job].Ranks())
		}
		nodes := make([]int, len(words))
		at := make(map[int]int, len(words))
		for rank, word := range words {
			n, err := strconv.Atoi(word)
			if err != nil || n < 0 || n >= goal.MaxNodes {
				return nil, fmt.Errorf("%s:%d: %s, expected a node from 0 to %d", name, line, strconv.Quote(word), goal.MaxNodes-1)
			}
			if first, twice := at[n]; twice {
				return nil, fmt.Errorf("%s:%d: node %d for the ranks %d and %d of job %d, expected one rank of each job at most", name, line, n, first, rank, job+1)
			}
			nodes[rank], at[n] = n, rank
		}
		places = append(places, nodes)
	}
	if err := in.Err(); err != nil {
		return nil, fmt.Errorf("%s:%d: %w", name, line+1, err)
	}
	if len(places) < len(jobs) {
		return nil, fmt.Errorf("%s:%d: the end after %d jobs, expected a line for each of %d", name, line+1, len(places), len(jobs))
	}
	return places, nil
}
