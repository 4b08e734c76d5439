// Allreduce of every type and operation, of communicators with all ranks and
// without, in place and not, and of what no NIC takes. Values are whole numbers.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 300 };

#define CHECK(type, mpi) \
	for (int o = 0; o < 4; o++) \
		for (int place = 0; place < 2; place++) { \
			type a[N], b[N]; \
			for (int i = 0; i < N; i++) \
				a[i] = b[i] = (type)(rank + i % 7 + 1); \
			int e = place ? MPI_Allreduce(MPI_IN_PLACE, b, N, mpi, ops[o], comm) : MPI_Allreduce(a, b, N, mpi, ops[o], comm); \
			for (int i = 0; i < N; i++) { \
				double want = o == 3 ? 1 : 0, x; \
				for (int r = 0; r < ranks; r++) { \
					x = of[r] + i % 7 + 1; \
					want = o == 0 ? want + x : o == 1 ? (r && want < x ? want : x) : o == 2 ? (r && want > x ? want : x) : want * x; \
				} \
				if (e || (double)b[i] != (double)(type)want) { \
					printf("%s, operation %d, element %d: %g, expected %g\n", #type, o, i, (double)b[i], want); \
					MPI_Abort(MPI_COMM_WORLD, 1); \
				} \
			} \
		}

static void check(MPI_Comm comm)
{
	int world, rank, ranks, of[64];
	MPI_Op ops[] = {MPI_SUM, MPI_MIN, MPI_MAX, MPI_PROD};
	MPI_Comm_rank(MPI_COMM_WORLD, &world);
	rank = world;
	MPI_Comm_size(comm, &ranks);
	MPI_Allgather(&world, 1, MPI_INT, of, 1, MPI_INT, comm);
	CHECK(int, MPI_INT)
	CHECK(long, MPI_LONG)
	CHECK(float, MPI_FLOAT)
	CHECK(double, MPI_DOUBLE)
	CHECK(short, MPI_SHORT)
}

// A rank in an allreduce still does what its peers need before they come there, and
// a sum may have more than the largest number.
static void meanwhile(int rank)
{
	int one = 1, both[2] = {0, 0}, sum, ranks, *count;
	float large = rank % 2 ? -1e38f : 1e38f, most = 3e38f;
	MPI_Win win;
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	MPI_Win_allocate(sizeof *count, sizeof *count, MPI_INFO_NULL, MPI_COMM_WORLD, &count, &win);
	*count = 0;
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank) {
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
		MPI_Accumulate(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, win);
		MPI_Win_unlock(0, win);
	}
	MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
	if (sum != ranks || *count != (rank ? 0 : ranks - 1))
		MPI_Abort(MPI_COMM_WORLD, 2);
	MPI_Win_unlock(rank, win);
	MPI_Win_free(&win);
	MPI_Allreduce(MPI_IN_PLACE, &large, 1, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
	MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
	if (large != 0 || most < 3.4e38f)
		MPI_Abort(MPI_COMM_WORLD, 3);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	if (MPI_Allreduce(both, both, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS)
		MPI_Abort(MPI_COMM_WORLD, 4);
}

int main(int argc, char **argv)
{
	MPI_Comm again, half, reversed;
	int rank;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_dup(MPI_COMM_WORLD, &again);
	MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
	MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);
	check(MPI_COMM_WORLD);
	check(again);
	check(half);
	check(reversed);
	meanwhile(rank);
	MPI_Finalize();
	return 0;
}
