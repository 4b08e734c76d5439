// A process whose addresses are the same in each run: times depend on where in
// its page a buffer begins.
//
// Before its main begins, a rank's process starts again without random addresses,
// and with an environment of a fixed size above its stack. MPI_Init leaves a heap
// that depends on real time, on the lengths of process numbers and such, and service
// threads make mappings in any order. So behind it heap and mappings go on at round
// addresses, and nothing before that is given out again.
#define _GNU_SOURCE
#include "link.h"

#include <fcntl.h>
#include <link.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { ROOM = 1 << 16 }; // the environment takes a multiple of it

static size_t size_of(char **list)
{
	size_t n = 0;
	for (; *list; list++)
		n += strlen(*list) + 1;
	return n;
}

static char *heap; // where it began

__attribute__((constructor)) static void again(int argc, char **argv, char **env)
{
	if (!getenv("SPINSIM_LINK") || !getenv("OMPI_COMM_WORLD_RANK"))
		return;
	heap = sbrk(0);
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0); // a large page makes its neighbours present, or not, as the system has room
	int now = personality(0xffffffff); // bash has a getenv of its own, which finds nothing yet
	if (getenv("SPINSIM_ROOM") || (now >= 0 && now & ADDR_NO_RANDOMIZE))
		return;
	if (now < 0 || personality(ADDR_NO_RANDOMIZE) < 0) {
		if (!strcmp(getenv("OMPI_COMM_WORLD_RANK"), "0"))
			perror("spinsim: times may differ from run to run, as addresses are random");
		return;
	}
	static char room[ROOM + 16] = "SPINSIM_ROOM=";
	size_t used = size_of(env) + size_of(argv) + strlen(room) + 1;
	memset(room + strlen(room), '.', ROOM - used % ROOM);
	putenv(room);
	execve("/proc/self/exe", argv, environ);
	perror("spinsim: starting a program again, without random addresses");
	_exit(126);
}

// The chunk above all others grows with the heap. Every chunk that has been freed
// is given out before it.
static char *top(void) { return (char *)sbrk(0) - mallinfo2().keepcost; }

static const size_t header = 2 * sizeof(size_t);

// drain takes all free chunks of a size, and keeps them. Whether it was the top
// that gave the last one shows at its address.
static void drain(size_t size)
{
	for (;;) {
		char *above = top(), *p = malloc(size);
		if (!p)
			return;
		if (p - header != above)
			continue;
		if (size > 4096) // small ones would be kept aside, and not go back to the top
			free(p);
		return;
	}
}

static _Thread_local int ours; // the main thread

static char *heap_end; // nothing below it is freed; NULL: there is no such heap yet

enum { ROUND = 1 << 30, LARGE = 120 << 10 }; // below the size from which chunks are mappings

static void plug(uintptr_t from, uintptr_t to)
{
	if (from < to)
		mmap((void *)from, to - from, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
}

// mappings plugs the holes between libraries and other mappings, so that later
// ones lie below all of them, from a round address down.
static void mappings(void)
{
	static char text[1 << 18];
	size_t n = 0;
	ssize_t more;
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && (more = read(fd, text + n, sizeof text - 1 - n)) > 0)
		n += (size_t)more;
	close(fd);
	text[n] = 0;
	const uintptr_t above = (uintptr_t)heap + ((uintptr_t)1 << 40); // programs and heap are far below
	uintptr_t last = 0;
	for (char *line = text; *line; line = strchr(line, '\n') + 1) {
		char *at, *end = strchr(line, '\n');
		uintptr_t from = strtoul(line, &at, 16), to = strtoul(at + 1, NULL, 16);
		if (!end || memmem(line, (size_t)(end - line), "[stack]", 7))
			break;
		if (from < above)
			continue;
		plug(last ? last : from / ROUND * ROUND - ROUND, from);
		last = to;
	}
}

// thread_locals makes this thread have the thread-local variables of a library.
// They take memory at the first use, which depends on what happened in MPI_Init.
static int thread_locals(struct dl_phdr_info *info, size_t size, void *unused)
{
	(void)unused;
	extern void *__tls_get_addr(size_t at[2]);
	if (size >= sizeof *info && info->dlpi_tls_modid && !info->dlpi_tls_data)
		__tls_get_addr((size_t[]){info->dlpi_tls_modid, 0});
	return 0;
}

void spinsim_heap(void)
{
	dl_iterate_phdr(thread_locals, NULL);
	mappings();
	for (size_t size = LARGE; size > 2048; size -= size / 8)
		drain(size);
	for (size_t size = 2040; size >= 24; size -= 16)
		drain(size);
	size_t rest = mallinfo2().keepcost;
	if (rest > 4 * header && !malloc(rest - 4 * header))
		return;
	char *now = sbrk(0), *next = (char *)(((uintptr_t)now + ROUND - 1) / ROUND * ROUND);
	if (sbrk(next - now) == (void *)-1)
		return;
	ours = 1;
	heap_end = next;
}

extern void __libc_free(void *);
extern void *__libc_realloc(void *, size_t);

int spinsim_before(const void *p) { return heap_end && (const char *)p >= heap && (const char *)p < heap_end; }

// A chunk of malloc has its size before it, with bits that say that it is a mapping
// of its own, or of the heap of another thread. Small chunks stay with the thread
// that frees them.
enum { OWN_MAPPING = 2, OTHER_HEAP = 4, LARGEST_KEPT = 1040 };

// kept says whether memory is never given back: that of the heap of MPI_Init, and
// chunks whose end would change what the main thread gets next, at a time that is
// not the same in each run: a service thread frees one of the main heap, or the
// main thread a small one of a service thread's.
static bool kept(const void *p)
{
	if (!heap_end || !p)
		return false;
	size_t size = ((const size_t *)p)[-1];
	if (ours)
		return spinsim_before(p) || ((size & OTHER_HEAP) && size < LARGEST_KEPT);
	return (const char *)p >= heap && (const char *)p < (const char *)sbrk(0);
}

// adapts says whether to free a chunk would change from which size on later ones
// are mappings, at a time that is not the same in each run.
static bool adapts(const void *p) { return p && heap && (((const size_t *)p)[-1] & OWN_MAPPING) && !(heap_end && ours); }

__attribute__((visibility("default"))) void free(void *p)
{
	if (!kept(p) && !adapts(p))
		__libc_free(p);
}

__attribute__((visibility("default"))) void *realloc(void *p, size_t size)
{
	if (!kept(p))
		return __libc_realloc(p, size);
	size_t had = malloc_usable_size(p);
	void *q = malloc(size);
	if (q)
		memcpy(q, p, had < size ? had : size);
	return q;
}
