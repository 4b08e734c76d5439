package main

import (
	"context"
	"fmt"
	"os"
)

func Example_run() {
	for _, faults := range []string{"{}", "{loss: 0.1, duplicate: 0.1, max_delay: 1us}"} {
		if err := run(context.Background(), os.Stdout, faults); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// faults: {}
	//       41.369 µs  2262 primes below 20000
	//   afterwards     gsas: load at 2.0:0x1d000: nothing is allocated there, or not any more
	//   home of node 0: 26 requests, 0 of them by RDMA
	//   home of node 1: 6 requests, 0 of them by RDMA
	//   home of node 2: 24 requests, 1 of them by RDMA
	// faults: {loss: 0.1, duplicate: 0.1, max_delay: 1us}
	//      345.656 µs  2262 primes below 20000
	//   afterwards     gsas: load at 2.0:0x1d000: nothing is allocated there, or not any more
	//   home of node 0: 26 requests, 0 of them by RDMA
	//   home of node 1: 6 requests, 0 of them by RDMA
	//   home of node 2: 24 requests, 1 of them by RDMA
}
