// A verbs program for tests of ./simhca ctl: says what it has, then each asynchronous event.
//
// usage: use_device HOW
//   block    a thread sleeps in ibv_get_async_event
//   poll-fd  a thread sleeps in poll() on async_fd, and makes no verbs call until it returns
//   poll-cq  the program's only thread polls a completion queue for ever and looks for events
//   sleep    no thread looks for events; ibv_query_port is all that is called, each millisecond
//   none     nothing of these
// Meanwhile, but for poll-cq and sleep, it does what lines on standard input say.

#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>
#include <thread>

#include "tests/rc_connection.h"

namespace {

void Say(const std::string& text) {
  std::printf("%s\n", text.c_str());
  std::fflush(stdout);
}

std::string Hex(uint32_t number) {
  char text[16];
  std::snprintf(text, sizeof(text), "0x%06x", number);
  return text;
}

void Require(bool condition, const char* what) {
  if (condition) return;
  Say(std::string("cannot ") + what + ": " + std::strerror(errno));
  std::_Exit(1);
}

const char* NameOf(ibv_event_type type) {
  constexpr const char* kNames[] = {
      "CQ_ERR",     "QP_FATAL",   "QP_REQ_ERR",        "QP_ACCESS_ERR", "COMM_EST",
      "SQ_DRAINED", "PATH_MIG",   "PATH_MIG_ERR",      "DEVICE_FATAL",  "PORT_ACTIVE",
      "PORT_ERR",   "LID_CHANGE", "PKEY_CHANGE",       "SM_CHANGE",     "SRQ_ERR",
      "SRQ_LIMIT",  "LAST_WQE",   "CLIENT_REREGISTER", "GID_CHANGE"};
  return type < std::size(kNames) ? kNames[type] : "?";
}

void SayEvent(ibv_async_event& event) {
  std::string line = std::string("event ") + NameOf(event.event_type);
  switch (event.event_type) {
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
    case IBV_EVENT_COMM_EST:
      line += " qp " + Hex(event.element.qp->qp_num);
      break;
    case IBV_EVENT_SRQ_ERR:
      line += " srq";
      break;
    case IBV_EVENT_DEVICE_FATAL:
      break;
    default:
      line += " port " + std::to_string(event.element.port_num);
  }
  ibv_ack_async_event(&event);
  Say(line);
}

// An RC queue pair whose receives come from an SRQ.
class Program {
 public:
  void Open() {
    ibv_device** list = ibv_get_device_list(nullptr);
    Require(list != nullptr && list[0] != nullptr, "find a device");
    context = ibv_open_device(list[0]);
    ibv_free_device_list(list);
    Require(context != nullptr, "open the device");
    pd_ = ibv_alloc_pd(context);
    cq = ibv_create_cq(context, 16, nullptr, nullptr, 0);
    ibv_srq_init_attr srq_attr{};
    srq_attr.attr = {.max_wr = 8, .max_sge = 1, .srq_limit = 0};
    srq_ = ibv_create_srq(pd_, &srq_attr);
    mr_ = ibv_reg_mr(pd_, buffer_, sizeof(buffer_), IBV_ACCESS_LOCAL_WRITE);
    Require(pd_ != nullptr && cq != nullptr && srq_ != nullptr && mr_ != nullptr, "make objects");
    ibv_qp_init_attr attr{};
    attr.send_cq = attr.recv_cq = cq;
    attr.srq = srq_;
    attr.qp_type = IBV_QPT_RC;
    attr.cap = {8, 0, 1, 0, 0};
    qp_ = ibv_create_qp(pd_, &attr);
    Require(qp_ != nullptr, "make a queue pair");
  }

  // What was made before a fatal error goes as at any other time.
  void Close() {
    const int errors[] = {ibv_destroy_qp(qp_), ibv_destroy_srq(srq_), ibv_dereg_mr(mr_),
                          ibv_destroy_cq(cq),  ibv_dealloc_pd(pd_),   ibv_close_device(context)};
    std::string line = "closed";
    for (const int error : errors) line += " " + std::to_string(error);
    Say(line);
  }

  void SayNumbers() {
    uint32_t srqn = 0;
    ibv_get_srq_num(srq_, &srqn);
    Say("ready qp " + Hex(qp_->qp_num) + " srq " + Hex(srqn));
  }

  void Do(const std::string& line) {
    const auto is = [&line](const char* verb) { return line.rfind(verb, 0) == 0; };
    if (is("connect ")) {
      Connect(static_cast<uint32_t>(std::strtoul(line.c_str() + 8, nullptr, 0)));
    } else if (is("send")) {
      Send();
    } else if (is("wait")) {
      SayCompletion();
    } else if (is("receive")) {
      PostReceive();
    } else if (is("state")) {
      SayState();
    } else if (is("port")) {
      SayPort();
    } else if (is("alloc")) {
      errno = 0;
      ibv_pd* pd = ibv_alloc_pd(context);
      Say(pd != nullptr ? "alloc ok" : std::string("alloc ") + std::strerror(errno));
      if (pd != nullptr) ibv_dealloc_pd(pd);
    } else if (is("reopen")) {
      Close();
      Open();
      SayNumbers();
    } else if (is("close")) {
      Close();
      std::_Exit(0);
    }
  }

  void SayPort() {
    ibv_port_attr attr{};
    const int error = ibv_query_port(context, 1, &attr);
    Say(error != 0
            ? std::string("port ") + std::strerror(error)
            : "port " + std::to_string(attr.state) + " phys " + std::to_string(attr.phys_state));
  }

  ibv_context* context = nullptr;
  ibv_cq* cq = nullptr;

 private:
  void Connect(uint32_t peer) {
    simhca::RcConnection connection;
    Require(ibv_query_gid(context, 1, 0, &connection.remote_gid) == 0, "query the GID");
    connection.remote_qpn = peer;
    connection.min_rnr_timer = 12;
    connection.timeout = 12;  // 17 ms
    const char* const failed = simhca::ConnectRc(qp_, connection);
    Require(failed == nullptr, failed);
    PostReceive();
    Say("connected");
  }

  void PostReceive() {
    ibv_sge segment{reinterpret_cast<uintptr_t>(buffer_), sizeof(buffer_), mr_->lkey};
    ibv_recv_wr wr{}, *bad = nullptr;
    wr.sg_list = &segment;
    wr.num_sge = 1;
    const int error = ibv_post_srq_recv(srq_, &wr, &bad);
    if (error != 0) Say(std::string("receive ") + std::strerror(error));
  }

  void Send() {
    ibv_sge segment{reinterpret_cast<uintptr_t>(buffer_), 32, mr_->lkey};
    ibv_send_wr wr{}, *bad = nullptr;
    wr.sg_list = &segment;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    const int error = ibv_post_send(qp_, &wr, &bad);
    if (error != 0) Say(std::string("send ") + std::strerror(error));
  }

  void SayCompletion() {
    ibv_wc wc{};
    while (ibv_poll_cq(cq, 1, &wc) == 0) {
    }
    Say(std::string("completion ") + ibv_wc_status_str(wc.status));
  }

  void SayState() {
    ibv_qp_attr attr{};
    ibv_qp_init_attr init{};
    const int error = ibv_query_qp(qp_, &attr, IBV_QP_STATE, &init);
    Say(error != 0 ? std::string("state ") + std::strerror(error)
                   : "state " + std::to_string(attr.qp_state));
  }

  ibv_pd* pd_ = nullptr;
  ibv_srq* srq_ = nullptr;
  ibv_mr* mr_ = nullptr;
  ibv_qp* qp_ = nullptr;
  char buffer_[64] = {};
};

void WatchEvents(ibv_context* context, bool poll_first) {
  for (;;) {
    pollfd entry{.fd = context->async_fd, .events = POLLIN, .revents = 0};
    if (poll_first) poll(&entry, 1, -1);
    ibv_async_event event;
    if (ibv_get_async_event(context, &event) == 0) SayEvent(event);
  }
}

void PollForEver(const Program& program) {
  fcntl(program.context->async_fd, F_SETFL, O_NONBLOCK);
  for (;;) {
    ibv_wc wc;
    for (int i = 0; i < 1000; ++i) ibv_poll_cq(program.cq, 1, &wc);
    ibv_async_event event;
    if (ibv_get_async_event(program.context, &event) == 0) SayEvent(event);
  }
}

void WatchThePort(ibv_context* context) {
  int before = IBV_PORT_ACTIVE;
  for (;;) {
    ibv_port_attr attr{};
    if (ibv_query_port(context, 1, &attr) == 0 && attr.state != before) {
      before = attr.state;
      Say("port " + std::to_string(before));
    }
    usleep(1000);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string how = argc > 1 ? argv[1] : "";
  static Program program;
  program.Open();
  program.SayNumbers();
  if (how == "poll-cq") PollForEver(program);
  if (how == "sleep") WatchThePort(program.context);
  if (how != "none") std::thread(WatchEvents, program.context, how == "poll-fd").detach();
  for (std::string line; std::getline(std::cin, line);) program.Do(line);
  std::_Exit(0);
}
