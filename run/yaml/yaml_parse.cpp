// The tree is built from the events of yaml-cpp's parser rather than from its node tree: an event has its line and
// column, and a text with too many or too deep values is refused before memory is taken for them.
#include "run/yaml/yaml_parse.hpp"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <new>
#include <sstream>

#include "core/base/error.hpp"
#include "core/strings/utf8.hpp"

namespace capstan {
namespace {

constexpr std::size_t max_nodes = 20'000;  // aliases of aliases grow exponentially

struct Refused {
  Place place;
  std::string message;
};

std::size_t count_nodes(const ConfigNode& node) {
  std::size_t count = 1;
  for (const auto& child : node.children) count += count_nodes(child);
  return count;
}

std::size_t depth_of(const ConfigNode& node) {
  std::size_t depth = 0;
  for (const auto& child : node.children) depth = std::max(depth, depth_of(child));
  return depth + 1;
}

/// Builds the tree from the parser's events, which come in document order.
class TreeBuilder final : public YAML::EventHandler {
 public:
  TreeBuilder(const Place& start, Places places, const std::string& path, ProblemList& problems)
      : start_(start), places_(places), path_(path), problems_(problems) {}

  ConfigNode root;

  /// The place of the last key or list that was opened.
  Place last_place() const {
    if (open_.empty()) return start_;
    return open_.back().has_key ? open_.back().key.place : open_.back().node.place;
  }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) throw Refused{place_of(mark), "a second document begins here; only one is allowed"};
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    ConfigNode node;
    // The parser finds an absent value only at the next token: the place of its key is more useful.
    node.place = !open_.empty() && open_.back().has_key ? open_.back().key.place : place_of(mark);
    add(std::move(node), anchor);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    if (tag != "?" && tag != "!" && !tag.empty()) refuse_tag(mark);
    if (value.find('\0') != std::string::npos) throw Refused{place_of(mark), "text must not contain the character \\0"};
    ConfigNode node = scalar_node(value, tag == "!");
    node.place = place_of(mark);
    add(std::move(node), anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) throw Refused{place_of(mark), "an alias inside its own value"};
    count(place_of(mark), count_nodes(found->second));
    check_depth(mark, depth_of(found->second));
    ConfigNode node = found->second;
    node.place = place_of(mark);
    add(std::move(node), YAML::NullAnchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(NodeKind::list, mark, tag, anchor);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(NodeKind::map, mark, tag, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapEnd() override { close(); }

 private:
  /// An open list or map, and the key whose value comes next.
  struct Open {
    ConfigNode node;
    YAML::anchor_t anchor;
    bool has_key = false;
    ConfigNode key = {};
    std::string path;
  };

  Place place_of(const YAML::Mark& mark) const {
    Place place = start_;
    if (places_ == Places::kept && !mark.is_null()) {
      place.line = mark.line + 1;
      place.column = mark.column + 1;
    }
    return place;
  }

  [[noreturn]] void refuse_tag(const YAML::Mark& mark) const {
    throw Refused{place_of(mark), "tags (!name) are not supported; text that starts with ! must be in quotes"};
  }

  void count(const Place& place, std::size_t more) {
    nodes_ += more;
    if (nodes_ > max_nodes) throw Refused{place, fmt::format("more than {} values", max_nodes)};
  }

  void check_depth(const YAML::Mark& mark, std::size_t more) const {
    if (open_.size() + more > max_config_depth)
      throw Refused{place_of(mark), fmt::format("nested deeper than {} levels", max_config_depth)};
  }

  /// The key path of the value that comes next.
  std::string next_path() const {
    if (open_.empty()) return path_;
    const Open& top = open_.back();
    if (top.node.kind == NodeKind::list) return join_path(top.path, std::to_string(top.node.children.size()));
    return top.has_key ? join_path(top.path, top.key.text) : top.path;
  }

  void open(NodeKind kind, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    if (tag != "?" && tag != "!" && !tag.empty()) refuse_tag(mark);
    check_depth(mark, 1);
    if (!open_.empty() && open_.back().node.kind == NodeKind::map && !open_.back().has_key)
      throw Refused{place_of(mark),
                    "expected a key, got a list or map (text with braces or brackets must be in quotes)"};
    Open level{ConfigNode{kind}, anchor, false, {}, next_path()};
    level.node.place = place_of(mark);
    open_.push_back(std::move(level));
  }

  void close() {
    Open top = std::move(open_.back());
    open_.pop_back();
    add(std::move(top.node), top.anchor);
  }

  /// Puts a finished value where it belongs.
  void add(ConfigNode node, YAML::anchor_t anchor) {
    count(node.place, 1);
    if (anchor != YAML::NullAnchor) {
      count(node.place, count_nodes(node));
      anchors_[anchor] = node;
    }
    if (open_.empty()) {
      root = std::move(node);
      return;
    }
    Open& top = open_.back();
    if (top.node.kind == NodeKind::list) {
      top.node.children.push_back(std::move(node));
    } else if (!top.has_key) {
      begin_entry(top, std::move(node));
    } else {
      end_entry(top, std::move(node));
    }
  }

  static void begin_entry(Open& top, ConfigNode key) {
    if (key.kind != NodeKind::scalar) throw Refused{key.place, fmt::format("expected a key, got {}", shown(key))};
    if (key.text == "<<" && !key.quoted)
      throw Refused{key.place, "merge keys (<<) are not supported; give several files to --config instead"};
    top.has_key = true;
    top.key = std::move(key);
  }

  void end_entry(Open& top, ConfigNode value) {
    top.has_key = false;
    value.key = top.key.text;
    value.key_place = top.key.place;
    if (const ConfigNode* first = top.node.find(value.key)) {
      const std::string where =
          first->key_place.line > 0 ? fmt::format(" (first given in line {})", first->key_place.line) : "";
      problems_.add(value.key_place, join_path(top.path, value.key), "duplicate key" + where);
    } else {
      top.node.children.push_back(std::move(value));
    }
  }

  Place start_;
  Places places_;
  std::string path_;
  ProblemList& problems_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, ConfigNode> anchors_;
  std::size_t nodes_ = 0;
  int documents_ = 0;
};

/// Advice that the YAML library's messages lack.
std::string advice(const std::string& text, int line, const std::string& message) {
  std::istringstream lines(text);
  std::string current;
  for (int n = 1; n <= line && std::getline(lines, current); ++n) {
    const auto indent = current.substr(0, current.find_first_not_of(" \t"));
    if (n >= line - 1 && indent.find('\t') != std::string::npos)
      return fmt::format(": line {} is indented with a tab, use spaces", n);
  }
  if (message == YAML::ErrorMsg::CHAR_IN_ALIAS || message == YAML::ErrorMsg::ALIAS_NOT_FOUND ||
      message == YAML::ErrorMsg::UNKNOWN_ANCHOR)
    return ": text that starts with * must be in quotes";
  if (message == YAML::ErrorMsg::UNKNOWN_TOKEN) return ": text that starts with @, ` or % must be in quotes";
  return "";
}

/// The line and column of the first byte that YAML does not allow, and why.
std::optional<Refused> find_bad_byte(const std::string& text, Place place, Places places) {
  int line = 1, column = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto lead = static_cast<unsigned char>(text[i]);
    ++column;
    const Utf8Character character = first_character(std::string_view(text).substr(i));
    const bool valid = character.state == Utf8Character::State::valid;
    const bool control = (lead < 0x20 && lead != '\n' && lead != '\r' && lead != '\t') || lead == 0x7F;
    if (!valid || control) {
      if (places == Places::kept) place.line = line, place.column = column;
      return Refused{place, fmt::format("byte 0x{:02x} is not {}", lead, control ? "allowed in YAML" : "UTF-8 text")};
    }
    i += character.bytes - 1;
    if (lead == '\n') ++line, column = 0;
  }
  return std::nullopt;
}

}  // namespace

std::optional<ConfigNode> parse_yaml(const std::string& text, const Place& start, Places places,
                                     const std::string& path, ProblemList& problems) {
  if (const auto bad = find_bad_byte(text, start, places)) {
    problems.add(bad->place, "", bad->message);
    return std::nullopt;
  }
  Place place = start;
  std::string message;
  TreeBuilder builder(start, places, path, problems);
  try {
    // Without a document's end the library takes the rest of the text for a scalar whose closing quote is missing.
    std::istringstream stream(text + "\n...\n");
    YAML::Parser parser(stream);
    parser.HandleNextDocument(builder);
    parser.HandleNextDocument(builder);  // refused if there is one
    return std::move(builder.root);
  } catch (const Refused& refused) {
    place = refused.place;
    message = refused.message;
  } catch (const YAML::Exception& error) {
    if (error.msg == YAML::ErrorMsg::DOC_IN_SCALAR) {
      place = builder.last_place();
      message = "not valid YAML: a quote opened here, or later, is never closed";
    } else {
      const bool known = places == Places::kept && !error.mark.is_null();
      if (known) place.line = error.mark.line + 1, place.column = error.mark.column + 1;
      message = fmt::format("not valid YAML: {}{}", error.msg, advice(text, error.mark.line + 1, error.msg));
    }
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {  // from the library's containers, on unexpected input
    message = fmt::format("not valid YAML: {}", error.what());
  }
  problems.add(place, "", message);
  return std::nullopt;
}

}  // namespace capstan
