#define _GNU_SOURCE
#include "link.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

struct link *spinsim_link;

// The connection stays open: its end tells the simulator that the process is
// gone.
static int connection = -1;

// ending tells the simulator the status of the process. Children are not it.
static pid_t own;
static __thread int main_thread;

static void ending(int status, void *unused)
{
	if (getpid() == own && write(connection, &status, sizeof status) < 0)
		return; // the simulator is gone
}

// An abort of MPI's is the end of this process before it is that of others, so that
// the simulator names the right one.
__attribute__((visibility("default"))) int PMIx_Abort(int status, const char *text, void *ranks, size_t count)
{
	ending(status, NULL);
	_exit(status);
}

// A child does not take part: neither its clocks nor its calls may look as if they
// were its parent's.
static void forked(void)
{
	spinsim_link = NULL;
	close(connection);
}

// hello is what a process says first.
struct hello {
	uint32_t version;
	int32_t rank, ranks, pid;
};

static int connected(const char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof addr.sun_path) {
		errno = ENAMETOOLONG;
		return -1;
	}
	strcpy(addr.sun_path, path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&addr, sizeof addr) != 0) {
		close(fd);
		return -1;
	}
	return fd;
}

// received returns the file that comes over a connection, or -1.
static int received(int fd)
{
	char byte;
	struct iovec iov = {&byte, 1};
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
	ssize_t n;
	do
		n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	struct cmsghdr *c = n == 1 ? CMSG_FIRSTHDR(&msg) : NULL;
	if (!c || c->cmsg_type != SCM_RIGHTS) {
		errno = EPROTO;
		return -1;
	}
	int file;
	memcpy(&file, CMSG_DATA(c), sizeof file);
	return file;
}

// preloaded says whether what this library defines stands before the system's.
static int preloaded(void)
{
	Dl_info used, own;
	void *clock = dlsym(RTLD_DEFAULT, "clock_gettime");
	return clock && dladdr(clock, &used) && dladdr(&connection, &own) && used.dli_fbase == own.dli_fbase;
}

struct link *link_open(void)
{
	const char *path = getenv("SPINSIM_LINK"), *rank = getenv("OMPI_COMM_WORLD_RANK"), *ranks = getenv("OMPI_COMM_WORLD_SIZE");
	if (spinsim_link || !path || !rank || !ranks)
		return spinsim_link;
	if (!preloaded()) { // nobody would say when MPI_Init has ended
		fprintf(stderr, "spinsim: rank %s runs without the LD_PRELOAD that spinsim has given it: is it a setuid program, or is there a script that clears the environment?\n", rank);
		_exit(1);
	}
	struct hello h = {LINK_VERSION, atoi(rank), atoi(ranks), getpid()};
	int fd = connected(path);
	if (fd < 0)
		return NULL;
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); // where only ancestors may reach for memory
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);          // nobody else would end a rank that waits for its turn
	int file = write(fd, &h, sizeof h) == sizeof h ? received(fd) : -1;
	void *m = file < 0 ? MAP_FAILED : mmap(NULL, sizeof(struct link), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (file >= 0)
		close(file);
	if (m == MAP_FAILED) {
		close(fd);
		return NULL;
	}
	struct link *l = m;
	if (l->version != LINK_VERSION || l->size != sizeof *l) {
		munmap(m, sizeof *l);
		close(fd);
		errno = EPROTO;
		return NULL;
	}
	madvise(m, sizeof *l, MADV_DONTFORK);
	pthread_atfork(NULL, NULL, forked);
	own = getpid();
	main_thread = syscall(SYS_gettid) == own;
	on_exit(ending, NULL);
	connection = fd;
	return spinsim_link = l;
}

static long futex(_Atomic uint32_t *word, int op, uint32_t value)
{
	return syscall(SYS_futex, word, op, value, NULL, NULL, 0);
}

// own_time is the time that the main thread has run, without what the system
// did for it while it waited for its turn.
static uint64_t own_time(void)
{
	struct timespec t;
	syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void link_yield(struct link *l, enum link_why why, uint64_t arg)
{
	if (!main_thread) { // it would take the turn of the main one
		fprintf(stderr, "spinsim: a second thread calls MPI, which provides MPI_THREAD_FUNNELED at most\n");
		ending(1, NULL);
		_exit(1);
	}
	static uint64_t began; // when the process's turn began
	if (l->timed)
		l->used += own_time() - began;
	l->why = why;
	l->arg = arg;
	atomic_store(&l->turn, TURN_SIMULATOR);
	futex(&l->turn, FUTEX_WAKE, 1);
	while (atomic_load(&l->turn) != TURN_PROCESS)
		futex(&l->turn, FUTEX_WAIT, TURN_SIMULATOR);
	if (l->timed)
		began = own_time();
}

uint32_t link_posted;

struct link_post *link_post(struct link *l)
{
	link_posted++;
	if (l->posted == LINK_POSTS) {
		spinsim_started();
		link_yield(l, WHY_FULL, 0);
	}
	struct link_post *p = &l->posts[l->posted++];
	memset(p, 0, offsetof(struct link_post, inlined));
	return p;
}
