// state.json is {"state": ..., "xxh3_128": checksum of the state's JSON}, run.json has "run" in place of "state".
// Fields are listed once, for writing and reading, apart from those that need a rule of their own (best_*, threshold).
// tests/train/test_run_state.cpp.
#include "train/checkpoints/run_state.hpp"

#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "core/io/hash.hpp"
#include "core/io/json.hpp"
#include "core/machine/kernel_levels.hpp"
#include "core/products/blas_info.hpp"
#include "core/strings/strings.hpp"

namespace capstan {

/// The JSON library finds the two by the type of their argument, so they are not in an unnamed namespace.
static void to_json(nlohmann::json& out, const ParentCheckpoint& a) {
  out = {{"path", a.path}, {"fingerprint", a.fingerprint}, {"step", a.step}};
  if (!a.note.empty()) out["note"] = a.note;
}
static void from_json(const nlohmann::json& in, ParentCheckpoint& a) {
  in.at("path").get_to(a.path);
  in.at("fingerprint").get_to(a.fingerprint);
  a.step = whole_number_at(in, "step", -1, int64_t{1} << 53);
  if (in.contains("note")) in.at("note").get_to(a.note);
}

namespace {

using nlohmann::json;

std::string checksum(const json& content) { return hash_hex(json_text(content)); }

std::string with_checksum(const char* name, const json& content) {
  return json_text(json{{name, content}, {"xxh3_128", checksum(content)}}, 2) + "\n";
}

/// What `read` returns for the content under this name. Throws Error naming `path`, with the remedy, when the text is
/// damaged.
template <class Read>
auto checked_content(const std::string& text, const std::string& path, const char* name, const char* remedy,
                     const Read& read) {
  const auto damaged = [&](const std::string& why) {
    return Error(fmt::format("{}: the file is damaged: not the JSON of a run's {}{}; {}", path, name, why, remedy));
  };
  try {
    const json file = parse_json(text, {path});
    const json& content = file.at(name);
    if (file.at("xxh3_128").get<std::string>() != checksum(content))
      throw Error(fmt::format("{}: the content does not match its checksum: the file is damaged; {}", path, remedy));
    return read(content);
  } catch (const JsonError& problem) {
    throw damaged(fmt::format(" ({})", problem.what()));
  } catch (const json::exception&) {
    throw damaged("");
  }
}

/// The one list of the fields: calls f(name, field) for each.
template <class State, class Visit>
void for_fields(State& s, const Visit& f) {
  f("run", s.run);
  f("files", s.files);
  f("step", s.step);
  f("epoch", s.epoch);
  f("batch", s.batch);
  f("optimizer_step", s.optimizer_step);
  f("tokens", s.tokens);
  f("best_step", s.best_step);
  f("best_weights", s.best_weights);
  f("stalled", s.stalled);
  f("validated_step", s.validated_step);
  f("validates", s.validates);
  f("seconds", s.seconds);
  f("window_loss", s.window_loss);
  f("window_targets", s.window_targets);
  f("seed", s.seed);
  f("identity", s.identity);
  f("settings", s.settings);
  f("machine", s.machine);
  f("window_steps", s.window_steps);
  f("metrics_bytes", s.metrics_bytes);
  f("metrics_checksum", s.metrics_checksum);
  f("working_folder", s.working_folder);
  f("ancestry", s.ancestry);
  f("slim", s.slim);
  f("rule", s.rule);
}

/// Throws JsonError for a number that a run cannot have: counts are far below 2^53, and -1 says that there is none yet.
void read_field(const json& content, const char* name, int64_t& field) {
  field = whole_number_at(content, name, -1, int64_t{1} << 53);
}
void read_field(const json& content, const char* name, uint64_t& field) {
  if (!content.at(name).is_number_unsigned()) throw JsonError(fmt::format("{} is not a whole number", name));
  field = content[name].get<uint64_t>();
}
template <class T>
void read_field(const json& content, const char* name, T& field) {
  content.at(name).get_to(field);
}

void check_identity(const Identity& saved, const Identity& now, const std::string& folder, const char* otherwise) {
  std::string differences;
  const auto note = [&](const std::string& name, const std::string& what) {
    const char* const other = name == "classes" || name == "data" ? "other" : "another";
    differences += fmt::format("{}{} {}: {}", differences.empty() ? "" : "; and with ", other, name, what);
  };
  for (const auto& [name, text] : saved) {
    const auto found = now.find(name);
    if (found == now.end())
      note(name, "it is not given now");
    else if (found->second != text)
      note(name, first_difference(text, found->second));
  }
  for (const auto& [name, text] : now)
    if (saved.count(name) == 0) note(name, "it had none");
  if (differences.empty()) return;
  throw Error(
      fmt::format("{} holds a run with {}; continue with what it was started with{}", folder, differences, otherwise));
}

}  // namespace

std::string to_json(const RunState& state) {
  json content;
  content["format"] = run_format;
  const auto put = [&](const char* name, const auto& field) { content[name] = field; };
  for_fields(state, put);
  content["best_loss"] = nullptr;
  for (const auto& [name, value] : state.best) content["best_" + name] = value;
  if (state.threshold) content["threshold"] = *state.threshold;
  return with_checksum("state", content);
}

RunState run_state_from_json(const std::string& text, const std::string& path) {
  return checked_content(text, path, "state", "use another checkpoint", [&](const json& content) {
    const int64_t format = content.contains("format") ? whole_number_at(content, "format", 1, int64_t{1} << 53) : 1;
    if (format != run_format)
      throw NewerFile(fmt::format("{}: {} made this run (its format is {}, this version reads {}): use that version",
                                  path, format > run_format ? "a newer version of Capstan" : "Capstan 0.3 or older",
                                  format, run_format));
    RunState state;
    const auto take = [&](const char* name, auto& field) { read_field(content, name, field); };
    for_fields(state, take);
    for (const Metric& metric : metrics())
      if (const auto value = content.find(std::string("best_") + metric.name);
          value != content.end() && !value->is_null())
        state.best[metric.name] = value->get<double>();
    if (content.contains("threshold")) state.threshold = content["threshold"].get<double>();
    return state;
  });
}

std::string new_run_id() {
  std::random_device system;
  return hash_hex(fmt::format("{:08x}{:08x}{:08x}{:08x}", system(), system(), system(), system()));
}

std::string to_json(const RunMark& mark) { return with_checksum("run", {{"id", mark.id}, {"last", mark.last}}); }

RunMark run_mark_from_json(const std::string& text, const std::string& path) {
  return checked_content(text, path, "run", "remove it, and training makes it anew", [](const json& content) {
    return RunMark{content.at("id").get<std::string>(), whole_number_at(content, "last", -1, int64_t{1} << 53)};
  });
}

void check_resumable(const RunState& saved, const RunState& now, const std::string& folder, const char* otherwise) {
  check_identity(saved.identity, now.identity, folder, otherwise);
  const auto check_same = [&](const std::string& name, const std::string& was, const std::string& is) {
    if (was != is)
      throw Error(fmt::format("{} holds a run with another {}: was {}, is now {}; use that one{}", folder, name, was,
                              is, otherwise));
  };
  check_same("seed", std::to_string(saved.seed), std::to_string(now.seed));
  const auto setting = [](const RunState& state, const char* key) {
    const auto found = state.settings.find(key);
    return found == state.settings.end() ? std::string() : found->second;
  };
  for (const char* const key : {"batch_size", "batch_tokens", "optimizer", "kernels"})
    check_same(fmt::format("train.{}", key), setting(saved, key), setting(now, key));
  const auto start = [&](const RunState& state) { return setting(state, "init_from"); };
  if (!start(now).empty() && start(now) != start(saved))
    throw Error(fmt::format(
        "{} holds a run that began with {}: train.init_from ({}) would have no effect on it; choose another name, or "
        "remove the key to continue that run",
        folder, start(saved).empty() ? "random weights" : "the weights of " + start(saved), start(now)));
  const auto frozen = [](const RunState& state) {
    std::string patterns;
    for (const auto& [key, value] : state.settings)
      if (starts_with(key, "freeze.")) patterns += (patterns.empty() ? "" : ", ") + value;
    return patterns.empty() ? std::string("none") : patterns;
  };
  check_same("train.freeze", frozen(saved), frozen(now));
}

std::string to_text(const ParentCheckpoint& ancestor) {
  return fmt::format("{}{}, fingerprint {}{}{}", ancestor.path,
                     ancestor.step >= 0 ? fmt::format(", step {}", ancestor.step) : "", ancestor.fingerprint,
                     ancestor.note.empty() ? "" : ", ", ancestor.note);
}

std::string first_difference(const std::string& saved, const std::string& now) {
  std::istringstream a(saved), b(now);
  for (;;) {
    std::string was, is;
    const bool more_a = static_cast<bool>(std::getline(a, was)), more_b = static_cast<bool>(std::getline(b, is));
    if (!more_a && !more_b) return "";
    if (!more_a || !more_b || was != is)
      return fmt::format("was \"{}\", is now \"{}\"", more_a ? was : "(nothing)", more_b ? is : "(nothing)");
  }
}

std::vector<std::string> changes(const Settings& saved, const Settings& now) {
  std::vector<std::string> lines;
  for (const auto& [key, value] : now) {
    const auto was = saved.find(key);
    if (was != saved.end() && was->second != value)
      lines.push_back(fmt::format("{} was {}, is now {}", key, was->second, value));
  }
  return lines;
}

Settings this_machine(const TrainConfig& config) {
  if (config.kernels == KernelChoice::portable) return {{"kernels", "portable"}};
  const BlasInfo blas = blas_info();
  Settings machine{{"SIMD", kernel_level()},
                   {"BLAS", blas.version + ", " + blas.threading},
                   {"BLAS core", blas.core},
                   {"float products", blas.float_products}};
  if (config.precision == Precision::bf16) machine["bf16 products"] = blas.bf16_products;
  return machine;
}

}  // namespace capstan
