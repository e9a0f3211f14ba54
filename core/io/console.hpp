// Standard error as a terminal: messages and, below them, one line that shows how far the work is. core/io/log and
// core/io/progress write through it, so that neither spoils the other. tests/cli/inputs/test_terminal.cpp holds what is
// seen.
#pragma once

#include <functional>
#include <string>

namespace capstan {

/// Can a line be shown: is standard error a terminal whose last line can be written again, or did set_console_line()
/// take the line over?
bool has_console();
/// From now on standard error counts as no terminal: the program takes all messages itself (set_log_sink), or only
/// lines are wanted. `disabled` false undoes it.
void disable_console(bool disabled);

/// From now on `show` gets every line and shows it as it likes (python/bindings); an empty one gives the line back.
void set_console_line(std::function<void(const std::string& line)> show);

/// Writes the line anew, cut to the width of the terminal: fields after the first, which are separated by " : ", are
/// left out from the last one on. An empty line removes it.
void show_console_line(const std::string& line);
/// Calls `print`, which writes to standard error, with the line out of its way. One thread at a time.
void print_above_console_line(const std::function<void()>& print);

/// A bar of text for the share of work that is done: "[=====     ]  52% ".
std::string draw_bar(double share);

}  // namespace capstan
