// What a run's model computes, for the Python scripts beside this file:
//
//   run_numbers RUN INPUT OUTPUT
//
// INPUT has tokens and segment_ids (B, T) and may have labels, as a batch has them, and prefix_ids (B, T), the segments
// of prompts that are read in both directions. OUTPUT gets logits and, with labels, the mean loss and gradient.<name>.
// Of an INPUT called *.txt, OUTPUT gets the ids, of a linear classifier the logits of each line.
#include <cstdio>
#include <exception>
#include <sstream>

#include "core/autograd/tape.hpp"
#include "core/io/file.hpp"
#include "core/io/safetensors.hpp"
#include "core/strings/affixes.hpp"
#include "run/setup/run_model.hpp"

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
    const Array logits = run.model->model().text_logits(lines);
    return write_safetensors(output, {{"logits", DType::f32, logits.shape().to_vector(), logits.data()}});
  }
  const std::vector<int32_t> ids = run.tokenizer->encode(text);
  write_safetensors(output, {{"ids", DType::i32, {static_cast<int64_t>(ids.size())}, ids.data()}});
}

void compute(const SavedRun& run, const SafetensorsFile& input, const std::string& output) {
  ParamStore& params = run.model->params();
  Batch batch;
  batch.tokens = read_ids(input, "tokens");
  batch.segment_ids = read_ids(input, "segment_ids");
  Context context{Segments(batch.segment_ids)};
  if (input.find("prefix_ids") != nullptr) context.prefixes = Segments(read_ids(input, "prefix_ids"));
  std::vector<TensorToWrite> tensors;
  std::vector<Array> kept;
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
  const capstan::SavedRun run = capstan::open_run(argv[1]);
  if (capstan::ends_with(argv[2], ".txt"))
    capstan::read_text(run, capstan::read_file(argv[2]), argv[3]);
  else
    capstan::compute(run, capstan::SafetensorsFile(argv[2]), argv[3]);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
