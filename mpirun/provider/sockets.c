// Calls that block on sockets. Programs without MPI agree by sockets beside the
// network. Only one process runs at a time, so the main thread tries, and lets the
// others go on in between, for a virtual time that grows.
#define _GNU_SOURCE
#include "link.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// turn lets others go on. tries counts calls.
static void turn(int *tries)
{
	int e = errno, doubled = *tries < 10 ? *tries : 10;
	link_yield(spinsim_link, WHY_SLEEP, (uint64_t)1000000 << doubled); // 1 µs to 1 ms
	++*tries;
	errno = e;
}

static bool blocks(int fd)
{
	int flags = fcntl(fd, F_GETFL);
	return flags >= 0 && !(flags & O_NONBLOCK);
}

static bool later(void) { return errno == EAGAIN || errno == EWOULDBLOCK; }

// ready returns what poll does, with a time limit in virtual time, picoseconds; below
// 0: none.
static int ready(struct pollfd *list, nfds_t n, int64_t limit)
{
	uint64_t start = spinsim_link->now;
	struct timespec none = {0, 0};
	for (int tries = 0;; turn(&tries)) {
		int got = (int)syscall(SYS_ppoll, list, n, &none, NULL, 0);
		if (got != 0 || (limit >= 0 && spinsim_link->now - start >= (uint64_t)limit))
			return got;
	}
}

// What is below stands before the system's.
#pragma GCC visibility push(default)

ssize_t recvfrom(int fd, void *restrict buf, size_t n, int flags, struct sockaddr *restrict from, socklen_t *restrict size)
{
	static int vain; // tries of a program that tries again itself
	ssize_t had = 0;
	if (!spinsim_inside() || (flags & MSG_DONTWAIT) || !blocks(fd)) {
		had = syscall(SYS_recvfrom, fd, buf, n, flags, from, size);
		if (had < 0 && later() && spinsim_inside() && spinsim_alone())
			turn(&vain);
		else
			vain = 0;
		return had;
	}
	for (int tries = 0;;) {
		ssize_t got = syscall(SYS_recvfrom, fd, (char *)buf + had, n - (size_t)had, flags | MSG_DONTWAIT, from, size);
		if (got < 0 && !later())
			return had > 0 ? had : got;
		if (got > 0)
			had += got;
		if (got == 0 || (got > 0 && (!(flags & MSG_WAITALL) || (size_t)had == n)))
			return had;
		turn(&tries);
	}
}

ssize_t recv(int fd, void *buf, size_t n, int flags) { return recvfrom(fd, buf, n, flags, NULL, NULL); }

ssize_t read(int fd, void *buf, size_t n)
{
	int kind;
	socklen_t size = sizeof kind;
	if (!spinsim_inside() || getsockopt(fd, SOL_SOCKET, SO_TYPE, &kind, &size) != 0)
		return syscall(SYS_read, fd, buf, n);
	return recv(fd, buf, n, 0);
}

int poll(struct pollfd *list, nfds_t n, int timeout)
{
	struct timespec t = {timeout / 1000, timeout % 1000 * 1000000L};
	if (!spinsim_inside() || timeout == 0)
		return (int)syscall(SYS_ppoll, list, n, timeout < 0 ? NULL : &t, NULL, 0);
	return ready(list, n, timeout < 0 ? -1 : timeout * (int64_t)1000000000);
}

int accept4(int fd, struct sockaddr *restrict addr, socklen_t *restrict size, int flags)
{
	if (spinsim_inside() && blocks(fd))
		ready(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, -1);
	return (int)syscall(SYS_accept4, fd, addr, size, flags);
}

int accept(int fd, struct sockaddr *restrict addr, socklen_t *restrict size) { return accept4(fd, addr, size, 0); }

int select(int n, fd_set *restrict r, fd_set *restrict w, fd_set *restrict x, struct timeval *restrict t)
{
	if (!spinsim_inside() || (t && t->tv_sec == 0 && t->tv_usec == 0))
		return (int)syscall(SYS_select, n, r, w, x, t);
	uint64_t start = spinsim_link->now, limit = t ? (uint64_t)t->tv_sec * 1000000000000u + (uint64_t)t->tv_usec * 1000000u : UINT64_MAX;
	fd_set *sets[3] = {r, w, x}, was[3];
	for (int i = 0; i < 3; i++)
		if (sets[i])
			was[i] = *sets[i];
	for (int tries = 0;; turn(&tries)) {
		struct timeval none = {0, 0};
		int got = (int)syscall(SYS_select, n, r, w, x, &none);
		if (got != 0 || spinsim_link->now - start >= limit)
			return got;
		for (int i = 0; i < 3; i++)
			if (sets[i])
				*sets[i] = was[i];
	}
}
