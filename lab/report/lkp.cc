#include "lab/report/lkp.h"

#include <fmt/format.h>

#include <cmath>

namespace faultpath::lab {
namespace {

constexpr double kShownDeviation = 2;  // percent; LKP keeps silent up to here

bool in_points(std::string_view metric) {
  return metric.starts_with("perf-profile") || metric.ends_with('%');
}

}  // namespace

std::string lkp_figure(const std::optional<LkpFigure>& figure) {
  if (!figure || !std::isfinite(figure->mean)) return fmt::format("{:>10}{:6}", "-", "");
  const double size = std::fabs(figure->mean);
  std::string text;
  if (size < 1000) {
    text = fmt::format("{:10.2f}", figure->mean);
  } else if (size > 1e8) {
    text = fmt::format("{:10.4g}", figure->mean);
  } else {
    text = fmt::format("{:10d}", static_cast<long long>(figure->mean));
  }
  const auto deviation = figure->stddev_percent;
  if (!deviation || !(*deviation > kShownDeviation)) return text + std::string(6, ' ');
  return text + fmt::format(" ±{:3d}%", static_cast<long long>(std::fmin(*deviation, 1e6)));
}

std::string lkp_change(std::string_view metric, const std::optional<LkpFigure>& base,
                       const std::optional<LkpFigure>& head) {
  if (!base || !head || !std::isfinite(base->mean) || !std::isfinite(head->mean)) {
    return fmt::format("{:>11} ", "n/a");
  }
  const double change = head->mean - base->mean;
  if (in_points(metric)) return fmt::format("{:+10.1f}  ", change);
  if (base->mean == 0 && head->mean != 0) return fmt::format("{:>11} ", "new");
  // "+ 0.0" so that no change is not printed as -0.0.
  const double percent = base->mean == 0 ? 0.0 : 100 * change / std::fabs(base->mean) + 0.0;
  if (std::fabs(percent) >= 100000) return fmt::format("{:+10.2g}% ", percent);
  return fmt::format("{:+10.1f}% ", percent);
}

std::string lkp_row(std::string_view metric, const std::optional<LkpFigure>& base,
                    std::span<const std::optional<LkpFigure>> heads) {
  std::string row = lkp_figure(base);
  for (const auto& head : heads) row += lkp_change(metric, base, head) + lkp_figure(head);
  return row + "  " + std::string(metric);
}

LkpHeading lkp_heading(std::string_view base, std::span<const std::string> heads) {
  LkpHeading h;
  h.names = fmt::format("{:16.16} ", base);
  h.dashes = std::string(16, '-') + ' ';
  h.labels = fmt::format("{:>16}", "%stddev");
  h.marks = fmt::format("{:>14}  ", "\\");
  for (const auto& head : heads) {
    h.names += fmt::format("{:27.27} ", head);
    h.dashes += std::string(27, '-') + ' ';
    h.labels += fmt::format("{:>12}{:>16}", "%change", "%stddev");
    h.marks += fmt::format("{:>9}   {:>14}  ", "|", "\\");
  }
  return h;
}

std::string lkp_rule_line() { return std::string(89, '='); }

}  // namespace faultpath::lab
