#!/bin/sh
# Launch agent of Open MPI's mpirun: agent.sh HOST COMMAND. Each simulated node has
# a host name of its own, so that its ranks, and no others, count as neighbours. Who
# is in its UTS namespace belongs to the run: the file uts lists them.
host=$1
shift
set -- --uts sh -c "hostname $host && readlink /proc/self/ns/uts >>'${0%/*}/uts' && exec sh -c \"\$0\"" "$*"
[ "$(id -u)" = 0 ] || set -- --user --map-current-user --keep-caps "$@"
exec unshare "$@"
