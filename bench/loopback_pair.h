#ifndef SIMHCA_BENCH_LOOPBACK_PAIR_H_
#define SIMHCA_BENCH_LOOPBACK_PAIR_H_

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace simhca::bench {

// Which device the benchmarks use, and by which GID.
struct DeviceChoice {
  std::string name;  // empty: the first one listed
  int gid_index = 0;
};

struct PairOptions {
  uint32_t depth = 4096;        // receives that the SRQ takes, sends that the send queue takes
  uint32_t message_bytes = 8;   // largest message
  bool extended_sends = false;  // the sender is created for ibv_wr_send
};

template <auto Destroy>
struct Destroyer {
  template <typename T>
  void operator()(T* object) const {
    Destroy(object);
  }
};
template <typename T, auto Destroy>
using Handle = std::unique_ptr<T, Destroyer<Destroy>>;

// Two connected RC queue pairs of one device and process: `sender`, and a receiver whose receives
// come from an SRQ.  Public verbs only, so it is the same on hardware.
//
// Every function that can fail records the first failure in error() and returns false; later calls
// then do nothing.
class LoopbackPair {
 public:
  LoopbackPair(const DeviceChoice& choice, const PairOptions& options);

  bool ok() const { return error_.empty(); }
  const std::string& error() const { return error_; }

  ibv_context* context() const { return context_.get(); }
  ibv_srq* srq() const { return srq_.get(); }
  ibv_cq* receive_cq() const { return receive_cq_.get(); }
  ibv_qp* sender() const { return sender_.get(); }
  // Null unless extended_sends.
  ibv_qp_ex* extended_sender() const { return ibv_qp_to_qp_ex(sender_.get()); }
  // How many receives the SRQ takes.
  uint32_t capacity() const { return capacity_; }
  ibv_sge send_segment(uint32_t bytes) const;

  // Posts `count` receives in calls of at most `batch` work requests each.
  bool PostReceives(uint32_t count, uint32_t batch);
  // Posts one send; with `signaled` it will complete.
  bool PostSend(uint32_t bytes, bool signaled);
  // Sends `count` messages that have receives, and waits for the last one's completion at the
  // sender: the receive completions are then ready, or about to be.
  bool Send(uint32_t count, uint32_t bytes);
  // Polls until `count` completions have been taken; all have to be successful.
  bool Await(ibv_cq* cq, uint32_t count);
  bool AwaitSends(uint32_t count) { return Await(send_cq_.get(), count); }
  bool AwaitReceives(uint32_t count) { return Await(receive_cq_.get(), count); }

  // Arms the SRQ's limit; 0 disarms.
  bool ArmLimit(uint32_t limit);
  // Waits for the SRQ's limit event and acknowledges it.
  bool AwaitLimitEvent();

  bool Fail(const std::string& what, int code);

 private:
  bool Open(const DeviceChoice& choice);
  bool CreateQueues(const PairOptions& options);
  bool CreateQps(const PairOptions& options);
  bool Connect(ibv_qp* qp, ibv_qp* peer, int gid_index);
  void PrepareReceives(uint32_t bytes);

  std::string error_;
  Handle<ibv_context, ibv_close_device> context_;
  Handle<ibv_pd, ibv_dealloc_pd> pd_;
  std::vector<std::byte> buffer_;  // what is sent, then what is received
  Handle<ibv_mr, ibv_dereg_mr> region_;
  Handle<ibv_cq, ibv_destroy_cq> send_cq_;
  Handle<ibv_cq, ibv_destroy_cq> receive_cq_;
  Handle<ibv_srq, ibv_destroy_srq> srq_;
  Handle<ibv_qp, ibv_destroy_qp> sender_;
  Handle<ibv_qp, ibv_destroy_qp> receiver_;
  uint32_t capacity_ = 0;
  ibv_sge receive_segment_{};
  std::vector<ibv_recv_wr> receives_;  // a list of work requests, all into the same buffer
};

}  // namespace simhca::bench

#endif  // SIMHCA_BENCH_LOOPBACK_PAIR_H_
