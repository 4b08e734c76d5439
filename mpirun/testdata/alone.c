// A program without MPI: two processes, which agree by a socket, and then use what
// else the network has. Process 0 receives.
#include <arpa/inet.h>
#include <poll.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static struct fid_ep *ep;
static struct fid_cq *sends, *receives;
static struct fid_cntr *came;
static fi_addr_t peer;
static int rank, s;

#define IS(condition) do { if (!(condition)) { printf("rank %d: line %d\n", rank, __LINE__); exit(1); } } while (0)

static struct fi_cq_tagged_entry done;

static void next(struct fid_cq *cq)
{
	ssize_t n;
	while ((n = fi_cq_read(cq, &done, 1)) == -FI_EAGAIN)
		;
	IS(n == 1);
}

// in turn: the other process has come as far
static void meet(void)
{
	char c = 'x';
	IS(write(s, &c, 1) == 1 && read(s, &c, 1) == 1);
}

static void connected(int port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
	int on = 1, l = socket(AF_INET, SOCK_STREAM, 0);
	if (rank == 0) {
		setsockopt(l, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
		IS(bind(l, (struct sockaddr *)&a, sizeof a) == 0 && listen(l, 1) == 0);
	}
	fi_enable(ep); // virtual time begins: the accept below must not keep the turn
	if (rank == 0) {
		struct pollfd p = {l, POLLIN, 0};
		IS(poll(&p, 1, -1) == 1 && (s = accept(l, NULL, NULL)) >= 0);
	} else {
		usleep(100);
		while (connect(l, (struct sockaddr *)&a, sizeof a) != 0)
			usleep(10);
		s = l;
	}
}

static void opened(int port)
{
	struct fi_info *hints = fi_allocinfo(), *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_TAGGED};
	char name[16], other[16];
	size_t n = sizeof name;
	hints->caps = FI_TAGGED | FI_MSG | FI_MULTI_RECV;
	hints->ep_attr->type = FI_EP_RDM;
	hints->fabric_attr->prov_name = strdup("spinsim");
	IS(fi_getinfo(FI_VERSION(1, 17), "nobody", NULL, 0, hints, &info) == -FI_ENODATA);
	IS(fi_getinfo(FI_VERSION(1, 17), rank ? "rank0" : "rank1", NULL, 0, hints, &info) == 0 && info->dest_addrlen == sizeof other);
	IS(fi_fabric(info->fabric_attr, &fabric, NULL) == 0 && fi_domain(fabric, info, &domain, NULL) == 0);
	IS(fi_endpoint(domain, info, &ep, NULL) == 0);
	IS(fi_cq_open(domain, &attr, &sends, NULL) == 0 && fi_cq_open(domain, &attr, &receives, NULL) == 0);
	IS(fi_cntr_open(domain, &(struct fi_cntr_attr){0}, &came, NULL) == 0);
	IS(fi_av_open(domain, &(struct fi_av_attr){.type = FI_AV_MAP}, &av, NULL) == 0);
	IS(fi_ep_bind(ep, &av->fid, 0) == 0 && fi_ep_bind(ep, &sends->fid, FI_TRANSMIT) == 0 && fi_ep_bind(ep, &receives->fid, FI_RECV) == 0);
	IS(fi_ep_bind(ep, &came->fid, FI_RECV) == 0);
	connected(port);
	IS(fi_getname(&ep->fid, name, &n) == 0 && write(s, name, n) == (ssize_t)n && recv(s, other, n, MSG_WAITALL) == (ssize_t)n);
	IS(!memcmp(other, info->dest_addr, n) && fi_av_insert(av, other, 1, &peer, 0, NULL) == 1);
}

static void receiver(void)
{
	static char several[200], a[3], b[4];
	struct iovec pieces[2] = {{a, 3}, {b, 4}};
	struct iovec half = {several, 100};
	struct fi_msg m = {&half, NULL, 1, 0, several, 0}; // from anybody: FI_DIRECTED_RECV is not asked for
	struct fi_msg_tagged look = {NULL, NULL, 0, peer, 2, 0, several, 0};
	size_t least = 50;
	IS(fi_setopt(&ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, sizeof least) == 0);
	IS(fi_recvmsg(ep, &m, FI_MULTI_RECV) == 0);
	half.iov_base = m.context = several + 100;
	IS(fi_recvmsg(ep, &m, FI_MULTI_RECV) == 0);
	meet();
	for (int i = 0; i < 6; i++) { // of 20 B each: the third leaves less than 50
		char *to = several + i / 3 * 100, *at = to + i % 3 * 20;
		next(receives);
		IS(done.op_context == to && done.len == 20 && done.buf == at && *at == 'a' + i);
		IS(!(done.flags & FI_MULTI_RECV) == (i % 3 < 2));
	}
	IS(fi_cntr_wait(came, 6, -1) == 0 && fi_cntr_read(came) == 6);
	IS(fi_trecvv(ep, pieces, NULL, 2, peer, 1, 0, a) == 0);
	next(receives);
	IS(done.op_context == a && done.len == 7 && !memcmp(a, "012", 3) && !memcmp(b, "3456", 4));
	meet(); // two messages of tag 2 are under way
	do
		IS(fi_trecvmsg(ep, &look, FI_PEEK | FI_DISCARD) == 0);
	while (fi_cq_sread(receives, &done, 1, NULL, -1) == -FI_EAVAIL && fi_cq_readerr(receives, &(struct fi_cq_err_entry){0}, 0) == 1);
	IS(done.len == 5 && done.tag == 2);
	IS(fi_trecv(ep, several, 9, NULL, peer, 2, 0, b) == 0); // finds the second
	next(receives);
	IS(done.len == 6 && !memcmp(several, "second", 6));
}

static void sender(void)
{
	static char text[] = "0123456", letters[6][20];
	struct iovec pieces[3] = {{text, 1}, {text + 1, 4}, {text + 5, 2}};
	meet();
	for (int i = 0; i < 6; i++) {
		letters[i][0] = (char)('a' + i);
		IS(fi_send(ep, letters[i], 20, NULL, peer, text) == 0);
		next(sends);
	}
	IS(fi_tsendv(ep, pieces, NULL, 3, peer, 1, text) == 0);
	next(sends);
	IS(fi_tinject(ep, "first", 5, peer, 2) == 0 && fi_tinject(ep, "second", 6, peer, 2) == 0);
	meet();
}

int main(int argc, char **argv)
{
	rank = atoi(getenv("OMPI_COMM_WORLD_RANK"));
	opened(atoi(argv[1]));
	if (rank == 0)
		receiver();
	else
		sender();
	close(s);
	fi_close(&ep->fid);
	return 0;
}
