module github.com/spinsim/spinsim/inet/testdata/netstack

go 1.26.3

require (
	github.com/spinsim/spinsim v0.0.0
	github.com/stretchr/testify v1.12.1
	gvisor.dev/gvisor v0.0.0-20260527191743-a81fd9dd382e
)

require (
	github.com/google/btree v1.1.2 // indirect
	go.yaml.in/yaml/v3 v3.0.6 // indirect
	golang.org/x/exp v0.0.0-20250711185948-6ae5c78190dc // indirect
	golang.org/x/sys v0.50.0 // indirect
	golang.org/x/time v0.15.0 // indirect
)

replace github.com/spinsim/spinsim => ../../..
