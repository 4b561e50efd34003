#ifndef SIMHCA_SIM_QUEUES_SHARED_RECEIVE_QUEUE_H_
#define SIMHCA_SIM_QUEUES_SHARED_RECEIVE_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "sim/queues/doorbell_record.h"
#include "sim/queues/event_ring.h"
#include "sim/queues/receive_wqe.h"
#include "sim/timing/receive_fetcher.h"

namespace simhca {

// The device's side of a shared receive queue: a linked list of entries in host memory, which the
// driver extends at its end and the device takes from at its head.
class SharedReceiveQueue {
 public:
  struct Memory {
    std::byte* ring;
    uint32_t entries;  // a power of two
    uint32_t stride;   // bytes of an entry
    std::byte* doorbell_record;
  };

  // `max_limit` is the largest limit that Modify accepts.  `limit_at_once`: arming a limit above
  // the present fill raises the event at once, not at the next receive.
  SharedReceiveQueue(uint32_t srqn, uint32_t pd, const Memory& memory, EventRing* events,
                     uint32_t max_limit, bool limit_at_once);

  uint32_t number() const { return srqn_; }
  uint32_t pd() const { return pd_; }
  // The armed limit; 0 = not armed (man ibv_query_srq).
  uint32_t limit() const { return limit_; }
  // Entries posted and not yet claimed.
  uint32_t fill() const { return static_cast<uint16_t>(posted_.Load() - claimed_); }

  // Takes the entry at the head for one incoming message; nullopt when the queue is empty or has
  // failed: the responder answers with an RNR NAK.  Crossing below the armed limit queues one limit
  // event and disarms it (man ibv_modify_srq).
  std::optional<ReceiveWqe> Claim();

  // Whether Modify would succeed: limit <= max_limit, and after a resize the new capacity holds
  // what is posted and the limit then armed; never after a failure.  Returns 0 or EINVAL.
  struct Change {
    std::optional<uint32_t> limit;
    struct Resize {
      std::byte* ring;
      uint32_t entries;
      uint32_t max_limit;
      uint32_t capacity;
    };
    std::optional<Resize> resize;
  };
  int Modify(const Change& change);

  // A catastrophic error: raises its event, and nothing can be claimed or modified any more (man
  // ibv_get_async_event, IBV_EVENT_SRQ_ERR).
  void Fail();
  bool failed() const { return failed_; }

  // How the device reads the list, under a model; else null.
  ReceiveFetcher* fetcher() { return fetcher_.get(); }
  void set_fetcher(std::unique_ptr<ReceiveFetcher> fetcher) { fetcher_ = std::move(fetcher); }

  void AddUser() { ++users_; }
  void RemoveUser() { --users_; }
  uint32_t users() const { return users_; }

 private:
  void RaiseLimitEvent();

  const uint32_t srqn_;
  const uint32_t pd_;
  Memory memory_;
  DoorbellRecord posted_;
  EventRing* events_;
  uint32_t max_limit_;
  const bool limit_at_once_;
  uint16_t claimed_ = 0;  // modulo 2^16, as the doorbell record is compared
  uint16_t head_ = 0;
  uint16_t last_ = 0xffff;  // taken before head_
  uint32_t limit_ = 0;
  uint32_t users_ = 0;
  bool failed_ = false;
  std::unique_ptr<ReceiveFetcher> fetcher_;
};

}  // namespace simhca

#endif  // SIMHCA_SIM_QUEUES_SHARED_RECEIVE_QUEUE_H_
