#include <cerrno>
#include <optional>

#include "tests/conformance/fixture.h"

namespace simhca::conformance {
namespace {

// Events that other tests pass over, because every connection raises them.
class Events : public RcTest {
 protected:
  // The next event of whatever kind, acknowledged.
  std::optional<ibv_async_event> Next(Nanoseconds within) {
    Deadline deadline(device_, within);
    do {
      ibv_async_event event{};
      if (ibv_get_async_event(device_.context(), &event) == 0) {
        ibv_ack_async_event(&event);
        return event;
      }
      EXPECT_TRUE(errno == EAGAIN || errno == EWOULDBLOCK) << errno;
    } while (!deadline.Passed());
    return std::nullopt;
  }
};

TEST_F(Events, FirstPacketInRtrEstablishesTheCommunicationOnce) {
  const Qp requester = MakeQp(device_, pd_.get(), RequesterOptions());
  const Qp responder = MakeQp(device_, pd_.get(), ResponderOptions());
  BringTo(device_, requester.get(), IBV_QPS_RTS,
          ConnectionAttributes(device_, responder->qp_num, {}));
  BringTo(device_, responder.get(), IBV_QPS_RTR,
          ConnectionAttributes(device_, requester->qp_num, {}));
  for (uint64_t id = 0; id < 2; ++id) {
    ASSERT_EQ(0, PostReceive(responder.get(), id, {sink_.Sge(0, 32)}));
    SendAndExpectSuccess(requester.get(), {.segments = {source_.Sge(0, 32)}});
  }
  const std::optional<ibv_async_event> event = Next(kPatience);
  ASSERT_TRUE(event);
  EXPECT_EQ(IBV_EVENT_COMM_EST, event->event_type);
  EXPECT_EQ(responder.get(), event->element.qp);
  EXPECT_FALSE(Next(kQuiet)) << "the second message tells nothing new";
}

TEST_F(Events, FirstPacketInRtsTellsNothing) {
  const Link link = MakeLink();  // both in RTS
  ASSERT_EQ(0, PostReceive(link.responder.get(), 1, {sink_.Sge(0, 32)}));
  SendAndExpectSuccess(link.requester.get(), {.segments = {source_.Sge(0, 32)}});
  EXPECT_FALSE(Next(kQuiet));
}

}  // namespace
}  // namespace simhca::conformance
