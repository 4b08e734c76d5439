// One-sided communication of MPI: every call, checked at the memory that it changes.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 1000, BIG = 100000 };

static int rank, ranks;

static void check(int is, const char *what, int i)
{
	if (is)
		return;
	printf("rank %d: %s %d\n", rank, what, i);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static void fence(int *m, MPI_Win w)
{
	static int out[BIG];
	int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
	for (int i = 0; i < BIG; i++)
		out[i] = rank * BIG + i;
	MPI_Win_fence(0, w);
	MPI_Put(out, BIG, MPI_INT, next, 0, BIG, MPI_INT, w);
	MPI_Win_fence(0, w);
	for (int i = 0; i < BIG; i++)
		check(m[i] == before * BIG + i, "put", i);
	MPI_Win_fence(0, w);
	memset(out, 0, sizeof out);
	MPI_Get(out, N, MPI_INT, next, 10, N, MPI_INT, w);
	MPI_Win_fence(0, w);
	for (int i = 0; i < N; i++)
		check(out[i] == rank * BIG + 10 + i, "get", i);
	MPI_Win_fence(0, w);
	for (int i = 0; i < N; i++)
		out[i] = 1 + rank;
	for (int r = 0; r < ranks; r++)
		MPI_Accumulate(out, N, MPI_INT, r, 0, N, MPI_INT, MPI_SUM, w);
	MPI_Win_fence(0, w);
	for (int i = 0; i < N; i++)
		check(m[i] == before * BIG + i + ranks * (ranks + 1) / 2, "accumulate", i);
	MPI_Win_fence(0, w);
}

static void pscw(int *m, MPI_Win w)
{
	MPI_Group all, one;
	int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks, x = 77 + rank;
	MPI_Comm_group(MPI_COMM_WORLD, &all);
	MPI_Group_incl(all, 1, &before, &one);
	MPI_Win_post(one, 0, w);
	MPI_Group_free(&one);
	MPI_Group_incl(all, 1, &next, &one);
	MPI_Win_start(one, 0, w);
	MPI_Put(&x, 1, MPI_INT, next, 5, 1, MPI_INT, w);
	MPI_Win_complete(w);
	MPI_Win_wait(w);
	check(m[5] == 77 + before, "post and start", 0);
	MPI_Group_free(&one);
	MPI_Group_free(&all);
	MPI_Barrier(MPI_COMM_WORLD);
}

static void locks(int *m, MPI_Win w)
{
	int old, one = 1, mine[3] = {rank, rank, rank}, three[3], swapped, zero = 0;
	m[0] = m[1] = 0;
	MPI_Win_sync(w);
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < 5; i++) { // nobody else between get and put
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, w);
		MPI_Get(&old, 1, MPI_INT, 0, 0, 1, MPI_INT, w);
		MPI_Win_flush(0, w);
		old++;
		MPI_Put(&old, 1, MPI_INT, 0, 0, 1, MPI_INT, w);
		MPI_Win_unlock(0, w);
	}
	MPI_Win_lock_all(0, w);
	for (int i = 0; i < 5; i++)
		MPI_Fetch_and_op(&one, &old, MPI_INT, 0, 1, MPI_SUM, w);
	MPI_Win_flush_all(w);
	MPI_Get_accumulate(mine, 3, MPI_INT, three, 3, MPI_INT, (rank + 1) % ranks, 20, 3, MPI_INT, MPI_REPLACE, w);
	MPI_Compare_and_swap(&one, &zero, &swapped, MPI_INT, rank, 30, w);
	MPI_Win_unlock_all(w);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, w);
	check(rank != 0 || m[0] == 5 * ranks, "exclusive lock", m[0]);
	check(rank != 0 || m[1] == 5 * ranks, "fetch and add", m[1]);
	check(m[20] == (rank + ranks - 1) % ranks && m[22] == m[20], "get accumulate", m[20]);
	check((m[30] == 1) == (swapped == 0), "compare and swap", m[30]);
	MPI_Win_unlock(rank, w);
}

int main(int argc, char **argv)
{
	int *m;
	MPI_Win w;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	MPI_Win_allocate(BIG * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &m, &w);
	fence(m, w);
	pscw(m, w);
	locks(m, w);
	MPI_Win_free(&w);
	m = malloc(BIG * sizeof(int));
	MPI_Win_create(m, BIG * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &w);
	fence(m, w);
	locks(m, w);
	MPI_Win_free(&w);
	MPI_Finalize();
	return 0;
}
