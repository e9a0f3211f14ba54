// train.init_vectors: word vectors that exist as the start of an embedding.
#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/io/json.hpp"
#include "tests/cli/support/samples.hpp"

namespace capstan::testing {
namespace {

Words training(const std::string& file, const Words& more) {
  const Words settings{"data.tokenizer={type: word, min_count: 1}", "model.width=4", "train.init_vectors=" + file};
  return train_words("classifier.yaml", settings) + more;
}

/// The row of a word in the embedding of a run.
std::vector<float> row_of(const Workplace& place, const std::string& run_folder, const std::string& word) {
  const nlohmann::json tokenizer = parse_json(place.read(run_folder + "/tokenizer.json"));
  const Words words = tokenizer.at("words");
  const auto at = std::find(words.begin(), words.end(), word) - words.begin() + 2;  // after two special ones
  const std::vector<float> all = tensor_of(place, run_folder + "/checkpoints/last/model.safetensors", "embed.weight");
  return {all.begin() + 4 * at, all.begin() + 4 * at + 4};
}

}  // namespace

TEST_CASE("word vectors start the embedding of the words that they are of: with and without a header, packed, frozen") {
  const SamplePlace place;
  const std::string vectors =
      "of 9 9 9 9\nfine 1 -2.5 3e-1 0.25\nnot a word 1 2 3 4\nsad -1 0 1 1e-60\nfine 7 7 7 7\nDay 1 1 1 1\n";
  place.write("glove.txt", vectors);
  place.write("words.vec", "6 4\n" + vectors);
  place.write("marked.txt",
              "\xef\xbb\xbf"
              "fine 1 -2.5 3e-1 0.25\nsad -1 0 1 0\n");
  succeed(place, training("marked.txt", {"name=marked", "train.freeze=[embed.*]"}));
  CHECK(row_of(place, "runs/marked", "fine") == std::vector<float>{1, -2.5F, 0.3F, 0.25F});
  REQUIRE(run_shell(place, "gzip -k words.vec").code == 0);
  for (const char* const file : {"glove.txt", "words.vec", "words.vec.gz"}) {
    INFO(file);
    const std::string name = std::string("name=") + (file[0] == 'g'                   ? "glove"
                                                     : file[7] == 'e' && file[9] != 0 ? "gz"
                                                                                      : "vec");
    const Outcome trained = succeed(place, training(file, {name, "train.freeze=[embed.*]"}));
    check_contains(trained.err, {"word vectors: 2 of ", std::string("are in ") + file + ", among 6 vectors"});
    const std::string run_folder = "runs/" + name.substr(5);
    CHECK(row_of(place, run_folder, "fine") == std::vector<float>{1, -2.5F, 0.3F, 0.25F});
    CHECK(row_of(place, run_folder, "sad") == std::vector<float>{-1, 0, 1, 0});
    CHECK(std::abs(row_of(place, run_folder, "day")[0]) < 0.2F);  // as without vectors
  }
  // They are trained on unless they are frozen; a run that goes on needs the file no more.
  succeed(place, training("words.vec", {"name=free"}));
  CHECK(row_of(place, "runs/free", "fine") != std::vector<float>{1, -2.5F, 0.3F, 0.25F});
  fs::remove(place / "words.vec");
  succeed(place, training("words.vec", "name=free train.steps=8"));
}

TEST_CASE_FIXTURE(Samples, "files that are no word vectors of the model's width are refused by the line") {
  struct Case {
    const char *what, *content, *says;
    int code = 1;
  };
  const Case cases[] = {
      {"another width, by the header", "2 3\nfine 1 2 3\nsad 1 2 3\n",
       "wrong.vec:1: the vectors have 3 numbers, but "
       "model.width is 4: set model.width=3"},
      {"another width, without a header", "fine 1 2 3\nsad 1 2 3\n", "wrong.vec:1: the vectors have 3 numbers"},
      {"a short line", "fine 1 2 3 4\nsad 1 2 3\n", "wrong.vec:2: expected a word and 4 numbers, found 4 fields"},
      {"fewer vectors than the header says", "3 4\nfine 1 2 3 4\n", "line 1 says 3 vectors, but there are 1"},
      {"no finite number", "fine 1 2 nan 4\n", "wrong.vec:1: number 3 is 'nan': expected a finite number"},
      {"no number", "of 1 2 3 4\nfine 1 x 3 4\n", "wrong.vec:2: number 2 is 'x'"},
      {"a number that is too large", "fine 1 2 3 1e99\n", "wrong.vec:1: number 4 is '1e99'"},
      {"none of the words", "Fine 1 2 3 4\n", "none of the"}};
  for (const Case& c : cases) {
    place.write("wrong.vec", c.content);
    check_refused(place, c.what, training("wrong.vec", {"name=wrong"}), {c.says}, c.code);
  }
  std::string long_file = "1000 4\n";
  for (int i = 0; i < 1000; ++i)
    long_file += "word" + std::to_string(i * i % 7919) + " 0.125 " + std::to_string(i) + " 3 4\n";
  place.write("long.vec", long_file);
  REQUIRE(run_shell(place, "gzip -c long.vec | head -c 3000 > cut.vec.gz").code == 0);
  check_refused(place, "a packed file that is cut", training("cut.vec.gz", {"name=wrong"}),
                "cut.vec.gz: the gzip file is truncated ... (after line ");
  check_refused(place, "no file", training("none.vec", {"name=wrong"}), "train.init_vectors ... none.vec", 2);
  check_refused(place, "beside init_from", training("long.vec", "name=wrong train.init_from=long.vec"),
                "train.init_vectors ... give one of them", 2);
}

}  // namespace capstan::testing
