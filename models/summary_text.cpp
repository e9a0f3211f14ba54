// A summary as the table that `capstan inspect` prints. tests/models/test_summary.cpp.
#include <algorithm>

#include "core/strings/strings.hpp"
#include "models/summary.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

/// 1234567 -> "1,234,567".
std::string grouped(int64_t number) {
  std::string digits = std::to_string(number);
  for (int64_t at = static_cast<int64_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<size_t>(at), ",");
  return digits;
}

/// The number with three or four digits and the prefix of its unit: 1536, 1024 -> "1.50 Ki".
std::string scaled(double number, double base) {
  const char* const decimal[] = {"", "k", "M", "G", "T", "P"};
  const char* const binary[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi"};
  size_t unit = 0;
  for (; number >= base && unit < 5; ++unit) number /= base;
  const char* const name = base == 1024 ? binary[unit] : decimal[unit];
  return fmt::format("{:.{}f} {}", number, unit == 0 ? 0 : number < 10 ? 2 : number < 100 ? 1 : 0, name);
}

/// One line of the table of parts, a text per column.
using Cells = std::vector<std::string>;

Cells cells_of(const LayerSummary& layer, bool decodes) {
  Cells cells = {layer.name, layer.mixer, grouped(layer.parameters), scaled(layer.flops, 1000) + "FLOP",
                 scaled(layer.activation_bytes, 1024) + "B"};
  if (decodes) {
    cells.push_back(scaled(layer.decode_flops, 1000) + "FLOP");
    cells.push_back(layer.state_bytes == 0 ? "" : scaled(static_cast<double>(layer.state_bytes), 1024) + "B");
  }
  return cells;
}

/// The table as text: the two columns of names left-aligned, the figures right-aligned.
std::string aligned(const std::vector<Cells>& table) {
  std::vector<size_t> widths(table[0].size(), 0);
  for (const Cells& line : table)
    for (size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  std::string text;
  for (const Cells& line : table) {
    std::string out;
    for (size_t i = 0; i < line.size(); ++i)
      out += i < 2 ? fmt::format("{:<{}}  ", line[i], widths[i]) : fmt::format("{:>{}}  ", line[i], widths[i]);
    out.erase(out.find_last_not_of(' ') + 1);
    text += out + "\n";
  }
  return text;
}

}  // namespace

std::string to_text(const ModelSummary& summary) {
  if (!summary.text.empty()) return summary.text;
  std::vector<Cells> table = {{"part", "mixer", "parameters", "forward/token", "kept/token"}};
  if (summary.decodes) table[0].insert(table[0].end(), {"decode/token", "decode state"});
  LayerSummary total;
  total.name = "total";
  total.parameters = summary.parameters();
  total.flops = summary.flops();
  total.decode_flops = summary.decode_flops();
  total.activation_bytes = summary.activation_bytes();
  total.state_bytes = summary.state_bytes();
  for (const LayerSummary& layer : summary.layers) table.push_back(cells_of(layer, summary.decodes));
  table.push_back(cells_of(total, summary.decodes));
  const std::string frozen =
      summary.frozen > 0 ? fmt::format("; {} parameters are frozen", grouped(summary.frozen)) : "";
  const std::string estimated = summary.estimated.empty()
                                    ? ""
                                    : fmt::format(
                                          "of {}, only products with parameters are counted, and a step reads "
                                          "all tokens again\n",
                                          join(summary.estimated));
  return aligned(table) +
         fmt::format("at {} tokens per document; training takes {}FLOP per token{}\n", summary.length,
                     scaled(summary.training_flops(), 1000), frozen) +
         estimated;
}

}  // namespace capstan::CAPSTAN_PRECISION
