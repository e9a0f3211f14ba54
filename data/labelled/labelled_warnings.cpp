// The warnings about labelled data (warnings_of() of labelled_check.hpp), one function per subject. The name of a
// warning is what programs read, and docs/labelled.md has a table of them with their limits;
// tests/data/labelled/test_checks.cpp has data for each.
#include <algorithm>
#include <map>
#include <set>

#include "core/strings/strings.hpp"
#include "data/checks/report.hpp"
#include "data/formats/row_labels.hpp"
#include "data/labelled/label_forms.hpp"
#include "data/labelled/labelled_check.hpp"

namespace capstan {
namespace {

/// With fewer examples than this, shares and counts mean little, and most warnings are left out.
constexpr size_t examples_needed = 20;

/// Adds warnings on one subject after the other.
class Warnings {
 public:
  explicit Warnings(const LabelledCheck& check) : check_(check), train_(check.of(Split::train)) {}

  std::vector<DataWarning> all() {
    no_header();
    if (!identifiers_as_labels()) seen_once();
    unseen();
    alike();
    missing_values();
    if (!check_.config().multi_label && !joined_labels()) balance();
    text_column();
    truncated();
    empty();
    shared();
    conflicts();
    encoding();
    return std::move(found_);
  }

 private:
  void add(const char* check, std::string message) { found_.push_back({check, std::move(message)}); }

  void no_header() {
    for (const LabelledCheck::File& file : check_.files())
      if (check_.config().header.value_or(false) && file.reading.has_columns() &&
          file.reading.sample.begins_with_text())
        add("no-header", fmt::format("{}: data.header is true, so the first row is not used; but it looks like an "
                                     "example; if it is one, set data.header=false",
                                     file.reading.file));
  }

  bool identifiers_as_labels() {
    constexpr double too_many = 0.5;
    const size_t classes = check_.classes().size(), examples = train_.rows.size();
    if (examples < examples_needed || share(static_cast<int64_t>(classes), examples) < too_many) return false;
    add("labels", fmt::format("{} classes in {} training examples: the labels are probably identifiers or texts; {}",
                              classes, examples, label_column_remedy));
    return true;
  }

  void seen_once() {
    FirstFew places;
    for (size_t i = 0; i < train_.rows.size(); ++i)
      for (const int32_t c : check_.labels(train_.rows[i])) {
        const auto label = static_cast<size_t>(c);
        if (train_.of_class[label] != 1) continue;
        places.add([&] { return fmt::format("'{}' ({})", name(label), check_.place(0, i)); });
      }
    if (places.count() == 0 || train_.rows.size() < examples_needed) return;
    add("seen-once",
        fmt::format("{} of {} classes {} a single training example, too few to learn from: {}; correct these labels, "
                    "or remove the rows",
                    places.count(), check_.classes().size(), places.count() == 1 ? "has" : "have", places.text(", ")));
  }

  void unseen() {
    std::vector<std::string> never;
    for (size_t c = 0; c < check_.classes().size(); ++c) {
      if (train_.of_class[c] > 0) continue;
      const int64_t valid = check_.of(Split::valid).of_class[c], test = check_.of(Split::test).of_class[c];
      never.push_back(fmt::format("'{}' ({} in valid, {} in test)", name(c), valid, test));
    }
    if (never.empty()) return;
    add("unseen", fmt::format("the training data have no example of {}; the model cannot learn {}: add examples, or "
                              "correct the labels and data.classes",
                              join_first(never), never.size() == 1 ? "it" : "them"));
  }

  /// Classes that differ by case, blanks, or by how another format writes the same label.
  void alike() {
    std::map<std::string, std::vector<std::string>> names_by_form;
    for (size_t c = 0; c < check_.classes().size(); ++c)
      names_by_form[folded_label(name(c))].push_back(
          fmt::format("'{}' ({})", visible_label(name(c)), train_.of_class[c]));
    std::vector<std::string> groups;
    for (const auto& [folded, names] : names_by_form)
      if (names.size() > 1) groups.push_back(join_first(names, " and "));
    if (groups.empty()) return;
    add("alike-labels",
        fmt::format("classes that differ only by case, blanks or invisible characters (with their training examples): "
                    "{}; if they are the same, correct the labels",
                    join_first(groups, "; ")));
  }

  /// Classes that are called what pandas, R and spreadsheets write where there is no label.
  void missing_values() {
    std::vector<std::string> classes;
    for (size_t c = 0; c < check_.classes().size(); ++c) {
      const std::string folded = lower_case(name(c));
      for (const char* const none : {"nan", "none", "null", "<na>", "n/a", "#n/a"})
        if (folded == none) classes.push_back(fmt::format("'{}' ({})", name(c), train_.of_class[c]));
    }
    if (!classes.empty())
      add("missing-labels",
          fmt::format("classes that probably stand for no label (with their training examples): {}; if "
                      "so, leave out these rows",
                      join_first(classes)));
  }

  void balance() {
    constexpr int64_t very = 19;  // with two classes, one text in 20
    if (train_.rows.size() < examples_needed) return;
    size_t most = 0, least = 0;
    for (size_t c = 0; c < train_.of_class.size(); ++c) {
      if (train_.of_class[c] > train_.of_class[most]) most = c;
      const bool fewer = train_.of_class[least] <= 1 || train_.of_class[c] < train_.of_class[least];
      if (train_.of_class[c] > 1 && fewer) least = c;
    }
    if (train_.of_class[least] <= 1 || train_.of_class[most] < very * train_.of_class[least]) return;
    add("balance",
        fmt::format("very unbalanced classes: '{}' has {} of {} training examples ({}), '{}' has {}; judge by "
                    "the macro-F1 of capstan eval, and set train.monitor=macro-f1, or cost with train.costs, which "
                    "find a rule for it",
                    name(most), train_.of_class[most], train_.rows.size(),
                    percent(share(train_.of_class[most], train_.rows.size())), name(least), train_.of_class[least]));
  }

  /// Classes that are several labels joined by a separator. In names that merely contain one, the parts do not recur.
  /// One class is enough where its parts are classes, too: "billing,urgent", "billing" and "urgent".
  bool joined_labels() {
    if (train_.rows.size() < examples_needed) return false;
    const std::set<std::string> names(check_.classes().begin(), check_.classes().end());
    const auto is_class = [&](const std::string& label) { return names.count(label) > 0; };
    for (const std::string_view separator : {",", ";", "|"}) {
      std::map<std::string, int> parts;
      size_t joined = 0, recurring = 0, of_classes = 0;
      for (const std::string& name : check_.classes()) {
        const std::vector<std::string> labels = split_labels(name, separator);
        if (labels.size() > 1) {
          ++joined;
          of_classes += std::all_of(labels.begin(), labels.end(), is_class) ? 1 : 0;
        }
        for (const std::string& label : labels) ++parts[label];
      }
      for (const auto& [label, count] : parts) recurring += count > 1 ? 1 : 0;
      if (of_classes == 0 && (joined < 2 || 2 * recurring < parts.size())) continue;
      const std::string own = separator == LabelledSourceConfig::default_label_separator
                                  ? ""
                                  : fmt::format(" 'data.label_separator=\"{}\"'", separator);
      add("joined-labels", fmt::format("{} of {} classes {} several labels joined by '{}'; for any number of labels "
                                       "per text, set data.multi_label=true{}",
                                       joined, check_.classes().size(), joined == 1 ? "is" : "are", separator, own));
      return true;
    }
    return false;
  }

  void text_column() {
    constexpr double nearly_all = 0.95, few = 0.1;
    const size_t examples = train_.rows.size();
    if (examples < examples_needed || share(train_.single_words, examples) < nearly_all) return;
    const int64_t different = static_cast<int64_t>(examples) - check_.duplicates().splits[0].repeated.texts;
    const char* what = nullptr;
    if (share(train_.numbers, examples) >= nearly_all)
      what = "are numbers";
    else if (share(different, examples) <= few)
      what = "look like labels: single words, of which few differ";
    if (what != nullptr)
      add("text-column",
          fmt::format("the training texts {}; check data.text_columns (without it, the text is found)", what));
  }

  void truncated() {
    constexpr double many = 0.05;
    const int64_t limit = check_.config().max_length;
    for (const Split split : all_splits) {
      const LabelledCheck::OfSplit& facts = check_.of(split);
      if (facts.rows.empty() || share(facts.cut, facts.rows.size()) <= many) continue;
      const LengthSummary summary = facts.lengths();
      add("truncated",
          fmt::format("{}: {} of the texts have more than data.max_length = {} tokens and lose their {}; for 95 % of "
                      "them to be whole, set data.max_length={} (and model.max_length, if the model has one); the "
                      "longest has {}",
                      to_string(split), percent(share(facts.cut, facts.rows.size())), limit,
                      check_.config().truncate == Truncate::tail ? "beginning" : "end", summary.percentile_95,
                      summary.greatest));
    }
  }

  void empty() {
    constexpr double many = 0.05;
    for (const Split split : all_splits) {
      const LabelledCheck::OfSplit& facts = check_.of(split);
      const size_t all = facts.rows.size() + static_cast<size_t>(facts.empty);
      if (facts.empty == 0 || share(facts.empty, all) <= many) continue;
      add("empty",
          fmt::format("{}: {} of {} texts are empty; is data.text_columns right?", to_string(split), facts.empty, all));
    }
  }

  void shared() {
    constexpr size_t in_train = static_cast<size_t>(Split::train);
    for (const Split split : {Split::valid, Split::test}) {
      const Duplicates::OfSplit& twice = check_.duplicates().splits[static_cast<size_t>(split)];
      const int64_t count = twice.also_in[in_train].texts;
      if (count == 0) continue;
      const size_t all = check_.of(split).rows.size();
      std::vector<std::string> pairs;
      for (const TextPair& pair : twice.examples[in_train])
        pairs.push_back(fmt::format("{} = {}", check_.place(pair.second_split, pair.second),
                                    check_.place(pair.first_split, pair.first)));
      add("shared-texts",
          fmt::format("{}: {} of {} texts ({}) are also in train, so its results will be too good: {}{}; "
                      "remove the copies from one of the two",
                      to_string(split), count, all, percent(share(count, all)), join(pairs),
                      count > static_cast<int64_t>(pairs.size()) ? ", ..." : ""));
    }
  }

  void conflicts() {
    constexpr double many = 0.01;
    const int64_t count = check_.duplicates().splits[0].other_label.texts;
    if (train_.rows.empty() || share(count, train_.rows.size()) <= many) return;
    std::vector<std::string> pairs;
    for (const TextPair& pair : check_.duplicates().conflicts)
      pairs.push_back(fmt::format("{} and {}", check_.place(pair.first_split, pair.first),
                                  check_.place(pair.second_split, pair.second)));
    add("label-noise", fmt::format("{} of {} training texts have a copy with another label, such as {}; correct the "
                                   "labels",
                                   count, train_.rows.size(), join(pairs)));
  }

  void encoding() {
    FirstFew places;
    for (const LabelledCheck::File& file : check_.files()) {
      EncodingFacts facts;
      if (check_.whole()) facts = file.encoding;
      facts.invalid = file.encoding.invalid;
      facts.bom = false;  // reading a file leaves it out
      if (const std::string remarks = facts.remarks(); !remarks.empty())
        places.add([&] { return fmt::format("{}: {}", file.reading.file, remarks); });
    }
    if (places.count() == 0) return;
    add("encoding",
        fmt::format("unusual bytes in {}; convert such files to UTF-8{}", places.text("; "),
                    check_.whole() ? " with one kind of line end" : ", for example: iconv -f CP1252 -t UTF-8"));
  }

  const std::string& name(size_t label) const { return check_.classes()[label]; }
  const LabelledCheck& check_;
  const LabelledCheck::OfSplit& train_;
  std::vector<DataWarning> found_ = {};
};

}  // namespace

std::vector<DataWarning> warnings_of(const LabelledCheck& check) { return Warnings(check).all(); }

}  // namespace capstan
