#include "sim/timing/trace_writer.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <fstream>
#include <sstream>
#include <string>

namespace simhca {
namespace {

std::string Contents(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(TraceWriterTest, WritesTheFormOfChromesTraceViewer) {
  const std::string path = testing::TempDir() + "trace.json";
  TraceWriter trace;
  ASSERT_EQ(trace.Open(path), 0);
  trace.NameDevice(0, "simhca0");
  trace.NameTrack(0, 2, "receiver");
  trace.Slice(0, 2, "packet", 1'500'000, 1'500'000 + 88'480);
  trace.Count(0, "SRQ 5 fill", 2'000'001, 17);
  trace.Instant(0, 3, "SRQ limit reached", 3 * kMillisecond);
  trace.Close();
  EXPECT_EQ(trace.error(), 0);
  EXPECT_EQ(Contents(path), R"([
{"ph":"M","name":"process_name","pid":0,"args":{"name":"simhca0"}},
{"ph":"M","name":"thread_name","pid":0,"tid":2,"args":{"name":"receiver"}},
{"ph":"X","name":"packet","pid":0,"tid":2,"ts":1.500000,"dur":0.088480},
{"ph":"C","name":"SRQ 5 fill","pid":0,"ts":2.000001,"args":{"value":17}},
{"ph":"i","name":"SRQ limit reached","pid":0,"tid":3,"ts":3000.000000,"s":"p"}
]
)");
}

TEST(TraceWriterTest, SaysWhatIsWrongWithAFile) {
  TraceWriter trace;
  EXPECT_EQ(trace.Open("/nonexistent/trace.json"), ENOENT);
  EXPECT_FALSE(trace.open());
  trace.Slice(0, 0, "packet", 0, 1);  // goes nowhere
  ASSERT_EQ(trace.Open("/dev/full"), 0);
  trace.Close();
  EXPECT_EQ(trace.error(), ENOSPC);
}

}  // namespace
}  // namespace simhca
