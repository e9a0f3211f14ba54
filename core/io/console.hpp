// Standard error as a terminal: messages and, below them, one line that shows how far the work is.
#pragma once

#include <functional>
#include <string>

namespace capstan {

/// Is standard error a terminal whose last line can be written again?
bool has_console();
/// From now on there is none: the program takes all messages itself (set_log_sink), or only lines are wanted.
void disable_console(bool disabled);

/// From now on there is one, whose line `show` shows as it likes; empty: no longer.
void set_console_line(std::function<void(const std::string& line)> show);

/// Writes the line anew, cut to the width of the terminal: fields after the first, which are separated by " : ", are
/// left out from the last one on. An empty line removes it.
void show_console_line(const std::string& line);
/// Calls `print`, which writes to standard error, with the line out of its way. One thread at a time.
void print_above_console_line(const std::function<void()>& print);

/// "[=====     ]  52% ".
std::string draw_bar(double share);

}  // namespace capstan
