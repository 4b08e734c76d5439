//go:build !linux

package mpirun

import (
	"context"
	"errors"
)

// Run returns an error: the processes of ranks share memory with the simulator
// as only Linux does.
func (p *Program) Run(context.Context) (Result, error) {
	return Result{}, errors.New("mpirun: MPI programs run on Linux only")
}
