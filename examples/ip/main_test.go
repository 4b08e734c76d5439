package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spinsim/spinsim/exanet/ip"
)

func Example_run() {
	for _, idle := range ip.Idles() {
		if err := run(context.Background(), os.Stdout, idle); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// services: polling
	//   asked at  2.001 ms: 2.019 ms, after 33.0 µs
	//   asked at  4.001 ms: 4.020 ms, after 33.1 µs
	//   asked at  6.001 ms: 6.021 ms, after 34.1 µs
	//   asked at  8.001 ms: 8.018 ms, after 31.0 µs
	//   asked at 10.001 ms: 10.015 ms, after 28.5 µs
	//   asked at 12.001 ms: no answer
	//   asked at 14.001 ms: no answer
	//   asked at 16.001 ms: no answer
	//   asked at 18.001 ms: 18.017 ms, after 32.1 µs
	//   asked at 20.001 ms: 20.015 ms, after 32.6 µs
	//   asked at 22.001 ms: 22.015 ms, after 33.6 µs
	//   asked at 24.001 ms: 24.015 ms, after 34.4 µs
	//   9 packets sent in 9 transfers, 3 dropped; the peer died 1 times and was there 2 times
	// services: sleeping
	//   asked at  2.001 ms: 2.120 ms, after 197.0 µs
	//   asked at  4.001 ms: 4.123 ms, after 199.4 µs
	//   asked at  6.001 ms: 6.126 ms, after 202.4 µs
	//   asked at  8.001 ms: 8.122 ms, after 204.9 µs
	//   asked at 10.001 ms: 10.125 ms, after 207.9 µs
	//   asked at 12.001 ms: no answer
	//   asked at 14.001 ms: no answer
	//   asked at 16.001 ms: no answer
	//   asked at 18.001 ms: 18.144 ms, after 220.4 µs
	//   asked at 20.001 ms: 20.147 ms, after 223.4 µs
	//   asked at 22.001 ms: 22.150 ms, after 226.4 µs
	//   asked at 24.001 ms: 24.153 ms, after 229.4 µs
	//   9 packets sent in 9 transfers, 3 dropped; the peer died 1 times and was there 2 times
}
