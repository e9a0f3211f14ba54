// What a run's model computes, for the Python scripts beside this file:
//
//   run_numbers RUN INPUT OUTPUT
//
// INPUT has tokens and segment_ids (B, T) and may have labels, as a batch has them, and prefix_ids (B, T), the segments of
// prompts that are read in both directions. OUTPUT gets logits and, with labels, the mean loss and gradient.<name>.
#include <cstdio>
#include <exception>

#include "core/autograd/tape.hpp"
#include "core/io/safetensors.hpp"
#include "run/setup/run_model.hpp"

namespace capstan {
namespace {

Ids read_ids(const SafetensorsFile& file, const std::string& name) {
  const FileTensor& tensor = file.at(name);
  const std::vector<double> values = tensor.to_doubles();
  return Ids(Shape(tensor.shape), std::vector<int32_t>(values.begin(), values.end()));
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
    add("loss", Array(Shape{1}, std::vector<real>{static_cast<real>(static_cast<double>(loss.sum.value()[0]) / targets)}));
    tape.backward(loss.sum, static_cast<real>(1 / targets));
    for (const Param& param : params.params())
      if (param.table < 0)
        add("gradient." + param.name,
            Array(param.var.shape(), std::vector<real>(params.grads() + param.offset,
                                                       params.grads() + param.offset + param.var.size())));
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
  capstan::compute(capstan::open_run(argv[1]), capstan::SafetensorsFile(argv[2]), argv[3]);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
