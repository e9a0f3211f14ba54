// A linear classifier that learns from texts as they come, each once: for run/training/online_run.hpp, which the Python
// package uses. tests/train/linear/test_online_classifier.cpp holds the bits on any number of threads, and that
// learning goes on alike after writing and reading.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/safetensors.hpp"
#include "data/batches/example_set.hpp"
#include "models/linear_classifier.hpp"
#include "nn/params/param_store.hpp"
#include "train/linear/adagrad.hpp"

namespace capstan {

/// A text with its labels, in ascending order, and how many times as much as others it counts.
struct OnlineText {
  std::string text;
  LabelSet labels;
  double weight = 1;
};

/// One epoch of AdaGrad (adagrad.hpp) over texts that are not kept. Its memory is that of the table of n-grams,
/// whatever the number of texts. Scales and bias are those of the texts so far. The same texts in the same calls give
/// the same bits on any number of threads. Weights of classes must be equal or listed.
class OnlineClassifier {
 public:
  /// config.buckets 0: as many as a table of 512 MB has.
  OnlineClassifier(const LinearClassifierConfig& config, int64_t classes, bool multi_label);

  /// Learns from texts. May stop (core/base/stop.hpp): texts that it has learnt from by then count. Not for several
  /// threads at once. Throws std::invalid_argument, and learns nothing, if a weight is negative or not finite.
  void learn(const std::vector<OnlineText>& texts);
  int64_t texts() const { return texts_; }
  /// The configuration with the choices that were made: words, min_texts and buckets.
  const LinearClassifierConfig& config() const { return config_; }

  /// For each text C logits, those of a LinearClassifier with the parameters that fill() writes.
  std::vector<std::vector<float>> logits(const std::vector<std::string>& texts) const;
  /// The parameters of a LinearClassifier.
  void fill(ParamStore& params) const;

  /// Writes what fill() does not have: the accumulators and the counts. Returns the checksum of the file.
  std::string write(const std::string& path) const;
  /// Goes on from the parameters of a classifier. `rest`: what write() wrote; null: it is estimated from `params`.
  void read(const SafetensorsFile& params, const SafetensorsFile* rest);

 private:
  /// ln(1 + count), from a table where the count is small. An n-gram has the scale ln(1 + texts) + 1 - ln(1 + texts
  /// with it).
  double logarithm(uint32_t count) const;
  std::vector<double> bias() const;
  void read_row(std::string_view text, uint32_t itself, RowScratch& scratch, RowValues& values) const;
  void learn_group(const OnlineText* texts, int64_t count);
  const FileTensor& table(const SafetensorsFile& file, const char* name, int64_t columns = 1) const;
  void read_rest(const SafetensorsFile& rest);
  void guess_rest(const SafetensorsFile& params);

  LinearClassifierConfig config_;
  int64_t classes_;
  bool multi_label_;
  AdaGrad solver_;
  int64_t texts_ = 0;
  std::vector<double> counts_of_classes_;
  double weight_of_texts_ = 0;      // the sum of the weights of all texts so far
  std::vector<double> logarithms_;  // ln(1 + i) for small i
  ZeroPages<uint32_t> texts_with_;  // by bucket
};

}  // namespace capstan
