// Reduces, broadcasts and barriers with every root, of communicators with all ranks
// and without; a broadcast whose ranks have different types; and what no NIC takes.
#include <mpi.h>
#include <stdio.h>

enum { N = 3000 };

static void wrong(const char *what, int root, int i)
{
	printf("%s, root %d, element %d\n", what, root, i);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static void check(MPI_Comm comm)
{
	int rank, ranks, in[N], out[N];
	MPI_Comm_rank(comm, &rank);
	MPI_Comm_size(comm, &ranks);
	for (int root = 0; root < ranks; root++) {
		int mine = rank == root;
		for (int place = 0; place < 2; place++) {
			for (int i = 0; i < N; i++)
				in[i] = out[i] = rank + i;
			MPI_Reduce(place && mine ? MPI_IN_PLACE : in, mine ? out : NULL, N, MPI_INT, MPI_SUM, root, comm);
			for (int i = 0; i < N; i++)
				if (out[i] != (mine ? ranks * i + ranks * (ranks - 1) / 2 : rank + i))
					wrong("reduce", root, i);
		}
		MPI_Reduce(in, out, 1, MPI_INT, MPI_PROD, root, comm);
		for (int i = 0; i < N; i++)
			out[i] = mine ? 7 * i + root : -1;
		MPI_Bcast(out, N, MPI_INT, root, comm);
		MPI_Barrier(comm);
		for (int i = 0; i < N; i++)
			if (out[i] != 7 * i + root)
				wrong("broadcast", root, i);
		MPI_Datatype every;
		MPI_Type_vector(N / 2, 1, 2, MPI_INT, &every);
		MPI_Type_commit(&every);
		for (int i = 0; i < N; i++)
			in[i] = mine ? i : -1;
		if (rank % 2)
			MPI_Bcast(in, 1, every, root, comm);
		else
			MPI_Bcast(in, N / 2, MPI_INT, root, comm);
		for (int i = 0; i < N; i++) {
			int k = rank % 2 ? i / 2 : i, there = rank % 2 ? i % 2 == 0 : i < N / 2;
			if (in[i] != (mine ? i : !there ? -1 : root % 2 ? 2 * k : k))
				wrong("broadcast of types", root, i);
		}
		MPI_Type_free(&every);
		MPI_Bcast(out, 0, MPI_INT, root, comm);
	}
}

int main(int argc, char **argv)
{
	MPI_Comm half, reversed;
	int rank;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
	MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);
	check(MPI_COMM_WORLD);
	check(half);
	check(reversed);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Finalize();
	return 0;
}
