#ifndef SIMHCA_SIM_TRANSPORT_PACKET_SENDER_H_
#define SIMHCA_SIM_TRANSPORT_PACKET_SENDER_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "sim/transport/queue_pair.h"
#include "sim/wire/headers.h"

namespace simhca {

// Sends one packet of a connected queue pair to its peer: reserve, write, commit.
class PacketSender {
 public:
  explicit PacketSender(QueuePair& qp) : qp_(qp) {}

  // Room for the headers of `bth.opcode` and `payload` bytes.  Afterwards headers() and payload()
  // may be written, unless the packet has nowhere to go.
  Link::Status Prepare(const Bth& bth, uint32_t payload) {
    bth_ = bth;
    bth_.dest_qpn = qp_.attributes().dest_qpn;
    bth_.pad = PadBytes(payload);
    payload_bytes_ = payload;
    if (!qp_.remote_port()) return Link::Status::kUnreachable;
    if (qp_.services().ports_down[qp_.config().port_index]) [[unlikely]] {
      qp_.services().counters.Add(Counter::kDropped);
      return Link::Status::kUnreachable;
    }
    const size_t header = HeaderBytes(bth.opcode);
    const Link::Reservation room = qp_.services().link.Reserve(
        bth_.dest_qpn, static_cast<uint32_t>(header + payload + bth_.pad));
    bytes_ = room.bytes;
    if (room.status == Link::Status::kReady) payload_ = bytes_ + header;
    return room.status;
  }

  std::byte* headers() { return bytes_ + Bth::kSize; }  // extension headers
  std::byte* payload() { return payload_; }

  // `gathered`: bytes of the payload that the device has to read from the host.
  void Commit(uint32_t gathered) {
    bth_.Emit(bytes_);
    std::memset(payload_ + payload_bytes_, 0, bth_.pad);
    const AddressVector& av = qp_.attributes().av;
    PacketAddress address;
    address.source_port = qp_.config().port_index;
    address.destination_port = *qp_.remote_port();
    address.source_gid_index = av.sgid_index;
    address.traffic_class = av.traffic_class;
    address.hop_limit = av.hop_limit;
    Services& services = qp_.services();
    DeviceTiming* timing = qp_.config().timing;
    const uint32_t bytes = static_cast<uint32_t>(payload_ - bytes_) + payload_bytes_ + bth_.pad;
    services.link.Commit(address, timing != nullptr ? timing->Depart(qp_, bytes, gathered) : 0);
    services.counters.Add(Counter::kPacketsSent);
    services.counters.Add(Counter::kBytesSent, payload_bytes_);
  }

 private:
  QueuePair& qp_;
  Bth bth_;
  std::byte* bytes_ = nullptr;
  std::byte* payload_ = nullptr;
  uint32_t payload_bytes_ = 0;
};

}  // namespace simhca

#endif  // SIMHCA_SIM_TRANSPORT_PACKET_SENDER_H_
