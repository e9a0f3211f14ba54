// Each kind of tokenizer becomes a pipeline of the library's own steps (normalizer, pre-tokenizer, model, decoder),
// chosen so that every text gets the same ids. Regular expressions here repeat the rules of data/tokenizers.
// tests/interop/transformers_tokenizers.py.
#include "run/exports/tokenizer_json.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "core/base/error.hpp"
#include "core/io/json.hpp"
#include "core/strings/base64.hpp"
#include "core/strings/utf8.hpp"
#include "data/tokenizers/sentencepiece_model.hpp"
#include "data/tokenizers/sentencepiece_tokenizer.hpp"

namespace capstan {
using nlohmann::json;

namespace {

/// The byte alphabet of GPT-2: a printable character for each byte.
std::string byte_letter(uint8_t byte) {
  // Printable bytes are themselves, the others are counted from U+0100 on (GPT-2's bytes_to_unicode).
  const auto printable = [](int b) { return (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174; };
  uint32_t point = byte;
  if (!printable(byte)) {
    point = 256;
    for (int other = 0; other < byte; ++other) point += printable(other) ? 0 : 1;
  }
  std::string letter;
  append_utf8(letter, point);
  return letter;
}

json sequence(const char* type, const char* parts, const std::vector<json>& steps) {
  if (steps.empty()) return nullptr;
  return steps.size() == 1 ? steps.front() : json{{"type", type}, {parts, steps}};
}
json replace(const json& pattern, const std::string& content) {
  return {{"type", "Replace"}, {"pattern", pattern}, {"content", content}};
}
json text(const std::string& pattern) { return {{"String", pattern}}; }
json regex(const std::string& pattern) { return {{"Regex", pattern}}; }
json split(const json& pattern, const char* behaviour) {
  return {{"type", "Split"}, {"pattern", pattern}, {"behavior", behaviour}, {"invert", false}};
}

/// How text becomes pieces (normaliser, splitter), pieces become ids (model), and ids become text (decoder).
struct Pipeline {
  std::vector<json> normaliser, splitter, decoder;
  json model;
};

Pipeline bytes() {
  json vocabulary;
  for (int byte = 0; byte < 256; ++byte) vocabulary[byte_letter(static_cast<uint8_t>(byte))] = byte;
  const json level = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", false}, {"use_regex", false}};
  return {{}, {level}, {level}, {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", json::array()}}};
}

Pipeline characters(const json& saved) {
  json vocabulary = {{"<unk>", 0}};
  int32_t id = 0;
  for (const json& point : saved.at("code_points")) {
    std::string letter;
    append_utf8(letter, point.get<uint32_t>());
    vocabulary[letter] = ++id;
  }
  const json model = {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", json::array()}, {"unk_token", "<unk>"}};
  return {{}, {}, {{{"type", "Fuse"}}}, model};
}

/// Words are joined by one blank, lines by '\n'.
std::vector<json> word_decoder() {
  // WordPiece puts a blank in front of every piece that lacks its prefix. No word begins with this one.
  return {{{"type", "WordPiece"}, {"prefix", std::string(1, '\0')}, {"cleanup", false}},
          {{"type", "Fuse"}},
          replace(text(" \n"), "\n"),
          replace(text("\n "), "\n")};
}

/// The word tokenizer: words and line ends are tokens.
Pipeline words(const json& saved) {
  const bool by_blanks = saved.at("split").get<std::string>() == "blanks";
  json vocabulary = {{"<unk>", 0}, {"\n", 1}};
  int32_t id = 1;
  for (const json& word : saved.at("words")) vocabulary[word.get<std::string>()] = ++id;
  Pipeline words{{}, {}, word_decoder(), {}};
  if (saved.at("lower_case").get<bool>())
    for (char c = 'A'; c <= 'Z'; ++c)
      words.normaliser.push_back(replace(text(std::string(1, c)), std::string(1, static_cast<char>(c - 'A' + 'a'))));
  if (by_blanks)  // the word tokenizer reads a word <eos> as the end of a line, too
    words.normaliser.push_back(replace(regex("(?<![^ \\t\\r\\x0B\\f\\n])<eos>(?![^ \\t\\r\\x0B\\f\\n])"), "\n"));
  words.splitter = {
      split(regex("[ \\t\\r\\x0B\\f]+"), "Removed"),
      split(by_blanks ? text("\n") : regex("(?:[A-Za-z0-9]|[^\\x00-\\x7F])+|[\\x00-\\x2F:-@\\[-`{-\\x7F]"),
            "Isolated")};
  words.model = {{"type", "WordLevel"}, {"vocab", vocabulary}, {"unk_token", "<unk>"}};
  return words;
}

using Piece = SentencePieceContent::Piece;
using PieceType = SentencePieceContent::Type;

/// SentencePiece joins the neighbours whose joint piece has the highest score. The library has a list of pairs instead,
/// an earlier one joining first: all ways to cut a piece in two pieces, by falling score of the whole.
json merges_of(const std::vector<Piece>& pieces) {
  std::unordered_map<std::string, size_t> ids;
  std::vector<size_t> order;
  for (size_t id = 0; id < pieces.size(); ++id) {
    if (pieces[id].type != PieceType::normal) continue;
    ids.emplace(pieces[id].text, id);
    order.push_back(id);
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return pieces[a].score > pieces[b].score; });
  json merges = json::array();
  for (const size_t id : order) {
    const std::string& whole = pieces[id].text;
    for (size_t at = 1; at < whole.size(); ++at) {
      if ((static_cast<uint8_t>(whole[at]) & 0xc0) == 0x80) continue;
      const std::string left = whole.substr(0, at), right = whole.substr(at);
      if (ids.count(left) > 0 && ids.count(right) > 0) merges.push_back({left, right});
    }
  }
  return merges;
}

/// The pieces of a SentencePiece model, as BPE with merges or as Unigram with scores.
json sentencepiece_tokens(const SentencePieceContent& content) {
  if (content.is_bpe) {
    json vocabulary;
    for (size_t id = 0; id < content.pieces.size(); ++id) vocabulary[content.pieces[id].text] = id;
    return {{"type", "BPE"},        {"vocab", vocabulary},
            {"unk_token", "<unk>"}, {"merges", merges_of(content.pieces)},
            {"fuse_unk", true},     {"byte_fallback", content.byte_fallback}};
  }
  json vocabulary = json::array();
  size_t unknown = 0;
  for (const Piece& piece : content.pieces) {
    if (piece.type == PieceType::unknown) unknown = vocabulary.size();
    // The scores of byte pieces have no effect, since bytes only stand for characters that no piece has.
    vocabulary.push_back({piece.text, static_cast<double>(piece.score)});
  }
  return {{"type", "Unigram"}, {"vocab", vocabulary}, {"unk_id", unknown}, {"byte_fallback", content.byte_fallback}};
}

/// A SentencePiece model that Capstan has learnt. Throws Error for one that changes texts, whose rules are not known
/// here.
Pipeline sentencepiece(const json& saved) {
  const SentencePieceContent content =
      sentencepiece_content(from_base64(saved.at("model").get<std::string>()), "tokenizer.json");
  if (content.changes_texts || (!content.is_bpe && !content.is_unigram))
    throw Error(
        "export: the SentencePiece model changes texts by rules of its own (a normalisation, a blank in front, blanks "
        "left out), or is neither bpe nor unigram; only models that capstan train has learnt can be exported");
  const bool has_newline =
      std::any_of(content.pieces.begin(), content.pieces.end(), [](const Piece& piece) { return piece.text == "\n"; });
  if (!has_newline) throw Error("export: the SentencePiece model has no piece for the end of a line");
  const std::string blank = "\xe2\x96\x81";
  Pipeline pipeline{{}, {}, {}, sentencepiece_tokens(content)};
  pipeline.normaliser.push_back(replace(text(" "), blank));
  // Ends of lines and tabs are pieces of their own; a word has its blanks in front.
  pipeline.splitter = {split(regex("\\n|\\t|" + blank + "*[^\\n\\t" + blank + "]+|" + blank + "+"), "Isolated")};
  pipeline.decoder = {{{"type", "ByteFallback"}}, {{"type", "Fuse"}}, replace(text(blank), " ")};
  return pipeline;
}

Pipeline pipeline_of(const Tokenizer& tokenizer) {
  const json saved = parse_json(tokenizer.to_json());
  const std::string kind = tokenizer.kind();
  if (kind == "byte") return bytes();
  if (kind == "char") return characters(saved);
  if (kind == "word") return words(saved);
  if (kind == "sentencepiece") return sentencepiece(saved);
  throw Error(fmt::format("export: the tokenizer '{}' has no counterpart in the library tokenizers", kind));
}

/// Tokens after those of the tokenizer, which are never found in a text: for ends, separators, masks and padding.
struct AddedTokens {
  std::map<std::string, int32_t> ids;
  json config;

  explicit AddedTokens(const SavedRun& run) {
    const SourceFacts data = facts_of(run.config.data);
    auto next = static_cast<int32_t>(run.tokenizer->vocabulary_size());
    for (int64_t i = 0; i < data.added_tokens; ++i)
      ids[data.has_documents && i == 0 ? "<|end|>" : "<|separator|>"] = next++;
    if (ids.count("<|end|>") > 0) config["eos_token"] = config["bos_token"] = "<|end|>";
    if (ids.count("<|separator|>") > 0) config["sep_token"] = "<|separator|>";
    if (facts_of(run.config.model).predicts == Predicts::hidden_tokens) {
      ids["<mask>"] = next++;
      config["mask_token"] = "<mask>";
    }
    ids["<pad>"] = next;  // outside of the model's vocabulary, since padding is never read
    config["pad_token"] = "<pad>";
  }
  json list() const {
    std::vector<std::pair<int32_t, std::string>> ordered;
    for (const auto& [name, id] : ids) ordered.emplace_back(id, name);
    std::sort(ordered.begin(), ordered.end());
    json tokens = json::array();
    for (const auto& [id, name] : ordered)
      tokens.push_back({{"id", id},
                        {"content", name},
                        {"special", true},
                        {"single_word", false},
                        {"lstrip", false},
                        {"rstrip", false},
                        {"normalized", false}});
    return tokens;
  }
};

/// The tokens that a model is given around a text: the start of a text, the separator of pairs and columns.
json surroundings(const SavedRun& run, const AddedTokens& added) {
  json used = json::object();
  const auto part = [&](const std::string& name, int32_t id) {
    used[name] = {{"id", name}, {"ids", {id}}, {"tokens", {name}}};
    return json{{"SpecialToken", {{"id", name}, {"type_id", 0}}}};
  };
  const auto sequence_of = [](const char* name) { return json{{"Sequence", {{"id", name}, {"type_id", 0}}}}; };
  json single = json::array(), pair = json::array();
  const bool writes = facts_of(run.config.model).predicts == Predicts::next_token;
  if (const auto start = start_token(run)) {
    const bool end = end_of_document(run).has_value();
    single.push_back(part(end ? "<|end|>" : "start", *start));
    pair = single;
  }
  single.push_back(sequence_of("A"));
  pair.push_back(sequence_of("A"));
  if (const auto separator = added.ids.find("<|separator|>"); separator != added.ids.end()) {
    if (writes) single.push_back(part(separator->first, separator->second));
    pair.push_back(part(separator->first, separator->second));
  }
  pair.push_back(sequence_of("B"));
  if (const auto end = end_of_document(run); end && facts_of(run.config.data).has_pairs)
    pair.push_back(part("<|end|>", *end));
  if (used.empty()) return nullptr;
  return {{"type", "TemplateProcessing"}, {"single", single}, {"pair", pair}, {"special_tokens", used}};
}

}  // namespace

int64_t longest_text(const SavedRun& run) {
  const SourceFacts data = facts_of(run.config.data);
  const Predicts predicts = facts_of(run.config.model).predicts;
  const int64_t longest = predicts == Predicts::hidden_tokens ? data.longest : data.text.max_length;
  const auto positions = run.model->position_limit();
  if (!positions || predicts == Predicts::next_token)
    return longest;  // beyond its positions it goes on in a further window
  return longest > 0 ? std::min(longest, *positions) : *positions;
}

TokenizerFiles tokenizer_files(const SavedRun& run) {
  if (facts_of(run.config.model).reads_texts && !run.tokenizer->tokens_are_bytes())
    throw Error(fmt::format(
        "export: a {} reads what the tokenizer '{}' leaves of a text, which transformers cannot give it; train it with "
        "data.tokenizer: byte",
        type_of(run.config.model), run.tokenizer->kind()));
  const Pipeline pipeline = pipeline_of(*run.tokenizer);
  const AddedTokens added(run);
  const json tokenizer = {{"version", "1.0"},
                          {"truncation", nullptr},
                          {"padding", nullptr},
                          {"added_tokens", added.list()},
                          {"normalizer", sequence("Sequence", "normalizers", pipeline.normaliser)},
                          {"pre_tokenizer", sequence("Sequence", "pretokenizers", pipeline.splitter)},
                          {"post_processor", surroundings(run, added)},
                          {"decoder", sequence("Sequence", "decoders", pipeline.decoder)},
                          {"model", pipeline.model}};
  json config = added.config;
  const ModelFacts facts = facts_of(run.config.model);
  config["tokenizer_class"] = "PreTrainedTokenizerFast";
  config["clean_up_tokenization_spaces"] = false;
  config["padding_side"] = facts.predicts == Predicts::next_token ? "left" : "right";
  const SourceFacts data = facts_of(run.config.data);
  const int64_t around = facts.predicts == Predicts::next_token && data.has_pairs ? 2 : 0;  // start and separator
  if (const int64_t longest = longest_text(run); longest > 0) config["model_max_length"] = longest + around;
  if (data.text.truncate == Truncate::tail) config["truncation_side"] = "left";
  return {json_text(tokenizer) + "\n", json_text(config, 2) + "\n"};
}

}  // namespace capstan
