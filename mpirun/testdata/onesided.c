// libfabric's one-sided operations, by themselves: MPI only starts the ranks and
// carries addresses and keys. Each rank reaches for the memory of the next.
#include <mpi.h>
#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 1 << 16, MOST = 16 };

static int rank, ranks, next, before;
static struct fid_domain *domain;
static struct fid_ep *ep;
static struct fid_cq *cq;
static struct fid_cntr *writes, *reads;
static fi_addr_t peer;
static char *memory, *local;

// what a rank tells the one before it
static struct {
	char name[MOST];
	uint64_t at, key, read_only, write_only, gone;
} own, other, all[64];

static void failed(int line, long value)
{
	printf("rank %d: line %d: %ld %s\n", rank, line, value, value < 0 ? fi_strerror((int)-value) : "");
	fflush(stdout);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

#define OK(call) do { long v_ = (long)(call); if (v_ != 0) failed(__LINE__, v_); } while (0)
#define IS(condition) do { if (!(condition)) failed(__LINE__, 0); } while (0)

static struct fi_cq_data_entry done;

// complete waits for a completion with some flags.
static void complete(void *context, uint64_t flags, int line)
{
	ssize_t n;
	while ((n = fi_cq_read(cq, &done, 1)) == -FI_EAGAIN)
		;
	if (n != 1)
		failed(line, n);
	if (done.op_context != context || (done.flags & flags) != flags)
		failed(line, (long)done.flags);
}

// refused waits for a failure.
static void refused(void *context, int error, int line)
{
	struct fi_cq_err_entry e = {0};
	ssize_t n;
	while ((n = fi_cq_read(cq, &done, 1)) == -FI_EAGAIN)
		;
	if (n != -FI_EAVAIL || fi_cq_readerr(cq, &e, 0) != 1 || e.op_context != context || e.err != error)
		failed(line, e.err);
}

static uint64_t registered(void *at, size_t n, uint64_t access, struct fid_mr **mr)
{
	OK(fi_mr_reg(domain, at, n, access, 0, 0, 0, mr, NULL));
	return fi_mr_key(*mr);
}

static void opened(int basic)
{
	struct fi_info *hints = fi_allocinfo(), *info;
	struct fid_fabric *fabric;
	struct fid_av *av;
	struct fid_mr *mr;
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_DATA, .wait_obj = FI_WAIT_NONE};
	size_t n = MOST;
	hints->caps = FI_RMA | FI_ATOMIC | FI_MSG;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode = basic ? FI_MR_BASIC : FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_VIRT_ADDR;
	hints->fabric_attr->prov_name = strdup("spinsim");
	OK(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info));
	IS(info->caps & FI_REMOTE_WRITE && info->domain_attr->mr_mode == (basic ? FI_MR_BASIC : FI_MR_PROV_KEY | FI_MR_ALLOCATED));
	OK(fi_fabric(info->fabric_attr, &fabric, NULL));
	OK(fi_domain(fabric, info, &domain, NULL));
	OK(fi_endpoint(domain, info, &ep, NULL));
	OK(fi_cq_open(domain, &attr, &cq, NULL));
	OK(fi_cntr_open(domain, &(struct fi_cntr_attr){0}, &writes, NULL));
	OK(fi_cntr_open(domain, &(struct fi_cntr_attr){0}, &reads, NULL));
	OK(fi_av_open(domain, &(struct fi_av_attr){.type = FI_AV_TABLE}, &av, NULL));
	OK(fi_ep_bind(ep, &av->fid, 0));
	OK(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
	OK(fi_ep_bind(ep, &writes->fid, FI_WRITE));
	OK(fi_ep_bind(ep, &reads->fid, FI_READ));
	OK(fi_enable(ep));
	memory = aligned_alloc(4096, BYTES);
	local = aligned_alloc(4096, BYTES);
	memset(memory, 0, BYTES);
	memset(local, 0, BYTES);
	OK(fi_getname(&ep->fid, own.name, &n));
	own.at = basic ? (uint64_t)memory : 0; // remote addresses are offsets, if they may
	own.read_only = registered(memory, BYTES, FI_REMOTE_READ, &mr);
	own.write_only = registered(memory, BYTES, FI_REMOTE_WRITE, &mr);
	own.gone = registered(memory, BYTES, FI_REMOTE_WRITE | FI_REMOTE_READ, &mr);
	OK(fi_close(&mr->fid));
	own.key = registered(memory, BYTES, FI_REMOTE_WRITE | FI_REMOTE_READ, &mr);
	MPI_Allgather(&own, sizeof own, MPI_BYTE, all, sizeof own, MPI_BYTE, MPI_COMM_WORLD);
	other = all[next];
	IS(fi_av_insert(av, other.name, 1, &peer, 0, NULL) == 1);
}

static void moves(void)
{
	struct iovec parts[2] = {{local, 3}, {local + 100, 5}};
	struct fi_rma_iov there = {other.at + 40000, 8, other.key};
	struct fi_msg_rma m = {parts, NULL, 2, peer, &there, 1, local + 1, 7};
	for (int i = 0; i < BYTES; i++)
		local[i] = (char)(i * 7 + rank);
	OK(fi_write(ep, local, 30001, NULL, peer, other.at + 5, other.key, local));
	complete(local, FI_RMA | FI_WRITE, __LINE__);
	OK(fi_inject_write(ep, "injected", 8, peer, other.at + 31000, other.key));
	OK(fi_writemsg(ep, &m, FI_DELIVERY_COMPLETE | FI_COMPLETION));
	complete(local + 1, FI_RMA | FI_WRITE, __LINE__);
	OK(fi_write(ep, local, 0, NULL, peer, other.at, other.key, local));
	complete(local, FI_RMA | FI_WRITE, __LINE__);
	OK(fi_cntr_wait(writes, 4, -1));
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < 30001; i++)
		IS(memory[5 + i] == (char)(i * 7 + before));
	IS(memory[4] == 0 && memory[30006] == 0 && !memcmp(memory + 31000, "injected", 9));
	for (int i = 0; i < 8; i++)
		IS(memory[40000 + i] == (char)((i < 3 ? i : 97 + i) * 7 + before));
	OK(fi_read(ep, local + 1000, 20000, NULL, peer, other.at + 5, other.key, local));
	complete(local, FI_RMA | FI_READ, __LINE__);
	for (int i = 0; i < 20000; i++)
		IS(local[1000 + i] == (char)(i * 7 + rank));
	OK(fi_readmsg(ep, &m, FI_COMPLETION));
	complete(local + 1, FI_RMA | FI_READ, __LINE__);
	IS(local[102] == (char)(102 * 7 + rank) && fi_cntr_read(reads) == 2);
	MPI_Barrier(MPI_COMM_WORLD);
	OK(fi_writedata(ep, local, 9, NULL, 4711 + rank, peer, other.at + 50000, other.key, local));
	for (int i = 0; i < 2; i++) { // its own, and that of the rank before
		ssize_t n;
		while ((n = fi_cq_read(cq, &done, 1)) == -FI_EAGAIN)
			;
		IS(n == 1);
		if (done.flags & FI_REMOTE_CQ_DATA)
			IS(done.flags & FI_REMOTE_WRITE && done.data == 4711u + before && memory[50000] == (char)before);
		else
			IS(done.op_context == local);
	}
	MPI_Barrier(MPI_COMM_WORLD);
}

static void atomics(void)
{
	int32_t *a = (int32_t *)memory, two[2] = {rank + 1, 10}, old[2] = {0}, compare[2] = {0};
	double *d = (double *)(memory + 64), x = 0.5, was;
	uint64_t at = other.at;
	size_t count;
	a[0] = a[1] = 100;
	a[2] = 5;
	d[0] = 2;
	MPI_Barrier(MPI_COMM_WORLD);
	OK(fi_atomic(ep, two, 2, NULL, peer, at, other.key, FI_INT32, FI_SUM, two));
	complete(two, FI_ATOMIC | FI_WRITE, __LINE__);
	OK(fi_inject_atomic(ep, two, 1, peer, at, other.key, FI_INT32, FI_SUM));
	OK(fi_fetch_atomic(ep, two, 2, NULL, old, NULL, peer, at, other.key, FI_INT32, FI_MAX, old));
	complete(old, FI_ATOMIC | FI_READ, __LINE__);
	IS(old[0] == 100 + 2 * (rank + 1) && old[1] == 110);
	OK(fi_fetch_atomic(ep, NULL, 1, NULL, old, NULL, peer, at + 8, other.key, FI_INT32, FI_ATOMIC_READ, old));
	complete(old, FI_ATOMIC | FI_READ, __LINE__);
	IS(old[0] == 5);
	OK(fi_atomic(ep, two, 1, NULL, peer, at + 8, other.key, FI_INT32, FI_ATOMIC_WRITE, two));
	complete(two, FI_ATOMIC | FI_WRITE, __LINE__);
	OK(fi_fetch_atomic(ep, &x, 1, NULL, &was, NULL, peer, at + 64, other.key, FI_DOUBLE, FI_PROD, &x));
	complete(&x, FI_ATOMIC | FI_READ, __LINE__);
	IS(was == 2);
	compare[0] = 0;   // differs
	compare[1] = 110; // agrees
	OK(fi_compare_atomic(ep, two, 2, NULL, compare, NULL, old, NULL, peer, at, other.key, FI_INT32, FI_CSWAP, old));
	complete(old, FI_ATOMIC | FI_READ, __LINE__);
	IS(old[0] == 100 + 2 * (rank + 1) && old[1] == 110);
	MPI_Barrier(MPI_COMM_WORLD);
	IS(a[0] == 100 + 2 * (before + 1) && a[1] == 10 && a[2] == before + 1 && d[0] == 1);
	OK(fi_atomicvalid(ep, FI_INT64, FI_SUM, &count));
	IS(count == 512);
	OK(fi_compare_atomicvalid(ep, FI_UINT64, FI_MSWAP, &count));
	IS(fi_atomicvalid(ep, FI_DOUBLE, FI_BOR, &count) == -FI_EOPNOTSUPP && fi_atomicvalid(ep, FI_INT8, FI_CSWAP, &count) == -FI_EOPNOTSUPP);
	MPI_Barrier(MPI_COMM_WORLD);
}

static void wrong(void)
{
	char before_it = memory[BYTES - 1];
	uint64_t key = other.key;
	int32_t x = 1, old;
	OK(fi_write(ep, local, 8, NULL, peer, other.at, 999999, local));
	refused(local, FI_EKEYREJECTED, __LINE__);
	OK(fi_write(ep, local, 8, NULL, peer, other.at, other.gone, local));
	refused(local, FI_EKEYREJECTED, __LINE__);
	OK(fi_write(ep, local, 8, NULL, peer, other.at + BYTES - 7, key, local));
	refused(local, FI_EKEYREJECTED, __LINE__);
	OK(fi_read(ep, local, 8, NULL, peer, other.at - 1, key, local));
	refused(local, FI_EKEYREJECTED, __LINE__);
	OK(fi_read(ep, local, BYTES, NULL, peer, other.at + 1, key, local));
	refused(local, FI_EKEYREJECTED, __LINE__);
	OK(fi_read(ep, local, 8, NULL, peer, other.at ? 0 : BYTES, key, local));
	refused(local, FI_EKEYREJECTED, __LINE__);
	OK(fi_write(ep, local, 8, NULL, peer, other.at, other.read_only, local));
	refused(local, FI_EACCES, __LINE__);
	OK(fi_read(ep, local, 8, NULL, peer, other.at, other.write_only, local));
	refused(local, FI_EACCES, __LINE__);
	OK(fi_fetch_atomic(ep, &x, 1, NULL, &old, NULL, peer, other.at, other.write_only, FI_INT32, FI_SUM, &x));
	refused(&x, FI_EACCES, __LINE__);
	OK(fi_inject_write(ep, local, 8, peer, other.at, 999999)); // it has no completion, but a failure
	refused(NULL, FI_EKEYREJECTED, __LINE__);
	IS(fi_write(ep, local, 8, NULL, peer + 1, other.at, key, local) == -FI_EINVAL);
	IS(fi_cntr_readerr(writes) == 5 && fi_cntr_readerr(reads) == 5);
	MPI_Barrier(MPI_COMM_WORLD);
	IS(memory[BYTES - 1] == before_it);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	next = (rank + 1) % ranks;
	before = (rank + ranks - 1) % ranks;
	opened(argc > 1);
	moves();
	atomics();
	wrong();
	MPI_Finalize();
	return 0;
}
