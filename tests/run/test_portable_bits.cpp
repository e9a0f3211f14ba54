// train.kernels: portable. What every system, and the linear classifier, is after some training, as bits: the same from
// any build, with any number of threads, on Intel, AMD and ARM64. docs/reliability.md, On another machine says where
// they were met.
#include <doctest/doctest.h>

#include <fstream>

#include "core/base/random.hpp"
#include "core/io/hash.hpp"
#include "core/io/safetensors.hpp"
#include "core/products/gemm_backend.hpp"
#include "run/run.hpp"
#include "tests/support/temporary_folder.hpp"

namespace capstan {
namespace {

namespace fs = std::filesystem;

/// A folder with data that are the same everywhere: words of a small vocabulary, some of which tell a class.
class Data : public TemporaryFolder {
 public:
  Data() {
    std::ofstream prose(path("text.txt")), rows(path("rows.tsv"));
    RandomStream random({61, 0});
    const auto word = [&] {
      std::string letters;
      for (uint64_t left = 1 + random.below(5); left > 0; --left) {
        const uint64_t step = random.below(3);
        letters += static_cast<char>('a' + step * random.below(8));
      }
      return letters;
    };
    for (int line = 0; line < 300; ++line) {
      std::string text;
      for (int i = 0; i < 12; ++i) text += word() + (i == 11 ? "" : " ");
      prose << text << "\n";
      const char* const label = line % 3 == 0 ? "first" : line % 3 == 1 ? "second" : "third";
      rows << label << "\t" << text << " " << (line % 5 == 0 ? "ab" : label) << "\n";
    }
  }

  /// Weights and optimizer of a run with this configuration.
  std::string bits(const std::string& configuration, const std::string& precision, int threads) const {
    std::ofstream(path("config.yaml")) << "folder: " << path() << "\nname: run\nseed: 3\nthreads: " << threads << "\n"
                                       << configuration;
    fs::remove_all(folder() / "run");
    train(ConfigOptions{{path("config.yaml")},
                        {"train.kernels=portable", "train.precision=" + precision, "train.progress=none"}});
    std::string all;
    for (const char* const name : {"model.safetensors", "optimizer.safetensors"}) {
      const fs::path file = *this / (std::string("run/checkpoints/last/") + name);
      if (!fs::exists(file)) continue;
      const SafetensorsFile tensors(file.string());
      for (const FileTensor& tensor : tensors.tensors()) {
        const std::vector<float> values = tensor.to_floats();
        all += tensor.name;
        all.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
      }
    }
    return hash_hex(all);
  }
};

/// No portable kernels at this level of the CPU.
bool cannot() {
  if (portable_obstacle().empty()) return false;
  MESSAGE("skipped: " << portable_obstacle());
  return true;
}

struct Golden {
  const char *mixer, *float32, *bf16;
};

/// After 50 steps.
constexpr Golden golden[] = {
    {"{type: aft-full}", "7a4a83b128ed3c00297e50767c685a8c", "964c3ddf12d9db0718c2f5dec22abeae"},
    {"{type: aft-simple}", "95c597815699979c32f71692579de762", "8189997204cf72d6f1c61045adc29905"},
    {"{type: aft-local, window: 8}", "a96b322e6d8f45eae1ad19264df91e15", "41f3e295aa1200338c600d045f1e88e4"},
    {"{type: aft-conv, window: 8, heads: 4}", "e19dfebdc65f119a08be29bad22112bb", "2b214875e56011c0f9ca9d6f9fbbc147"},
    {"{type: fastformer, heads: 4}", "966f2588ccb072d876cffe8b078f2fb0", "a13c5701b461bbe93542718004bca40d"},
    {"{type: gau, key_dim: 16}", "22ee1cd8f66b13e1b1e6b0988d768bda", "65967e16a8b3c73322594160282c6e05"},
    {"{type: flash, key_dim: 16, chunk: 16}", "e264b48856a98359b7968e979bc03957", "1b965db8b289da927e7bfb64da546388"},
    {"{type: attention, heads: 4}", "101936430669cd3bef1a99ebbd5a8d83", "3305106ef29e3b6ff4801a20f93e4358"},
};

TEST_CASE("portable kernels: the bits of every system after 50 steps") {
  if (cannot()) return;
  const Data data;
  for (const Golden& system : golden) {
    const std::string configuration =
        "data: {type: text, train: [" + data.path("text.txt") +
        "], valid_fraction: 0.1, sequence_length: 40, tokenizer: char}\n"
        "model: {type: language-model, width: 32, max_length: 40, dropout: 0.1, layers: [{mixer: " +
        system.mixer +
        ", feed_forward: {type: gelu, expansion: 2}, repeat: 2}]}\n"
        "train: {steps: 50, batch_size: 6, lr: 3e-3, keep_optimizer: true, lanes: 2}\n";
    INFO(std::string(system.mixer));
    CHECK(data.bits(configuration, "float32", 2) == system.float32);
    CHECK(data.bits(configuration, "float32", 1) == system.float32);
    CHECK(data.bits(configuration, "bf16", 2) == system.bf16);
  }
  set_gemm_backend(fastest_gemm_backend());
}

TEST_CASE("portable kernels: the bits of the other models, of Muon and of large products") {
  if (cannot()) return;
  struct Case {
    const char *configuration, *bits;
  };
  const Data data;
  const std::string labelled = "data: {type: labelled, train: [" + data.path("rows.tsv") + "], valid_fraction: 0.2, ";
  for (const Case& c : {
           Case{"tokenizer: byte}\nmodel: {type: linear-classifier, words: [1, 2], characters: [2, 3]}\n"
                "train: {steps: 1}\n",
                "f6b25b9be77f68101f47e149da6522c8"},
           Case{"tokenizer: byte}\nmodel: {type: linear-classifier, words: [], characters: [1, 3], buckets: 512}\n"
                "train: {steps: 1}\n",
                "243574c2a349d1025ea8d4ce58f998b1"},
           Case{"tokenizer: word}\nmodel: {type: text-classifier, width: 48, "
                "layers: [{mixer: {type: attention, heads: 3, rotary: true}}]}\n"
                "train: {steps: 50, optimizer: {type: muon}, lanes: 1}\n",
                "aa20a5dfc5dfa6897ff7c9c70ba4d273"},
           Case{"tokenizer: char}\nmodel: {type: text-classifier, width: 256, layers: [{mixer: {type: aft-simple}}]}\n"
                "train: {steps: 5, batch_size: 32, lanes: 1}\n",
                "4dcf696008b236bbfdf7ac70f6fcaf06"},
       }) {
    INFO(std::string(c.configuration));
    for (const int threads : {1, 2}) CHECK(data.bits(labelled + c.configuration, "float32", threads) == c.bits);
  }
  set_gemm_backend(fastest_gemm_backend());
}

}  // namespace
}  // namespace capstan
