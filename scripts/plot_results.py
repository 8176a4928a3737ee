#!/usr/bin/env python3
"""Draws a results document of `faultpath compare --json` as an SVG bar chart.

Usage: plot_results.py RESULTS.json OUT.svg

Each group of bars is a workload with a number of tasks; a bar is a policy's mean operations per
second over the base's mean, its whisker the range of the runs. `host` is left out: its faults are
hardware traps and on another scale. For people who make the README's picture; nothing else needs it.
"""
import json
import sys
from xml.sax.saxutils import escape

COLOURS = ["#8c8c8c", "#2b7bba", "#d1632f", "#3f9b57"]


def main() -> int:
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    with open(sys.argv[1], encoding="utf-8") as f:
        doc = json.load(f)
    policies = [doc["base"]] + [h for h in doc["heads"] if h != "host"]
    cells = {}
    for run in doc["runs"]:
        key = (run["workload"], run["tasks"])
        cells.setdefault(key, {})[run["policy"]] = [x for x in run["ops_per_second"] if x]
    groups = [(k, v) for k, v in cells.items() if v.get(doc["base"])]
    bar, gap, left, top, height = 22, 26, 60, 60, 240
    group_width = bar * len(policies) + gap
    width = left + group_width * len(groups) + 60
    ratios = {}
    for key, runs in groups:
        base = sum(runs[doc["base"]]) / len(runs[doc["base"]])
        for p in policies:
            s = [x / base for x in runs.get(p, [])]
            if s:
                ratios[key, p] = (sum(s) / len(s), min(s), max(s))
    most = max(2.0, min(3.0, max(r[2] for r in ratios.values())))
    y = lambda v: top + height - height * min(v, most) / most
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{top + height + 74}" '
        'font-family="sans-serif" font-size="11">',
        f'<rect width="100%" height="100%" fill="white"/>',
        f'<text x="{left}" y="18" font-size="13">Operations per second over '
        f'{escape(doc["base"])} (bars: mean, whiskers: range of the runs; higher is better)</text>',
    ]
    for i, p in enumerate(policies):
        out.append(f'<rect x="{left + i * 130}" y="26" width="10" height="10" fill="{COLOURS[i]}"/>')
        out.append(f'<text x="{left + i * 130 + 14}" y="35">{escape(p)}</text>')
    step = 0.5
    for n in range(int(most / step) + 1):
        v = n * step
        out.append(f'<line x1="{left}" x2="{width - 10}" y1="{y(v):.1f}" y2="{y(v):.1f}" '
                   f'stroke="{"#555" if v == 1 else "#ddd"}"/>')
        out.append(f'<text x="{left - 8}" y="{y(v) + 4:.1f}" text-anchor="end">{v:.1f}</text>')
    for g, (key, _) in enumerate(groups):
        x0 = left + gap / 2 + g * group_width
        for i, p in enumerate(policies):
            if (key, p) not in ratios:
                continue
            mean, low, high = ratios[key, p]
            x = x0 + i * bar
            out.append(f'<rect x="{x:.1f}" y="{y(mean):.1f}" width="{bar - 3}" '
                       f'height="{top + height - y(mean):.1f}" fill="{COLOURS[i]}"/>')
            mid = x + (bar - 3) / 2
            out.append(f'<line x1="{mid:.1f}" x2="{mid:.1f}" y1="{y(low):.1f}" '
                       f'y2="{y(high):.1f}" stroke="black"/>')
            if mean > most:
                out.append(f'<text x="{mid:.1f}" y="{top - 2}" text-anchor="middle">{mean:.1f}</text>')
        cx = x0 + bar * len(policies) / 2
        out.append(f'<text transform="translate({cx:.1f},{top + height + 14}) rotate(20)">'
                   f'{escape(key[0])}, {key[1]}</text>')
    out.append("</svg>")
    with open(sys.argv[2], "w", encoding="utf-8") as f:
        f.write("\n".join(out) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
