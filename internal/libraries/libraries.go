// Package libraries registers all handler libraries of spinsim. A program imports
// it for that alone.
package libraries

import (
	_ "github.com/spinsim/spinsim/handlers/accumulate"
	_ "github.com/spinsim/spinsim/handlers/allreduce"
	_ "github.com/spinsim/spinsim/handlers/backupring"
	_ "github.com/spinsim/spinsim/handlers/bcast"
	_ "github.com/spinsim/spinsim/handlers/count"
	_ "github.com/spinsim/spinsim/handlers/datatype"
	_ "github.com/spinsim/spinsim/handlers/ftbcast"
	_ "github.com/spinsim/spinsim/handlers/gemm"
	_ "github.com/spinsim/spinsim/handlers/graph"
	_ "github.com/spinsim/spinsim/handlers/kv"
	_ "github.com/spinsim/spinsim/handlers/mailbox"
	_ "github.com/spinsim/spinsim/handlers/matching"
	_ "github.com/spinsim/spinsim/handlers/pagein"
	_ "github.com/spinsim/spinsim/handlers/part"
	_ "github.com/spinsim/spinsim/handlers/pingpong"
	_ "github.com/spinsim/spinsim/handlers/raid5"
	_ "github.com/spinsim/spinsim/handlers/rdma"
	_ "github.com/spinsim/spinsim/handlers/reduction"
	_ "github.com/spinsim/spinsim/handlers/replicate"
	_ "github.com/spinsim/spinsim/handlers/rnr"
	_ "github.com/spinsim/spinsim/handlers/rules"
	_ "github.com/spinsim/spinsim/handlers/scan"
	_ "github.com/spinsim/spinsim/handlers/sparse"
	_ "github.com/spinsim/spinsim/handlers/sum"
	_ "github.com/spinsim/spinsim/handlers/txlog"
	_ "github.com/spinsim/spinsim/handlers/work"
)
