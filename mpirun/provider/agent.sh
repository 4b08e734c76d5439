#!/bin/sh
# Launch agent of Open MPI's mpirun: agent.sh HOST COMMAND. Each simulated node has
# a host name of its own, so that its ranks, and no others, count as neighbours.
host=$1
shift
if [ "$(id -u)" = 0 ]; then
	set -- --uts sh -c "hostname $host && exec sh -c \"\$0\"" "$*"
else
	set -- --user --map-current-user --keep-caps --uts sh -c "hostname $host && exec sh -c \"\$0\"" "$*"
fi
exec unshare "$@"
