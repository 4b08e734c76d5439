// A provider of libfabric 1.17 whose network is simulated: reliable datagrams
// with tags, one-sided operations and atomics.
#ifndef SPINSIM_PROVIDER_H
#define SPINSIM_PROVIDER_H

#include "link.h"

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

// The bits of a tag that the network compares. Open MPI takes those above for
// fewer communicators.
#define TAG_FORMAT 0x000007ffffffffffULL

// Of endpoints but the first with tags: their numbers take bits of the network.
#define TAG_OTHERS 0x0000000fffffffffULL

enum { IOV_LIMIT = LINK_INJECT / sizeof(struct iovec) };

// address is what others know of an endpoint.
struct address {
	int64_t rank, endpoint;
};

struct vector {
	struct fid_av fid;
	size_t count, room; // of a table
	struct address *list;
	bool table;
};

// patience counts looks in a row that find nothing, without a post or a completion
// between.
struct patience {
	uint32_t posted;   // at the last one
	uint64_t arrivals; // likewise
	int empty;
};

struct queue {
	struct fid_cq fid;
	enum fi_cq_format format;
	struct patience patience;
	struct link_done *list; // completions from first on
	size_t first, count, room;
	struct link_done failed;
	bool has_failed;
};

struct counter {
	struct fid_cntr fid;
	struct patience patience;
	uint64_t value, errors;
};

struct domain {
	struct fid_domain fid;
	int mr_mode;
	bool events; // FI_RMA_EVENT
};

// The kinds of operations that have counters.
enum { COUNT_SEND, COUNT_RECV, COUNT_READ, COUNT_WRITE, COUNT_REMOTE_READ, COUNT_REMOTE_WRITE, COUNTS };

struct endpoint {
	struct fid_ep fid;
	struct link *link;
	struct vector *vector;
	struct queue *sends, *receives;
	struct counter *counters[COUNTS];
	uint64_t send_flags, receive_flags; // of operations that have none of their own
	bool quiet_sends, quiet_receives;   // FI_SELECTIVE_COMPLETION
	uint16_t number;
	uint64_t tags;      // bits
	size_t multi_least; // FI_OPT_MIN_MULTI_RECV
	bool enabled;
	bool directed; // receives name their sources
};

extern struct endpoint *spinsim_endpoints[LINK_ENDPOINTS];

// What is not there.
int no_bind(struct fid *fid, struct fid *other, uint64_t flags);
int no_control(struct fid *fid, int command, void *arg);
int no_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context);
int no_set(struct fid *fid, const char *name, uint64_t flags, void *ops, void *context);
int no_string(const struct fid *fid, char *buf, size_t len);

int av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **out, void *context);
int cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **out, void *context);
int cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr, struct fid_cntr **out, void *context);
int poll_open(struct fid_domain *domain, struct fi_poll_attr *attr, struct fid_poll **out);
int eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **out, void *context);
int ep_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **out, void *context);

// target finds an address of a vector; false: it has none.
bool target(struct vector *v, fi_addr_t addr, struct address *out);

// source is the address of an endpoint in a vector.
fi_addr_t source(struct vector *v, struct address a);

// counter_of returns the counter of accesses to the memory of a key; NULL: it has none.
struct counter *counter_of(uint64_t key);

// begin returns a post of an endpoint, complete but for what to do.
struct link_post *begin(struct endpoint *e, uint32_t kind, void *context);

// quiet says how a send, or a receive, completes: flags of a post. kind is that
// of its counter.
uint32_t quiet(struct endpoint *e, uint64_t flags, bool send, int kind);

// memory gives a post the memory of an operation.
void memory(struct link_post *p, const struct iovec *iov, size_t count, uint64_t flags);

// steady returns the flags of an operation that reads memory. Few bytes on the heap
// of MPI_Init go with the post: their addresses, and so times, differ from run to run.
uint64_t steady(const struct iovec *iov, size_t count, uint64_t flags);

// fits says whether vectors are few and short enough.
ssize_t fits(const struct iovec *iov, size_t count, uint64_t flags);

extern struct fi_ops_msg msg_ops;
extern struct fi_ops_tagged tagged_ops;
extern struct fi_ops_mr mr_ops;
extern struct fi_ops_rma rma_ops;
extern struct fi_ops_atomic atomic_ops;

int query_atomic(struct fid_domain *d, enum fi_datatype type, enum fi_op op, struct fi_atomic_attr *attr, uint64_t flags);

#endif
