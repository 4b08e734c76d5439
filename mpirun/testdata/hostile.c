// A program that does something wrong: hostile DEED RANK STEP SEED FILE. RANK does
// the deed before its STEP of an exchange with its neighbours, or another thread does
// it while that step is in a call, and writes the time of it to FILE.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "../provider/link.h"

enum { STEPS = 12, ROOM = 1 << 18 };

static int rank, ranks, victim, step;
static const char *file;
static char **arguments;
static struct link *region; // that the simulator shares
static unsigned char *in, *out;

static uint64_t state;

static uint64_t drawn(uint64_t n)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (state >> 33) % n;
}

// done_now writes the real time, which the simulator does not answer.
static void done_now(void)
{
	struct timespec t;
	char text[64];
	syscall(SYS_clock_gettime, CLOCK_REALTIME, &t);
	int n = snprintf(text, sizeof text, "%lld\n", (long long)t.tv_sec * 1000000000 + t.tv_nsec);
	int fd = open(file, O_CREAT | O_WRONLY | O_APPEND, 0600);
	if (write(fd, text, (size_t)n) != n)
		abort();
	close(fd);
}

static void find_region(void)
{
	char line[512];
	FILE *f = fopen("/proc/self/maps", "r");
	while (f && fgets(line, sizeof line, f))
		if (strstr(line, "memfd:spinsim"))
			region = (struct link *)strtoul(line, NULL, 16);
	if (f)
		fclose(f);
}

static int socket_of_simulator(void)
{
	for (int fd = 3; fd < 256; fd++) {
		struct sockaddr_un a = {0};
		socklen_t n = sizeof a;
		if (getpeername(fd, (struct sockaddr *)&a, &n) == 0 && a.sun_family == AF_UNIX && !strcmp(a.sun_path, getenv("SPINSIM_LINK")))
			return fd;
	}
	return -1;
}

static void forever(void)
{
	for (;;)
		syscall(SYS_pause);
}

static int connected(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	strcpy(a.sun_path, getenv("SPINSIM_LINK"));
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	return connect(fd, (struct sockaddr *)&a, sizeof a) == 0 ? fd : -1;
}

// Ends.
static void d_kill(void) { kill(getpid(), SIGKILL); }
static void d_segv(void) { *(volatile int *)8 = 1; }
static void d_abort(void) { abort(); }
static void d_exit(void) { exit((int)drawn(3)); }
static void d_exit_now(void) { _exit((int)drawn(3)); }
static void d_mpi_abort(void) { MPI_Abort(MPI_COMM_WORLD, 1 + (int)drawn(9)); }
static void d_stop(void) { kill(getpid(), SIGSTOP); }
static void d_loop(void) { for (volatile int i = 0;; i++); }
static void d_deaf(void)
{
	for (int s = 1; s < 32; s++)
		signal(s, SIG_IGN);
	prctl(PR_SET_PDEATHSIG, 0);
	for (volatile int i = 0;; i++);
}
static void d_exec(void) { execl("/bin/sleep", "sleep", "1000", NULL); }
static void d_exec_true(void) { execl("/bin/true", "true", NULL); }
static void d_again(void)
{
	unsetenv("LD_PRELOAD");
	execv("/proc/self/exe", arguments);
}
static void d_parent(void) { kill(getppid(), SIGKILL); }
static void d_group(void) { kill(0, SIGTERM); }

// Connections.
static void d_close(void) { close(socket_of_simulator()); }
static void d_close_all(void) { close_range(3, ~0u, 0); }
static void d_shutdown(void) { shutdown(socket_of_simulator(), SHUT_RDWR); }
static void d_talk(void)
{
	char text[100000];
	memset(text, 'x', sizeof text);
	send(socket_of_simulator(), text, sizeof text, MSG_DONTWAIT | MSG_NOSIGNAL);
}
static void d_silent(void) { connected(); }
static void d_hello(void)
{
	uint32_t h[4] = {(uint32_t)drawn(4), (uint32_t)drawn(5), (uint32_t)drawn(5), (uint32_t)getpid()};
	int fd = connected();
	if (send(fd, h, 1 + drawn(sizeof h), MSG_NOSIGNAL) < 0)
		return;
}

// Children.
static void d_fork_exits(void) { if (fork() == 0) exit(0); }
static void d_fork_lives(void) { if (fork() == 0) forever(); }
static void d_fork_calls(void)
{
	if (fork() == 0) {
		MPI_Barrier(MPI_COMM_WORLD);
		MPI_Finalize();
		exit(0);
	}
}
static void d_fork_clock(void)
{
	if (fork() == 0) {
		for (int i = 0; i < 100; i++) {
			MPI_Wtime();
			usleep(1);
		}
		exit(0);
	}
}
static void d_fork_and_die(void)
{
	if (fork() == 0)
		forever();
	kill(getpid(), SIGKILL);
}
static void d_daemon(void)
{
	if (fork() == 0) {
		setsid();
		if (fork() == 0) {
			close_range(0, ~0u, 0);
			for (int s = 1; s < 32; s++)
				signal(s, SIG_IGN);
			forever();
		}
		_exit(0);
	}
}
static void d_system(void)
{
	if (system("exit 0"))
		abort();
}

// Memory.
static void d_unmap_in(void) { munmap(in, ROOM); }
static void d_unmap_out(void) { munmap(out, ROOM); }
static void d_protect_in(void) { mprotect(in, ROOM, drawn(2) ? PROT_READ : PROT_NONE); }
static void d_protect_out(void) { mprotect(out, ROOM, PROT_NONE); }
static void d_remap(void) { mmap(in, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0); }
static void d_give_back(void) { madvise(in, ROOM, MADV_DONTNEED); }
static void d_unmap_region(void) { munmap(region, sizeof *region); }
static void d_protect_region(void) { mprotect(region, sizeof *region, PROT_READ); }
static void d_allocate(void)
{
	struct rlimit r = {1u << 30, 1u << 30};
	setrlimit(RLIMIT_AS, &r);
	for (size_t n = 1 << 24; n > 16; n /= 2)
		while (malloc(n))
			;
}

// Limits and rights.
static void d_files(void)
{
	struct rlimit r = {0, 0};
	setrlimit(RLIMIT_NOFILE, &r);
}
static void d_cpu(void)
{
	struct rlimit r = {1, 1};
	setrlimit(RLIMIT_CPU, &r);
	d_loop();
}
static void d_size(void)
{
	struct rlimit r = {0, 0};
	setrlimit(RLIMIT_FSIZE, &r);
}
static void d_undumpable(void)
{
	prctl(PR_SET_DUMPABLE, 0);
	prctl(PR_SET_PTRACER, 0);
	prctl(PR_SET_PDEATHSIG, 0);
}
static void d_environment(void)
{
	clearenv();
	setenv("LD_PRELOAD", "/nothing.so", 1);
}
static void d_alone(void)
{
	cpu_set_t s;
	CPU_ZERO(&s);
	CPU_SET(drawn(2), &s);
	sched_setaffinity(0, sizeof s, &s);
}

// The region.
static uint64_t odd(void)
{
	static const uint64_t values[] = {0, 1, 2, 3, 7, 255, 256, 257, 1024, 1025, 1u << 31, (1u << 31) - 1, UINT32_MAX, UINT64_MAX, UINT64_MAX - 4095, 1ull << 47, 1ull << 63, 1ull << 43};
	return drawn(2) ? values[drawn(sizeof values / sizeof *values)] : state;
}
static void d_turn(void) { atomic_store(&region->turn, (uint32_t)(2 + drawn(1000))); }
static void d_state(void) { region->state = (uint32_t)odd(); }
static void d_posted(void) { region->posted = (uint32_t)odd(); }
static void d_head(void) { region->done_head = (uint32_t)odd(); }
static void d_tail(void) { region->done_tail = (uint32_t)odd(); }
static void d_now(void) { region->now = odd(); }
static void d_used(void) { region->used = odd(), region->timed = 1; }
static void d_identity(void) { region->rank = (int32_t)odd(), region->ranks = (int32_t)odd(), region->pid = (int32_t)odd(); }
static void d_why(void)
{
	region->why = (uint32_t)odd(), region->arg = odd();
	atomic_store(&region->turn, TURN_SIMULATOR);
	syscall(SYS_futex, &region->turn, 1, 1, NULL, NULL, 0);
	while (atomic_load(&region->turn) == TURN_SIMULATOR)
		;
}
static void d_post(void)
{
	struct link_post *p = &region->posts[region->posted++ % LINK_POSTS];
	*p = (struct link_post){.kind = 1 + (uint32_t)drawn(4), .addr = (uint64_t)in, .length = drawn(ROOM), .tag = 1, .context = drawn(2) ? 0 : odd(), .peer = (int32_t)drawn((uint64_t)ranks)};
	switch (drawn(8)) {
	case 0: p->kind = (uint32_t)odd(); break;
	case 1: p->flags = (uint32_t)odd(); break;
	case 2: p->addr = odd(); break;
	case 3: p->length = odd(); break;
	case 4: p->tag = odd(); break;
	case 5: p->peer = (int32_t)odd(); break;
	case 6: p->ignore = odd(); break;
	}
}
static void d_noise(void)
{
	unsigned char *b = (unsigned char *)region;
	for (int i = 0; i < 10000; i++)
		b[drawn(sizeof *region)] = (unsigned char)drawn(256);
}
static void d_noise_below(void)
{
	unsigned char *b = (unsigned char *)region;
	for (size_t i = 0; i < offsetof(struct link, posts); i++)
		b[i] = (unsigned char)drawn(256);
}
static void d_out_of_turn(void)
{
	for (int i = 0; i < 1000; i++) {
		atomic_store(&region->turn, (uint32_t)drawn(2));
		syscall(SYS_futex, &region->turn, 1, 1, NULL, NULL, 0);
	}
}

// MPI.
static void d_flood(void)
{
	for (int i = 0; i < 20000; i++) {
		MPI_Request r;
		MPI_Isend(out, (int)drawn(200), MPI_CHAR, (rank + 1) % ranks, 77, MPI_COMM_WORLD, &r);
	}
}
static void d_receive(void) { MPI_Recv(in, 1, MPI_CHAR, (rank + 1) % ranks, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE); }
static void d_wrong(void) { MPI_Send(out, 1, MPI_CHAR, ranks + 1, 1, MPI_COMM_WORLD); }
static void d_null(void) { MPI_Send(NULL, 1 << 20, MPI_CHAR, (rank + 1) % ranks, 99, MPI_COMM_WORLD); }
static void d_finalize(void)
{
	MPI_Finalize();
	if (drawn(2))
		MPI_Barrier(MPI_COMM_WORLD);
	exit(0);
}
static void d_sleep(void) { sleep(1000000); }
static void d_none(void) {}

static const struct deed {
	const char *name;
	void (*do_it)(void);
} deeds[] = {
#define D(name) {#name, d_##name}
	D(none), D(kill), D(segv), D(abort), D(exit), D(exit_now), D(mpi_abort), D(stop), D(loop), D(deaf), D(exec), D(exec_true), D(again), D(parent), D(group),
	D(close), D(close_all), D(shutdown), D(talk), D(silent), D(hello), D(fork_exits), D(fork_lives), D(fork_calls), D(fork_clock), D(fork_and_die), D(daemon),
	D(system), D(unmap_in), D(unmap_out), D(protect_in), D(protect_out), D(remap), D(give_back), D(unmap_region), D(protect_region), D(allocate), D(files), D(cpu),
	D(size), D(undumpable), D(environment), D(alone), D(turn), D(state), D(posted), D(head), D(tail), D(now), D(used), D(identity), D(why), D(post), D(noise),
	D(noise_below), D(out_of_turn), D(flood), D(receive), D(wrong), D(null), D(finalize), D(sleep),
};

static const struct deed *deed;

static void do_deed(void)
{
	done_now();
	deed->do_it();
}

// within does the deed while the main thread waits in a call.
static void *within(void *unused)
{
	cpu_set_t all;
	memset(&all, 255, sizeof all);
	sched_setaffinity(0, sizeof all, &all);
	while (atomic_load(&region->turn) != TURN_SIMULATOR)
		;
	do_deed();
	return NULL;
}

static void exchanged(int at, int inside)
{
	int n = 1 + (at * 7919 * 37) % ROOM, to = (rank + 1) % ranks, from = (rank + ranks - 1) % ranks, sum = 0;
	MPI_Request r[2];
	memset(out, at + rank, (size_t)n);
	MPI_Irecv(in, n, MPI_CHAR, from, at, MPI_COMM_WORLD, &r[0]);
	MPI_Isend(out, n, MPI_CHAR, to, at, MPI_COMM_WORLD, &r[1]);
	pthread_t t;
	if (rank == victim && at == step) {
		if (!inside)
			do_deed();
		else if (pthread_create(&t, NULL, within, NULL))
			abort();
	}
	MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
	for (int i = 0; i < n; i++)
		if (in[i] != (unsigned char)(at + from)) {
			fprintf(stderr, "rank %d: wrong data\n", rank);
			exit(3);
		}
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (sum != ranks * (ranks - 1) / 2)
		exit(4);
	usleep(10);
}

int main(int argc, char **argv)
{
	if (argc == 1) {
		for (size_t i = 0; i < sizeof deeds / sizeof *deeds; i++)
			puts(deeds[i].name);
		return 0;
	}
	for (size_t i = 0; i < sizeof deeds / sizeof *deeds; i++)
		if (!strcmp(deeds[i].name, argv[1]))
			deed = &deeds[i];
	arguments = argv;
	victim = atoi(argv[2]);
	step = atoi(argv[3]); // 0: before MPI_Init; STEPS+1: after MPI_Finalize; from 100 on: in a call
	state = strtoull(argv[4], NULL, 10);
	file = argv[5];
	int inside = step >= 100;
	step %= 100;
	in = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	out = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	static struct link none;
	region = &none;
	ranks = atoi(getenv("OMPI_COMM_WORLD_SIZE"));
	rank = atoi(getenv("OMPI_COMM_WORLD_RANK"));
	if (step == 0 && rank == victim)
		do_deed();
	MPI_Init(&argc, &argv);
	find_region();
	for (int at = 1; at <= STEPS; at++)
		exchanged(at, inside);
	MPI_Finalize();
	if (step > STEPS && rank == victim)
		do_deed();
	printf("rank %d is right\n", rank);
	return 0;
}
