// The comparison table of Intel's LKP, as the kernel test robot mails it: columns, byte for byte.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace faultpath::lab {

/// One figure. `stddev_percent` absent: a single run, or nothing known.
struct LkpFigure {
  double mean = 0;
  std::optional<double> stddev_percent;
};

/// 16 columns: the mean, and ` ±  5%` where the deviation is over 2%. A missing figure is a dash.
std::string lkp_figure(const std::optional<LkpFigure>& figure);

/// 12 columns: `   -59.5% `, or points without `%` where the metric's name ends in `%` or starts
/// with perf-profile. Unlike LKP, a base of zero gives `new` (or +0.0%), a missing side `n/a`.
std::string lkp_change(std::string_view metric, const std::optional<LkpFigure>& base,
                       const std::optional<LkpFigure>& head);

/// A whole row without its line end; each head's change is against `base`.
std::string lkp_row(std::string_view metric, const std::optional<LkpFigure>& base,
                    std::span<const std::optional<LkpFigure>> heads);

/// The four lines over the rows: names, dashes, what stands where.
struct LkpHeading {
  std::string names, dashes, labels, marks;
};
LkpHeading lkp_heading(std::string_view base, std::span<const std::string> heads);

/// The line of 89 `=` over a block.
std::string lkp_rule_line();

}  // namespace faultpath::lab
