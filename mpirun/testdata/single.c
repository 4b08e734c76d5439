// Communicators and nonblocking collectives of one process: they post nothing, and
// are done after a few polls each.
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	int sum = 0;
	for (int i = 0; i < 100; i++) {
		MPI_Comm dup, split;
		MPI_Request r[2];
		int one = 1, got[2] = {0, 0};
		MPI_Comm_dup(MPI_COMM_SELF, &dup);
		MPI_Comm_split(MPI_COMM_SELF, 0, 0, &split);
		for (int k = 0; k < 2; k++)
			MPI_Ialltoall(&one, 1, MPI_INT, &got[k], 1, MPI_INT, k ? dup : split, &r[k]);
		MPI_Wait(&r[0], MPI_STATUS_IGNORE);
		MPI_Waitall(1, &r[1], MPI_STATUSES_IGNORE);
		MPI_Comm_free(&dup);
		MPI_Comm_free(&split);
		sum += got[0] + got[1];
	}
	MPI_Barrier(MPI_COMM_WORLD);
	printf("%d\n", sum);
	MPI_Finalize();
	return 0;
}
