// The fabric, its domains, and what the provider offers.
#define _GNU_SOURCE
#include "provider.h"

#include <rdma/providers/fi_prov.h>
#include <stdio.h>

#define NAME "spinsim"
#define SENDS (FI_MSG | FI_TAGGED | FI_SEND | FI_RMA | FI_ATOMIC | FI_READ | FI_WRITE)
#define RECEIVES (FI_MSG | FI_TAGGED | FI_RECV | FI_RMA | FI_ATOMIC | FI_REMOTE_READ | FI_REMOTE_WRITE | FI_DIRECTED_RECV | FI_MULTI_RECV | FI_SOURCE | FI_RMA_EVENT)
#define CAPS (SENDS | RECEIVES | FI_LOCAL_COMM | FI_REMOTE_COMM)
#define ORDER FI_ORDER_SAS
#define OP_FLAGS (FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE)
#define MR_MODE (FI_MR_PROV_KEY | FI_MR_ALLOCATED)

static int closed(struct fid *fid)
{
	free(fid);
	return 0;
}

int no_bind(struct fid *fid, struct fid *other, uint64_t flags) { return -FI_ENOSYS; }
int no_control(struct fid *fid, int command, void *arg) { return -FI_ENOSYS; }
int no_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context) { return -FI_ENOSYS; }
int no_set(struct fid *fid, const char *name, uint64_t flags, void *ops, void *context) { return -FI_ENOSYS; }
int no_string(const struct fid *fid, char *buf, size_t len) { return -FI_ENOSYS; }

static struct fi_ops plain = {sizeof(struct fi_ops), closed, no_bind, no_control, no_open, no_string, no_set};

static int ep_open2(struct fid_domain *domain, struct fi_info *info, struct fid_ep **out, uint64_t flags, void *context)
{
	return ep_open(domain, info, out, context);
}

// Domains and fabrics.

static int no_scalable(struct fid_domain *d, struct fi_info *i, struct fid_ep **ep, void *context) { return -FI_ENOSYS; }
static int no_stx(struct fid_domain *d, struct fi_tx_attr *attr, struct fid_stx **stx, void *context) { return -FI_ENOSYS; }
static int no_srx(struct fid_domain *d, struct fi_rx_attr *attr, struct fid_ep **ep, void *context) { return -FI_ENOSYS; }
static int no_collective(struct fid_domain *d, enum fi_collective_op op, struct fi_collective_attr *attr, uint64_t flags) { return -FI_EOPNOTSUPP; }

static struct fi_ops_domain domain_ops = {
	sizeof domain_ops, av_open, cq_open, ep_open, no_scalable, cntr_open, poll_open, no_stx, no_srx, query_atomic, no_collective, ep_open2,
};

static int domain_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **out, void *context)
{
	struct domain *d = calloc(1, sizeof *d);
	if (!d)
		return -FI_ENOMEM;
	d->mr_mode = info->domain_attr ? info->domain_attr->mr_mode : 0;
	d->events = info->caps & FI_RMA_EVENT;
	d->fid = (struct fid_domain){.fid = {FI_CLASS_DOMAIN, context, &plain}, .ops = &domain_ops, .mr = &mr_ops};
	*out = &d->fid;
	return 0;
}

static int domain_open2(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **out, uint64_t flags, void *context)
{
	return domain_open(fabric, info, out, context);
}

static int no_passive(struct fid_fabric *f, struct fi_info *info, struct fid_pep **pep, void *context) { return -FI_ENOSYS; }
static int no_wait(struct fid_fabric *f, struct fi_wait_attr *attr, struct fid_wait **set) { return -FI_ENOSYS; }
static int no_trywait(struct fid_fabric *f, struct fid **fids, int count) { return -FI_ENOSYS; }

static struct fi_ops_fabric fabric_ops = {sizeof fabric_ops, domain_open, no_passive, eq_open, no_wait, no_trywait, domain_open2};

static int fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **out, void *context)
{
	if (attr->name && strcmp(attr->name, NAME) != 0)
		return -FI_ENODATA;
	struct fid_fabric *f = calloc(1, sizeof *f);
	if (!f)
		return -FI_ENOMEM;
	*f = (struct fid_fabric){.fid = {FI_CLASS_FABRIC, context, &plain}, .ops = &fabric_ops};
	*out = f;
	return 0;
}

// What the provider offers. The name of a node is that of a rank, such as rank0,
// and means its first endpoint. The memory is libfabric's to free, piece by piece.

#define DOMAIN_CAPS (FI_LOCAL_COMM | FI_REMOTE_COMM)

static bool suits(const struct fi_info *h)
{
	if (!h)
		return true;
	if (h->caps & ~(uint64_t)CAPS)
		return false;
	if (h->fabric_attr && h->fabric_attr->prov_name && !strstr(h->fabric_attr->prov_name, NAME))
		return false;
	if (h->fabric_attr && h->fabric_attr->name && strcmp(h->fabric_attr->name, NAME) != 0)
		return false;
	if (h->domain_attr && h->domain_attr->name && strcmp(h->domain_attr->name, NAME) != 0)
		return false;
	if (h->domain_attr && h->domain_attr->threading == FI_THREAD_SAFE)
		return false;
	if (h->domain_attr && (h->domain_attr->cq_data_size > sizeof(uint64_t) || (h->domain_attr->caps & ~(uint64_t)DOMAIN_CAPS)))
		return false;
	if (h->ep_attr && h->ep_attr->type != FI_EP_UNSPEC && h->ep_attr->type != FI_EP_RDM)
		return false;
	if (h->tx_attr && ((h->tx_attr->msg_order & ~(uint64_t)ORDER) || h->tx_attr->inject_size > LINK_INJECT || (h->tx_attr->op_flags & ~(uint64_t)OP_FLAGS) || h->tx_attr->iov_limit > IOV_LIMIT || h->tx_attr->rma_iov_limit > 1))
		return false;
	if (h->rx_attr && ((h->rx_attr->msg_order & ~(uint64_t)ORDER) || h->rx_attr->iov_limit > IOV_LIMIT))
		return false;
	return true;
}

// capabilities are those that are asked for, with what they imply.
static uint64_t capabilities(const struct fi_info *h)
{
	uint64_t c = h && h->caps ? h->caps : CAPS;
	if (!(c & (FI_SEND | FI_RECV)) && (c & (FI_MSG | FI_TAGGED)))
		c |= FI_SEND | FI_RECV;
	if (!(c & (FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)) && (c & (FI_RMA | FI_ATOMIC)))
		c |= FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
	return c;
}

static int mr_mode(uint32_t version, const struct fi_info *h)
{
	int m = h && h->domain_attr ? h->domain_attr->mr_mode : 0;
	if (m == FI_MR_UNSPEC && FI_VERSION_LT(version, FI_VERSION(1, 5)))
		return FI_MR_BASIC; // there are only two
	return m == FI_MR_BASIC || m == FI_MR_SCALABLE ? m : m & MR_MODE;
}

// progress is what a program asks for: ours is automatic, which is manual, too.
static enum fi_progress progress(enum fi_progress asked) { return asked == FI_PROGRESS_MANUAL ? asked : FI_PROGRESS_AUTO; }

#define NEW(pointer) ((pointer) = calloc(1, sizeof *(pointer)))

static int getinfo(uint32_t version, const char *node, const char *service, uint64_t flags, const struct fi_info *h, struct fi_info **out)
{
	struct fi_info *i;
	if (!suits(h) || !link_open())
		return -FI_ENODATA;
	int there = spinsim_link->rank;
	char more;
	if (node && (sscanf(node, "rank%d%c", &there, &more) != 1 || there < 0 || there >= spinsim_link->ranks))
		return -FI_ENODATA;
	if (node && (flags & FI_SOURCE) && there != spinsim_link->rank)
		return -FI_ENODATA;
	if (!NEW(i))
		return -FI_ENOMEM;
	struct address *a;
	if (!NEW(i->tx_attr) || !NEW(i->rx_attr) || !NEW(i->ep_attr) || !NEW(i->domain_attr) || !NEW(i->fabric_attr) || !NEW(a))
		return -FI_ENOMEM;
	i->caps = capabilities(h);
	i->addr_format = FI_FORMAT_UNSPEC;
	a->rank = spinsim_link->rank;
	i->src_addr = a;
	i->src_addrlen = sizeof *a;
	if (node && !(flags & FI_SOURCE)) {
		if (!NEW(a))
			return -FI_ENOMEM;
		a->rank = there;
		i->dest_addr = a;
		i->dest_addrlen = sizeof *a;
	}
	*i->tx_attr = (struct fi_tx_attr){
		.caps = i->caps & SENDS, .op_flags = h && h->tx_attr ? h->tx_attr->op_flags : 0, .msg_order = ORDER,
		.inject_size = LINK_INJECT, .size = LINK_POSTS, .iov_limit = IOV_LIMIT, .rma_iov_limit = 1,
	};
	*i->rx_attr = (struct fi_rx_attr){
		.caps = i->caps & RECEIVES, .op_flags = h && h->rx_attr ? h->rx_attr->op_flags : 0, .msg_order = ORDER,
		.size = LINK_POSTS, .iov_limit = IOV_LIMIT,
	};
	*i->ep_attr = (struct fi_ep_attr){
		.type = FI_EP_RDM, .protocol_version = 1, .max_msg_size = 0x7fffffff, .mem_tag_format = TAG_FORMAT, .tx_ctx_cnt = 1, .rx_ctx_cnt = 1,
	};
	*i->domain_attr = (struct fi_domain_attr){
		.name = strdup(NAME), .threading = FI_THREAD_DOMAIN, .control_progress = progress(h && h->domain_attr ? h->domain_attr->control_progress : FI_PROGRESS_AUTO),
		.data_progress = progress(h && h->domain_attr ? h->domain_attr->data_progress : FI_PROGRESS_AUTO),
		.resource_mgmt = FI_RM_ENABLED, .av_type = h && h->domain_attr && h->domain_attr->av_type ? h->domain_attr->av_type : FI_AV_MAP, .cq_data_size = sizeof(uint64_t),
		.mr_mode = mr_mode(version, h), .mr_key_size = sizeof(uint32_t), .mr_iov_limit = 1, .mr_cnt = 1 << 16, .cntr_cnt = 1 << 10,
		.cq_cnt = 1 << 10, .ep_cnt = LINK_ENDPOINTS, .tx_ctx_cnt = LINK_ENDPOINTS, .rx_ctx_cnt = LINK_ENDPOINTS, .max_ep_tx_ctx = 1, .max_ep_rx_ctx = 1,
		.caps = DOMAIN_CAPS,
	};
	*i->fabric_attr = (struct fi_fabric_attr){.name = strdup(NAME), .prov_name = strdup(NAME), .prov_version = FI_VERSION(1, 0), .api_version = version};
	*out = i;
	return 0;
}

static void cleanup(void) {}

static struct fi_provider provider = {
	.version = FI_VERSION(1, 0), .fi_version = FI_VERSION(1, 17), .name = NAME, .getinfo = getinfo, .fabric = fabric_open, .cleanup = cleanup,
};

__attribute__((visibility("default"))) struct fi_provider *fi_prov_ini(void) { return &provider; }
