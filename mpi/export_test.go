package mpi

// StatusOf is what the tests read messages on the wire with.
var StatusOf = statusOf
