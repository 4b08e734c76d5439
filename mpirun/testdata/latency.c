// osu_latency's loop, for sizes that double.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
	int rank;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	char *out = aligned_alloc(4096, 1 << 20), *in = aligned_alloc(4096, 1 << 20); // as in OSU
	memset(out, 'a' + rank, 1 << 20);
	for (int n = 1; n <= 1 << 14; n *= 2) {
		double t = 0;
		memset(in, 0, n);
		for (int i = -5; i < 20; i++) {
			if (i == 0)
				t = MPI_Wtime();
			if (rank == 0)
				MPI_Send(out, n, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
			MPI_Recv(in, n, MPI_CHAR, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			if (rank == 1)
				MPI_Send(out, n, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
		}
		t = MPI_Wtime() - t;
		for (int i = 0; i < n; i++)
			if (in[i] != 'a' + 1 - rank)
				MPI_Abort(MPI_COMM_WORLD, 1);
		if (rank == 0)
			printf("%d %.4f\n", n, t * 1e6 / 40);
	}
	MPI_Finalize();
	return 0;
}
