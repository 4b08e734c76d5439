// A program that ends, or does not, as its argument says.
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int rank, x = 0;
	char b[100] = "";
	const char *how = argv[1];
	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &x);
	if (x != MPI_THREAD_FUNNELED)
		abort();
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Barrier(MPI_COMM_WORLD);
	if (!strcmp(how, "deadlock"))
		MPI_Recv(&x, 1, MPI_INT, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (!strcmp(how, "kill") && rank == 1)
		raise(SIGKILL);
	if (!strcmp(how, "exit") && rank == 1)
		exit(0);
	if (!strcmp(how, "error") && rank == 1)
		MPI_Send(b, -1, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
	if (!strcmp(how, "endless"))
		for (puts("it goes on"), fflush(stdout);;)
			MPI_Barrier(MPI_COMM_WORLD);
	if (!strcmp(how, "dynamic")) {
		MPI_Win w;
		MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &w);
	}
	if (!strcmp(how, "child") && rank == 1 && !fork()) { // it says of whom it is in no way
		char *arguments[] = {argv[0], "-c", "sleep 1000; :", NULL};
		setsid();
		execve("/bin/sh", arguments, (char *[]){NULL});
	}
	if (!strcmp(how, "abort") && rank == 1)
		MPI_Abort(MPI_COMM_WORLD, 5);
	if (!strcmp(how, "truncate")) {
		if (rank == 1)
			MPI_Send(b, 100, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
		else
			MPI_Recv(b, 10, MPI_CHAR, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	if (!strcmp(how, "clock")) {
		double t = MPI_Wtime();
		while (MPI_Wtime() - t < 1e-3)
			;
		usleep(1000);
	}
	if (!strcmp(how, "test")) {
		MPI_Request r;
		int done = 0;
		MPI_Irecv(&x, 1, MPI_INT, 1 - rank, 1, MPI_COMM_WORLD, &r);
		usleep(10 * rank);
		MPI_Send(&rank, 1, MPI_INT, 1 - rank, 1, MPI_COMM_WORLD);
		while (!done)
			MPI_Test(&r, &done, MPI_STATUS_IGNORE);
		if (x != 1 - rank)
			abort();
	}
	if (!strcmp(how, "mprobe")) { // a claimed message is nobody else's
		MPI_Message m;
		MPI_Status s;
		int first = rank + 10, second = rank + 20, y = 0;
		MPI_Send(&first, 1, MPI_INT, 1 - rank, 1, MPI_COMM_WORLD);
		MPI_Send(&second, 1, MPI_INT, 1 - rank, 1, MPI_COMM_WORLD);
		MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &m, &s);
		MPI_Recv(&y, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Mrecv(&x, 1, MPI_INT, &m, &s);
		if (x != 11 - rank || y != 21 - rank || s.MPI_SOURCE != 1 - rank || s.MPI_TAG != 1)
			abort();
	}
	if (!strcmp(how, "hosts")) { // each rank is alone on its node
		MPI_Comm c;
		char name[MPI_MAX_PROCESSOR_NAME], want[16];
		snprintf(want, sizeof want, "node%d", rank);
		MPI_Get_processor_name(name, &x);
		MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &c);
		MPI_Comm_size(c, &x);
		if (x != 1 || strcmp(name, want))
			abort();
	}
	if (!strcmp(how, "spawn")) {
		MPI_Comm c;
		MPI_Comm_spawn("true", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &c, MPI_ERRCODES_IGNORE);
	}
	if (!strcmp(how, "outside") && rank == 1) { // somebody else's turn will not come
		int p[2];
		if (pipe(p))
			abort();
		alarm(3);
		if (read(p[0], &x, 1))
			abort();
	}
	if (!strcmp(how, "ssend")) {
		MPI_Request r;
		MPI_Irecv(&x, 1, MPI_INT, 1 - rank, 1, MPI_COMM_WORLD, &r);
		MPI_Ssend(&rank, 1, MPI_INT, 1 - rank, 1, MPI_COMM_WORLD);
		MPI_Wait(&r, MPI_STATUS_IGNORE);
		if (x != 1 - rank)
			abort();
	}
	if (!strcmp(how, "cancel")) {
		MPI_Request r;
		MPI_Status s;
		int gone;
		MPI_Irecv(&x, 1, MPI_INT, 1 - rank, 9, MPI_COMM_WORLD, &r);
		MPI_Cancel(&r);
		MPI_Wait(&r, &s);
		MPI_Test_cancelled(&s, &gone);
		if (!gone)
			abort();
	}
	MPI_Finalize();
	return !strcmp(how, "code") ? 7 : 0;
}
