// Makes datatypes as standard input says and prints what this MPI library makes of them. Each line is
//
//   N KIND integers addresses types: their counts, and then the arguments in the order of MPI_TYPE_GET_CONTENTS
//   check N COUNT AT BYTES numbers   N packed COUNT times from byte AT of a memory of BYTES
//
// where N numbers types from 0; "N named SIZE" is a basic type. check prints size, lower bound, extent, true lower bound and true extent, and
// FNV-1a of the packed stream and of memory that another stream was unpacked into: if those numbers are the expected ones, since memory might
// be too small otherwise.
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { most = 4096, args = 4096 };

static MPI_Datatype types[most];
static int ints[args];
static MPI_Aint addresses[args];
static MPI_Datatype olds[args];

static void fail(const char *why) {
	fprintf(stderr, "reference: %s\n", why);
	exit(1);
}

static void wanted(int got, int want) {
	if (got != want) fail("a broken line");
}

static uint64_t hash(const unsigned char *b, long n) {
	uint64_t h = 14695981039346656037u;
	for (long i = 0; i < n; i++) h = (h ^ b[i]) * 1099511628211u;
	return h;
}

static MPI_Datatype basic(int size) {
	switch (size) {
	case 1: return MPI_BYTE;
	case 2: return MPI_INT16_T;
	case 4: return MPI_INT32_T;
	default: return MPI_INT64_T;
	}
}

static int distribution(int d) { return d == 0 ? MPI_DISTRIBUTE_NONE : d == 1 ? MPI_DISTRIBUTE_BLOCK : MPI_DISTRIBUTE_CYCLIC; }

static int order(int o) { return o ? MPI_ORDER_FORTRAN : MPI_ORDER_C; }

static void make(int id, const char *kind) {
	MPI_Datatype *t = &types[id];
	const int n = ints[0];
	if (!strcmp(kind, "dup")) MPI_Type_dup(olds[0], t);
	else if (!strcmp(kind, "contiguous")) MPI_Type_contiguous(n, olds[0], t);
	else if (!strcmp(kind, "vector")) MPI_Type_vector(n, ints[1], ints[2], olds[0], t);
	else if (!strcmp(kind, "hvector")) MPI_Type_create_hvector(n, ints[1], addresses[0], olds[0], t);
	else if (!strcmp(kind, "indexed")) MPI_Type_indexed(n, ints + 1, ints + 1 + n, olds[0], t);
	else if (!strcmp(kind, "hindexed")) MPI_Type_create_hindexed(n, ints + 1, addresses, olds[0], t);
	else if (!strcmp(kind, "indexed-block")) MPI_Type_create_indexed_block(n, ints[1], ints + 2, olds[0], t);
	else if (!strcmp(kind, "hindexed-block")) MPI_Type_create_hindexed_block(n, ints[1], addresses, olds[0], t);
	else if (!strcmp(kind, "struct")) MPI_Type_create_struct(n, ints + 1, addresses, olds, t);
	else if (!strcmp(kind, "resized")) MPI_Type_create_resized(olds[0], addresses[0], addresses[1], t);
	else if (!strcmp(kind, "subarray"))
		MPI_Type_create_subarray(n, ints + 1, ints + 1 + n, ints + 1 + 2 * n, order(ints[1 + 3 * n]), olds[0], t);
	else if (!strcmp(kind, "darray")) {
		const int dims = ints[2];
		int distributions[16], arguments[16];
		for (int i = 0; i < dims; i++) {
			distributions[i] = distribution(ints[3 + dims + i]);
			arguments[i] = ints[3 + 2 * dims + i] < 0 ? MPI_DISTRIBUTE_DFLT_DARG : ints[3 + 2 * dims + i];
		}
		MPI_Type_create_darray(n, ints[1], dims, ints + 3, distributions, arguments, ints + 3 + 3 * dims, order(ints[3 + 4 * dims]), olds[0], t);
	} else fail("an unknown constructor");
}

static void check(int id, int count, long at, long bytes, const long long *expected) {
	MPI_Datatype t;
	MPI_Type_dup(types[id], &t);
	MPI_Type_commit(&t);
	MPI_Count size, lb, extent, true_lb, true_extent;
	MPI_Type_size_x(t, &size);
	MPI_Type_get_extent_x(t, &lb, &extent);
	MPI_Type_get_true_extent_x(t, &true_lb, &true_extent);
	printf("%lld %lld %lld %lld %lld", (long long)size, (long long)lb, (long long)extent, (long long)true_lb, (long long)true_extent);
	if (size != expected[0] || lb != expected[1] || extent != expected[2] || true_lb != expected[3] || true_extent != expected[4]) {
		printf("\n");
		return;
	}
	const int n = (int)size * count;
	unsigned char *memory = malloc(bytes + 1), *stream = malloc(n + 1);
	for (long i = 0; i < bytes; i++) memory[i] = (unsigned char)(i * 7 + (i >> 8) + 1);
	int position = 0;
	MPI_Pack(memory + at, count, t, stream, n, &position, MPI_COMM_SELF);
	const uint64_t packed = hash(stream, n);
	memset(memory, 0, bytes);
	for (long i = 0; i < n; i++) stream[i] = (unsigned char)(i * 13 + 5);
	position = 0;
	MPI_Unpack(stream, n, &position, memory + at, count, t, MPI_COMM_SELF);
	printf(" %016llx %016llx\n", (unsigned long long)packed, (unsigned long long)hash(memory, bytes));
	fflush(stdout);
	free(memory), free(stream);
	MPI_Type_free(&t);
}

int main(int argc, char **argv) {
	MPI_Init(&argc, &argv);
	char first[64], kind[64];
	while (scanf("%63s", first) == 1) {
		if (!strcmp(first, "check")) {
			int id, count;
			long at, bytes;
			long long expected[5];
			wanted(scanf("%d %d %ld %ld", &id, &count, &at, &bytes), 4);
			for (int i = 0; i < 5; i++) wanted(scanf("%lld", expected + i), 1);
			check(id, count, at, bytes, expected);
			continue;
		}
		const int id = atoi(first);
		if (id < 0 || id >= most) fail("too many types");
		wanted(scanf("%63s", kind), 1);
		if (!strcmp(kind, "named")) {
			int size;
			wanted(scanf("%d", &size), 1);
			MPI_Type_dup(basic(size), &types[id]);
			continue;
		}
		int n[3];
		wanted(scanf("%d %d %d", n, n + 1, n + 2), 3);
		if (n[0] > args || n[1] > args || n[2] > args) fail("too many arguments");
		for (int i = 0; i < n[0]; i++) wanted(scanf("%d", ints + i), 1);
		for (int i = 0; i < n[1]; i++) {
			long a;
			wanted(scanf("%ld", &a), 1);
			addresses[i] = a;
		}
		for (int i = 0; i < n[2]; i++) {
			int old;
			wanted(scanf("%d", &old), 1);
			olds[i] = types[old];
		}
		make(id, kind);
	}
	MPI_Finalize();
	return 0;
}
