// A program that calls verbs in any order with any arguments, handles that are null, destroyed or
// of another kind among them, on the driver and the devices as they are.  Whatever it does: a
// completion is for a queue pair that exists and for work that was posted and has not completed,
// queues take what they have room for, and in the end everything can be destroyed.

#include <fcntl.h>
#include <infiniband/verbs.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

#include "sim/wire/gid.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/verbs_world.h"
#include "verbs_shim/driver/driver.h"

namespace simhca::fuzz {
namespace {

using namespace driver;  // the verbs

constexpr size_t kMaxSteps = 150;
constexpr size_t kMaxObjects = 12;  // of each kind
constexpr int kMaxPolls = 300;
constexpr int kMaxList = 4;
constexpr int kMaxSge = 4;

enum Kind : uint8_t { kPd, kMr, kChannel, kCq, kCqEx, kSrq, kQp, kKinds };

class Program {
 public:
  explicit Program(Input& input) : input_(input) {}

  void Play();
  void Finish();

 private:
  struct Posted {
    const void* queue;  // the QP, or the SRQ
  };
  using Works = std::map<uint64_t, Posted>;  // by wr_id, which no two work requests share

  void Open();
  void Connect();
  void Step();

  // ---- Handles ----
  // One of the kind; sometimes null, destroyed, or anything.
  template <typename T>
  T* Any(Kind kind);
  // For inline verbs, which look into the object: one of the kind, perhaps destroyed.
  template <typename T>
  T* Inline(Kind kind);
  ibv_cq* AnyCq() { return Any<ibv_cq>(input_.Flag() ? kCq : kCqEx); }
  template <typename T>
  void Add(Kind kind, T* object) {
    if (object != nullptr) live_[kind].push_back(object);
  }
  bool Full(Kind kind) const { return live_[kind].size() >= kMaxObjects; }
  // The verb answered `error` to the destruction of `object`.
  void Destroyed(std::initializer_list<Kind> kinds, void* object, int error);
  ibv_context* AnyContext() { return contexts_[input_.Below(World::kDevices)]; }

  // ---- Verbs ----
  void Regions();
  void CreateCompletionQueue();
  void ChangeCompletionQueue();
  void CreateReceiveQueue();
  void ChangeReceiveQueue();
  void CreateQueuePair();
  void ModifyQueuePair();
  void DestroyQueuePair(ibv_qp* qp);
  void PostSends();
  void PostBatch();
  void PostReceives();
  void PollOne(ibv_cq* cq);
  void PollExtended();
  void Events();
  void Queries();

  int Sges(ibv_sge* sges, bool readable);
  uint32_t AnyKey();
  uint64_t AnyAddress();
  void OnCompletion(uint64_t wr_id, uint32_t qp_num);
  void Forget(Works* works, const void* queue);

  Input& input_;
  World world_;
  ibv_context* contexts_[World::kDevices] = {};
  std::vector<void*> live_[kKinds];
  std::vector<void*> dead_[kKinds];
  Works sends_, receives_;
  uint64_t next_wr_id_ = 1;
  int polls_left_ = kMaxPolls;
};

// ---- Handles ----

template <typename T>
T* Program::Any(Kind kind) {
  const uint8_t choice = input_.Byte();
  if (choice == 0xff) return nullptr;
  const bool other = choice >= 0xf8;
  const std::vector<void*>& from = choice >= 0xf0 && !other ? dead_[kind]
                                   : other                  ? live_[choice % kKinds]
                                                            : live_[kind];
  if (from.empty()) return nullptr;
  void* const object = from[choice % from.size()];
  return Owns(object) ? static_cast<T*>(object) : nullptr;
}

template <typename T>
T* Program::Inline(Kind kind) {
  const uint8_t choice = input_.Byte();
  const std::vector<void*>& from = choice >= 0xf0 ? dead_[kind] : live_[kind];
  if (from.empty()) return nullptr;
  void* const object = from[choice % from.size()];
  return Owns(object) ? static_cast<T*>(object) : nullptr;
}

void Program::Destroyed(std::initializer_list<Kind> kinds, void* object, int error) {
  if (error != 0) return;
  for (const Kind kind : kinds) {
    if (std::erase(live_[kind], object) == 0) continue;
    dead_[kind].push_back(object);
    return;
  }
  Require(false, "only a live object of its kind can be destroyed");
}

// ---- Memory ----

uint64_t Program::AnyAddress() {
  const uint8_t form = input_.Byte();
  const auto base = reinterpret_cast<uint64_t>(Arena::memory());
  if (form < 0xe0) return base + (form & 7) * 1024;
  if (form < 0xf0) return base + input_.Take<uint16_t>() % Arena::kBytes;
  return form < 0xf8 ? form & 7 : ~uint64_t{0} - form;
}

uint32_t Program::AnyKey() {
  const auto* mr = Any<ibv_mr>(kMr);
  if (mr == nullptr || std::find(live_[kMr].begin(), live_[kMr].end(), mr) == live_[kMr].end()) {
    return input_.Take<uint16_t>();
  }
  return mr->lkey;
}

// `readable`: inline data, which the caller itself copies.
int Program::Sges(ibv_sge* sges, bool readable) {
  constexpr uint32_t kLengths[] = {0, 1, 64, 1024, 3000, 8192, 0x80000000, 0xffffffff};
  const int count = static_cast<int>(input_.Below(kMaxSge + 1));
  for (int i = 0; i < count; ++i) {
    sges[i] = {.addr = AnyAddress(), .length = kLengths[input_.Below(8)], .lkey = AnyKey()};
    if (readable) {
      sges[i].addr = reinterpret_cast<uint64_t>(Arena::memory());
      sges[i].length %= 1000;
    }
  }
  return input_.Byte() == 0xff ? -count : count;
}

void Program::Regions() {
  auto* pd = Any<ibv_pd>(kPd);
  const auto address = reinterpret_cast<void*>(AnyAddress());
  const size_t length = input_.Flag() ? 4096 : input_.Take<uint64_t>();
  const int access = input_.Flag() ? 7 : input_.Take<int32_t>();
  switch (input_.Below(6)) {
    case 0:
      if (pd != nullptr && !Full(kMr)) Add(kMr, RegMr(pd, address, length, access));
      break;
    case 1:
      if (pd != nullptr && !Full(kMr)) {
        Add(kMr, RegMrIova2(pd, address, length, input_.Take<uint64_t>(),
                            static_cast<unsigned>(access)));
      }
      break;
    case 2:
      if (auto* mr = Any<ibv_mr>(kMr)) ReregMr(mr, input_.Byte(), pd, address, length, access);
      break;
    case 3:
      if (auto* mr = Any<ibv_mr>(kMr)) Destroyed({kMr}, mr, DeregMr(mr));
      break;
    case 4:
      if (!Full(kPd)) Add(kPd, AllocPd(AnyContext()));
      break;
    default:
      if (pd != nullptr) Destroyed({kPd}, pd, DeallocPd(pd));
  }
}

// ---- Completion queues ----

void Program::CreateCompletionQueue() {
  if (!Full(kChannel) && input_.Flag()) {
    auto* channel = CreateCompChannel(AnyContext());
    Require(channel != nullptr, "a channel can be made");
    fcntl(channel->fd, F_SETFL, O_NONBLOCK);  // nobody else would end the wait
    return Add(kChannel, channel);
  }
  auto* channel = input_.Flag() ? Any<ibv_comp_channel>(kChannel) : nullptr;
  const int entries = input_.Flag() ? 1 + input_.Byte() : input_.Take<int32_t>() % 0x10000;
  const int vector = input_.Byte() == 0xff ? input_.Take<int32_t>() : 0;
  if (input_.Flag()) {
    if (!Full(kCq)) Add(kCq, CreateCq(AnyContext(), entries, nullptr, channel, vector));
    return;
  }
  ibv_cq_init_attr_ex attr{};
  attr.cqe = static_cast<uint32_t>(entries);
  attr.channel = channel;
  attr.comp_vector = static_cast<uint32_t>(vector);
  attr.wc_flags = input_.Flag() ? uint32_t{IBV_WC_STANDARD_FLAGS} : input_.Take<uint32_t>();
  attr.comp_mask = input_.Byte() & 3;
  attr.flags = input_.Byte() & 3;
  if (!Full(kCqEx)) Add(kCqEx, ibv_create_cq_ex(AnyContext(), &attr));
}

void Program::ChangeCompletionQueue() {
  ibv_cq* cq = AnyCq();
  switch (input_.Below(4)) {
    case 0:
      if (cq != nullptr) ResizeCq(cq, input_.Flag() ? input_.Byte() : input_.Take<int32_t>());
      break;
    case 1:
      if (cq != nullptr) Destroyed({kCq, kCqEx}, cq, DestroyCq(cq));
      break;
    case 2:
      if (auto* channel = Any<ibv_comp_channel>(kChannel)) {
        Destroyed({kChannel}, channel, DestroyCompChannel(channel));
      }
      break;
    default:
      if (auto* armed = Inline<ibv_cq>(input_.Flag() ? kCq : kCqEx)) {
        ibv_req_notify_cq(armed, input_.Flag());
      }
  }
}

void Program::OnCompletion(uint64_t wr_id, uint32_t qp_num) {
  Require(std::any_of(live_[kQp].begin(), live_[kQp].end(),
                      [qp_num](void* qp) { return static_cast<ibv_qp*>(qp)->qp_num == qp_num; }),
          "a completion is for a queue pair that exists");
  Require(sends_.erase(wr_id) + receives_.erase(wr_id) == 1, "what was posted completes once");
}

void Program::PollOne(ibv_cq* cq) {
  if (cq == nullptr || polls_left_-- <= 0) return;
  ibv_wc completions[4];
  const int count = ibv_poll_cq(cq, 1 + static_cast<int>(input_.Below(4)), completions);
  for (int i = 0; i < count; ++i) OnCompletion(completions[i].wr_id, completions[i].qp_num);
}

void Program::PollExtended() {
  auto* cq = Inline<ibv_cq_ex>(kCqEx);
  if (cq == nullptr || polls_left_-- <= 0) return;
  ibv_poll_cq_attr attr{};
  attr.comp_mask = input_.Byte() == 0xff;
  if (ibv_start_poll(cq, &attr) != 0) return;
  int left = 1 + static_cast<int>(input_.Below(4));
  do {
    const uint64_t wr_id = cq->wr_id;
    ibv_wc_read_opcode(cq);
    ibv_wc_read_vendor_err(cq);
    OnCompletion(wr_id, ibv_wc_read_qp_num(cq));
  } while (--left > 0 && ibv_next_poll(cq) == 0);
  ibv_end_poll(cq);
}

// ---- Receive queues ----

void Program::CreateReceiveQueue() {
  auto* pd = Any<ibv_pd>(kPd);
  ibv_srq_init_attr attr{};
  attr.attr.max_wr = input_.Flag() ? 1 + input_.Byte() % 32 : input_.Take<uint32_t>();
  attr.attr.max_sge = input_.Flag() ? 1 : input_.Byte();
  attr.attr.srq_limit = input_.Byte();
  if (pd != nullptr && !Full(kSrq)) {
    Add(kSrq, CreateSrq(pd, input_.Byte() == 0xff ? nullptr : &attr));
  }
}

void Program::ChangeReceiveQueue() {
  auto* srq = Any<ibv_srq>(kSrq);
  if (srq == nullptr) return;
  ibv_srq_attr attr{};
  switch (input_.Below(4)) {
    case 0:
    case 1:
      attr.max_wr = input_.Flag() ? input_.Byte() : input_.Take<uint32_t>();
      attr.srq_limit = input_.Byte();
      ModifySrq(srq, &attr, input_.Byte() % 8);
      break;
    case 2:
      QuerySrq(srq, &attr);
      break;
    default: {
      const int error = DestroySrq(srq);
      if (error == 0) Forget(&receives_, srq);
      Destroyed({kSrq}, srq, error);
    }
  }
}

void Program::PostReceives() {
  const bool shared = input_.Flag();
  auto* srq = shared ? Inline<ibv_srq>(kSrq) : nullptr;
  auto* qp = shared ? nullptr : Inline<ibv_qp>(kQp);
  if (srq == nullptr && qp == nullptr) return;
  ibv_sge sges[kMaxList][kMaxSge];
  ibv_recv_wr list[kMaxList] = {};
  const int count = 1 + static_cast<int>(input_.Below(kMaxList));
  for (int i = 0; i < count; ++i) {
    list[i] = {.wr_id = next_wr_id_++,
               .next = i + 1 < count ? &list[i + 1] : nullptr,
               .sg_list = sges[i],
               .num_sge = Sges(sges[i], false)};
  }
  ibv_recv_wr* bad = nullptr;
  const int error = shared ? ibv_post_srq_recv(srq, list, &bad) : ibv_post_recv(qp, list, &bad);
  Require((error == 0) == (bad == nullptr), "bad_wr is set if and only if the call fails");
  const void* queue = shared ? static_cast<const void*>(srq) : qp;
  for (ibv_recv_wr* wr = list; wr != bad; wr = wr->next) receives_[wr->wr_id] = {queue};
}

// ---- Queue pairs ----

void Program::CreateQueuePair() {
  if (Full(kQp)) return;
  ibv_qp_init_attr_ex attr{};
  attr.send_cq = AnyCq();
  attr.recv_cq = AnyCq();
  attr.srq = input_.Flag() ? Any<ibv_srq>(kSrq) : nullptr;
  attr.cap = {.max_send_wr = input_.Byte(),
              .max_recv_wr = input_.Byte(),
              .max_send_sge = input_.Below(8),
              .max_recv_sge = input_.Below(8),
              .max_inline_data = input_.Flag() ? input_.Take<uint32_t>() : 64};
  attr.qp_type = input_.Byte() == 0xff ? static_cast<ibv_qp_type>(input_.Byte()) : IBV_QPT_RC;
  attr.sq_sig_all = input_.Flag();
  attr.pd = Any<ibv_pd>(kPd);
  attr.comp_mask = IBV_QP_INIT_ATTR_PD;
  if (input_.Flag()) {
    attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    attr.send_ops_flags = input_.Flag() ? 31 : input_.Take<uint32_t>();
    ibv_context* context = AnyContext();
    return Add(kQp, verbs_get_ctx(context)->create_qp_ex(context, &attr));
  }
  ibv_qp_init_attr plain{};
  std::memcpy(&plain, &attr, offsetof(ibv_qp_init_attr, sq_sig_all) + sizeof(int));
  if (attr.pd != nullptr) Add(kQp, CreateQp(attr.pd, &plain));
}

// Two queue pairs to RTS, towards each other, as far as their states allow.
void Program::Connect() {
  if (live_[kQp].empty()) return;
  ibv_qp* ends[2];
  for (ibv_qp*& end : ends) {
    end = static_cast<ibv_qp*>(live_[kQp][input_.Byte() % live_[kQp].size()]);
  }
  const uint8_t form = input_.Byte();
  for (int i = 0; i < 2; ++i) {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = 1;
    attr.qp_access_flags = form & 0xf;
    ModifyQp(ends[i], &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    attr.qp_state = IBV_QPS_RTR;
    attr.path_mtu = IBV_MTU_256;
    attr.dest_qp_num = ends[1 - i]->qp_num;
    attr.max_dest_rd_atomic = form >> 6;
    attr.min_rnr_timer = 12;
    attr.ah_attr.is_global = 1;
    attr.ah_attr.port_num = 1;
    const uint16_t port = ends[1 - i]->context == contexts_[0] ? 0 : 1;
    std::memcpy(&attr.ah_attr.grh.dgid, GidOfPort(port, 0).data(), 16);
    ModifyQp(ends[i], &attr,
             IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    attr.qp_state = IBV_QPS_RTS;
    attr.timeout = 10;
    attr.retry_cnt = attr.rnr_retry = form >> 5 & 1;
    attr.max_rd_atomic = form >> 6;
    ModifyQp(ends[i], &attr,
             IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                 IBV_QP_MAX_QP_RD_ATOMIC);
  }
}

void Program::ModifyQueuePair() {
  auto* qp = Any<ibv_qp>(kQp);
  if (qp == nullptr) return;
  ibv_qp_attr attr{};
  int mask = IBV_QP_STATE;
  const uint8_t state = input_.Byte();
  if (state >= 0x80) {
    const auto bytes = input_.Bytes(sizeof attr);
    std::copy(bytes.begin(), bytes.end(), reinterpret_cast<std::byte*>(&attr));
    mask = input_.Take<int32_t>();
  }
  attr.qp_state = static_cast<ibv_qp_state>(state % 9);
  const int error = ModifyQp(qp, &attr, mask);
  if (error != 0 || (mask & IBV_QP_STATE) == 0 || attr.qp_state != IBV_QPS_RESET) return;
  Forget(&sends_, qp);
  Forget(&receives_, qp);
}

void Program::DestroyQueuePair(ibv_qp* qp) {
  if (qp == nullptr) return;
  const int error = DestroyQp(qp);
  if (error == 0) {
    Forget(&sends_, qp);
    Forget(&receives_, qp);
  }
  Destroyed({kQp}, qp, error);
}

// What a queue held completes no more once it is gone.
void Program::Forget(Works* works, const void* queue) {
  std::erase_if(*works, [queue](const auto& work) { return work.second.queue == queue; });
}

void Program::PostSends() {
  auto* qp = Inline<ibv_qp>(kQp);
  if (qp == nullptr) return;
  ibv_sge sges[kMaxList][kMaxSge];
  ibv_send_wr list[kMaxList] = {};
  const int count = 1 + static_cast<int>(input_.Below(kMaxList));
  for (int i = 0; i < count; ++i) {
    ibv_send_wr& wr = list[i];
    wr.wr_id = next_wr_id_++;
    wr.next = i + 1 < count ? &list[i + 1] : nullptr;
    wr.opcode = static_cast<ibv_wr_opcode>(input_.Below(16));
    wr.send_flags = input_.Byte() & 0x1f;
    wr.sg_list = sges[i];
    wr.num_sge = Sges(sges[i], (wr.send_flags & IBV_SEND_INLINE) != 0);
    wr.wr.rdma.remote_addr = AnyAddress();
    wr.wr.rdma.rkey = AnyKey();
  }
  ibv_send_wr* bad = nullptr;
  const int error = ibv_post_send(qp, list, &bad);
  Require((error == 0) == (bad == nullptr), "bad_wr is set if and only if the call fails");
  // The device has been at work meanwhile, but nothing has been polled.
  for (ibv_send_wr* wr = list; wr != bad; wr = wr->next) sends_[wr->wr_id] = {qp};
}

// The ibv_wr_* functions; between start and complete no other verb is allowed on the queue pair.
void Program::PostBatch() {
  ibv_qp_ex* qp = nullptr;
  if (auto* plain = Any<ibv_qp>(kQp)) qp = QpToQpEx(plain);
  if (qp == nullptr) return;
  std::vector<uint64_t> begun;
  ibv_wr_start(qp);
  for (uint32_t left = input_.Below(8); left > 0; --left) {
    qp->wr_id = next_wr_id_++;
    qp->wr_flags = input_.Byte() & 0xf;
    const uint32_t operation = input_.Below(5);
    begun.push_back(qp->wr_id);
    if (operation == 0) ibv_wr_send(qp);
    if (operation == 1) ibv_wr_send_imm(qp, 7);
    if (operation == 2) ibv_wr_rdma_write(qp, AnyKey(), AnyAddress());
    if (operation == 3) ibv_wr_rdma_write_imm(qp, AnyKey(), AnyAddress(), 7);
    if (operation == 4) ibv_wr_rdma_read(qp, AnyKey(), AnyAddress());
    ibv_sge sges[kMaxSge];
    const uint32_t form = input_.Below(4);
    const int count = Sges(sges, form == 2);
    if (form == 0 && count > 0) ibv_wr_set_sge(qp, sges[0].lkey, sges[0].addr, sges[0].length);
    if (form == 1 && count >= 0) ibv_wr_set_sge_list(qp, static_cast<size_t>(count), sges);
    if (form == 2) ibv_wr_set_inline_data(qp, Arena::memory(), input_.Take<uint16_t>() % 2048);
  }
  if (input_.Byte() == 0xff) return ibv_wr_abort(qp);
  if (ibv_wr_complete(qp) != 0) return;
  for (const uint64_t wr_id : begun) sends_[wr_id] = {&qp->qp_base};
}

// ---- Events and queries ----

void Program::Events() {
  if (auto* channel = Any<ibv_comp_channel>(kChannel)) {
    ibv_cq* cq;
    void* context;
    if (GetCqEvent(channel, &cq, &context) == 0) {
      Require(Owns(cq), "an event is of a queue that exists");
      AckCqEvents(cq, 1);
    }
  }
  ibv_async_event event;
  if (GetAsyncEvent(AnyContext(), &event) == 0) AckAsyncEvent(&event);
}

void Program::Queries() {
  ibv_context* context = AnyContext();
  ibv_device_attr device;
  Require(QueryDevice(context, &device) == 0, "a device can be queried");
  ibv_port_attr port;
  verbs_get_ctx(context)->query_port(context, input_.Byte(), &port, sizeof port);
  ibv_gid gid;
  QueryGid(context, input_.Byte(), input_.Take<int32_t>(), &gid);
  if (auto* qp = Any<ibv_qp>(kQp)) {
    ibv_qp_attr attr;
    ibv_qp_init_attr init;
    QueryQp(qp, &attr, input_.Take<int32_t>(), &init);
  }
}

// ---- The whole ----

void Program::Open() {
  std::vector<ibv_device*> devices;
  Require(GetDevices(&devices) == 0 && devices.size() == World::kDevices, "there are devices");
  for (size_t i = 0; i < World::kDevices; ++i) {
    contexts_[i] = OpenDevice(devices[i]);
    Require(contexts_[i] != nullptr, "a device can be opened");
    fcntl(contexts_[i]->async_fd, F_SETFL, O_NONBLOCK);
    ibv_pd* pd = AllocPd(contexts_[i]);
    Add(kPd, pd);
    Add(kMr, RegMr(pd, Arena::memory(), Arena::kBytes / 2, 7));
    Add(kCq, CreateCq(contexts_[i], 8, nullptr, nullptr, 0));
    ibv_srq_init_attr srq{.srq_context = nullptr,
                          .attr = {.max_wr = 8, .max_sge = 2, .srq_limit = 0}};
    Add(kSrq, CreateSrq(pd, &srq));
  }
}

void Program::Step() {
  switch (input_.Below(24)) {
    case 0:
    case 1:
      return Regions();
    case 2:
      return CreateCompletionQueue();
    case 3:
      return ChangeCompletionQueue();
    case 4:
      return CreateReceiveQueue();
    case 5:
      return ChangeReceiveQueue();
    case 6:
    case 7:
      return CreateQueuePair();
    case 8:
    case 9:
      return Connect();
    case 10:
      return ModifyQueuePair();
    case 11:
      return DestroyQueuePair(Any<ibv_qp>(kQp));
    case 12:
    case 13:
    case 14:
      return PostSends();
    case 15:
    case 16:
      return PostReceives();
    case 17:
      return PostBatch();
    case 18:
      return PollExtended();
    case 19:
      return Events();
    case 20:
      return Queries();
    default:
      return PollOne(Inline<ibv_cq>(input_.Flag() ? kCq : kCqEx));
  }
}

void Program::Play() {
  Open();
  for (size_t steps = 0; steps < kMaxSteps && !input_.empty(); ++steps) Step();
}

void Program::Finish() {
  while (!live_[kQp].empty()) {
    auto* qp = static_cast<ibv_qp*>(live_[kQp].back());
    DestroyQueuePair(qp);
    Require(live_[kQp].empty() || live_[kQp].back() != qp, "a queue pair can be destroyed");
  }
  const auto destroy_all = [this](Kind kind, auto destroy) {
    for (void* object : live_[kind]) Require(destroy(object) == 0, "what nobody uses is destroyed");
    live_[kind].clear();
  };
  for (const Kind kind : {kCq, kCqEx}) {
    for (void* cq : live_[kind]) {
      ibv_wc completion;
      Require(ibv_poll_cq(static_cast<ibv_cq*>(cq), 1, &completion) <= 0,
              "nothing completes for a queue pair that is gone");
    }
    destroy_all(kind, [](void* cq) { return DestroyCq(static_cast<ibv_cq*>(cq)); });
  }
  destroy_all(kChannel, [](void* channel) {
    return DestroyCompChannel(static_cast<ibv_comp_channel*>(channel));
  });
  destroy_all(kSrq, [](void* srq) { return DestroySrq(static_cast<ibv_srq*>(srq)); });
  destroy_all(kMr, [](void* mr) { return DeregMr(static_cast<ibv_mr*>(mr)); });
  destroy_all(kPd, [](void* pd) { return DeallocPd(static_cast<ibv_pd*>(pd)); });
  for (ibv_context* context : contexts_) {
    Require(CloseDevice(context) == 0, "a device can be closed");
  }
}

}  // namespace
}  // namespace simhca::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  simhca::fuzz::Input input(bytes, size);
  simhca::fuzz::Program program(input);
  program.Play();
  program.Finish();
  return 0;
}
