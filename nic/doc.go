// Package nic describes a programmable NIC: what a profile says of its pipelines ([Spec]), its handler processing units ([HPUSpec]) and
// the limits of its Portals interfaces ([LimitsSpec]).
package nic
