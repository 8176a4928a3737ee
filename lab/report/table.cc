#include "lab/report/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "lab/report/lkp.h"
#include "lab/report/metrics.h"

namespace faultpath::lab {
namespace {

constexpr std::string_view kGreen = "\033[32m";
constexpr std::string_view kRed = "\033[31m";
constexpr std::string_view kPlain = "\033[0m";

std::string painted(std::string text, std::string_view color, bool use) {
  return use ? fmt::format("{}{}{}", color, text, kPlain) : text;
}

// Characters, not bytes.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

std::string padded(std::string text, std::size_t width) {
  const auto has = width_of(text);
  if (has < width) text.append(width - has, ' ');
  return text;
}

std::string without_trailing_blanks(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

std::string joined(const std::vector<std::string>& words, std::string_view between) {
  std::string text;
  for (const auto& w : words) {
    if (!text.empty()) text += between;
    text += w;
  }
  return text;
}

std::string number(double value) {
  if (value == 0) return "0";
  if (value >= 1000 && value < 1e9) return fmt::format("{:.0f}", value);
  return fmt::format("{:.4g}", value);
}

// What stands in `notes` about one variant: "host includes ..." gives "includes ...", and "host is
// the kernel" "the kernel".
std::string remark_on(const ResultSet& results, const std::string& variant) {
  std::string text;
  for (const auto& note : results.notes) {
    if (!note.starts_with(variant + " ")) continue;
    if (!text.empty()) text += "; ";
    auto remark = note.substr(variant.size() + 1);
    remark = remark.substr(0, remark.find(';'));  // the whole note stands further up
    text += remark.starts_with("is ") ? remark.substr(3) : remark;
  }
  return text;
}

// "9 runs of 2 s", or "7 to 9 runs of 2 s" where cells differ.
std::string runs_text(const ResultSet& results) {
  std::size_t least = SIZE_MAX;
  std::size_t most = 0;
  for (const auto& cell : results.cells) {
    least = std::min(least, cell.samples.size());
    most = std::max(most, cell.samples.size());
  }
  if (results.cells.empty()) least = 0;
  const auto count = least == most ? fmt::format("{} run{}", most, most == 1 ? "" : "s")
                                   : fmt::format("{} to {} runs", least, most);
  return fmt::format("{} of {} s", count, number(results.seconds));
}

void add_machine_block(std::string& out, const ResultSet& results) {
  const auto& m = results.machine;
  const auto line = [&](std::string_view label, std::string_view text) {
    if (!text.empty()) out += fmt::format("  {:<10}  {}\n", label, text);
  };
  line("machine", fmt::format("{}, {} CPU{}, {:.1f} GiB, {}", m.cpu_model, m.cpus,
                              m.cpus == 1 ? "" : "s", m.memory_gib, m.kernel));
  line("settings", fmt::format("page size {}, THP {}, ASLR {}, test files on {}", m.page_size,
                               m.thp, m.aslr, m.filesystem));
  line("built", fmt::format("faultpath {}, {}, workloads version {}", m.version, m.compiler,
                            results.workload_version));

  int rejected = 0;
  double own = 0, window = 0, foreign = 0, most_foreign = 0;
  std::size_t samples = 0;
  std::size_t noisy = 0;
  for (const auto& cell : results.cells) {
    rejected += cell.rejected_runs;
    for (const auto& s : cell.samples) {
      own += s.own_cpu;
      window += s.seconds;
      foreign += s.foreign_cpus;
      most_foreign = std::max(most_foreign, s.foreign_cpus);
      ++samples;
      noisy += s.noisy;
    }
  }
  std::string measured = fmt::format("{} for each figure", runs_text(results));
  if (variants_of(results).size() > 1) measured += ", policies taking turns";
  if (rejected > 0) {
    measured += fmt::format("; {} noisy run{} thrown away and repeated", rejected,
                            rejected == 1 ? "" : "s");
  }
  line("measured", fmt::format("{}{}{}", m.date, m.date.empty() ? "" : ", ", measured));
  if (samples > 0 && window > 0) {
    line("CPU use",
         fmt::format("{:.2f} CPUs by the runs themselves, {:.2f} by other programs (at "
                     "most {:.2f} in one run)",
                     own / window, foreign / static_cast<double>(samples), most_foreign));
  }
  if (noisy > 0) {
    line("noise", fmt::format("{} of {} runs were disturbed by other programs, even when repeated: "
                              "doubt their rows (\"!\")",
                              noisy, samples));
  }
  for (const auto& note : results.notes) line("note", note);
  line("command", results.command);
}

void add_axes(std::string& out, const ResultSet& results, const Group& group) {
  out += lkp_rule_line() + "\n";
  out += "filesystem/mode/runs/seconds/tasks/thp:\n";
  const auto& fs = results.machine.filesystem;  // "ext4 (/dev/vda on /)"
  out += fmt::format("  {}/{}/{}/{}/{}/{}\n\n", fs.substr(0, fs.find(' ')), name_of(group.mode),
                     results.repeats, number(results.seconds), group.tasks, results.machine.thp);
}

// A metric's name with what a reader has to know about its row.
std::string shown_metric(std::string_view workload, std::string_view metric, bool noisy) {
  return fmt::format("{}{}{}", metric, noisy ? " !" : "",
                     is_null_control(workload) ? " (null control)" : "");
}

std::string shown_workload(std::string_view workload) {
  if (is_null_control(workload)) return fmt::format("{} (null control)", workload);
  if (is_timed(workload)) return fmt::format("{} (time per access)", workload);
  return std::string(workload);
}

// The figures of lat_sig_prot once more, in lmbench's own words.
void add_lmbench(std::string& out, const ResultSet& results, const Group& group) {
  for (const auto& workload : group.workloads) {
    if (!is_timed(workload)) continue;
    for (const auto& variant : variants_of(results)) {
      const auto cell = find_cell(results, workload, variant, group.mode, group.tasks);
      const auto line = cell ? lmbench_line(*cell) : "";
      if (line.empty()) continue;
      out += fmt::format("\n{} of {}, as lmbench prints it:\n{}\n", workload, variant, line);
    }
  }
}

std::string policy_line(const ResultSet& results, const std::string& variant) {
  const auto remark = remark_on(results, variant);
  return remark.empty() ? fmt::format("  {}\n", variant)
                        : fmt::format("  {} ({})\n", variant, remark);
}

// "spf 2 of 9 runs noisy" for each variant that has some.
std::vector<std::string> noise_of(const ResultSet& results, const Group& group,
                                  const std::string& workload) {
  std::vector<std::string> lines;
  for (const auto& variant : variants_of(results)) {
    const auto cell = find_cell(results, workload, variant, group.mode, group.tasks);
    if (!cell) continue;
    const auto noisy = std::count_if(cell->samples.begin(), cell->samples.end(),
                                     [](const Sample& s) { return s.noisy; });
    if (noisy > 0) {
      lines.push_back(fmt::format("{} {} of {}", variant, noisy, cell->samples.size()));
    }
  }
  return lines;
}

void add_noise(std::string& out, const ResultSet& results, const Group& group) {
  std::string text;
  for (const auto& workload : group.workloads) {
    const auto lines = noise_of(results, group, workload);
    if (!lines.empty()) text += fmt::format("  {}: {}\n", workload, joined(lines, ", "));
  }
  if (text.empty()) return;
  out +=
      "\nNoisy rows (\"!\"): other programs took CPU time during these runs, even when "
      "repeated:\n" +
      text;
}

void add_wrong(std::string& out, const ResultSet& results, const Group& group,
               const TableStyle& style) {
  for (const auto& cell : results.cells) {
    if (cell.mode != group.mode || cell.tasks != group.tasks || cell.verified) continue;
    out += painted("WRONG", kRed, style.color) +
           fmt::format(" {}: {}\n", describe(cell.workload, cell.variant, cell.mode, cell.tasks),
                       cell.verify_error.empty() ? "not verified" : cell.verify_error);
  }
}

// The counters behind the figures, side by side. Rows that are zero everywhere are left out.
void add_counters(std::string& out, const ResultSet& results, const Group& group,
                  const TableStyle& style) {
  const auto variants = variants_of(results);
  constexpr std::size_t kName = 32;
  std::string body;
  for (const auto& workload : group.workloads) {
    std::vector<std::optional<Cell>> cells;
    std::vector<std::string> names;
    for (const auto& variant : variants) {
      cells.push_back(find_cell(results, workload, variant, group.mode, group.tasks));
      if (!cells.back()) continue;
      for (const auto& sample : cells.back()->samples) {
        for (const auto& [name, value] : sample.counters) {
          if (!style.all_counters && !explains_policy(name)) continue;
          if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
        }
      }
    }
    std::string rows;
    for (const auto& name : names) {
      std::string row = padded("    " + name, kName + 2);
      bool zero = true;
      for (std::size_t i = 0; i < variants.size(); ++i) {
        std::string text = "-";
        if (cells[i]) {
          if (const auto value = counter_per_operation(*cells[i], name)) {
            text = number(*value);
            zero = zero && *value == 0;
          }
        }
        row += fmt::format("  {:>{}}", text, std::max<std::size_t>(12, width_of(variants[i])));
      }
      if (!zero) rows += row + "\n";
    }
    if (!rows.empty()) body += fmt::format("  {}\n{}", workload, rows);
  }
  if (body.empty()) return;
  std::string head = padded("  counted per operation", kName + 2);
  for (const auto& variant : variants) {
    head += fmt::format("  {:>{}}", variant, std::max<std::size_t>(12, width_of(variant)));
  }
  out += fmt::format("\nWhy (\"-\": not counted by that policy; _ns: nanoseconds waited):\n{}\n{}",
                     head, body);
}

std::string verdict_text(const ResultComparison& row) {
  if (!row.verified) return "WRONG RESULT";
  const auto& c = row.comparison;
  std::string text(name_of(c.verdict));
  if (c.rank_test && c.verdict != Verdict::same) {
    text +=
        c.rank_test->p < 0.001 ? std::string(" p<0.001") : fmt::format(" p={:.2g}", c.rank_test->p);
  }
  if (c.base.n != c.head.n && c.base.n > 0 && c.head.n > 0) {
    text += fmt::format(" n={}:{}", c.base.n, c.head.n);
  }
  return text;
}

std::string_view color_of(const ResultComparison& row) {
  if (!row.verified || row.comparison.verdict == Verdict::worse) return kRed;
  return row.comparison.verdict == Verdict::better ? kGreen : std::string_view();
}

std::string_view good_text(Direction direction) {
  switch (direction) {
    case Direction::higher_is_better: return "more";
    case Direction::lower_is_better: return "less";
    case Direction::none: return "-";
  }
  return "";
}

std::optional<LkpFigure> figure_of(const Summary& s) {
  if (s.n == 0) return std::nullopt;
  return LkpFigure{s.mean, s.stddev_percent};
}

using Rows = std::vector<ResultComparison>;

const ResultComparison* find_row(const Rows& rows, const Group& group, std::string_view workload,
                                 std::string_view head, std::string_view metric) {
  for (const auto& row : rows) {
    if (row.mode == group.mode && row.tasks == group.tasks && row.workload == workload &&
        row.head == head && row.comparison.name == metric) {
      return &row;
    }
  }
  return nullptr;
}

void add_block(std::string& out, const ResultSet& results, const Group& group, const Rows& rows,
               const TableStyle& style) {
  out += "\n";
  add_axes(out, results, group);
  out += "policy:\n" + policy_line(results, results.base);
  for (const auto& head : results.heads) out += policy_line(results, head);
  out += "\n";

  struct Line {
    std::string metric;   // as shown
    std::string figures;  // without the metric's name
    std::string good;
    std::vector<const ResultComparison*> heads;
    bool first = false;  // of its workload
  };
  std::vector<Line> lines;
  for (const auto& workload : group.workloads) {
    std::vector<std::string> metrics;
    for (const auto& row : rows) {
      if (row.mode == group.mode && row.tasks == group.tasks && row.workload == workload &&
          std::find(metrics.begin(), metrics.end(), row.comparison.name) == metrics.end()) {
        metrics.push_back(row.comparison.name);
      }
    }
    const bool noisy = !noise_of(results, group, workload).empty();
    for (const auto& metric : metrics) {
      Line line;
      line.metric = shown_metric(workload, metric, noisy);
      line.first = &metric == &metrics.front();
      std::optional<LkpFigure> base;
      std::vector<std::optional<LkpFigure>> heads;
      for (const auto& head : results.heads) {
        const auto* row = find_row(rows, group, workload, head, metric);
        line.heads.push_back(row);
        heads.push_back(row ? figure_of(row->comparison.head) : std::nullopt);
        if (!row) continue;
        line.good = good_text(row->comparison.direction);
        if (!base) base = figure_of(row->comparison.base);
      }
      line.figures = lkp_row("", base, heads);
      lines.push_back(std::move(line));
    }
  }

  std::size_t metric_width = 6;
  std::vector<std::size_t> widths;
  for (const auto& head : results.heads) widths.push_back(width_of(head));
  for (const auto& line : lines) {
    metric_width = std::max(metric_width, width_of(line.metric));
    for (std::size_t i = 0; i < line.heads.size(); ++i) {
      if (line.heads[i]) widths[i] = std::max(widths[i], width_of(verdict_text(*line.heads[i])));
    }
  }

  auto heading = lkp_heading(results.base, results.heads);
  heading.names += " " + padded("metric", metric_width) + "  good";
  heading.dashes += " " + std::string(metric_width, '-') + "  ----";
  for (std::size_t i = 0; i < widths.size(); ++i) {
    heading.names += "  " + padded(results.heads[i], widths[i]);
    heading.dashes += "  " + std::string(widths[i], '-');
  }
  for (const auto* line : {&heading.names, &heading.dashes, &heading.labels, &heading.marks}) {
    out += without_trailing_blanks(*line) + "\n";
  }
  for (const auto& line : lines) {
    if (line.first && &line != &lines.front()) out += "\n";
    out += line.figures + padded(line.metric, metric_width) + fmt::format("  {:<4}", line.good);
    for (std::size_t i = 0; i < line.heads.size(); ++i) {
      const auto* row = line.heads[i];
      std::string verdict = row ? verdict_text(*row) : "n/a";
      const bool last = i + 1 == line.heads.size();
      const auto blanks = last ? 0 : widths[i] - width_of(verdict);
      const auto color = row ? color_of(*row) : std::string_view();
      out += "  " + painted(std::move(verdict), color, style.color && !color.empty()) +
             std::string(blanks, ' ');
    }
    out += "\n";
  }
  add_noise(out, results, group);
  add_counters(out, results, group, style);
  add_lmbench(out, results, group);
  add_wrong(out, results, group, style);
}

// The headlines alone: what a reader takes home.
void add_summary(std::string& out, const ResultSet& results, const std::vector<Group>& groups,
                 const Rows& rows, const TableStyle& style) {
  out += "\n" + lkp_rule_line() + "\n";
  out += fmt::format("In short: operations per second, against {}\n", results.base);
  std::size_t workload_width = 0;
  for (const auto& row : rows) {
    workload_width = std::max(workload_width, width_of(shown_workload(row.workload)));
  }
  constexpr std::size_t kCell = 24;
  std::string head = padded("  ", workload_width + 21);
  for (const auto& variant : results.heads) {
    head += "  " + padded(variant, std::max(kCell, width_of(variant)));
  }
  out += without_trailing_blanks(head) + "\n";
  for (const auto& group : groups) {
    for (const auto& workload : group.workloads) {
      const bool noisy = !noise_of(results, group, workload).empty();
      std::string line =
          padded("  " + shown_workload(workload) + (noisy ? " !" : ""), workload_width + 6) +
          padded(fmt::format("{}, {}", name_of(group.mode), group.tasks), 15);
      for (const auto& variant : results.heads) {
        const auto metric = headline_metric(workload, group.mode);
        const auto* row = find_row(rows, group, workload, variant, metric);
        std::string change = "n/a";
        std::string verdict = "no data";
        std::string_view color;
        if (row) {
          const auto& c = row->comparison;
          change = c.change_percent ? fmt::format("{:+.1f}%", *c.change_percent + 0.0)
                   : c.change       ? "new"
                                    : "n/a";
          verdict = row->verified ? std::string(name_of(c.verdict)) : "WRONG RESULT";
          color = color_of(*row);
        }
        const auto text_width = 9 + width_of(verdict);
        const auto cell_width = std::max(kCell, width_of(variant));
        line += fmt::format("  {:>8} ", change) +
                painted(verdict, color, style.color && !color.empty()) +
                std::string(cell_width > text_width ? cell_width - text_width : 0, ' ');
      }
      out += without_trailing_blanks(line) + "\n";
    }
  }
}

}  // namespace

std::vector<std::string> wrong_results(const ResultSet& results) {
  std::vector<std::string> lines;
  for (const auto& cell : results.cells) {
    if (cell.verified) continue;
    lines.push_back(fmt::format("{}: {}",
                                describe(cell.workload, cell.variant, cell.mode, cell.tasks),
                                cell.verify_error.empty() ? "not verified" : cell.verify_error));
  }
  return lines;
}

std::string compare_table(const ResultSet& results, const TableStyle& style) {
  const auto groups = groups_of(results);
  const auto rows = compare_results(results);
  std::string out =
      fmt::format("Faultpath: {} against {}\n\n", results.base, joined(results.heads, ", "));
  add_machine_block(out, results);
  out += fmt::format(
      "\n"
      "How to read it. A figure is the mean of its runs; \"±  5%\" is their standard deviation in\n"
      "percent of the mean, not shown up to 2%. %change is from {}'s mean to the column's.\n"
      "Operations are per second and task: more is better. Latencies are of the operations that "
      "may\n"
      "fault, in the faulting tasks, sampled: less is better. \"better\" and \"worse\" are said "
      "only\n"
      "of a difference that stands out of the noise: each side's extreme run lies beyond the "
      "other's\n"
      "median (LKP's rule) and, with {} or more runs a side, Mann-Whitney's p is below {}. p is "
      "the\n"
      "chance of so clear a difference between equal policies. Without a good side: \"changed\".\n",
      results.base, kRankTestSamples, kAlpha);
  for (const auto& group : groups) add_block(out, results, group, rows, style);
  add_summary(out, results, groups, rows, style);
  return out;
}

std::string run_table(const ResultSet& results, const TableStyle& style) {
  const auto variants = variants_of(results);
  std::string out = fmt::format("Faultpath: {}\n\n", joined(variants, ", "));
  add_machine_block(out, results);
  out +=
      "\n"
      "How to read it. A figure is the mean of its runs; \"±  5%\" is their standard deviation in\n"
      "percent of the mean, not shown up to 2%. Operations are per second and task: more is "
      "better.\n"
      "Latencies are of the operations that may fault, in the faulting tasks, sampled: less is "
      "better.\n";
  for (const auto& group : groups_of(results)) {
    out += "\n";
    add_axes(out, results, group);
    out += "policy:\n";
    for (const auto& variant : variants) out += policy_line(results, variant);
    out += "\n";
    std::string names, dashes, labels;
    std::vector<std::size_t> widths;
    for (const auto& variant : variants) {
      widths.push_back(std::max<std::size_t>(16, width_of(variant)));
      names += padded(variant, widths.back() + 2);
      dashes += std::string(widths.back(), '-') + "  ";
      labels += padded(fmt::format("{:>16}", "%stddev"), widths.back() + 2);
    }
    out += names + "metric\n" + dashes + "------\n" + without_trailing_blanks(labels) + "\n";
    for (const auto& workload : group.workloads) {
      std::vector<Metric> metrics;
      std::vector<std::vector<Metric>> columns;
      for (const auto& variant : variants) {
        const auto cell = find_cell(results, workload, variant, group.mode, group.tasks);
        columns.push_back(cell ? metrics_of(*cell) : std::vector<Metric>());
        for (const auto& m : columns.back()) add_metric(metrics, m);
      }
      if (&workload != &group.workloads.front()) out += "\n";
      const bool noisy = !noise_of(results, group, workload).empty();
      for (const auto& metric : metrics) {
        for (std::size_t i = 0; i < variants.size(); ++i) {
          std::optional<LkpFigure> figure;
          for (const auto& m : columns[i]) {
            if (m.name == metric.name) figure = figure_of(summarize(m.samples));
          }
          out += padded(lkp_figure(figure), widths[i] + 2);
        }
        out += shown_metric(workload, metric.name, noisy) + "\n";
      }
    }
    add_noise(out, results, group);
    add_counters(out, results, group, style);
    add_lmbench(out, results, group);
    add_wrong(out, results, group, style);
  }
  return out;
}

}  // namespace faultpath::lab
