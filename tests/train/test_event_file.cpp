// TensorBoard's event files. tests/interop holds what TensorBoard's own reader says of them.
#include "train/records/event_file.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "tests/train/support.hpp"

namespace capstan::testing {
namespace {

namespace fs = std::filesystem;

std::string hex(const std::string& bytes) {
  std::string out;
  for (const char byte : bytes) out += fmt::format("{:02x}", static_cast<unsigned>(static_cast<unsigned char>(byte)));
  return out;
}

std::vector<std::string> event_files(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().filename().string().find("tfevents") != std::string::npos) names.push_back(entry.path().string());
  std::sort(names.begin(), names.end());
  return names;
}

/// The steps of all records of a file; nothing for the record that names the version.
std::vector<std::optional<int64_t>> steps_of(const std::string& file) {
  const std::string content = read_text(file);
  std::vector<std::optional<int64_t>> steps;
  for (size_t at = 0; at < content.size();) {
    uint64_t size = 0;
    std::memcpy(&size, content.data() + at, sizeof(size));
    const std::string data = content.substr(at + 12, size);
    REQUIRE(content.substr(at, size + 16) == framed(data));
    steps.push_back(step_of_event(data));
    at += size + 16;
  }
  return steps;
}

void no_warning(const std::string& line) { FAIL_CHECK(line); }

nlohmann::json train_line(int64_t step) {
  return {{"event", "train"}, {"step", step}, {"loss", 0.5}, {"lr", 1e-3}, {"grad_norm", 2.0}, {"epoch", 1}};
}

TEST_CASE("CRC-32C of RFC 3720, appendix B.4") {
  std::string ascending, descending;
  for (int i = 0; i < 32; ++i) {
    ascending += static_cast<char>(i);
    descending += static_cast<char>(31 - i);
  }
  CHECK(crc32c(std::string(32, '\0')) == 0x8A9136AAu);
  CHECK(crc32c(std::string(32, '\xFF')) == 0x62A8AB43u);
  CHECK(crc32c(ascending) == 0x46DD794Eu);
  CHECK(crc32c(descending) == 0x113FDB5Cu);
  CHECK(crc32c("123456789") == 0xE3069283u);
  CHECK(crc32c("") == 0);
}

TEST_CASE("the mask turns right by 15 and adds a constant") {
  const uint32_t crc = crc32c("123456789");
  CHECK(masked_crc32c("123456789") == ((crc >> 15 | crc << 17) + 0xA282EAD8u));
  CHECK(masked_crc32c("") == 0xA282EAD8u);
}

TEST_CASE("the bytes of an event and of its frame") {
  const std::string event = scalar_event(1.5, 300, {{"a/b", -2.0F}});
  // wall_time 1.5, step 300 = 0xAC 0x02; summary of 12 bytes: value of 10: tag of 3, simple_value -2.
  CHECK(hex(event) ==
        "09000000000000f83f"
        "10ac02"
        "2a0c"
        "0a0a"
        "0a03612f62"
        "15000000c0");
  CHECK(step_of_event(event) == 300);
  const std::string record = framed(event);
  REQUIRE(record.size() == event.size() + 16);
  CHECK(hex(record.substr(0, 8)) == "1a00000000000000");
  CHECK(record.substr(12, event.size()) == event);
}

TEST_CASE("an event without a step, and what is no event") {
  CHECK_FALSE(step_of_event("").has_value());
  CHECK_FALSE(step_of_event("\x1A\x0D"
                            "brain.Event:2")
                  .has_value());
  CHECK_FALSE(step_of_event("\x09\x01").has_value());
  CHECK_FALSE(step_of_event("\x10\xFF").has_value());
  CHECK_FALSE(step_of_event("\x13garbage").has_value());
  CHECK(step_of_event(scalar_event(0, std::numeric_limits<int64_t>::max(), {})) == std::numeric_limits<int64_t>::max());
}

TEST_CASE("a file is kept up to a step, and up to the first record that is not whole") {
  std::string content = framed("");
  std::vector<size_t> ends{content.size()};
  for (const int64_t step : {1, 5, 9}) {
    content += framed(scalar_event(0, step, {{"x", 1.0F}}));
    ends.push_back(content.size());
  }
  CHECK(events_until(content, 9).bytes == ends[3]);
  CHECK(events_until(content, std::numeric_limits<int64_t>::max()).bytes == ends[3]);
  CHECK(events_until(content, 8).bytes == ends[2]);
  CHECK(events_until(content, 0).bytes == ends[0]);
  CHECK(events_until(content.substr(0, content.size() - 1), 9).bytes == ends[2]);
  CHECK(events_until(content.substr(0, 3), 9).bytes == 0);
  CHECK(events_until("", 9).bytes == 0);
  for (const size_t at : {ends[1], ends[1] + 9, ends[1] + 14, ends[2] - 2}) {
    std::string damaged = content;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x40);
    CHECK(events_until(damaged, 9).bytes == ends[1]);
  }
}

TEST_CASE("what follows the kept records is told apart: later steps, a torn end, damage") {
  std::string content = framed("");
  for (const int64_t step : {1, 5}) content += framed(scalar_event(0, step, {{"train/loss", 1.0F}}));
  const size_t before_last = content.size() - framed(scalar_event(0, 5, {{"train/loss", 1.0F}})).size();
  CHECK_FALSE(events_until(content, 5).damaged);
  CHECK_FALSE(events_until(content, 1).damaged);
  CHECK_FALSE(events_until(content.substr(0, content.size() - 3), 5).damaged);
  CHECK(events_until(content + std::string(100, '\0'), 5).bytes == content.size());  // as after a power failure
  CHECK_FALSE(events_until(content + std::string(100, '\0'), 5).damaged);
  // The record of a window that was not logged in full gives way to that of the whole window.
  CHECK(events_until(content, 5, true).bytes == before_last);
  CHECK_FALSE(events_until(content, 5, true).damaged);
  for (const size_t at : {size_t{0}, size_t{9}, size_t{20}, before_last + 1, before_last + 14}) {
    std::string damaged = content;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x40);
    CHECK(events_until(damaged, 5).damaged);
  }
}

TEST_CASE("a validation at the step where a session began stays") {
  const TemporaryFolder folder;
  fs::create_directories(folder / "run");
  const std::string run = (folder / "run").string();
  {
    EventFile file(run, 4, false, no_warning);
    file.add({{"event", "valid"}, {"step", 4}, {"loss", 1.0}, {"bits", 1.0}, {"accuracy", 0.5}});
    file.add(train_line(5));
    file.sync();
  }
  const std::string content = read_text(event_files(run).at(0));
  CHECK(hex(content.substr(12, 1) + content.substr(21, 15)) == "091a0d" + hex("brain.Event:2"));  // wall_time, version
  const EventsKept kept = events_until(content, 4);
  CHECK(contains(content.substr(0, kept.bytes), "valid/loss"));
  CHECK_FALSE(contains(content.substr(0, kept.bytes), "train/loss"));
  CHECK(events_until(content, 3).bytes < kept.bytes);
}

TEST_CASE("the start of a session is told from its values whatever bytes its time has") {
  double time = 0;
  const std::string slashes = "////////";
  std::memcpy(&time, slashes.data(), sizeof(time));
  const std::string start = framed(scalar_event(time, 5, {})),
                    value = framed(scalar_event(time, 4, {{"valid/loss", 1.0F}}));
  CHECK(events_until(start + value, 4).bytes == start.size() + value.size());
}

TEST_CASE("a damaged event file is copied before it is cut, and TensorBoard does not read the copy") {
  const TemporaryFolder folder;
  fs::create_directories(folder / "run");
  const std::string run = (folder / "run").string();
  {
    EventFile first(run, 0, false, no_warning);
    for (int64_t step = 1; step <= 6; ++step) first.add(train_line(step));
    first.sync();
  }
  const std::string file = event_files(run).at(0);
  std::string content = read_text(file);
  content[content.size() / 2] = static_cast<char>(content[content.size() / 2] ^ 1);
  write_text(file, content);
  std::vector<std::string> warnings;
  EventFile second(run, 6, false, [&](const std::string& line) { warnings.push_back(line); });
  second.add(train_line(7));
  REQUIRE(warnings.size() == 1);
  CHECK_MESSAGE((contains(warnings[0], file) && contains(warnings[0], "damaged")), warnings[0]);
  CHECK(event_files(run).size() == 2);
  int copies = 0;
  for (const auto& entry : fs::directory_iterator(run)) copies += read_text(entry.path()) == content ? 1 : 0;
  CHECK(copies == 1);
}

TEST_CASE("a session that goes on begins a new file and leaves no step twice") {
  const TemporaryFolder folder;
  fs::create_directories(folder / "run");
  const std::string run = (folder / "run").string();
  {
    EventFile first(run, 0, false, no_warning);
    for (int64_t step = 1; step <= 6; ++step) first.add(train_line(step));
    first.add({{"event", "valid"}, {"step", 6}, {"loss", nullptr}, {"accuracy", 0.25}});
    first.add({{"event", "train"}, {"step", 7}, {"loss", nullptr}});  // nothing to tell
  }
  REQUIRE(event_files(run).size() == 1);
  CHECK(steps_of(event_files(run)[0]) == std::vector<std::optional<int64_t>>{{}, 1, 2, 3, 4, 5, 6, 6});
  EventFile second(run, 4, false, no_warning);
  CHECK(event_files(run).size() == 1);  // none yet, and nothing is removed: there is nothing to tell
  CHECK(steps_of(event_files(run)[0]).size() == 8);
  second.add(train_line(5));
  REQUIRE(event_files(run).size() == 2);
  CHECK(steps_of(event_files(run)[0]) == std::vector<std::optional<int64_t>>{{}, 1, 2, 3, 4});
  CHECK(steps_of(event_files(run)[1]) == std::vector<std::optional<int64_t>>{{}, 5, 5});  // the first is the start
  EventFile third(run, 4, false, no_warning);  // in the same second perhaps, and from the same step
  third.add(train_line(5));
  size_t fives = 0;
  for (const std::string& file : event_files(run))
    for (const auto& step : steps_of(file)) fives += step == 5 ? 1 : 0;
  CHECK(fives == 2);
}

}  // namespace
}  // namespace capstan::testing
