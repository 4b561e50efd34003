#include "sim/device/hca.h"

#include <cerrno>

#include "sim/transport/state_table.h"

namespace simhca {

Hca::Hca(const DeviceProfile& profile, uint16_t port_index, Progress& progress)
    : profile_(profile), port_index_(port_index), progress_(progress) {
  progress_.ports_down[port_index_] = progress_.fabric.port_down(port_index_);
  if (progress_.virtual_time()) {
    model_ = std::make_unique<DeviceModel>(profile_, port_index_, progress_);
  }
}

Hca::~Hca() = default;

// ---- Contexts and protection domains ----

int Hca::OpenContext(const OpenContextCommand& command, uint32_t* context) {
  const Progress::Hold hold(progress_);
  if (failed_ && contexts_.size() != 0) return EIO;
  failed_ = false;
  auto object = std::make_unique<Context>();
  object->events =
      EventRing(command.event_ring, command.event_entries, command.handler, model_.get());
  *context = contexts_.NextNumber();
  contexts_.Insert(*context, std::move(object));
  return 0;
}

void Hca::Settle() {
  if (model_) model_->Settle();
}

void Hca::CloseContext(uint32_t context) {
  const Progress::Hold hold(progress_);
  progress_.ServeDoorbells();
  Settle();
  const auto owned = [context](const auto& object) { return object.context == context; };
  qps_.EraseIf([context](const QueuePair& qp) { return qp.config().context == context; },
               [this](uint32_t, QueuePair& qp) {
                 progress_.FinishAnswers(qp);
                 ReleaseQp(qp);
               });
  srqs_.EraseIf(owned, [this](uint32_t srqn, const Srq&) { progress_.fabric.ReleaseNumber(srqn); });
  cqs_.EraseIf(owned, [](uint32_t, const Cq&) {});
  pds_.EraseIf(owned, [this](uint32_t pd, const Pd&) { regions_.RemoveDomain(pd); });
  contexts_.Erase(context);
}

int Hca::AllocPd(uint32_t context, uint32_t* pd) {
  const Progress::Hold hold(progress_);
  if (failed_) return EIO;
  if (contexts_.Find(context) == nullptr) return EINVAL;
  if (pds_.size() >= profile_.limits.max_pd) return ENOMEM;
  *pd = pds_.NextNumber();
  pds_.Insert(*pd, std::make_unique<Pd>(Pd{.context = context}));
  return 0;
}

int Hca::DeallocPd(uint32_t pd) {
  const Progress::Hold hold(progress_);
  const Pd* object = pds_.Find(pd);
  if (object == nullptr) return ENOENT;
  if (object->users != 0) return EBUSY;
  pds_.Erase(pd);
  return 0;
}

int Hca::RegisterRegion(const RegisterRegionCommand& command, uint32_t* key) {
  const Progress::Hold hold(progress_);
  if (failed_) return EIO;
  Pd* pd = pds_.Find(command.pd);
  if (pd == nullptr) return EINVAL;
  const bool remote_change = (command.access & (kRemoteWrite | kRemoteAtomic)) != 0;
  if (remote_change && (command.access & kLocalWrite) == 0) return EINVAL;
  if (command.length > profile_.limits.max_mr_size) return EINVAL;
  if (command.iova + command.length < command.iova) return EINVAL;
  if (regions_.live() >= profile_.limits.max_mr) return ENOMEM;
  *key = regions_.Add(Region{.host = command.address,
                             .iova = command.iova,
                             .length = command.length,
                             .pd = command.pd,
                             .access = command.access});
  if (*key == 0) return ENOMEM;
  ++pd->users;
  return 0;
}

int Hca::DeregisterRegion(uint32_t key) {
  const Progress::Hold hold(progress_);
  const Region* region = regions_.Find(key);
  if (region == nullptr) return ENOENT;
  if (Pd* pd = pds_.Find(region->pd)) --pd->users;
  regions_.Remove(key);
  return 0;
}

// ---- Completion queues ----

int Hca::CreateCq(const CreateCqCommand& command, uint32_t* cqn) {
  const Progress::Hold hold(progress_);
  if (failed_) return EIO;
  Context* context = contexts_.Find(command.context);
  if (context == nullptr) return EINVAL;
  if (cqs_.size() >= profile_.limits.max_cq) return ENOMEM;
  *cqn = cqs_.NextNumber();
  const CompletionQueue::Memory memory{command.ring, command.entries, command.doorbell_record};
  cqs_.Insert(*cqn, std::make_unique<Cq>(command.context, *cqn, memory, &context->events,
                                         command.timestamps, progress_.armed_queues()));
  return 0;
}

int Hca::ResizeCq(uint32_t cqn, std::byte* ring, uint32_t entries) {
  const Progress::Hold hold(progress_);
  if (failed_) return EIO;
  Cq* cq = cqs_.Find(cqn);
  Settle();
  return cq != nullptr ? cq->object.Resize(ring, entries) : ENOENT;
}

int Hca::DestroyCq(uint32_t cqn) {
  const Progress::Hold hold(progress_);
  const Cq* cq = cqs_.Find(cqn);
  if (cq == nullptr) return ENOENT;
  if (cq->object.users() != 0) return EBUSY;
  Settle();
  cqs_.Erase(cqn);
  return 0;
}

void Hca::ArmCq(uint32_t cqn, uint32_t word) {
  {
    const Progress::Hold hold(progress_);
    Cq* cq = cqs_.Find(cqn);
    if (cq == nullptr || failed_) return;
    cq->object.ArmFor((word & mlx5::kArmSolicitedOnly) != 0);
  }
  progress_.ExpectSleep();
}

// ---- Shared receive queues ----

int Hca::CreateSrq(const CreateSrqCommand& command, uint32_t* srqn) {
  const Progress::Hold hold(progress_);
  if (failed_) return EIO;
  Context* context = contexts_.Find(command.context);
  Pd* pd = pds_.Find(command.pd);
  if (context == nullptr || pd == nullptr) return EINVAL;
  if (!profile_.features.srq || profile_.limits.max_srq == 0) return EOPNOTSUPP;
  if (srqs_.size() >= profile_.limits.max_srq) return ENOMEM;
  const uint32_t number = progress_.fabric.AllocateNumber();
  if (number == 0) return ENOMEM;
  const SharedReceiveQueue::Memory memory{command.ring, command.entries, command.stride,
                                          command.doorbell_record};
  Srq* srq = srqs_.Insert(
      number, std::make_unique<Srq>(command.context, number, command.pd, memory, &context->events,
                                    command.max_limit, profile_.features.limit_event_at_once));
  if (model_) {
    srq->object.set_fetcher(std::make_unique<ReceiveFetcher>(model_->FetcherFor(command.stride)));
  }
  ++pd->users;
  *srqn = number;
  return 0;
}

int Hca::ModifySrq(const ModifySrqCommand& command) {
  const Progress::Hold hold(progress_);
  if (failed_) return EIO;
  Srq* srq = srqs_.Find(command.srq);
  if (srq == nullptr) return ENOENT;
  SharedReceiveQueue::Change change;
  if (command.set_limit) change.limit = command.limit;
  if (command.resize) {
    if (!profile_.features.srq_resize) return EINVAL;
    change.resize = SharedReceiveQueue::Change::Resize{command.ring, command.entries,
                                                       command.max_limit, command.capacity};
  }
  const int error = srq->object.Modify(change);
  Settle();  // a command takes longer than the event that it may raise
  if (error == 0 && command.set_limit && command.limit != 0 && srq->object.limit() == 0) {
    ++progress_.visible;  // the event came at once
    progress_.counters.Add(Counter::kSrqLimitEvents);
  }
  return error;
}

int Hca::QuerySrqLimit(uint32_t srqn, uint32_t* limit) {
  const Progress::Hold hold(progress_);
  if (failed_) return EIO;
  const Srq* srq = srqs_.Find(srqn);
  if (srq == nullptr) return ENOENT;
  if (srq->object.failed()) return EINVAL;
  *limit = srq->object.limit();
  return 0;
}

int Hca::DestroySrq(uint32_t srqn) {
  const Progress::Hold hold(progress_);
  const Srq* srq = srqs_.Find(srqn);
  if (srq == nullptr) return ENOENT;
  if (srq->object.users() != 0) return EBUSY;
  Settle();
  if (Pd* pd = pds_.Find(srq->object.pd())) --pd->users;
  srqs_.Erase(srqn);
  progress_.fabric.ReleaseNumber(srqn);
  return 0;
}

// ---- Queue pairs ----

int Hca::ResolveQp(const CreateQpCommand& command, QueuePair::Config* config) {
  Context* context = contexts_.Find(command.context);
  Cq* send_cq = cqs_.Find(command.send_cq);
  Cq* receive_cq = cqs_.Find(command.receive_cq);
  if (context == nullptr || pds_.Find(command.pd) == nullptr) return EINVAL;
  if (send_cq == nullptr || receive_cq == nullptr) return EINVAL;
  if (command.srq != 0) {
    Srq* srq = srqs_.Find(command.srq);
    if (srq == nullptr) return EINVAL;
    config->srq = &srq->object;
  }
  config->events = &context->events;
  config->send_cq = &send_cq->object;
  config->receive_cq = &receive_cq->object;
  return 0;
}

int Hca::CreateQp(const CreateQpCommand& command, CreateQpReply* reply) {
  const Progress::Hold hold(progress_);
  if (failed_) return EIO;
  if (command.type != QpType::kRc) return EOPNOTSUPP;
  QueuePair::Config config;
  if (int error = ResolveQp(command, &config)) return error;
  if (qps_.size() >= profile_.limits.max_qp) return ENOMEM;
  config.qpn = progress_.fabric.AllocateNumber();
  if (config.qpn == 0) return ENOMEM;
  config.pd = command.pd;
  config.context = command.context;
  config.type = command.type;
  config.port_index = port_index_;
  config.send_queue = SendQueue(command.send_ring, command.send_blocks, command.doorbell_record);
  config.receive_queue = ReceiveQueue(command.receive_ring, command.receive_entries,
                                      command.receive_stride, command.doorbell_record);
  config.regions = &regions_;
  config.services = &progress_;
  config.timing = model_.get();
  config.max_message_bytes = profile_.limits.max_msg_sz;
  config.clock_khz = static_cast<uint32_t>(profile_.limits.hca_core_clock_khz);
  QueuePair* qp = qps_.Insert(config.qpn, std::make_unique<QueuePair>(config));
  progress_.queue_pairs().Set(config.qpn, qp);
  ++pds_.Find(command.pd)->users;
  qp->set_doorbell(progress_.doorbell_pages().Allot(qp));
  *reply = {.qpn = config.qpn, .doorbell = qp->doorbell()};
  return 0;
}

ModifyLimits Hca::Limits() const {
  return {
      .ports = static_cast<uint8_t>(profile_.limits.phys_port_cnt),
      .needs_global_route = profile_.identity.link_layer == LinkLayer::kEthernet,
      .max_mtu_code = static_cast<uint8_t>(profile_.port.active_mtu),
      .pkeys = static_cast<uint16_t>(profile_.port.pkey_table_len),
      .gids = static_cast<uint16_t>(kGidsPerPort),
      .max_rd_atomic = profile_.limits.max_qp_init_rd_atom,
      .max_dest_rd_atomic = profile_.limits.max_qp_rd_atom,
  };
}

int Hca::ModifyQp(const ModifyQpCommand& command, ReleasedWqe* released) {
  const Progress::Hold hold(progress_);
  QueuePair* qp = qps_.Find(command.qpn);
  if (qp == nullptr) return ENOENT;
  const bool ends =
      (command.mask & qp_mask::kState) != 0 &&
      (command.attributes.state == QpState::kReset || command.attributes.state == QpState::kErr);
  if (failed_ && !ends) return EIO;
  if (int error = CheckModify(qp->config().type, qp->state(), qp->attributes(), command.mask,
                              command.attributes, Limits())) {
    return error;
  }
  progress_.ServeDoorbells();
  // What is owed to the peer outlives a move to any other state.
  if (ends) progress_.FinishAnswers(*qp);
  qp->Modify(command.mask, command.attributes, &released->any, &released->index);
  return 0;
}

int Hca::QueryQp(uint32_t qpn, QpAttributes* attributes) {
  const Progress::Hold hold(progress_);
  if (failed_) return EIO;
  const QueuePair* qp = qps_.Find(qpn);
  if (qp == nullptr) return ENOENT;
  *attributes = qp->attributes();
  attributes->state = attributes->current_state = qp->state();
  return 0;
}

int Hca::DestroyQp(uint32_t qpn, ReleasedWqe* released) {
  const Progress::Hold hold(progress_);
  QueuePair* qp = qps_.Find(qpn);
  if (qp == nullptr) return ENOENT;
  progress_.ServeDoorbells();
  progress_.FinishAnswers(*qp);
  released->any = qp->Reset(&released->index);
  ReleaseQp(*qp);
  qps_.Erase(qpn);
  return 0;
}

void Hca::ReleaseQp(const QueuePair& qp) {
  progress_.doorbell_pages().Release(qp.doorbell());
  progress_.queue_pairs().Set(qp.qpn(), nullptr);
  progress_.fabric.ReleaseNumber(qp.qpn());
  if (Pd* pd = pds_.Find(qp.config().pd)) --pd->users;
}

}  // namespace simhca
