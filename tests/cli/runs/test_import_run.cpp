// Runs that are imported: every command that reads a run works on them.
#include <doctest/doctest.h>

#include "tests/cli/support/interruption.hpp"
#include "tests/support/source_dir.hpp"

namespace capstan::testing {
namespace {

std::string state_dict(const std::string& name) {
  return source_path("tests/parity/fixtures/" + name + ".safetensors");
}

void check_prints(const Outcome& outcome, const std::vector<std::string>& says) {
  for (const std::string& part : says) CHECK_MESSAGE(contains(outcome.out + outcome.err, part), part);
}

/// Ids below 19, as a text.
std::string number_lines(int64_t lines, const std::string& label = "") {
  std::string text;
  for (int64_t line = 0; line < lines; ++line) {
    if (!label.empty()) text += std::to_string(line % 5) + label;
    for (int64_t i = 0; i < 20; ++i) text += (i > 0 ? " " : "") + std::to_string(1 + (i * 7 + line * 3) % 18);
    text += "\n";
  }
  return text;
}

TEST_CASE("an imported language model generates, scores, evaluates and is trained further") {
  const Workplace place;
  place.write("text.txt", number_lines(60));
  succeed(place, {"import", state_dict("public_flash_model"), "--run", "runs/flash", "--causal", "--chunk", "8",
                  "--shift-tokens", "--set", "data.train=[text.txt]", "data.sequence_length=20"});
  check_prints(succeed(place, "inspect runs/flash"), {"flash", "imported from FLASHTransformer"});
  const Outcome written = succeed(place, {"generate", "runs/flash", "--prompt", "1 8 15", "-n", "5"});
  CHECK(lines_of(written.out).at(0).rfind("1 8 15 ", 0) == 0);
  check_prints(succeed(place, "eval runs/flash --split valid"), {"loss"});
  place.write("lines.txt", number_lines(2));
  CHECK(lines_of(succeed(place, "score runs/flash lines.txt").out).size() >= 2);
  succeed(place, "verify runs/flash");
  // Its own configuration, under another name; every parameter is found.
  check_prints(succeed(place,
                       "train --config runs/flash/config.yaml --set name=more train.steps=2 train.init_from=runs/flash "
                       "train.init_strict=true train.batch_size=4"),
               {"loaded    output.weight"});
  check_prints(succeed(place, "inspect runs/more"), {"started from", "imported from FLASHTransformer"});
}

TEST_CASE("an imported classifier and an imported masked model predict, evaluate and are trained further") {
  const Workplace place;
  place.write("train.tsv", number_lines(60, "\t"));
  place.write("names.txt", "a\nb\nc\nd\ne\n");
  place.write("texts.txt", number_lines(3));
  succeed(place, {"import", state_dict("public_fastformer_model"), "--run", "runs/fast", "--classes", "names.txt",
                  "--set", "data.train=[train.tsv]", "data.max_length=24"});
  const Outcome labels = succeed(place, "predict runs/fast texts.txt");
  CHECK(lines_of(labels.out).size() >= 3);
  check_prints(succeed(place, "eval runs/fast --split valid"), {"accuracy"});
  check_prints(succeed(place,
                       "train --config runs/fast/config.yaml --set name=more train.steps=2 train.init_from=runs/fast "
                       "train.init_strict=true train.batch_size=4"),
               {"loaded    head.weight"});

  place.write("text.txt", number_lines(60));
  succeed(place, {"import", state_dict("public_gau_alpha"), "--run", "runs/gau", "--mask-token", "3", "--set",
                  "data.train=[text.txt]", "data.sequence_length=20"});
  check_prints(succeed(place, "eval runs/gau --split valid"), {"loss"});
  check_prints(succeed(place,
                       "train --config runs/gau/config.yaml --set name=on train.steps=2 train.init_from=runs/gau "
                       "train.init_strict=true train.batch_size=4"),
               {"loaded    embed.weight"});
  // A tokenizer fits only if it has as many tokens.
  place.write("ids.json", "{\"kind\": \"number\", \"size\": 19}");
  succeed(place, {"import", state_dict("public_gau_alpha"), "--run", "runs/ids", "--mask-token", "3", "--tokenizer",
                  "ids.json"});
  check_refused(place, "another tokenizer",
                {"import", state_dict("public_gau_alpha"), "--run", "runs/bytes", "--mask-token", "3", "--tokenizer",
                 "runs/none.json"},
                "runs/none.json");
  place.write("few.json", "{\"kind\": \"number\", \"size\": 12}");
  check_refused(
      place, "another vocabulary",
      {"import", state_dict("public_gau_alpha"), "--run", "runs/few", "--mask-token", "3", "--tokenizer", "few.json"},
      "few.json: 12 tokens, but the model's vocabulary has 19");
}

TEST_CASE("a name that is not UTF-8 is refused with it, and nothing is written") {
  const Workplace place;
  check_refused(
      place, "a byte that is no text",
      {"import", state_dict("public_flash"), "--chunk", "8", "--into", "blocks\xff.mixer", "-o", "out.safetensors"},
      "blocks\\ufffd.mixer ... is not UTF-8");
  CHECK(std::filesystem::is_empty(place.folder()));
}

}  // namespace
}  // namespace capstan::testing
