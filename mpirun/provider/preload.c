// What a program asks of the system and of MPI, answered from the simulation:
// the time and sleeps of its main thread, the beginning and the end of MPI, and
// the calls that look for completions without waiting for them.
#define _GNU_SOURCE
#include "link.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

extern int spinsim_looking;
extern void spinsim_stepped(void);

// spinsim_inside is whether this thread's time is virtual.
int spinsim_inside(void)
{
	struct link *l = spinsim_link;
	return l && l->state == LINK_RUNNING && syscall(SYS_gettid) == l->pid;
}

#pragma GCC visibility push(default) // what this file defines stands before the system's

static uint64_t virtual_now(void)
{
	link_yield(spinsim_link, WHY_CLOCK, 0);
	return spinsim_link->now;
}

// Second 0 of the run, of clocks that count from the boot of the machine, and of
// those that count from 1970: 2000-01-01. Open MPI takes second 0 for a clock
// that it has not read yet.
enum { MONOTONIC_ZERO = 1, REAL_ZERO = 946684800 };

static uint64_t zero_of(clockid_t id) { return id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE || id == CLOCK_TAI ? REAL_ZERO : MONOTONIC_ZERO; }

int clock_gettime(clockid_t id, struct timespec *t)
{
	if (!spinsim_inside())
		return (int)syscall(SYS_clock_gettime, id, t);
	uint64_t now = virtual_now();
	*t = (struct timespec){(time_t)(zero_of(id) + now / 1000000000000u), (long)(now % 1000000000000u / 1000)};
	return 0;
}

int gettimeofday(struct timeval *restrict t, void *restrict zone)
{
	if (!spinsim_inside())
		return (int)syscall(SYS_gettimeofday, t, zone);
	uint64_t now = virtual_now();
	*t = (struct timeval){(time_t)(REAL_ZERO + now / 1000000000000u), (suseconds_t)(now % 1000000000000u / 1000000)};
	return 0;
}

// A rank that waits spins, so the process has used all of its time.
int getrusage(__rusage_who_t who, struct rusage *r)
{
	int e = (int)syscall(SYS_getrusage, who, r);
	if (e == 0 && spinsim_inside() && who != RUSAGE_CHILDREN) {
		uint64_t now = virtual_now();
		r->ru_utime = (struct timeval){(time_t)(now / 1000000000000u), (suseconds_t)(now % 1000000000000u / 1000000)};
		r->ru_stime = (struct timeval){0, 0};
	}
	return e;
}

clock_t clock(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (clock_t)(t.tv_sec * CLOCKS_PER_SEC + t.tv_nsec / (1000000000 / CLOCKS_PER_SEC));
}

time_t time(time_t *out)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	if (out)
		*out = t.tv_sec;
	return t.tv_sec;
}

int clock_nanosleep(clockid_t id, int flags, const struct timespec *t, struct timespec *left)
{
	if (!spinsim_inside())
		return syscall(SYS_clock_nanosleep, id, flags, t, left) == 0 ? 0 : errno;
	uint64_t d = (uint64_t)t->tv_sec * 1000000000000u + (uint64_t)t->tv_nsec * 1000u, now = 0;
	if (flags & TIMER_ABSTIME)
		now = virtual_now() + zero_of(id) * 1000000000000u;
	if (d > now)
		link_yield(spinsim_link, WHY_SLEEP, d - now);
	return 0;
}

int nanosleep(const struct timespec *t, struct timespec *left)
{
	int e = clock_nanosleep(CLOCK_MONOTONIC, 0, t, left);
	if (e == 0)
		return 0;
	errno = e;
	return -1;
}

int usleep(useconds_t us)
{
	struct timespec t = {us / 1000000, us % 1000000 * 1000};
	return nanosleep(&t, NULL);
}

// After MPI_Finalize has begun nobody waits for anybody: Open MPI's btl/ofi sleeps
// for a second there.
unsigned sleep(unsigned s)
{
	if (spinsim_link && spinsim_link->state == LINK_ENDED)
		return 0;
	struct timespec t = {s, 0};
	return nanosleep(&t, &t) == 0 ? 0 : (unsigned)t.tv_sec;
}

#define REAL(name) \
	static __typeof__(&name) real; \
	if (!real) \
		real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

static void begun(void)
{
	if (!spinsim_link || spinsim_link->state != LINK_STARTING)
		return;
	// Open MPI allocates something at its first look for completions, in MPI_Init or
	// behind it.
	void (*look)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "opal_progress");
	for (int i = 0; look && i < 16; i++)
		look();
	spinsim_heap();
	link_yield(spinsim_link, WHY_INIT, 0);
}

// spinsim_alone is whether the process has no MPI. spinsim_started begins virtual
// time for such a process, when it has an endpoint. It ends with the process.
int spinsim_alone(void)
{
	static int is = -1;
	if (is < 0)
		is = !dlsym(RTLD_NEXT, "MPI_Init");
	return is;
}

void spinsim_started(void)
{
	if (!spinsim_alone() || getpid() != spinsim_link->pid)
		return;
	begun();
}

static void ends(void);

__attribute__((destructor)) static void left(void)
{
	if (spinsim_alone() && spinsim_link && spinsim_link->pid == getpid()) {
		begun();
		ends();
	}
}

static void ends(void)
{
	if (spinsim_link && spinsim_link->state == LINK_RUNNING)
		link_yield(spinsim_link, WHY_FINALIZE, 0);
}

// Each call of MPI is there as MPI_X, and as PMPI_X: that is what Fortran's bindings
// call, and tools that have an MPI_X of their own.
#define HOOK(name, arguments, ...) \
	static int hook_##name(int (*real)(__VA_ARGS__), __VA_ARGS__); \
	int name(__VA_ARGS__) \
	{ \
		REAL(name); \
		return hook_##name arguments; \
	} \
	int P##name(__VA_ARGS__) \
	{ \
		REAL(P##name); \
		return hook_##name arguments; \
	} \
	static int hook_##name(int (*real)(__VA_ARGS__), __VA_ARGS__)

HOOK(MPI_Init, (real, argc, argv), int *argc, char ***argv)
{
	int e = real(argc, argv);
	begun();
	return e;
}

// FUNNELED is MPI_THREAD_FUNNELED. Only the main thread has virtual time, so only
// it may call MPI.
enum { FUNNELED = 1 };

HOOK(MPI_Init_thread, (real, argc, argv, wanted, provided), int *argc, char ***argv, int wanted, int *provided)
{
	int e = real(argc, argv, wanted > FUNNELED ? FUNNELED : wanted, provided);
	begun();
	return e;
}

int MPI_Finalize(void)
{
	REAL(MPI_Finalize);
	ends();
	return real();
}

int PMPI_Finalize(void)
{
	REAL(PMPI_Finalize);
	ends();
	return real();
}

int MPI_Pcontrol(const int level, ...)
{
	if (spinsim_link && spinsim_link->state == LINK_RUNNING)
		link_yield(spinsim_link, WHY_REGION, (uint64_t)(int64_t)level);
	return 0;
}

int PMPI_Pcontrol(const int level, ...) __attribute__((alias("MPI_Pcontrol")));

// Calls that would start processes, or reach others, which are not simulated. They
// end the run.
#define REFUSED(place, c) \
	int c(void) \
	{ \
		if (spinsim_link && spinsim_link->state == LINK_RUNNING) \
			link_yield(spinsim_link, WHY_REFUSED, place); \
		return 1; \
	} \
	int P##c(void) __attribute__((alias(#c)));

REFUSED(0, MPI_Comm_spawn)
REFUSED(1, MPI_Comm_spawn_multiple)
REFUSED(2, MPI_Open_port)
REFUSED(3, MPI_Comm_accept)
REFUSED(4, MPI_Comm_connect)
REFUSED(5, MPI_Comm_join)

// With one rank on a node, the library's way does not end (see refusedCalls).
HOOK(MPI_Win_create_dynamic, (real, info, comm, win), void *info, void *comm, void *win)
{
	if (spinsim_link && spinsim_link->state == LINK_RUNNING)
		link_yield(spinsim_link, WHY_REFUSED, 6);
	return real(info, comm, win);
}

// The NICs may take collectives of all ranks. Communicators, types and operations
// of Open MPI are addresses of its own objects; NULL: the program has no such
// library. Other calls are the library's.
#define OBJECT __attribute__((weak))
extern char ompi_mpi_comm_world OBJECT,
	ompi_mpi_int OBJECT,
	ompi_mpi_int32_t OBJECT,
	ompi_mpi_long OBJECT,
	ompi_mpi_long_long_int OBJECT,
	ompi_mpi_int64_t OBJECT,
	ompi_mpi_float OBJECT,
	ompi_mpi_double OBJECT,
	ompi_mpi_integer OBJECT,
	ompi_mpi_integer4 OBJECT,
	ompi_mpi_integer8 OBJECT,
	ompi_mpi_real OBJECT,
	ompi_mpi_real4 OBJECT,
	ompi_mpi_real8 OBJECT,
	ompi_mpi_dblprec OBJECT,
	ompi_mpi_op_sum OBJECT,
	ompi_mpi_op_min OBJECT,
	ompi_mpi_op_max OBJECT;

struct named {
	const void *object;
	uint32_t number;
};

static uint32_t number_of(const void *object, const struct named *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (object && list[i].object == object)
			return list[i].number;
	return 0;
}

static const struct named types[] = {
	{&ompi_mpi_int, TYPE_INT32}, {&ompi_mpi_int32_t, TYPE_INT32}, {&ompi_mpi_long, TYPE_INT64}, {&ompi_mpi_long_long_int, TYPE_INT64},
	{&ompi_mpi_int64_t, TYPE_INT64}, {&ompi_mpi_float, TYPE_FLOAT32}, {&ompi_mpi_double, TYPE_FLOAT64},
	{&ompi_mpi_integer, TYPE_INT32}, {&ompi_mpi_integer4, TYPE_INT32}, {&ompi_mpi_integer8, TYPE_INT64}, {&ompi_mpi_real, TYPE_FLOAT32},
	{&ompi_mpi_real4, TYPE_FLOAT32}, {&ompi_mpi_real8, TYPE_FLOAT64}, {&ompi_mpi_dblprec, TYPE_FLOAT64},
};
static const struct named operations[] = {{&ompi_mpi_op_sum, OP_SUM}, {&ompi_mpi_op_min, OP_MIN}, {&ompi_mpi_op_max, OP_MAX}};

// Results of MPI_Comm_compare (mpi.h).
enum { MPI_IDENT = 0, MPI_CONGRUENT = 1 };
extern int MPI_Comm_compare(void *a, void *b, int *result) OBJECT;

// all reports whether a communicator has all ranks, in the order of the world.
static bool all(void *comm)
{
	int result = -1;
	return comm == &ompi_mpi_comm_world || (MPI_Comm_compare && MPI_Comm_compare(comm, &ompi_mpi_comm_world, &result) == 0 && result <= MPI_CONGRUENT);
}

// by_nics gives a call to the NICs, and reports whether they have done it.
static bool by_nics(enum link_call call, const void *send, void *receive, uint64_t count, void *type, void *op, int root)
{
	struct link *l = spinsim_link;
	l->collective.send = send == (void *)1 ? 0 : (uint64_t)send; // MPI_IN_PLACE
	l->collective.receive = (uint64_t)receive;
	l->collective.count = count;
	l->collective.type = number_of(type, types, sizeof types / sizeof *types);
	l->collective.op = number_of(op, operations, sizeof operations / sizeof *operations);
	l->collective.call = call;
	l->collective.root = root;
	link_yield(l, WHY_COLLECTIVE, 0);
	if (!l->arg)
		return false;
	void (*look)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "opal_progress");
	while (l->taking)
		look();
	return true;
}

// asked reports whether the NICs may take a call: kind 1 is an allreduce, 2 another.
static bool asked(uint32_t kind, void *comm)
{
	return spinsim_link && spinsim_link->takes >= kind && spinsim_inside() && all(comm);
}

static bool is_rank(int root) { return root >= 0 && root < spinsim_link->ranks; }

HOOK(MPI_Allreduce, (real, send, receive, count, type, op, comm), const void *send, void *receive, int count, void *type, void *op, void *comm)
{
	if (count > 0 && send && asked(1, comm) && by_nics(CALL_ALLREDUCE, send, receive, (uint64_t)count, type, op, 0))
		return 0;
	return real(send, receive, count, type, op, comm);
}

HOOK(MPI_Reduce, (real, send, receive, count, type, op, root, comm), const void *send, void *receive, int count, void *type, void *op, int root, void *comm)
{
	if (count > 0 && send && asked(2, comm) && is_rank(root) && by_nics(CALL_REDUCE, send, receive, (uint64_t)count, type, op, root))
		return 0;
	return real(send, receive, count, type, op, root, comm);
}

HOOK(MPI_Barrier, (real, comm), void *comm)
{
	if (asked(2, comm) && by_nics(CALL_BARRIER, NULL, NULL, 0, NULL, NULL, 0))
		return 0;
	return real(comm);
}

// Ranks of a broadcast may have different types, but all have the same bytes: those
// of a type that may have gaps are packed.
extern int MPI_Type_size(void *type, int *size) OBJECT;
extern int MPI_Pack(const void *in, int count, void *type, void *out, int size, int *at, void *comm) OBJECT;
extern int MPI_Unpack(const void *in, int size, int *at, void *out, int count, void *type, void *comm) OBJECT;

HOOK(MPI_Bcast, (real, data, count, type, root, comm), void *data, int count, void *type, int root, void *comm)
{
	int size = 0, at = 0;
	if (count <= 0 || !asked(2, comm) || !is_rank(root) || MPI_Type_size(type, &size) || size <= 0 || count > INT_MAX / size)
		return real(data, count, type, root, comm);
	bool packed = !number_of(type, types, sizeof types / sizeof *types), mine = spinsim_link->rank == root;
	int e = 0, bytes = count * size;
	void *place = packed ? malloc((size_t)bytes) : data;
	if (!place)
		abort(); // the other ranks wait
	if (packed && mine)
		e = MPI_Pack(data, count, type, place, bytes, &at, comm);
	if (!by_nics(CALL_BCAST, NULL, place, (uint64_t)bytes, NULL, NULL, root))
		e = real(data, count, type, root, comm);
	else if (packed && !mine)
		e = MPI_Unpack(place, bytes, &at, data, count, type, comm);
	if (packed)
		free(place);
	return e;
}

// Open MPI's mpirun, which is to be quiet about ranks that spinsim ends, would drop
// what MPI says of an error that ends the program.
extern int MPI_Error_string(int code, char *text, int *length) OBJECT;

static void fatal(const int *code, const char *call)
{
	char text[512] = ""; // MPI has at most 256
	int length;
	if (code && MPI_Error_string)
		MPI_Error_string(*code, text, &length);
	fprintf(stderr, "spinsim: rank %s: %s: %s\n", getenv("OMPI_COMM_WORLD_RANK"), call ? call : "MPI", text);
}

#define FATAL(name) \
	void name(void *object, int *code, ...) \
	{ \
		static void (*real)(void *, int *, ...); \
		real = (void (*)(void *, int *, ...))dlsym(RTLD_NEXT, #name); \
		va_list more; \
		va_start(more, code); \
		const char *call = va_arg(more, const char *); \
		va_end(more); \
		fatal(code, call); \
		real(object, code, call, NULL); \
	}

FATAL(ompi_mpi_errors_are_fatal_comm_handler)
FATAL(ompi_mpi_errors_are_fatal_file_handler)
FATAL(ompi_mpi_errors_are_fatal_win_handler)

#define LOOKING(call) \
	spinsim_looking++; \
	int e = call; \
	spinsim_looking--; \
	return e

HOOK(MPI_Test, (real, request, flag, status), void *request, int *flag, void *status) { LOOKING(real(request, flag, status)); }
HOOK(MPI_Testall, (real, n, requests, flag, statuses), int n, void *requests, int *flag, void *statuses) { LOOKING(real(n, requests, flag, statuses)); }
HOOK(MPI_Testany, (real, n, requests, index, flag, status), int n, void *requests, int *index, int *flag, void *status) { LOOKING(real(n, requests, index, flag, status)); }
HOOK(MPI_Testsome, (real, n, requests, outcount, indices, statuses), int n, void *requests, int *outcount, int *indices, void *statuses) { LOOKING(real(n, requests, outcount, indices, statuses)); }
HOOK(MPI_Iprobe, (real, source, tag, comm, flag, status), int source, int tag, void *comm, int *flag, void *status) { LOOKING(real(source, tag, comm, flag, status)); }
HOOK(MPI_Improbe, (real, source, tag, comm, flag, message, status), int source, int tag, void *comm, int *flag, void *message, void *status) { LOOKING(real(source, tag, comm, flag, message, status)); }
HOOK(MPI_Request_get_status, (real, request, flag, status), void *request, int *flag, void *status) { LOOKING(real(request, flag, status)); }
HOOK(MPI_Win_test, (real, win, flag), void *win, int *flag) { LOOKING(real(win, flag)); }

// Open MPI registers its state machines while one of them has something to do.
#define STEPPED(name) \
	int name(int (*machine)(void)) \
	{ \
		REAL(name); \
		spinsim_stepped(); \
		return real(machine); \
	}

STEPPED(opal_progress_register)
STEPPED(opal_progress_unregister)

HOOK(MPI_Wait, (real, request, status), void *request, void *status) { spinsim_stepped(); return real(request, status); }
HOOK(MPI_Waitall, (real, n, requests, statuses), int n, void *requests, void *statuses) { spinsim_stepped(); return real(n, requests, statuses); }
HOOK(MPI_Waitany, (real, n, requests, index, status), int n, void *requests, int *index, void *status) { spinsim_stepped(); return real(n, requests, index, status); }
HOOK(MPI_Waitsome, (real, n, requests, outcount, indices, statuses), int n, void *requests, int *outcount, int *indices, void *statuses) { spinsim_stepped(); return real(n, requests, outcount, indices, statuses); }
