// Messages from and to memory that is new, or has been given back: rank 0 prints
// the times of exchanges. The arguments are their number and their bytes.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static char *fresh(size_t n) { return mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }

int main(int argc, char **argv)
{
	int rank, times = atoi(argv[1]), n = atoi(argv[2]);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	char *out = fresh(n), *in = fresh(n);
	memset(out, 'a' + rank, n);
	for (int i = 0; i < times; i++) {
		double t = MPI_Wtime();
		MPI_Sendrecv(out, n, MPI_CHAR, 1 - rank, 1, in, n, MPI_CHAR, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Pcontrol(7);
		t = MPI_Wtime() - t;
		if (rank == 0)
			printf("%.3f\n", t * 1e6);
		for (int k = 0; k < n; k++)
			if (in[k] != 'a' + 1 - rank)
				MPI_Abort(MPI_COMM_WORLD, 1);
		if (i % 2)
			madvise(in, n, MADV_DONTNEED);
	}
	char *zeros = fresh(n); // nobody has written them
	MPI_Sendrecv(zeros, n, MPI_CHAR, 1 - rank, 1, in, n, MPI_CHAR, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	for (int k = 0; k < n; k++)
		if (in[k] != 0)
			MPI_Abort(MPI_COMM_WORLD, 1);
	MPI_Finalize();
	return 0;
}
