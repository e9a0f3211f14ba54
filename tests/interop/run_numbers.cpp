// What a run's model computes, for the Python scripts beside this file:
//
//   run_numbers RUN INPUT OUTPUT
//
// INPUT has tokens and segment_ids (B, T) and may have labels, as a batch has them, and prefix_ids (B, T), the segments
// of prompts that are read in both directions. OUTPUT gets logits and, with labels, the mean loss and gradient.<name>;
// of a masked language model, whose labels are not read, also masked_tokens and masked_labels (B, T), -100 elsewhere.
// Of an INPUT called *.txt, OUTPUT gets the ids, of a linear classifier the logits of each line. Of an INPUT with
// prompt (1, T) and search (largest number of tokens, width of the beam, stop token or -1), OUTPUT gets the best texts
// that the model writes: text.0, text.1, ... and the log probability of each.
#include <cstdio>
#include <exception>
#include <sstream>

#include "core/autograd/tape.hpp"
#include "core/io/file.hpp"
#include "core/io/safetensors.hpp"
#include "core/strings/strings.hpp"
#include "models/generation/beam_search.hpp"
#include "models/generation/generate.hpp"
#include "models/linear_classifier.hpp"
#include "models/masked_language_model.hpp"
#include "run/setup/saved_run.hpp"

namespace capstan {
namespace {

Ids read_ids(const SafetensorsFile& file, const std::string& name) {
  const FileTensor& tensor = file.at(name);
  const std::vector<double> values = tensor.to_doubles();
  return Ids(Shape(tensor.shape), std::vector<int32_t>(values.begin(), values.end()));
}

void read_text(const SavedRun& run, const std::string& text, const std::string& output) {
  if (facts_of(run.config.model).reads_texts) {
    std::vector<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    const Array logits = run.model->model().linear_classifier().text_logits(lines);
    write_safetensors(output, {{"logits", DType::f32, logits.shape().to_vector(), logits.data()}});
    return;
  }
  const std::vector<int32_t> ids = run.tokenizer->encode(text);
  write_safetensors(output, {{"ids", DType::i32, {static_cast<int64_t>(ids.size())}, ids.data()}});
}

void write(const SavedRun& run, const SafetensorsFile& input, const std::string& output) {
  const Ids prompt = read_ids(input, "prompt"), search = read_ids(input, "search");
  const std::vector<int32_t> tokens(prompt.data(), prompt.data() + prompt.size());
  const Model& model = run.model->that_predicts(Predicts::next_token);
  const int64_t most = search.data()[0], width = search.data()[1];
  const int32_t stop = search.data()[2];
  std::vector<Hypothesis> found;
  if (width == 1) {
    GenerateOptions options;
    options.sampling.temperature = 0;
    options.max_tokens = most;
    options.log_probabilities = true;
    if (stop >= 0) options.stop_token = stop;
    const Generated text = generate(model, tokens, options);
    found.push_back({text.tokens, text.log_probability});
  } else {
    GenerateOptions options;
    options.beam = width;
    options.max_tokens = most;
    options.stop_token = std::max(stop, 0);
    if (stop < 0) options.banned = {0};
    found = beam_search(model, tokens, options);
  }
  std::vector<TensorToWrite> tensors;
  std::vector<float> scores;
  for (const Hypothesis& text : found) {
    tensors.push_back({fmt::format("text.{}", scores.size()),
                       DType::i32,
                       {static_cast<int64_t>(text.tokens.size())},
                       text.tokens.data()});
    scores.push_back(static_cast<float>(text.log_probability));
  }
  tensors.push_back({"scores", DType::f32, {static_cast<int64_t>(scores.size())}, scores.data()});
  write_safetensors(output, std::move(tensors));
}

void compute(const SavedRun& run, const SafetensorsFile& input, const std::string& output) {
  ParamStore& params = run.model->params();
  Batch batch;
  batch.tokens = read_ids(input, "tokens");
  batch.segment_ids = read_ids(input, "segment_ids");
  batch.examples = Ids(Shape{batch.tokens.dim(0)}, std::vector<int32_t>(static_cast<size_t>(batch.tokens.dim(0)), 0));
  Context context{Segments(batch.segment_ids)};
  if (input.find("prefix_ids") != nullptr) context.prefixes = Segments(read_ids(input, "prefix_ids"));
  std::vector<TensorToWrite> tensors;
  std::vector<Array> kept;
  std::vector<int32_t> ids, labels;
  const auto add = [&](const std::string& name, const Array& array) {
    kept.push_back(array);
    tensors.push_back({name, DType::f32, array.shape().to_vector(), array.data()});
  };
  {
    const TapePause pause;
    add("logits", run.model->model().logits(batch.tokens, context).value());
  }
  if (input.find("labels") != nullptr) {
    batch.labels = read_ids(input, "labels");
    context.prefixes = {};
    if (const auto* const model = dynamic_cast<const MaskedLanguageModel*>(&run.model->model()); model != nullptr) {
      const MaskedTokens masked = model->masking().apply(batch, context.segments, context.training, context.step);
      const std::vector<int64_t> shape = batch.tokens.shape().to_vector();
      labels.assign(static_cast<size_t>(batch.tokens.size()), -100);
      for (size_t i = 0; i < masked.places.size(); ++i)
        labels[static_cast<size_t>(masked.places[i])] = masked.targets[i];
      ids.assign(masked.tokens.data(), masked.tokens.data() + masked.tokens.size());
      tensors.push_back({"masked_tokens", DType::i32, shape, ids.data()});
      tensors.push_back({"masked_labels", DType::i32, shape, labels.data()});
    }
    params.clear_grads();
    TapeScope tape;
    const TaskLoss loss = run.model->model().loss(batch, context);
    const double targets = static_cast<double>(loss.targets);
    add("loss",
        Array(Shape{1}, std::vector<real>{static_cast<real>(static_cast<double>(loss.sum.value()[0]) / targets)}));
    tape.backward(loss.sum, static_cast<real>(1 / targets));
    for (const Param& param : params.params())
      if (param.table < 0)
        add("gradient." + param.name,
            Array(param.var.shape(),
                  std::vector<real>(params.grads() + param.offset, params.grads() + param.offset + param.var.size())));
  }
  write_safetensors(output, std::move(tensors));
}

}  // namespace
}  // namespace capstan

int main(int argc, char** argv) try {
  if (argc != 4) {
    std::fprintf(stderr, "run_numbers RUN INPUT OUTPUT\n");
    return 2;
  }
  const capstan::SavedRun run = capstan::open_run(argv[1], capstan::ParamMemory::allocated);
  if (capstan::ends_with(argv[2], ".txt"))
    capstan::read_text(run, capstan::read_file(argv[2]), argv[3]);
  else if (const capstan::SafetensorsFile input(argv[2]); input.find("prompt") != nullptr)
    capstan::write(run, input, argv[3]);
  else
    capstan::compute(run, input, argv[3]);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
