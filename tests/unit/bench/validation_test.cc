#include "bench/model/validation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

namespace simhca::bench {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

constexpr const char* kShipped = "bench/model/published.toml";

// The first five lines of a row; what `rest` says begins in line 6.
std::string Row(const std::string& rest) {
  return "[[row]]\nname = \"a\"\nsource = \"here\"\npublished = 10\ntolerance = 5\n" + rest;
}

std::string Scenario(const std::string& rest) {
  return Row("profile = \"connectx6dx\"\nmetric = \"Gb/s\"\n" + rest);
}

std::string ErrorOf(const std::string& text) { return ParsePublishedRows(text, "my.toml").error; }

// The verdict on the only row of `text`, or on the last of several.
Verdict VerdictOn(const std::string& text) {
  const PublishedRows published = ParsePublishedRows(text, "my.toml");
  EXPECT_EQ(published.error, "");
  if (!published.error.empty()) return {};
  return Validate(published.rows, [](size_t) {}).back();
}

TEST(PublishedRows, ShippedOnesAreUnderstood) {
  const PublishedRows published = LoadPublishedRows(kShipped);
  EXPECT_EQ(published.error, "");
  EXPECT_GT(published.rows.size(), 40u);
  EXPECT_FALSE(published.fitted.empty());
}

TEST(PublishedRows, ImpossibleValuesAreRefusedWithLineAndRange) {
  EXPECT_EQ(ErrorOf(Scenario("qps = 0\n")), "my.toml:8: qps: accepted is 1 to 16384");
  EXPECT_EQ(ErrorOf(Scenario("mtu = 1000\n")),
            "my.toml:8: mtu: accepted is one of 256, 512, 1024, 2048, 4096");
  EXPECT_EQ(ErrorOf(Scenario("mtu = 8192\n")),
            "my.toml:8: mtu: accepted is one of 256, 512, 1024, 2048, 4096");
  EXPECT_EQ(ErrorOf(Scenario("receives = 0\n")), "my.toml:8: receives: accepted is 1 to 16384");
  EXPECT_EQ(ErrorOf(Scenario("outstanding = 0\n")),
            "my.toml:8: outstanding: accepted is 1 to 16384");
  EXPECT_EQ(ErrorOf(Scenario("min_rnr_timer = 32\n")),
            "my.toml:8: min_rnr_timer: accepted is 0 to 31");
  EXPECT_EQ(ErrorOf(Scenario("queue = \"srq\"\nreceives = 256\nreceive_entries = 256\n")),
            "my.toml:10: receive_entries: accepted is a power of two of at least 257");
  EXPECT_EQ(ErrorOf(Scenario("receives = 4\nwatermark = 2\n")),
            "my.toml:9: watermark: needs queue = \"srq\"");
  EXPECT_EQ(ErrorOf(Scenario("qps = 16384\noutstanding = 1024\n")),
            "my.toml:9: outstanding: accepted are at most 2097152 of all queue pairs, in powers of "
            "two for each");
}

TEST(PublishedRows, CostsHaveTheRangesOfProfiles) {
  EXPECT_EQ(ErrorOf(Scenario("costs = { wire_bits_per_second = \"0 Gb/s\" }\n")),
            "my.toml:8: costs.wire_bits_per_second: accepted is 1 Mb/s to 10000 Gb/s, a text with "
            "its unit of bit/s, Mb/s, Gb/s");
  EXPECT_EQ(ErrorOf(Scenario("costs = { qp_cache_entries = 0 }\n")),
            "my.toml:8: costs.qp_cache_entries: accepted is 1 to 16777216");
  EXPECT_THAT(ErrorOf(Scenario("costs = { cpu_poll = 100 }\n")),
              StartsWith("my.toml:8: costs.cpu_poll: accepted is "));
  EXPECT_THAT(ErrorOf(Scenario("costs = { cpu_pole = \"1 ns\" }\n")),
              StartsWith("my.toml:8: unknown key costs.cpu_pole; accepted are doorbell_latency, "));
}

TEST(PublishedRows, UnknownAndMissingKeysAreRefused) {
  EXPECT_THAT(ErrorOf(Scenario("colour = \"red\"\n")),
              StartsWith("my.toml:8: unknown key \"colour\"; accepted are name, source, use, "));
  EXPECT_EQ(ErrorOf("[[rows]]\n"), "my.toml:1: unknown key \"rows\"; accepted are row, fitted");
  EXPECT_THAT(ErrorOf(Row("metric = \"Gb/s\"\n")), HasSubstr(": profile is missing"));
  EXPECT_THAT(ErrorOf(Row("profile = \"connectx5\"\n")), HasSubstr(": metric is missing"));
  EXPECT_THAT(ErrorOf(Row("profile = \"nosuch\"\nmetric = \"Gb/s\"\n")),
              StartsWith("my.toml:6: profile: there is no profile \"nosuch\""));
  EXPECT_THAT(ErrorOf(""), HasSubstr("accepted is a list of tables [[row]]"));
  EXPECT_THAT(ErrorOf("[[row]\n"), StartsWith("my.toml:1: "));
}

TEST(PublishedRows, TolerancesThatAreNoneAreRefused) {
  for (const char* tolerance : {"0", "-1", "200", "\"about\"", "{ min = 2, max = 1 }", "[1]"}) {
    EXPECT_EQ(ErrorOf("[[row]]\nname = \"a\"\nsource = \"here\"\nprofile = \"generic\"\n"
                      "metric = \"Gb/s\"\npublished = 1\ntolerance = " +
                      std::string(tolerance)),
              "my.toml:7: tolerance: accepted is a percentage above 0 and up to 100, \"exact\", "
              "\"at most\", or { min = ..., max = ... }")
        << tolerance;
  }
}

TEST(PublishedRows, NoMoreParametersAreFittedThanRowsCalibrate) {
  const std::string fitted =
      "[[fitted]]\nprofile = \"connectx6dx\"\nparameter = \"costs.cache_miss\"\nrows = [\"a\"]\n";
  const std::string row = Scenario("use = \"calibrate\"\n");
  EXPECT_EQ(ErrorOf(row + fitted), "");
  EXPECT_EQ(ErrorOf(row + fitted + fitted),
            "my.toml:13: 2 fitted parameters; accepted are as many as there are rows of use "
            "\"calibrate\", 1");
  EXPECT_THAT(ErrorOf(Scenario("use = \"check\"\n") + fitted),
              HasSubstr("rows: \"a\" is no row of use \"calibrate\""));
}

TEST(Validation, ACalibratedRowIsWithinItsTolerance) {
  PublishedRows published = LoadPublishedRows(kShipped);
  std::erase_if(published.rows, [](const PublishedRow& row) {
    return row.name != "SRQ in completion order, 10 QPs";
  });
  ASSERT_EQ(published.rows.size(), 1u);
  const Verdict verdict = Validate(published.rows, [](size_t) {})[0];
  EXPECT_TRUE(verdict.ok);
  ASSERT_TRUE(verdict.model.has_value());
  EXPECT_NEAR(static_cast<double>(*verdict.model), 60.67, 0.07 * 60.67);
}

TEST(Validation, TheSameRowFailsWithAnotherReadLatency) {
  PublishedRows published = LoadPublishedRows(kShipped);
  std::erase_if(published.rows, [](const PublishedRow& row) {
    return row.name != "SRQ in completion order, 10 QPs";
  });
  ASSERT_EQ(published.rows.size(), 1u);
  published.rows[0].scenario.profile.costs.pcie_read_latency = 800 * kNanosecond;
  EXPECT_FALSE(Validate(published.rows, [](size_t) {})[0].ok);
}

TEST(Validation, ASimulationThatStandsStillFailsWithItsMessage) {
  // Two messages, and the program wants three.
  const std::string text = Scenario("qps = 1\noutstanding = 2\nmessages = 2\nwarm_up = 0\n");
  PublishedRows published = ParsePublishedRows(text + "repeat = false\n", "my.toml");
  ASSERT_EQ(published.error, "");
  published.rows[0].scenario.messages = 3;
  const Verdict verdict = Validate(published.rows, [](size_t) {})[0];
  EXPECT_FALSE(verdict.ok);
  EXPECT_FALSE(verdict.model.has_value());
  EXPECT_THAT(verdict.reason,
              HasSubstr("nothing has completed for 2 s of simulated time, after 2 messages"));
  std::ostringstream out;
  PrintReport(published, {verdict}, out);
  EXPECT_THAT(out.str(), ContainsRegex("a +10 +- +Gb/s +- +5 % +FAILED +check"));
  EXPECT_THAT(out.str(), HasSubstr("a: nothing has completed"));
  EXPECT_THAT(out.str(), HasSubstr("1 rows: 0 ok, 1 FAILED"));
}

TEST(Validation, ExactMeansAllPublishedDigits) {
  const std::string head =
      "[[row]]\nname = \"a\"\nsource = \"x\"\nprofile = \"connectx3\"\n"
      "quantity = \"pcie_write_rate\"\nbytes = 64\ntolerance = \"exact\"\n";
  EXPECT_TRUE(VerdictOn(head + "published = 42.09\n").ok);
  EXPECT_FALSE(VerdictOn(head + "published = 42.08\n").ok);
  EXPECT_FALSE(VerdictOn(head + "published = 43\n").ok);
}

TEST(Validation, NumbersOf64BitsAreCompared) {
  const std::string head =
      "[[row]]\nname = \"a\"\nsource = \"x\"\nprofile = \"connectx5\"\ntolerance = \"exact\"\n"
      "quantity = \"profile_value\"\nfield = \"limits.completion_timestamp_mask\"\n";
  EXPECT_TRUE(VerdictOn(head + "published = 0x7fffffffffffffff\n").ok);
  EXPECT_FALSE(VerdictOn(head + "published = 0x7ffffffffffffffe\n").ok);
}

TEST(Validation, ATimerThatDiffersIsNamed) {
  PublishedRows published = LoadPublishedRows(kShipped);
  std::erase_if(published.rows,
                [](const PublishedRow& row) { return row.kind != PublishedRow::Kind::kRnrTimers; });
  ASSERT_EQ(published.rows.size(), 1u);
  EXPECT_TRUE(Validate(published.rows, [](size_t) {})[0].ok);
  published.rows[0].values[25] = 61.41;
  const Verdict verdict = Validate(published.rows, [](size_t) {})[0];
  EXPECT_FALSE(verdict.ok);
  EXPECT_EQ(verdict.reason, "code 25 is another value in the model");
}

TEST(Validation, RatiosAreTakenOfTheModelsValues) {
  const std::string first =
      Row("profile = \"connectx3\"\nquantity = \"pcie_write_rate\"\nbytes = 64\n");
  const std::string second =
      "[[row]]\nname = \"b\"\nsource = \"x\"\ntolerance = \"exact\"\npublished = 1\n"
      "same_as = \"a\"\nratio_to = \"a\"\n";
  EXPECT_TRUE(VerdictOn(first + second).ok);
  EXPECT_THAT(ErrorOf(second), HasSubstr("same_as: accepted is the name of a row before this one"));
}

TEST(Validation, JsonHasARowForEachScenario) {
  PublishedRows published = ParsePublishedRows(
      Row("profile = \"connectx3\"\nquantity = \"pcie_write_rate\"\nbytes = 64\n"), "my.toml");
  std::ostringstream out;
  PrintJson(published, {{.model = 10.25, .error = 2.5, .ok = true, .reason = ""}}, out);
  EXPECT_EQ(out.str(),
            "{\n  \"rows\": [\n    {\"scenario\": \"a\", \"published\": 10, \"model\": 10.25, "
            "\"unit\": \"Gb/s\", \"error\": 2.5, \"tolerance\": \"5 %\", \"verdict\": \"ok\", "
            "\"use\": \"check\", \"reason\": \"\"}\n  ]\n}\n");
}

}  // namespace
}  // namespace simhca::bench
