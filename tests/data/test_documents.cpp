// Where documents end, in text and in tokens, and the windows that keep them apart.
#include "data/text/documents.hpp"

#include <algorithm>
#include <functional>
#include <map>

#include "core/array/segments.hpp"
#include "core/base/error.hpp"
#include "core/base/random.hpp"
#include "data/text/text_source.hpp"
#include "data/text/text_windows.hpp"
#include "data/tokenizers/tokenizer.hpp"
#include "support.hpp"

using namespace capstan;

namespace {

using Documents = std::vector<std::string>;

/// Gives a cutter the text in pieces that end at `cuts`, which ascend.
void cut_text(const DocumentsConfig& config, const Boundary& boundary, std::string_view text, std::vector<size_t> cuts,
              const DocumentCutter::Visit& visit) {
  DocumentCutter cutter(config, boundary);
  size_t begin = 0;
  cuts.push_back(text.size());
  for (const size_t cut : cuts) {
    cutter.push(text.substr(begin, cut - begin), visit);
    begin = cut;
  }
  cutter.finish(visit);
}

Documents documents_of(const DocumentsConfig& config, const std::string& text, const std::vector<size_t>& cuts = {}) {
  Documents documents;
  bool open = false;
  const auto visit = [&](std::string_view part, bool last) {
    if (!open) documents.emplace_back();
    documents.back() += part;
    open = !last;
  };
  cut_text(config, anywhere, text, cuts, visit);
  CHECK_FALSE(open);
  return documents;
}

const std::vector<std::pair<const char*, DocumentsConfig>> kinds = {{"file", FileDocumentsConfig{}},
                                                                    {"line", LineDocumentsConfig{}},
                                                                    {"blank-line", BlankLineDocumentsConfig{}},
                                                                    {"marker", MarkerDocumentsConfig{"<|>"}}};

TextSourceConfig text_config(const std::string& path, const DocumentsConfig& documents) {
  TextSourceConfig config;
  config.train = {path};
  config.documents = documents;
  config.valid_fraction = 0;
  config.sequence_length = 16;
  return config;
}

constexpr int32_t end_token = 256;  // of bytes

/// A row of documents of these lengths; their tokens count on from 0, and no token is the end's.
TextCorpus corpus_of(const std::vector<int64_t>& lengths) {
  TextCorpus corpus;
  corpus.end_of_document = end_token;
  std::vector<int32_t> tokens;
  for (const int64_t length : lengths) {
    for (int64_t i = 0; i < length; ++i) tokens.push_back(static_cast<int32_t>(tokens.size() % 256));
    tokens.push_back(end_token);
  }
  corpus.tokens.append(tokens);
  return corpus;
}

}  // namespace

TEST_CASE("documents of a text") {
  struct Row {
    const char* text;
    Documents file, line, blank_line, marker;
  };
  const std::vector<Row> rows = {
      {"", {}, {}, {}, {}},
      {" \n\t\r\n\n", {}, {}, {}, {}},
      {"a", {"a"}, {"a"}, {"a"}, {"a"}},
      {"\n\n  a b \n\nc\n", {"  a b \n\nc"}, {"  a b ", "c"}, {"  a b ", "c"}, {"  a b \n\nc"}},
      {"a\nb\n \t\n\n\nc\n", {"a\nb\n \t\n\n\nc"}, {"a", "b", "c"}, {"a\nb", "c"}, {"a\nb\n \t\n\n\nc"}},
      {"a\r\nb\r\n\r\nc\r\n", {"a\r\nb\r\n\r\nc"}, {"a", "b", "c"}, {"a\r\nb", "c"}, {"a\r\nb\r\n\r\nc"}},
      {"a<|>b<|>\n<|>c", {"a<|>b<|>\n<|>c"}, {"a<|>b<|>", "<|>c"}, {"a<|>b<|>\n<|>c"}, {"a", "b", "c"}},
      {"a\n<|>\n\nb\nc<|<|>",
       {"a\n<|>\n\nb\nc<|<|>"},
       {"a", "<|>", "b", "c<|<|>"},
       {"a\n<|>", "b\nc<|<|>"},
       {"a", "b\nc<|"}},
      {"a<|", {"a<|"}, {"a<|"}, {"a<|"}, {"a<|"}},
      {"<|>a<|", {"<|>a<|"}, {"<|>a<|"}, {"<|>a<|"}, {"a<|"}}};
  for (const Row& row : rows) {
    INFO(row.text);
    CHECK(documents_of(kinds[0].second, row.text) == row.file);
    CHECK(documents_of(kinds[1].second, row.text) == row.line);
    CHECK(documents_of(kinds[2].second, row.text) == row.blank_line);
    CHECK(documents_of(kinds[3].second, row.text) == row.marker);
  }
}

TEST_CASE("documents do not depend on the pieces that the text comes in, nor do their tokens") {
  RandomStream random({7, 1});
  const std::string letters = "ab \t\r\n\n<|>\xc3\xa9";
  const std::vector<std::string_view> learnt = {"ab <|>\n a b ba \xc3\xa9 \t\xcc\x81 a\xcc\x81"};
  const auto chars = make_tokenizer(CharTokenizerConfig{}, learnt),
             words = make_tokenizer(WordTokenizerConfig{}, learnt);
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    for (uint64_t i = random.below(30); i > 0; --i) {
      const size_t at = random.below(letters.size() - 1);  // the last two bytes are one character
      text += letters.substr(at, at + 2 == letters.size() ? 2 : 1);
      if (random.below(20) == 0) text += "\xcc\x81";  // an accent for the letter before
    }
    std::vector<size_t> cuts;
    for (uint64_t i = random.below(6); i > 0; --i) cuts.push_back(random.below(text.size() + 1));
    std::sort(cuts.begin(), cuts.end());
    for (const auto& kind : kinds) {
      const DocumentsConfig& config = kind.second;
      INFO(kind.first, ": ", text);
      const Documents whole = documents_of(config, text);
      REQUIRE(documents_of(config, text, cuts) == whole);
      for (const auto& tokenizer : {chars, words}) {
        std::vector<int32_t> ids, expected;
        const auto visit = [&](std::string_view part, bool last) {
          const auto tokens = tokenizer->encode(part);
          ids.insert(ids.end(), tokens.begin(), tokens.end());
          if (last) ids.push_back(*end_of_document(config, *tokenizer));
        };
        cut_text(config, boundary_of(*tokenizer), text, cuts, visit);
        for (const std::string& document : whole) {
          const auto tokens = tokenizer->encode(document);
          expected.insert(expected.end(), tokens.begin(), tokens.end());
          expected.push_back(static_cast<int32_t>(tokenizer->vocabulary_size()));
        }
        REQUIRE(ids == expected);
      }
    }
  }
}

TEST_CASE("a text may be cut where a document ends") {
  const std::string text = "a\nb\n \nc<|>d\n";
  struct Row {
    size_t kind;
    std::vector<size_t> boundaries;  // besides 0 and the end
  };
  for (const Row& row : {Row{0, {}}, Row{1, {2, 4, 6}}, Row{2, {6}}, Row{3, {10}}})
    for (size_t at = 0; at <= text.size() + 1; ++at) {
      INFO(kinds[row.kind].first, " at ", at);
      size_t expected = at >= text.size() ? text.size() : 0;
      for (const size_t boundary : row.boundaries)
        if (boundary <= at && at < text.size()) expected = boundary;
      const size_t found = document_boundary(kinds[row.kind].second, text, at);
      CHECK(found == expected);
      // Cut there, the documents of the two parts are those of the whole.
      Documents parts = documents_of(kinds[row.kind].second, text.substr(0, found));
      const Documents rest = documents_of(kinds[row.kind].second, text.substr(found));
      parts.insert(parts.end(), rest.begin(), rest.end());
      CHECK(parts == documents_of(kinds[row.kind].second, text));
    }
}

TEST_CASE("load_text: each document is followed by the end's token; markers are no text to learn from") {
  const TemporaryFolder folder;
  const std::string path = folder.write("text", "one two\n<|endoftext|>\n\nthree\n\nfour\n");
  TextSourceConfig config = text_config(path, MarkerDocumentsConfig{});
  config.tokenizer = WordTokenizerConfig{};
  const TextData data = loaded(config);
  CHECK(data.tokenizer->vocabulary_size() == 2 + 4);
  CHECK(vocabulary_size(config, *data.tokenizer) == 7);
  CHECK(start_token(config, *data.tokenizer) == 6);
  CHECK(data.train.end_of_document == 6);
  CHECK(data.train.bytes == 35);  // bytes of the file, tokens or not
  const auto id = [&](const char* word) { return data.tokenizer->encode(word).at(0); };
  CHECK(data.train.tokens.to_vector() ==
        std::vector<int32_t>{id("one"), id("two"), 6, id("three"), id("\n"), id("\n"), id("four"), 6});

  config.documents = NoDocumentsConfig{};
  const TextData plain = loaded(config);
  CHECK_FALSE(plain.train.end_of_document);
  CHECK(plain.train.tokens.to_vector() == plain.tokenizer->encode("one two\n<|endoftext|>\n\nthree\n\nfour\n"));
  CHECK(vocabulary_size(config, *plain.tokenizer) == plain.tokenizer->vocabulary_size());
  CHECK(start_token(config, *plain.tokenizer) == plain.tokenizer->start_token());

  // The end of each file is the end of a document, and a tail begins with one.
  config.train = {folder.write("more/a", "1\n22\n333\n4444\n"), folder.write("more/b", "5\n6")};
  config.tokenizer = ByteTokenizerConfig{};
  config.documents = LineDocumentsConfig{};
  config.valid_fraction = 0.5;
  const TextData lines = loaded(config);
  CHECK(lines.train.tokens.to_vector() == std::vector<int32_t>{'1', 256, '2', '2', 256});
  CHECK(lines.valid.tokens.to_vector() ==
        std::vector<int32_t>{'3', '3', '3', 256, '4', '4', '4', '4', 256, '5', 256, '6', 256});
}

TEST_CASE("documents that cannot be had are named with the remedy") {
  const TemporaryFolder folder;
  const std::string path = folder.write("text", "one\ntwo\nthree\n");
  TextSourceConfig config = text_config(path, FileDocumentsConfig{});
  CHECK_NOTHROW(loaded(config));
  config.valid_fraction = 0.1;
  CHECK(contains(message_of<ConfigError>([&] { loaded(config); }),
                 "data.split: tail would cut every file in two, but documents: file makes each one document; use "
                 "split: by-file, or name files for valid and test"));
  config.documents = BlankLineDocumentsConfig{};  // a single document, all of which the tail takes
  CHECK(contains(message_of<Error>([&] { loaded(config); }), "no text is left to train on"));
  config.documents = MarkerDocumentsConfig{"<s>"};
  CHECK(contains(message_of<Error>([&] { loaded(config); }),
                 "data.documents.text: \"<s>\" does not occur in the training text"));
}

TEST_CASE("training windows: a segment per document, each document's end is a label, the next one's start an input") {
  const TextCorpus corpus = corpus_of({5, 40, 1, 1, 7, 16, 15, 3, 60, 2, 9, 30});
  for (const WindowRule rule : {WindowRule::contiguous, WindowRule::random}) {
    const TrainingWindows windows(corpus, {16, rule, 2}, {3, 0});
    for (int64_t epoch = 0; epoch < 8; ++epoch)
      for (int64_t index = 0; index < windows.batches_per_epoch(epoch); ++index) {
        const Batch batch = windows.batch(epoch, index);
        const Segments segments(batch.segment_ids);  // refuses what is not contiguous
        CHECK(segments.all_valid());
        for (const auto& span : segments.spans())
          for (int64_t t = span.begin; t < span.end; ++t) {
            const int64_t at = span.row * 16 + t;
            // Within a span the end is the last label, and it is an input only in front.
            if (t > span.begin) CHECK(batch.tokens[at] != end_token);
            if (t + 1 < span.end) CHECK(batch.labels[at] == batch.tokens[at + 1]);
            if (t + 1 == span.end && span.end < 16) CHECK(batch.labels[at] == end_token);
            if (t == span.begin && t > 0) CHECK(batch.tokens[at] == end_token);
          }
      }
  }
}

TEST_CASE("evaluation windows: every token counts once, every document that fits is whole") {
  std::vector<int64_t> lengths = {5, 40, 1, 1, 7, 15, 16, 14, 3, 60, 2, 9, 15, 15};
  const TextCorpus corpus = corpus_of(lengths);
  std::vector<int64_t> begins = {0};  // of the documents
  for (const int64_t length : lengths) begins.push_back(begins.back() + length + 1);
  const std::vector<int32_t> row = corpus.tokens.to_vector();
  for (const int64_t overlap : {0, 5}) {
    const EvaluationWindows windows(corpus, {16, end_token, overlap, false}, {1, 0});
    CHECK(windows.examples_per_epoch() < 2 * corpus.size() / 16);
    // Windows are numbered in text order.
    std::map<int32_t, Batch> in_order;
    for (int64_t i = 0; i < windows.batches_per_epoch(0); ++i) {
      const Batch batch = windows.batch(0, i);
      in_order[batch.examples[0]] = batch;
    }
    size_t at = 0;  // the token that is to be counted next
    for (const auto& entry : in_order) {
      const Batch& batch = entry.second;
      const Segments segments(batch.segment_ids);
      CHECK(segments.all_valid());
      for (const auto& span : segments.spans())
        for (int64_t t = span.begin; t < span.end; ++t) {
          if (batch.labels[t] == ignored_target) {
            CHECK(t < overlap);
            continue;
          }
          REQUIRE(at < row.size());
          CHECK(batch.labels[t] == row[at]);
          CHECK(batch.tokens[t] == (at == 0 ? end_token : row[at - 1]));
          const auto document =
              std::upper_bound(begins.begin(), begins.end(), static_cast<int64_t>(at)) - begins.begin() - 1;
          const int64_t place = static_cast<int64_t>(at) - begins[static_cast<size_t>(document)];
          if (lengths[static_cast<size_t>(document)] < 16) CHECK(t - span.begin == place);
          if (place >= 16) CHECK(t - span.begin >= overlap);
          ++at;
        }
    }
    CHECK(at == row.size());
  }
}

TEST_CASE("numbering leaves padding alone") {
  Batch batch;
  batch.tokens = Ids({2, 5}, std::vector<int32_t>{9, 1, 9, 2, 3, 1, 9, 9, 0, 0});
  batch.segment_ids = Ids({2, 5}, std::vector<int32_t>{1, 1, 1, 1, 1, 1, 1, 1, 0, 0});
  number_documents(batch, 9);
  CHECK(batch.segment_ids.to_vector() == std::vector<int32_t>{1, 1, 2, 2, 2, 1, 2, 3, 0, 0});
}

TEST_CASE("blanks without end, in small pieces, take a time that grows with their number, not with its square") {
  for (const auto& kind : kinds) {
    const DocumentsConfig& config = kind.second;
    CAPTURE(kind.first);
    std::vector<std::string> documents(1);
    const auto visit = [&](std::string_view part, bool last) {
      documents.back() += part;
      if (last) documents.emplace_back();
    };
    DocumentCutter cutter(config, anywhere);
    cutter.push("one", visit);
    for (int i = 0; i < 300000; ++i) cutter.push(" ", visit);
    cutter.push("two", visit);
    cutter.finish(visit);
    CHECK(documents == std::vector<std::string>{"one" + std::string(300000, ' ') + "two", ""});
  }
}
