#ifndef SIMHCA_SIM_TIMING_RECEIVE_FETCHER_H_
#define SIMHCA_SIM_TIMING_RECEIVE_FETCHER_H_

#include <cstdint>
#include <vector>

#include "sim/timing/pcie_link.h"
#include "sim/timing/time.h"

namespace simhca {

// Brings the WQEs of one SRQ (a linked list in host memory) or one RQ (a ring) to the device, ahead
// of the messages that claim them.
//
// Where WQE k+1 lies is known when WQE k is on the device.  A read brings WQE k and the entries
// after it in memory; if k+1 is one of them, it has come along, otherwise it takes a read of its
// own, one after the other.  The fetcher holds at most `prefetch` WQEs that are not yet claimed,
// and reads as soon as it has room for one: as many as it has room for.
//
// It never looks into the list: a claim says whether it followed its neighbour, and when its WQE
// was read is worked out then.  A read that was made before the claim but finds no room on the link
// before it takes as long as one that is made at the claim.  O(prefetch); no allocation after
// construction.
class ReceiveFetcher {
 public:
  struct Config {
    uint32_t prefetch = 1;    // >= 1
    uint32_t wqe_bytes = 64;  // from one entry to its neighbour, >= 1
  };

  struct Counters {
    uint64_t claims = 0;
    uint64_t reads = 0;
    uint64_t waits = 0;  // claims whose WQE was not yet there
    Duration waited = 0;
  };

  explicit ReceiveFetcher(const Config& config);

  // The device knows at `at` of `entries` more WQEs at the end of the list.  They are not read
  // earlier.  A user that never calls this has a list that was always long enough.
  void Post(Time at, uint32_t entries);

  // A message takes the next WQE at `now`: when that is on the device, at the earliest `now`.
  // `follows_neighbour`: it is the entry after the one that was claimed before it.
  Time Claim(Time now, bool follows_neighbour, PcieLink& link);

  const Counters& counters() const { return counters_; }

 private:
  // Entries from `first` on for which there was room at `at`; at least 1.
  uint32_t EntriesWithRoom(uint64_t first, Time at) const;
  Time& RoomOf(uint64_t entry) { return room_[entry % room_.size()]; }

  const Config config_;
  // When there is room for an entry and it is posted, by its number modulo `prefetch`: of those
  // between the claimed ones and `prefetch` further.
  std::vector<Time> room_;
  uint64_t claimed_ = 0;  // number of the next entry to be claimed
  uint64_t posted_ = 0;

  // The latest read.
  Time issued_ = 0;
  Time head_ = 0;          // its first entry is on the device
  Time last_ = 0;          // all are
  uint64_t read_end_ = 0;  // the number after its last entry, if they are all neighbours

  Time on_device_ = 0;  // the entry claimed last
  Counters counters_;
};

}  // namespace simhca

#endif  // SIMHCA_SIM_TIMING_RECEIVE_FETCHER_H_
