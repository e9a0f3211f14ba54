// What to do about the rows of data files that cannot be used (data.on_error). Every reader of tables, pairs and texts
// has one BadRows, so that a user sees all problems of all files at once. tests/data/labelled/test_bad_rows.cpp holds
// the messages and what is left out.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "core/config/schema.hpp"
#include "core/io/regular_file.hpp"

namespace capstan {

enum class OnError { stop, skip };
inline std::vector<EnumName<OnError>> enum_names(OnError) { return {{OnError::stop, "stop"}, {OnError::skip, "skip"}}; }

/// Rows cannot be used, and are not to be skipped: the message lists them.
class BadRowsError : public Error {
 public:
  using Error::Error;
};

/// Collects the problems of rows while reading continues, so that all are reported together.
class BadRows {
 public:
  /// `noun`: what messages call a row, such as "line".
  explicit BadRows(OnError rule, std::string noun = "row") : rule_(rule), noun_(std::move(noun)) {}

  /// `problem`: "file:line: what is wrong".
  void add(const std::string& problem);
  /// Runs `read`; an Error that it throws makes a bad row, unless it is a ConfigError, or a FileError: a full disk is
  /// no fault of the row. False for a bad row.
  template <class Read>
  bool guard(const Read& read) {
    try {
      read();
      return true;
    } catch (const ConfigError&) {
      throw;
    } catch (const FileError&) {
      throw;
    } catch (const Error& problem) {
      add(problem.what());
      return false;
    }
  }

  /// A bad row had this label, where that is known; "" counts nothing. At most max_labels labels are counted, since a
  /// wrong column may give every row one of its own.
  void lost(const std::string& label) {
    if (!label.empty() && (lost_.size() < max_labels || lost_.count(label) > 0)) ++lost_[label];
  }
  /// The labels of bad rows, with their numbers.
  const std::map<std::string, int64_t>& lost() const { return lost_; }

  /// A row, at this place, repeats the header of its file, as of files that were joined: it is left out, and no bad
  /// row.
  void header_again(const std::string& place) {
    if (headers_++ == 0) first_header_ = place;
  }

  int64_t count() const { return count_; }
  /// The first problems, three at most of those that say the same, and a line that counts the others.
  std::vector<std::string> listed() const;
  /// Throws BadRowsError with the first problems and the count of all, unless bad rows are to be skipped. `any_good`:
  /// whether a row is left; without one, the remedy is not to skip them.
  void check(bool any_good = true) const;
  /// How many headers were left out, in one line; none when no one was.
  std::vector<std::string> repeated_headers() const;
  /// What was left out: repeated_headers(), and a line for the bad rows that are to be skipped.
  std::vector<std::string> summary() const;

 private:
  std::string counted() const;

  OnError rule_;
  std::string noun_;
  int64_t count_ = 0, headers_ = 0;
  std::string first_header_;
  static constexpr size_t max_labels = 1000;
  std::map<std::string, int64_t> lost_;
  std::vector<std::string> first_;
  std::map<std::string, int> alike_;  // a problem without its place -> how often it is in first_
};

}  // namespace capstan
