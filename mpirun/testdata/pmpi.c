// The calls that Fortran's bindings make, and tools with an MPI_X of their own. Rank 1
// sends only after rank 0 has looked in vain many times.
#include <mpi.h>

int main(int argc, char **argv)
{
	int rank, other, flag, x = 0, y = 0;
	double a = 1, b = 0;
	MPI_Request q;
	PMPI_Init(&argc, &argv);
	PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
	other = 1 - rank;
	for (int i = 0; rank == 0 && i < 100; i++)
		PMPI_Iprobe(other, 1, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
	PMPI_Irecv(&x, 1, MPI_INTEGER, other, 1, MPI_COMM_WORLD, &q);
	for (int i = 0; rank == 0 && i < 100; i++)
		PMPI_Test(&q, &flag, MPI_STATUS_IGNORE);
	for (int i = 0; rank == 0 && i < 100; i++)
		PMPI_Request_get_status(q, &flag, MPI_STATUS_IGNORE);
	if (rank == 1)
		PMPI_Recv(&y, 1, MPI_INTEGER, other, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	PMPI_Send(&other, 1, MPI_INTEGER, other, rank ? 1 : 2, MPI_COMM_WORLD);
	if (rank == 0) {
		PMPI_Wait(&q, MPI_STATUS_IGNORE);
	} else {
		PMPI_Cancel(&q);
		PMPI_Wait(&q, MPI_STATUS_IGNORE);
	}
	PMPI_Pcontrol(7);
	PMPI_Allreduce(&a, &b, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD);
	if (b != 2)
		PMPI_Abort(MPI_COMM_WORLD, 1);
	PMPI_Finalize();
	return 0;
}
